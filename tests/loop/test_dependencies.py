"""Dependencies of an agent and of one run, as its tools find them; images that functions return, on their way to the service."""

from __future__ import annotations

import asyncio
import base64
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

import pytest

import dragoman as dm
from destinations import MAIN, connection
from dragoman.base import jsontext
from dragoman.contracts import Media
from dragoman.errors import Cancelled
from dragoman.testing.mock.server import MockServer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.events import ToolCallFinished, ToolCallUpdated, UserCancelled

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
CALLS = 'call: tides {"harbour": "Muscat"}\n---\ntext: At 04:05.\n---\n'


@dataclass
class Almanac:
    name: str


def tides(context: dm.ToolContext[Almanac], harbour: str) -> str:
    """When the tide is high."""
    return f"{harbour} in {context.deps.name}"


def results(provider: ScriptedProvider) -> list[str]:
    """What the model was told of each call, in the order of the requests."""
    return [result.text for result in provider.requests[-1].messages[-1].results]


# --- dependencies


def test_tools_find_what_the_agent_was_given() -> None:
    provider = ScriptedProvider(CALLS)
    with dm.Agent(provider, deps=Almanac("1842"), tools=[tides]) as agent:
        agent.run_sync("When?")
    assert results(provider) == ["Muscat in 1842"]


def test_a_run_may_have_its_own_and_the_next_has_the_agents_again() -> None:
    provider = ScriptedProvider(CALLS * 4)
    with dm.Agent(provider, deps=Almanac("1842"), tools=[tides]) as agent:
        agent.run_sync("When?", deps=Almanac("1843"))
        assert results(provider) == ["Muscat in 1843"]
        for _ in agent.stream_sync("When?", deps=Almanac("1844")):
            pass
        assert results(provider) == ["Muscat in 1844"]
        agent.run_sync("When?")
        assert results(provider) == ["Muscat in 1842"]

        async def go() -> None:
            await agent.run("When?", deps=Almanac("1845"), output=str)

        asyncio.run(go())
        assert results(provider) == ["Muscat in 1845"]


def test_none_is_something_one_can_give() -> None:
    provider = ScriptedProvider(CALLS)

    def tides(context: dm.ToolContext[Almanac | None], harbour: str) -> str:
        return repr(context.deps)

    with dm.Agent[Almanac | None](provider, deps=Almanac("1842"), tools=[tides]) as agent:
        agent.run_sync("When?", deps=None)
    assert results(provider) == ["None"]


def test_an_output_function_finds_them_too() -> None:
    def chosen(context: dm.ToolContext[Almanac], harbour: str) -> str:
        return f"{harbour} by {context.deps.name}, turn {context.run.turn}"

    provider = ScriptedProvider('call: final_answer {"harbour": "Muscat"}')
    with dm.Agent(provider, deps=Almanac("1842"), output=chosen) as agent:
        assert agent.run_sync("Which?").output == "Muscat by 1842, turn 1"


def test_type_checkers_know_them() -> None:
    def name_of(context: dm.ToolContext[Almanac]) -> str:
        assert_type(context.deps, Almanac)
        return context.deps.name

    def use(agent: dm.Agent[Almanac]) -> None:
        assert_type(agent, dm.Agent[Almanac, str])

    assert_type(dm.tool(name_of)(dm.ToolContext(Almanac("1842"))), str)
    with dm.Agent(ScriptedProvider(""), deps=Almanac("1842"), tools=[name_of]) as agent:
        use(agent)
    with dm.Agent[Almanac](ScriptedProvider(""), tools=[name_of]) as later:
        use(later)
    with dm.Agent(ScriptedProvider("")) as without:
        assert_type(without, dm.Agent[None, str])


# --- the run


def test_a_tool_knows_its_run_and_session() -> None:
    seen: list[tuple[Any, ...]] = []

    def tides(context: dm.ToolContext, harbour: str) -> str:
        run = context.run
        seen.append((run.prompt_id, run.turn, context.session, context.usage.total_tokens, context.tool, context.call_id))
        return ""

    calls = 'call: tides {"harbour": "Muscat"}\nusage: fresh=100 output=7\n---\n'
    with dm.Agent(ScriptedProvider(calls + calls + "text: Done."), tools=[tides]) as agent:
        result = agent.run_sync("When?")
        session = agent.session_id
    (first, second) = seen
    assert first[0] == second[0] == f"{session}#0"
    assert (first[1], second[1]) == (1, 2)
    assert first[2] == session
    assert 0 < first[3] < second[3] <= result.usage.total_tokens
    assert first[4] == "tides"
    assert first[5] != second[5]


def test_progress_reaches_all_who_watch() -> None:
    def tides(context: dm.ToolContext, harbour: str) -> str:
        for day in range(1, 4):
            context.progress(f"day {day}", day, 3)
        return "done"

    async def go() -> None:
        async with dm.Agent(ScriptedProvider(CALLS), tools=[tides]) as agent, agent.run("When?") as run:

            async def watch() -> list[str]:
                events = [event async for event in run]
                last = [type(event).__name__ for event in events].index("ToolCallFinished")
                updates = [event for event in events[:last] if isinstance(event, ToolCallUpdated) and event.progress]
                assert len({event.call_id for event in updates}) == 1
                return [event.progress_line for event in updates]

            assert await asyncio.gather(watch(), watch()) == [["1/3 day 1", "2/3 day 2", "3/3 day 3"]] * 2

    asyncio.run(go())


def test_a_tool_can_end_its_run() -> None:
    def tides(context: dm.ToolContext, harbour: str) -> str:
        context.run.cancel()
        assert context.wait_cancelled(5)
        return "too late"

    with dm.Agent(ScriptedProvider(CALLS), tools=[tides]) as agent, pytest.raises(Cancelled):
        agent.run_sync("When?")


def test_a_cancelled_run_ends_a_thread_that_looks() -> None:
    began, ended = threading.Event(), threading.Event()

    def tides(context: dm.ToolContext, harbour: str) -> None:
        began.set()
        while not context.is_cancelled:
            context.wait_cancelled(0.01)
        ended.set()

    async def go() -> list[Any]:
        async with dm.Agent(ScriptedProvider(CALLS), tools=[tides]) as agent, agent.run("When?") as run:
            events: list[Any] = []
            async for event in run:
                events.append(event)
                if isinstance(event, ToolCallUpdated) and event.state == "executing":
                    await asyncio.to_thread(began.wait, 60)
                    run.cancel()
            return events

    events = asyncio.run(go())
    assert isinstance(events[-1], UserCancelled)
    assert [event.outcome for event in events if isinstance(event, ToolCallFinished)] == ["cancelled"]
    assert ended.wait(60)


# --- side by side


@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "tasks"])
def test_twenty_agents_at_once_each_find_their_own(is_async: bool) -> None:
    together = threading.Barrier(20, timeout=60)
    waiting = asyncio.Semaphore(0)
    seen: dict[int, set[tuple[int, str, str]]] = {number: set() for number in range(20)}

    def note(context: dm.ToolContext[int], number: int) -> str:
        seen[number].add((context.deps, context.session, context.call_id))
        return f"{context.deps}"

    def in_thread(context: dm.ToolContext[int], number: int) -> str:
        together.wait()  # all of them are inside their tool now
        return note(context, number)

    async def in_task(context: dm.ToolContext[int], number: int) -> str:
        if number == 19:
            for _ in range(19):
                waiting.release()
        else:
            await waiting.acquire()
        return note(context, number)

    async def one(number: int, tool: Any) -> tuple[int, str, list[str]]:
        call = f'call: note {{"number": {number}}}\n---\n'
        provider = ScriptedProvider(call * 2 + "text: Done.")
        async with dm.Agent(provider, deps=number, tools=[tool]) as agent:
            calls = [event.call_id async for event in agent.run("Go.") if isinstance(event, ToolCallFinished)]
            assert results(provider) == [str(number)]
            return number, agent.session_id, calls

    async def go() -> None:
        tool = dm.tool(in_task if is_async else in_thread, name="note")  # one for all of them
        for number, session, calls in await asyncio.gather(*(one(number, tool) for number in range(20))):
            assert len(calls) == 2
            assert seen[number] == {(number, session, call) for call in calls}

    asyncio.run(go())


def test_calls_of_one_answer_each_find_their_own() -> None:
    together = threading.Barrier(5, timeout=60)
    seen: dict[str, str] = {}

    @dm.tool(read_only=True)
    def note(context: dm.ToolContext[Almanac], number: str) -> None:
        together.wait()
        seen[context.call_id] = number

    script = "".join(f'call: note {{"number": "{number}"}}\n' for number in range(5)) + "---\ntext: Done."
    provider = ScriptedProvider(script)
    with dm.Agent(provider, deps=Almanac("1842"), tools=[note]) as agent:
        agent.run_sync("Go.")
    (answer,) = [message for message in provider.requests[-1].messages if message.calls]
    assert seen == {call.id: (call.args or {})["number"] for call in answer.calls}
    assert len(seen) == 5


def test_an_agent_inside_a_tool_has_its_own_and_leaves_the_outer_one() -> None:
    inner = ScriptedProvider(CALLS)

    async def ask(context: dm.ToolContext[Almanac], question: str) -> str:
        async with dm.Agent(inner, deps=Almanac("1900"), tools=[tides]) as agent:
            before = (context.deps.name, context.run.prompt_id)
            text = (await agent.run(question)).text
        assert before == (context.deps.name, context.run.prompt_id)
        return f"{text} {context.deps.name}"

    outer = ScriptedProvider('call: ask {"question": "When?"}\n---\ntext: Done.')
    with dm.Agent(outer, deps=Almanac("1842"), tools=[ask]) as agent:
        agent.run_sync("Go.")
    assert results(inner) == ["Muscat in 1900"]
    assert results(outer) == ["At 04:05. 1842"]


# --- images and files


def chart() -> bytes:
    return PNG


def named_chart() -> Media:
    return Media(PNG, "image/png")


def chart_with_words() -> list[str | Media]:
    return ["The chart:", Media(PNG)]


async def kept_chart(context: dm.ToolContext) -> dm.ToolOutput:
    return dm.ToolOutput((dm.Text("The chart:"), context.keep(PNG)), display="a chart")


@pytest.mark.parametrize("protocol", MAIN)
@pytest.mark.parametrize("function", [chart, named_chart, chart_with_words, kept_chart], ids=lambda each: each.__name__)
def test_an_image_that_a_function_returned_is_sent(protocol: str, function: Any, tmp_path: Path) -> None:
    async def go() -> str:
        async with MockServer("call: chart {}\n---\ntext: A dot.") as server:
            provider = connection(protocol, server.url)
            async with dm.Agent(provider, tools=[dm.tool(function, name="chart")], session=tmp_path) as agent:
                assert (await agent.run("Show it.")).text == "A dot."
                (blob,) = [part for part in agent.history.request.messages[2].results[0].content if isinstance(part, dm.Blob)]
                assert blob.mime == "image/png"
            await provider.aclose()
            assert all(request.violation is None for request in server.requests)
            return jsontext.dumps(server.requests[-1].body)

    sent = asyncio.run(go())
    assert base64.b64encode(PNG).decode() in sent
    stored = [path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes() == PNG]
    assert len(stored) == 1


def test_bytes_of_no_known_kind_are_an_error_the_model_is_told() -> None:
    provider = ScriptedProvider("call: chart {}\n---\ntext: Oh.")

    def chart() -> Media:
        return Media(b"what is this")

    with dm.Agent(provider, tools=[chart]) as agent:
        assert agent.run_sync("Show it.").tool_failures == 1
    assert "give their type" in results(provider)[0]
