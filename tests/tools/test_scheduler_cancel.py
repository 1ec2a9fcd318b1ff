"""Cancelling one call, and cancelling them all."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from dragoman.tools import job
from dragoman.tools.scheduler import STOP_S
from dragoman.values.calls import Allow, Show, ToolOutput
from dragoman.values.errors import ToolBroken
from dragoman.values.messages import ToolCall
from scheduling import Bench, PlainTool, output, text_of
from virtual_time import run_in_virtual_time


async def hang(args: Mapping[str, Any], show: Show) -> ToolOutput:
    await asyncio.Event().wait()
    return output()


async def ignore_cancel(args: Mapping[str, Any], show: Show) -> ToolOutput:
    while True:
        try:
            await asyncio.sleep(10)
            show("still here")
            if asyncio.get_running_loop().time() > 100:
                return output("at last")
        except asyncio.CancelledError:
            pass


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def until_ended(bench: Bench) -> None:
    """Returns when the tool of the first call has ended, and the scheduler has not yet seen it."""
    task = bench.scheduler._jobs[0].task
    assert task is not None
    while not task.done():  # noqa: ASYNC110  an event would wake the scheduler first
        await asyncio.sleep(0)


def in_virtual_time(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run_in_virtual_time(scenario())
    gc.collect()  # what was never retrieved or awaited complains now


# --- one call


def test_a_cancelled_call_ends_and_its_siblings_go_on() -> None:
    async def scenario() -> None:
        go = asyncio.Event()

        async def wait(args: Mapping[str, Any], show: Show) -> ToolOutput:
            await go.wait()
            return output()

        bench = Bench([PlainTool("read", wait)])
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "read"), ToolCall("2", "read")]))
        await settle()
        assert bench.scheduler.cancel("1", "not that one.")
        assert not bench.scheduler.cancel("1")
        assert not bench.scheduler.cancel("3")
        await settle()
        assert bench.states("1") == ["validating", "scheduled", "executing", "cancelled"]
        go.set()
        first, second = await task
        assert (first.outcome, second.outcome) == ("cancelled", "finished")
        assert text_of(first) == "The user cancelled this call: not that one."
        assert first.result.is_error
        assert not bench.scheduler.cancel("2")

    in_virtual_time(scenario)


def test_a_cancelled_write_may_have_taken_effect() -> None:
    async def scenario() -> None:
        bench = Bench([PlainTool("write", hang, read_only=False), PlainTool("read")])
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "write"), ToolCall("2", "read")]))
        await settle()
        assert bench.scheduler.cancel("1")
        first, second = await task
        assert text_of(first).startswith("The user cancelled this call. It had started and may have taken effect in part")
        assert second.outcome == "finished"

    in_virtual_time(scenario)


def test_a_call_cancelled_before_its_turn_never_starts() -> None:
    async def scenario() -> None:
        write = PlainTool("write", read_only=False)
        bench = Bench([PlainTool("read", hang), write])
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "read"), ToolCall("2", "write")]))
        await settle()
        assert bench.scheduler.cancel("2")
        await settle()
        assert bench.states("2") == ["validating", "scheduled", "cancelled"]
        assert bench.scheduler.cancel("1")
        _, second = await task
        assert (text_of(second), second.outcome) == ("The user cancelled this call. It had not started.", "cancelled")
        assert write.ran == []
        assert bench.scheduler.started == {"1"}

    in_virtual_time(scenario)


def test_a_cancelled_question_is_withdrawn() -> None:
    async def scenario() -> None:
        question: asyncio.Future[Allow] = asyncio.get_running_loop().create_future()
        bench = Bench([PlainTool("write", read_only=False)], lambda call: question)
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "write")]))
        await settle()
        assert bench.scheduler.cancel("1")
        (report,) = await task
        assert question.cancelled()
        assert (report.outcome, bench.states("1")) == ("cancelled", ["validating", "awaiting_approval", "cancelled"])

    in_virtual_time(scenario)


def test_an_answer_that_comes_together_with_a_cancel_starts_nothing() -> None:
    async def scenario() -> None:
        question: asyncio.Future[Allow] = asyncio.get_running_loop().create_future()
        tool = PlainTool("write", read_only=False)
        bench = Bench([tool], lambda call: question)
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "write")]))
        await settle()
        question.set_result(Allow())
        assert bench.scheduler.cancel("1")
        (report,) = await task
        assert (report.outcome, tool.ran) == ("cancelled", [])

    in_virtual_time(scenario)


def test_a_call_cancelled_while_its_start_goes_to_disk_never_runs() -> None:
    """Not even where the ledger lets no cancel through."""

    async def scenario() -> None:
        tool = PlainTool("write", read_only=False)
        bench = Bench([tool])
        disk = asyncio.Event()

        async def deaf() -> None:
            while not disk.is_set():
                try:
                    await disk.wait()
                except asyncio.CancelledError:
                    pass

        bench.ledger.sync = deaf  # type: ignore[method-assign]
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "write")]))
        await settle()
        assert bench.scheduler.cancel("1")
        disk.set()
        (report,) = await task
        assert (tool.ran, bench.scheduler.started) == ([], set())
        assert text_of(report) == "The user cancelled this call. It had not started."

    in_virtual_time(scenario)


def test_a_call_that_has_ended_cannot_be_cancelled() -> None:
    async def scenario() -> None:
        done: asyncio.Future[ToolOutput] = asyncio.get_running_loop().create_future()

        async def wait(args: Mapping[str, Any], show: Show) -> ToolOutput:
            return await done

        bench = Bench([PlainTool("read", wait)])
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "read")]))
        await settle()
        done.set_result(output())
        await until_ended(bench)
        assert not bench.scheduler.cancel("1")
        assert (await task)[0].outcome == "finished"

    in_virtual_time(scenario)


def test_what_a_tool_returns_when_cancelled_is_kept() -> None:
    async def scenario() -> None:
        async def partial(args: Mapping[str, Any], show: Show) -> ToolOutput:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return output("three of nine", changed=("/a",))
            return output()

        bench = Bench([PlainTool("write", partial, read_only=False)])
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "write")]))
        await settle()
        bench.scheduler.cancel("1")
        (report,) = await task
        assert (report.outcome, report.output.changed) == ("cancelled", ("/a",))
        assert text_of(report).endswith("Before it stopped it returned:\nthree of nine")

    in_virtual_time(scenario)


def test_a_tool_that_ignores_a_cancel_is_abandoned_and_heard_no_more() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        bench = Bench([PlainTool("write", ignore_cancel, read_only=False), PlainTool("read")])
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "write"), ToolCall("2", "read")]))
        await settle()
        before_s = loop.time()
        bench.scheduler.cancel("1")
        first, second = await task
        assert loop.time() - before_s == pytest.approx(STOP_S)
        assert "It did not stop when told to, and may still be running." in text_of(first)
        assert (first.outcome, second.outcome) == ("cancelled", "finished")
        told = len(bench.events)
        await asyncio.sleep(200)  # it ends in its own time
        assert len(bench.events) == told
        assert asyncio.all_tasks() == {asyncio.current_task()}

    in_virtual_time(scenario)


def test_an_abandoned_call_that_breaks_in_the_end_bothers_nobody() -> None:
    async def scenario() -> None:
        async def break_late(args: Mapping[str, Any], show: Show) -> ToolOutput:
            await ignore_cancel(args, show)
            raise ToolBroken("much later")

        others = set(job._abandoned)  # left behind by other tests, whose loops ended before they did
        bench = Bench([PlainTool("write", break_late, read_only=False)])
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "write")]))
        await settle()
        bench.scheduler.cancel("1")
        (report,) = await task
        assert report.outcome == "cancelled"
        await asyncio.sleep(200)
        assert job._abandoned == others
        gc.collect()  # a loop complains of an exception nobody retrieved when its task goes

    in_virtual_time(scenario)


# --- all of them


def test_cancelling_the_run_cancels_every_call_and_leaves_the_open_ones_to_the_caller() -> None:
    async def scenario() -> None:
        bench = Bench([PlainTool("quick"), PlainTool("read", hang), PlainTool("write", read_only=False)])
        calls = [ToolCall("1", "quick"), ToolCall("2", "read"), ToolCall("3", "write")]
        task = asyncio.create_task(bench.scheduler.run(calls))
        await settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert bench.ledger.outcomes == {"1": "finished"}
        assert [report.call.id for report in bench.scheduler.reports] == ["1"]
        assert bench.scheduler.started == {"1", "2"}
        assert bench.states("2") == ["validating", "scheduled", "executing"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    in_virtual_time(scenario)


def test_cancelling_the_run_waits_less_than_a_second_for_a_tool_that_ignores_it() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        bench = Bench([PlainTool("write", ignore_cancel, read_only=False)])
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "write")]))
        await settle()
        before_s = loop.time()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert loop.time() - before_s <= 0.9
        told = len(bench.events)
        await asyncio.sleep(200)
        assert len(bench.events) == told

    in_virtual_time(scenario)


def test_a_result_that_had_come_in_is_kept_when_the_run_is_cancelled() -> None:
    """The tool has ended, and the run is cancelled before anyone looked: it was not cancelled, and its effect is known."""

    async def scenario() -> None:
        done: asyncio.Future[ToolOutput] = asyncio.get_running_loop().create_future()

        async def wait(args: Mapping[str, Any], show: Show) -> ToolOutput:
            return await done

        bench = Bench([PlainTool("write", wait, read_only=False)])
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "write")]))
        await settle()
        done.set_result(output("written"))
        await until_ended(bench)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await bench.scheduler.close_ended()
        assert bench.ledger.outcomes == {"1": "finished"}
        assert bench.finished("1").error == ""

    in_virtual_time(scenario)


def test_a_run_cancelled_while_a_result_goes_to_disk_tells_it_once_it_is_there() -> None:
    async def scenario() -> None:
        bench = Bench([PlainTool("read")])
        syncing: list[asyncio.Future[None]] = []

        async def slow() -> None:
            syncing.append(asyncio.get_running_loop().create_future())
            if len(syncing) == 1:
                await syncing[0]

        bench.ledger.sync = slow  # type: ignore[method-assign]
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "read")]))
        await settle()
        assert (list(bench.ledger.results), bench.states("1")[-1]) == (["1"], "executing")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await bench.scheduler.close_ended()
        assert bench.states("1")[-1] == "success"
        assert len(syncing) == 2

    in_virtual_time(scenario)


def test_a_second_cancel_does_not_wait() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        bench = Bench([PlainTool("write", ignore_cancel, read_only=False)])
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "write")]))
        await settle()
        before_s = loop.time()
        task.cancel()
        await settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert loop.time() == before_s
        await asyncio.sleep(200)

    in_virtual_time(scenario)


def test_a_scheduler_goes_on_after_a_cancelled_batch() -> None:
    async def scenario() -> None:
        bench = Bench([PlainTool("read", hang), PlainTool("quick")])
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "read")]))
        await settle()
        with pytest.raises(RuntimeError, match="one batch at a time"):
            await bench.scheduler.run([])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (report,) = await bench.scheduler.run([ToolCall("2", "quick")])
        assert (report.outcome, bench.scheduler.started) == ("finished", {"2"})

    in_virtual_time(scenario)


def test_output_shown_from_a_thread_reaches_the_loop() -> None:
    async def scenario() -> None:
        threads: set[int] = set()

        async def talk(args: Mapping[str, Any], show: Show) -> ToolOutput:
            await asyncio.to_thread(show, "from afar")
            return output()

        bench = Bench([PlainTool("t", talk)])
        emit = bench.scheduler._emit
        bench.scheduler._emit = lambda event: (threads.add(threading.get_ident()), emit(event))[1]
        await bench.scheduler.run([ToolCall("1", "t")])
        assert threads == {threading.get_ident()}
        assert "from afar" in str(bench.events)

    asyncio.run(scenario())
