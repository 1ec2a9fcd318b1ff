"""Cancelling at any moment: back within a second, every call answered once, and the next prompt works."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents import make_agent
from destinations import MAIN, connection
from dragoman.loop.agent import Agent
from dragoman.loop.options import AnswerPolicy
from dragoman.loop.run import Run
from dragoman.testing.mock.server import MockServer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.tools.function import tool
from dragoman.values.calls import Allow, Deny, Intent, Show
from dragoman.values.errors import Cancelled
from dragoman.values.events import Retrying, TextDelta, ToolCallConfirmation, ToolCallRequested, TurnEvent, UserCancelled
from dragoman.values.messages import Text, ToolCall
from dragoman.values.record import ToolFinished
from processes import alive, gone_within, marked_sleep
from scenarios.harness import until
from scenarios.workshop import QUICK, PlainTool, agent_for, check_record, finished_calls, forever, play, said, writer

Moment = Callable[[list[TurnEvent]], Awaitable[object]]


async def allow(call: ToolCall, view: Intent) -> Allow | Deny:
    return Allow()


async def cancelled_when(agent: Agent, ready: Moment, prompt: str = "first") -> tuple[Run, list[TurnEvent]]:
    """A run that is cancelled as soon as `ready` returns; it must end, though what it waits for never does."""
    events: list[TurnEvent] = []

    async def read() -> None:
        async for event in run:
            events.append(event)  # noqa: PERF401  others look on

    run = agent.run(prompt)
    reading = asyncio.create_task(read())
    async with asyncio.timeout(60):
        await ready(events)
    run.cancel()
    async with asyncio.timeout(60):
        await reading
    assert isinstance(events[-1], UserCancelled)
    requested = [event.call.id for event in events if isinstance(event, ToolCallRequested)]
    assert sorted(finished_calls(events)) == sorted(requested), "each call is answered once"
    with pytest.raises(Cancelled):
        await run
    assert (run.result.exit_code, run.result.error_type) == (130, "Cancelled")
    check_record(agent.history)
    return run, events


async def goes_on(agent: Agent) -> None:
    """The next prompt works, and holds what was asked before once."""
    assert (await asyncio.wait_for(agent.run("second"), 60)).text == "Good."
    assert (said(agent.history, "first"), said(agent.history, "second")) == (1, 1)
    check_record(agent.history)


def event_of(kind: type[TurnEvent]) -> Moment:  # type: ignore[valid-type]
    return lambda events: until(lambda: any(isinstance(event, kind) for event in events))


def set_once(event: asyncio.Event) -> Moment:
    return lambda events: event.wait()


@asynccontextmanager
async def service(protocol: str, script: str) -> AsyncIterator[tuple[Agent, MockServer]]:
    async with MockServer(script) as server:
        where = connection(protocol, server.url + ("/v1" if protocol.startswith("openai") else ""))
        async with agent_for(where, PlainTool()) as agent:
            yield agent, server
        assert [exchange.violation for exchange in server.requests] == [None] * len(server.requests)


# --- while there is no answer yet ---------------------------------------------------------------------------------------------------


@contextmanager
def deaf_port() -> Iterator[int]:
    """Connections to it are never made: its queue is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        try:
            yield port
        finally:
            for each in waiting:
                each.close()


def test_while_connecting() -> None:
    async def go() -> None:
        with deaf_port() as port:
            agent = agent_for(connection("gemini", f"http://127.0.0.1:{port}"))
            await cancelled_when(agent, lambda events: asyncio.sleep(0.1))
            await agent.provider.aclose()
            agent.change_model(ScriptedProvider("text: Good."))
            await goes_on(agent)

    play(go)


@pytest.mark.parametrize("protocol", MAIN)
@pytest.mark.parametrize("script", ["wait: 300\ntext: never", "stall\ntext: never", "ping: forever every=0.01\ntext: never"])
def test_while_the_service_says_nothing(protocol: str, script: str) -> None:
    async def go() -> None:
        async with service(protocol, f"{script}\n---\ntext: Good.") as (agent, server):

            async def was_asked(events: list[TurnEvent]) -> None:
                await until(lambda: bool(server.requests))
                await asyncio.sleep(0.05)

            await cancelled_when(agent, was_asked)
            await goes_on(agent)

    play(go)


@pytest.mark.parametrize("protocol", MAIN)
def test_in_the_middle_of_an_answer(protocol: str) -> None:
    """What a person has read of it stays; a call it held is not run, and the model is told so."""
    script = 'text: Half an answer\ncall: look {"what": "a"}\nstall\n---\ntext: Good.'

    async def go() -> None:
        async with service(protocol, script) as (agent, server):
            await cancelled_when(agent, event_of(TextDelta))
            await goes_on(agent)
            assert str(server.requests[-1].body).count("Half an answer") == 1
            finished = [entry for entry in agent.history.entries if isinstance(entry, ToolFinished)]
            told = [(entry.outcome, entry.result.content) for entry in finished]
            whole = protocol != "openai_chat"  # which says only at the end of an answer that a call is complete
            assert told == [("cancelled", (Text("Cancelled by the user before it was run."),))] * whole

    play(go)


def test_while_waiting_to_try_again() -> None:
    """PV03: the countdown is cancellable."""

    async def go() -> None:
        async with service("gemini", "error: 429 retry_after=30\n---\ntext: Good.") as (agent, server):
            await cancelled_when(agent, event_of(Retrying))
            await goes_on(agent)
            assert len(server.requests) == 2

    play(go)


def test_while_waiting_after_an_empty_answer() -> None:
    async def go() -> None:
        patient = msgspec.structs.replace(QUICK, answers=AnswerPolicy(delay_s=60))
        agent = agent_for("finish: stop\n---\ntext: Good.", limits=patient)
        await cancelled_when(agent, event_of(Retrying))
        await goes_on(agent)

    play(go)


# --- while a person thinks ------------------------------------------------------------------------------------------------------------


def test_while_a_person_is_asked() -> None:
    script = 'call: change {"what": "a"}\ncall: look {"what": "b"}\n---\ntext: Good.'

    async def go() -> None:
        async def never(call: ToolCall, view: Intent) -> Allow | Deny:
            await asyncio.Event().wait()
            raise AssertionError

        changing, looking = writer(), PlainTool()
        agent = agent_for(script, changing, looking, ask=never)
        run, _ = await cancelled_when(agent, event_of(ToolCallConfirmation))
        assert (changing.asked, looking.asked) == ([], []), "what stood behind the question was not run either"
        assert run.result.tool_calls == 2
        await goes_on(agent)

    play(go)


def test_while_a_person_is_asked_who_will_not_be_interrupted() -> None:
    async def go() -> None:
        async def stubborn(call: ToolCall, view: Intent) -> Allow | Deny:
            for _ in range(20):
                try:
                    await asyncio.sleep(0.1)
                except asyncio.CancelledError:
                    pass
            return Allow()

        changing = writer()
        agent = agent_for('call: change {"what": "a"}\n---\ntext: Good.', changing, ask=stubborn)
        await cancelled_when(agent, event_of(ToolCallConfirmation))
        await goes_on(agent)
        assert changing.asked == []

    play(go)


# --- while tools run --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3])
def test_while_tools_run(count: int) -> None:
    """PV14: cancel while three tools run; after it every call has exactly one result, and the next request is valid."""
    script = "\n".join(f'call: slow {{"what": "{number}"}}' for number in range(count)) + "\n---\ntext: Good."

    async def go() -> None:
        slow = PlainTool("slow", forever)
        agent = agent_for(script, slow)
        run, _ = await cancelled_when(agent, lambda events: until(lambda: len(slow.asked) == count))
        assert (run.result.tool_calls, run.result.tool_failures) == (count, count)
        await goes_on(agent)

    play(go)


def test_a_tool_that_will_not_stop_is_left_behind_and_the_model_is_told() -> None:
    async def go() -> None:
        may_end, has_ended = asyncio.Event(), asyncio.Event()

        async def stubborn(args: Mapping[str, Any], show: Show) -> str:
            while not may_end.is_set():
                try:
                    await may_end.wait()
                except asyncio.CancelledError:
                    pass
            has_ended.set()
            return "at last"

        slow = PlainTool("slow", stubborn)
        agent = agent_for('call: slow {"what": "a"}\n---\ntext: Good.', slow)
        await cancelled_when(agent, set_once(slow.running))
        told = agent.history.view.messages[-1].results[0].content[0].text  # type: ignore[union-attr]
        assert "still be running" in told
        await goes_on(agent)
        entries = list(agent.history.entries)
        assert not has_ended.is_set()
        may_end.set()
        await has_ended.wait()
        await asyncio.sleep(0.1)
        assert agent.history.entries == entries, "what it does in the end is not heard"

    play(go)


def test_a_function_that_blocks_is_left_behind() -> None:
    async def go() -> None:
        began, stop = threading.Event(), threading.Event()

        @tool
        def block() -> str:
            """Block."""
            began.set()
            stop.wait(300)
            return "at last"

        async def blocks(events: list[TurnEvent]) -> None:
            await asyncio.to_thread(began.wait, 60)

        agent = agent_for("call: block {}\n---\ntext: Good.", block)  # type: ignore[arg-type]
        await cancelled_when(agent, blocks)
        await goes_on(agent)
        stop.set()

    play(go)


def test_finished_siblings_keep_their_results() -> None:
    script = 'call id=a: look {"what": "1"}\ncall id=b: slow {"what": "2"}\ncall id=c: change {"what": "3"}\n---\ntext: Good.'

    async def go() -> None:
        slow, changing = PlainTool("slow", forever), writer()
        agent = agent_for(script, PlainTool(), slow, changing, ask=allow)

        async def one_is_done(events: list[TurnEvent]) -> None:
            await slow.running.wait()
            await until(lambda: "a" in finished_calls(events))

        await cancelled_when(agent, one_is_done)
        results = agent.history.view.messages[-1].results
        assert [(each.call_id, each.is_error) for each in results] == [("a", False), ("b", True), ("c", True)]
        assert changing.asked == [], "nothing behind a barrier starts any more"
        await goes_on(agent)

    play(go)


@pytest.mark.skipif(os.name != "posix", reason="process groups")
@pytest.mark.parametrize("command", ["touch began; {}", "{} & touch began; wait", "trap '' TERM INT; touch began; {}"])
def test_a_command_ends_with_everything_it_started(tmp_path: Path, command: str) -> None:
    """Told by the name of its sleep: a number may be another process's by now."""
    sleep = marked_sleep()

    async def go() -> None:
        called = msgspec.json.encode({"command": command.format(sleep)}).decode()
        provider = ScriptedProvider(f"call: run_shell {called}\n---\ntext: Good.")
        agent = make_agent(provider, workspace=tmp_path, builtin=["run_shell"], describe=False, ask=allow, limits=QUICK)
        await cancelled_when(agent, lambda events: until(lambda: (tmp_path / "began").exists() and bool(alive(sleep))))
        assert await asyncio.to_thread(gone_within, 60, sleep), "the command outlived its call"
        await goes_on(agent)

    play(go, within_s=120)


# --- over and over ------------------------------------------------------------------------------------------------------------------------


def test_cancelled_again_and_again_the_conversation_stays_whole() -> None:
    async def go() -> None:
        script = "\n---\n".join(
            ["text: Half\nstall", 'call: slow {"what": "a"}', "stall", 'call: slow {"what": "b"}'] * 5 + ["text: Good."]
        )
        slow = PlainTool("slow", forever)
        agent = agent_for(script, slow)
        for number in range(20):
            run = agent.run(f"prompt {number}")
            async with run:
                await asyncio.sleep(0.005)
                run.cancel()
            check_record(agent.history, protocols=())
        check_record(agent.history)
        assert (await agent.run("last")).text == "Good."
        assert [said(agent.history, f"prompt {number}") for number in range(20)] == [1] * 20

    play(go)
