"""Holding a run: many watchers, leaving early, cancelling from other threads, runs as tasks."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import CancelledError
from contextlib import aclosing
from typing import Any

import pytest

import dragoman as dm
from dragoman.loop import watching
from dragoman.loop.agent import Agent
from dragoman.loop.background import IDLE_THREADS
from dragoman.loop.run import Run
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.calls import Show
from dragoman.values.errors import Cancelled
from dragoman.values.events import TextDelta, ToolCallUpdated, TurnEvent, TurnStarted, UserCancelled
from program import heeding_ctrl_c
from scenarios.workshop import PlainTool, agent_for, check_record, events_of, forever, play

CALL = 'call: look {"path": "a"}\n---\ntext: Seen.'
STALLS = "text: Half\nstall\n---\ntext: Good."


async def first_text(run: Run) -> None:
    async for event in run:
        if isinstance(event, TextDelta):
            break


async def over(run: Run) -> None:
    await asyncio.wait_for(run.finished(), 60)
    assert run.result.error_type == "Cancelled"


# --- many watchers ------------------------------------------------------------------------------------------------------------------


def test_every_watcher_gets_all_events_whenever_it_joins() -> None:
    async def go() -> None:
        agent = agent_for(CALL, PlainTool("look"))
        run = agent.run("hi")
        late: list[asyncio.Task[list[TurnEvent]]] = []

        async def watch() -> list[TurnEvent]:
            seen: list[TurnEvent] = []
            async for event in run:
                if len(seen) % 3 == 0:
                    late.append(asyncio.create_task(events_of(run)))
                    await asyncio.sleep(0)
                seen.append(event)
            return seen

        first = await watch()
        lists = await asyncio.gather(*late, events_of(run))
        assert len(late) > 3
        assert all(each == first for each in lists)
        assert all(a is b for each in lists for a, b in zip(each, first, strict=True)), "events are shared, not copied"
        assert (await run).text == "Seen."

    play(go)


def test_many_watchers_at_once() -> None:
    async def go() -> None:
        run = agent_for(CALL, PlainTool("look")).run("hi")
        *lists, result = await asyncio.gather(*(events_of(run) for _ in range(50)), run)
        assert isinstance(result, dm.Result)
        assert lists[0]
        assert all(each == lists[0] for each in lists)

    play(go)


def test_what_nobody_can_need_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "KEPT_EVENTS", 5)

    async def go() -> None:
        run = agent_for("\n".join(f"text: {number}" for number in range(40))).run("hi")
        first = await events_of(run)
        assert sum(isinstance(event, TextDelta) for event in first) == 40, "who watches from the start loses nothing"
        assert await events_of(run) == first[-4:], "the end of the run is the fifth"

    play(go)


def test_who_watches_first_loses_nothing_however_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "KEPT_EVENTS", 5)

    async def go() -> None:
        run = agent_for("\n".join(f"text: {number}" for number in range(40))).run("hi")
        await run
        assert sum(isinstance(event, TextDelta) for event in await events_of(run)) == 40

    play(go)


def test_a_run_can_be_watched_and_awaited_from_another_loop() -> None:
    async def go() -> None:
        agent = agent_for(CALL, PlainTool("look"))
        run = agent.run("hi")

        async def elsewhere() -> tuple[list[TurnEvent], dm.Result]:
            return await events_of(run), await run

        async with run:
            there = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(elsewhere())))
            here = await events_of(run)
            seen, result = await there
        assert seen == here
        assert result.text == "Seen."

    play(go)


def test_events_have_times() -> None:
    async def go() -> None:
        before = int(time.time() * 1000)
        run = agent_for(CALL, PlainTool("look")).run("hi")
        timed = [(at_ms, event) async for at_ms, event in run.timed()]
        times = [at_ms for at_ms, _ in timed]
        assert before <= times[0]
        assert times == sorted(times)
        assert times[-1] <= int(time.time() * 1000)
        assert [event for _, event in timed] == await events_of(run)
        assert [event for _, event in timed if isinstance(event, TurnStarted)] == [
            TurnStarted(1, "scripted/scripted"),
            TurnStarted(2, "scripted/scripted"),
        ]

    play(go)


# --- leaving ------------------------------------------------------------------------------------------------------------------------


def test_break_cancels_the_run_and_the_next_can_begin_at_once() -> None:
    async def go() -> None:
        agent = agent_for(STALLS)
        run = agent.run("hi")
        async for event in run:
            if isinstance(event, TextDelta):
                break
        assert (await agent.run("again")).text == "Good."
        await over(run)
        check_record(agent.history)

    play(go)


def test_break_of_timed_events_cancels_too() -> None:
    async def go() -> None:
        run = agent_for(STALLS).run("hi")
        async for _, event in run.timed():
            if isinstance(event, TextDelta):
                break
        await over(run)

    play(go)


@pytest.mark.parametrize("watch", [aiter, Run.timed], ids=["plain", "timed"])
def test_with_aclosing_it_is_over_behind_the_block(watch: Callable[[Run], Any]) -> None:
    async def go() -> None:
        agent = agent_for(STALLS)
        run = agent.run("hi")
        async with aclosing(watch(run)) as events:
            async for _ in events:
                break
        assert run.result.error_type == "Cancelled"
        assert not agent.cancel(), "nothing is going on"

    play(go)


def test_the_run_itself_can_be_given_to_aclosing() -> None:
    async def go() -> None:
        async with aclosing(agent_for(STALLS).run("hi")) as run:
            await first_text(run)
        assert run.result.error_type == "Cancelled"

    play(go)


def test_a_cancelled_watcher_ends_the_run() -> None:
    async def go() -> None:
        run = agent_for(STALLS).run("hi")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await events_of(run)
        await over(run)

    play(go)


def test_an_error_in_the_loop_ends_the_run() -> None:
    async def go() -> None:
        run = agent_for(STALLS).run("hi")

        async def fail() -> None:
            async for event in run:
                assert not isinstance(event, TextDelta), "as wanted"

        with pytest.raises(AssertionError, match="as wanted"):
            await fail()
        await over(run)

    play(go)


def test_a_wrapper_that_is_dropped_ends_the_run() -> None:
    async def go() -> None:
        run = agent_for(STALLS).run("hi")

        async def texts() -> Any:
            async for event in run:
                if isinstance(event, TextDelta):
                    yield event.text

        async for text in texts():
            assert text == "Half"
            break
        gc.collect()
        await over(run)

    play(go)


@pytest.mark.parametrize("who", ["watcher", "awaiter", "block"])
def test_break_leaves_a_run_alone_that_somebody_else_holds(who: str) -> None:
    async def go() -> None:
        released = asyncio.Event()

        async def wait(args: Mapping[str, Any], show: Show) -> str:
            await released.wait()
            return "fine"

        run = agent_for(CALL, PlainTool("look", wait)).run("hi")
        if who == "block":
            await run.__aenter__()
        other = asyncio.create_task(events_of(run)) if who == "watcher" else None
        waiting = asyncio.ensure_future(run) if who == "awaiter" else None
        await asyncio.sleep(0)
        async for event in run:
            if isinstance(event, ToolCallUpdated):
                break
        await asyncio.sleep(0.05)
        released.set()
        assert (await run).text == "Seen."
        for each in filter(None, (other, waiting)):
            await each

    play(go)


def test_who_breaks_and_then_awaits_gets_the_result() -> None:
    async def go() -> None:
        run = agent_for(CALL, PlainTool("look")).run("hi")
        async for event in run:
            if isinstance(event, TurnStarted):
                break
        assert (await run).text == "Seen."

    play(go)


def test_leaving_at_every_event_leaves_a_whole_record() -> None:
    async def go() -> None:
        count = len(await events_of(agent_for(CALL, PlainTool("look")).run("hi")))
        for leave_at in range(count):
            agent = agent_for(CALL + "\n---\ntext: Good.\n---\ntext: Good.", PlainTool("look"))
            seen = 0
            async for _ in agent.run("hi"):
                if seen == leave_at:
                    break
                seen += 1
            assert (await agent.run("more")).text in ("Seen.", "Good.")
            check_record(agent.history)

    play(go)


# --- cancelling at every step -------------------------------------------------------------------------------------------------------


class CutAt:
    """Awaits something, and cancels the task at its n-th step."""

    def __init__(self, inner: Any, step: int) -> None:
        self._inner, self._step = inner, step
        self.is_cut = False

    def __await__(self) -> Generator[Any, Any, Any]:
        steps, sent, count = self._inner.__await__(), None, 0
        while True:
            try:
                if count == self._step:
                    self.is_cut = True
                    waited = steps.throw(asyncio.CancelledError())
                else:
                    waited = steps.send(sent)
            except StopIteration as end:
                return end.value
            count += 1
            sent = yield waited


@pytest.mark.parametrize("how", ["await", "iterate"])
def test_cut_at_any_await_the_record_is_whole(how: str) -> None:
    async def go() -> None:
        for step in range(1, 60):
            agent = agent_for(CALL + "\n---\ntext: Good.\n---\ntext: Good.", PlainTool("look"))
            run = agent.run("hi")
            cut = CutAt(run if how == "await" else _Reading(run), step)
            try:
                await cut
            except (asyncio.CancelledError, Cancelled):
                assert cut.is_cut
            assert (await agent.run("more")).text in ("Seen.", "Good.")
            check_record(agent.history)
            if not cut.is_cut:
                return
        raise AssertionError("it never came to its end")

    play(go)


class _Reading:
    def __init__(self, run: Run) -> None:
        self._run = run

    def __await__(self) -> Generator[Any, Any, Any]:
        return events_of(self._run).__await__()


def test_cancelled_at_any_step_of_the_loop_the_record_is_whole() -> None:
    async def go() -> None:
        for steps in range(80):
            agent = agent_for(CALL + "\n---\ntext: Good.\n---\ntext: Good.", PlainTool("look"))
            run = agent.run("hi")
            async with run:
                for _ in range(steps):
                    await asyncio.sleep(0)
                was_over = not agent.cancel() and steps > 2
            events = await events_of(run)
            assert (await agent.run("more")).text in ("Seen.", "Good.")
            check_record(agent.history)
            if was_over:
                assert not isinstance(events[-1], UserCancelled)
                return
        raise AssertionError("it never came to its end")

    play(go)


# --- from other threads -------------------------------------------------------------------------------------------------------------


def cancel_soon(agent: Agent) -> threading.Thread:
    def cancel() -> None:
        while not agent.cancel():
            time.sleep(0.005)

    thread = threading.Thread(target=cancel)
    thread.start()
    return thread


@pytest.mark.parametrize("whose", ["run", "agent"])
def test_cancel_from_another_thread_wakes_the_loop(whose: str) -> None:
    async def go() -> None:
        agent = agent_for(CALL, PlainTool("look", forever))
        run = agent.run("hi")
        async for event in run:
            if isinstance(event, ToolCallUpdated) and event.state == "executing":
                threading.Thread(target=run.cancel if whose == "run" else agent.cancel).start()
        with pytest.raises(Cancelled):
            await run
        check_record(agent.history)

    play(go)


def test_a_run_that_was_cancelled_before_it_started_does_not_start() -> None:
    async def go() -> None:
        agent = agent_for("text: Good.")
        run = agent.run("hi")
        thread = threading.Thread(target=run.cancel)
        thread.start()
        thread.join()
        with pytest.raises(Cancelled):
            await run
        assert isinstance(agent.provider, ScriptedProvider)
        assert agent.provider.requests == []

    play(go)


def test_run_sync_can_be_cancelled_from_another_thread() -> None:
    with agent_for(CALL + "\n---\ntext: Good.", PlainTool("look", forever)) as agent:
        thread = cancel_soon(agent)
        with pytest.raises(Cancelled):
            agent.run_sync("hi")
        thread.join()
        check_record(agent.history)
        assert agent.run_sync("more").text


def test_stream_sync_can_be_cancelled_from_another_thread() -> None:
    with agent_for(CALL, PlainTool("look", forever)) as agent:
        thread = cancel_soon(agent)
        assert isinstance(list(agent.stream_sync("hi"))[-1], UserCancelled)
        thread.join()
        check_record(agent.history)


def test_ctrl_c_ends_run_sync_with_a_whole_record() -> None:
    tool = PlainTool("look", forever)

    def press() -> None:
        while not tool.asked:
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with agent_for(CALL + "\n---\ntext: Good.", tool) as agent:
        threading.Thread(target=press, daemon=True).start()
        with heeding_ctrl_c(), pytest.raises(KeyboardInterrupt):
            agent.run_sync("hi")
        assert not agent.cancel(), "it is over when the interrupt arrives"
        check_record(agent.history)
        assert agent.run_sync("more").text


def test_nothing_to_cancel() -> None:
    with agent_for("text: Good.") as agent:
        assert agent.cancel() is False
        assert agent.run_sync("hi").text == "Good."
        assert agent.cancel() is False


def our_threads() -> int:
    return sum(thread.name == "dragoman" for thread in threading.enumerate())


def wait_for_threads(most: int) -> None:
    deadline = time.monotonic() + 60
    while our_threads() > most and time.monotonic() < deadline:
        time.sleep(0.01)
    assert our_threads() <= most


def test_agents_that_are_dropped_leave_no_thread() -> None:
    before = our_threads()
    for _ in range(5):
        assert agent_for("text: Good.").run_sync("hi").text == "Good."
    gc.collect()
    wait_for_threads(before)


def test_agents_that_are_kept_and_not_closed_leave_a_few_threads() -> None:
    before = our_threads()
    agents = [agent_for("text: One.\n---\ntext: Two.") for _ in range(20)]
    assert {agent.run_sync("hi").text for agent in agents} == {"One."}
    wait_for_threads(before + IDLE_THREADS)
    assert {agent.run_sync("more").text for agent in agents} == {"Two."}, "a thread starts again when it is needed"
    wait_for_threads(before + IDLE_THREADS)
    for agent in agents:
        agent.close()
    wait_for_threads(before)


def test_many_threads_use_many_agents_at_once() -> None:
    agents = [agent_for("\n---\n".join(f"text: {number}" for number in range(5))) for _ in range(12)]
    said: list[list[str]] = []

    def work(agent: Agent) -> None:
        said.append([agent.run_sync("hi").text for _ in range(5)])

    threads = [threading.Thread(target=work, args=(agent,)) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert said == [["0", "1", "2", "3", "4"]] * 12
    for agent in agents:
        agent.close()


def test_closing_from_another_thread_ends_run_sync() -> None:
    agent = agent_for(CALL, PlainTool("look", forever))

    def close() -> None:
        while agent.history.view.open_calls == ():
            time.sleep(0.005)
        agent.close()

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises((Cancelled, CancelledError)):
        agent.run_sync("hi")
    thread.join(60)
    check_record(agent.history)


# --- a run as a task ----------------------------------------------------------------------------------------------------------------


def test_a_run_can_be_made_a_task() -> None:
    async def go() -> None:
        task = asyncio.create_task(agent_for("text: One.").run("hi"), name="one")
        async with asyncio.TaskGroup() as group:
            other = group.create_task(agent_for("text: Two.").run("hi"))
        assert "Run" in repr(task)
        assert ((await task).text, other.result().text) == ("One.", "Two.")

    play(go)


def test_asyncio_runs_it() -> None:
    assert asyncio.run(agent_for("text: One.").run("hi")).text == "One."


def test_cancelling_the_task_ends_the_run() -> None:
    async def go() -> None:
        agent = agent_for(CALL + "\n---\ntext: Good.", PlainTool("look", forever))
        run = agent.run("hi")
        task = asyncio.create_task(run)
        async with run:
            async for event in run:
                if isinstance(event, ToolCallUpdated) and event.state == "executing":
                    task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert run.result.error_type == "Cancelled"
        check_record(agent.history)

    play(go)


def test_a_failed_run_fails_its_task() -> None:
    async def go() -> None:
        with pytest.raises(dm.errors.BadRequest):
            await asyncio.create_task(agent_for("error: 400").run("hi"))

    play(go)


def test_a_run_that_is_never_started_warns_of_nothing() -> None:
    run = agent_for("text: One.").run("hi")
    run.close()
    del run
    gc.collect()


# --- instructions for one run -------------------------------------------------------------------------------------------------------


def test_instructions_hold_for_one_run_and_are_on_the_record() -> None:
    with agent_for("text: One.\n---\ntext: Two.\n---\ntext: Three.", system="Be kind.") as agent:
        agent.run_sync("a", instructions="Answer in French.")
        agent.run_sync("b")
        list(agent.stream_sync("c", instructions="Answer in Dutch."))
        assert isinstance(agent.provider, ScriptedProvider)
        assert [request.system for request in agent.provider.requests] == [
            "Be kind.\n\nAnswer in French.",
            "Be kind.",
            "Be kind.\n\nAnswer in Dutch.",
        ]
        again = dm.History(entries=agent.history.entries)
        assert again.request.system == "Be kind.\n\nAnswer in Dutch."


def test_instructions_alone_are_the_system_prompt() -> None:
    with agent_for("text: One.", system="") as agent:
        agent.run_sync("a", instructions="Answer in French.")
        assert agent.history.request.system == "Answer in French."


def test_instructions_are_text() -> None:
    with agent_for("text: One.") as agent, pytest.raises(dm.InputError, match="instructions must be a text"):
        agent.run("a", instructions=7)  # type: ignore[arg-type]
