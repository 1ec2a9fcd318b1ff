"""A function that takes a ToolContext: where it finds it, what it can do with it, and that it sees a cancel in its thread."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pytest

import dragoman as dm
from dragoman.tools.function import FunctionTool
from dragoman.tools.output import CappedText, Outputs
from dragoman.values.calls import Show, ToolOutput
from dragoman.values.errors import InputError
from dragoman.values.events import ToolCallUpdated
from dragoman.values.messages import Blob, Media, Text, ToolCall
from scheduling import Bench, PlainTool, text_of

if TYPE_CHECKING:
    from fractions import Fraction

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
CALL = ToolCall("c1", "look", '{"place": "Muscat"}')


class Almanac:
    tides = ("04:05",)


def first(context: dm.ToolContext[Almanac], place: str) -> str:
    """Look.

    Args:
        place: where
    """
    return f"{context.tool} {context.call_id} {place}"


def last(place: str, *, about: dm.ToolContext) -> str:
    return f"{about.tool} {about.call_id} {place}"


def positional(context: dm.ToolContext[Almanac], place: str, /) -> str:
    return f"{context.tool} {context.call_id} {place}"


def optional(place: str, context: dm.ToolContext[Any] | None = None) -> str:
    assert context is not None
    return f"{context.tool} {context.call_id} {place}"


def annotated(place: str, context: Annotated[dm.ToolContext[Any], "not for the model"]) -> str:
    return f"{context.tool} {context.call_id} {place}"


async def asynchronous(context: dm.ToolContext[Almanac], place: str) -> str:
    return f"{context.tool} {context.call_id} {place}"


@pytest.mark.parametrize("function", [first, last, positional, optional, annotated, asynchronous], ids=lambda each: each.__name__)
def test_it_is_found_by_its_type_and_is_not_in_the_schema(function: Callable[..., Any]) -> None:
    tool = FunctionTool(function, name="look", read_only=True)
    assert list(tool.spec.schema["properties"]) == ["place"]
    assert tool.spec.schema["required"] == ["place"]
    (report,) = Bench([tool]).run(CALL)
    assert text_of(report) == "look c1 Muscat"


def test_dependencies_may_be_known_to_type_checkers_alone() -> None:
    class Local:
        pass

    def of_local(context: dm.ToolContext[Local], place: str) -> str:
        return place

    def of_the_unseen(context: dm.ToolContext[Fraction | Local], place: str) -> str:
        return place

    def unknown_elsewhere(context: dm.ToolContext[Local], place: Local) -> str:
        return "never made"

    for function in (of_local, of_the_unseen):
        assert list(FunctionTool(function).spec.schema["properties"]) == ["place"]
    with pytest.raises(InputError, match="the annotations of unknown_elsewhere cannot be read: name 'Local' is not defined"):
        dm.tool(unknown_elsewhere)


def test_the_docstring_still_describes_the_other_parameters() -> None:
    assert FunctionTool(first).spec.schema["properties"]["place"]["description"] == "where"


def test_a_function_takes_one_context() -> None:
    def two(a: dm.ToolContext, b: dm.ToolContext) -> None: ...

    with pytest.raises(InputError, match=r"two takes a ToolContext twice \(a, b\)"):
        dm.tool(two)


def test_a_tool_is_called_like_its_function_with_a_context_of_ones_own() -> None:
    class Reading(Almanac):
        pass

    @dm.tool
    def tides(context: dm.ToolContext[Almanac], harbour: str) -> str:
        context.progress("looking", 1, 2)
        return f"{harbour} {context.deps.tides[0]} {context.run.turn} {context.session!r} {context.usage.total_tokens}"

    shown: list[str] = []
    assert tides(dm.ToolContext(Reading()), "Muscat") == "Muscat 04:05 0 '' 0"
    assert tides(dm.ToolContext(Reading(), show=shown.append), "Muscat") == "Muscat 04:05 0 '' 0"
    assert shown == ["1/2 looking\n"]


def test_a_bound_argument_is_no_parameter() -> None:
    bound = functools.partial(first, dm.ToolContext(Almanac(), tool="bound", call_id="own"))
    (report,) = Bench([FunctionTool(bound, name="look", read_only=True)]).run(CALL)
    assert text_of(report) == "bound own Muscat"


def test_show_goes_on_working_beside_it() -> None:
    @dm.tool(read_only=True)
    def look(place: str, context: dm.ToolContext, show: Show) -> str:
        show("raw\n")
        context.progress("counted", 1)
        return "seen"

    bench = Bench([look])
    bench.run(CALL)
    updates = [event for event in bench.events if isinstance(event, ToolCallUpdated) and (event.output_delta or event.progress)]
    assert updates == [
        ToolCallUpdated("c1", "executing", "raw\n"),
        ToolCallUpdated("c1", "executing", progress="counted", done=1),
    ]


def test_nothing_is_made_for_a_tool_that_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(dm.ToolContext, "of", lambda show: made.append(show))

    @dm.tool(read_only=True)
    def look(place: str) -> str:
        return place

    (report,) = Bench([look]).run(CALL)
    assert (text_of(report), made) == ("Muscat", [])


def test_a_tool_of_ones_own_finds_it_too() -> None:
    async def act(args: Mapping[str, Any], show: Show) -> ToolOutput:
        context = dm.ToolContext.of(show)
        context.progress("half way", 1, 2)
        return ToolOutput((Text(f"{context.tool} {context.call_id}"),))

    bench = Bench([PlainTool("look", act)])
    (report,) = bench.run(CALL)
    assert text_of(report) == "look c1"
    assert ToolCallUpdated("c1", "executing", "", "half way", 1, 2) in bench.events


def test_a_wrapper_with_a_show_of_its_own_gets_the_progress_as_text() -> None:
    shown: list[str] = []
    tool = dm.tool(lambda context, place: context.progress("page", 3, 10), name="look")
    assert "context" in tool.spec.schema["properties"]  # only the type says what it is

    @dm.tool(read_only=True)
    def look(context: dm.ToolContext, place: str) -> str:
        context.progress("page", 3, 10)
        context.progress("done")
        return context.call_id

    async def act(args: Mapping[str, Any], show: Show) -> ToolOutput:
        return await look.run(args, shown.append)

    (report,) = Bench([PlainTool("look", act)]).run(CALL)
    assert text_of(report) == "c1"
    assert shown == ["3/10 page\n", "done\n"]


# --- cancelling


def test_a_thread_sees_that_its_call_was_cancelled_and_ends() -> None:
    began, ended = threading.Event(), threading.Event()

    @dm.tool(read_only=True)
    def look(context: dm.ToolContext, place: str) -> str:
        began.set()
        if context.wait_cancelled(10):
            ended.set()
        assert context.is_cancelled
        context.progress("too late")
        return "left"

    async def go() -> tuple[str, bool]:
        bench = Bench([look])
        run = asyncio.create_task(bench.scheduler.run([CALL]))
        await asyncio.to_thread(began.wait, 60)
        assert bench.scheduler.cancel("c1")
        (report,) = await run
        return report.outcome, "c1" in bench.scheduler.abandoned

    assert asyncio.run(go()) == ("cancelled", False)
    assert ended.is_set()


def test_what_an_async_function_left_in_a_thread_sees_it_too() -> None:
    seen, began = threading.Event(), threading.Event()

    def work(context: dm.ToolContext) -> None:
        began.set()
        if context.wait_cancelled(10):
            seen.set()

    @dm.tool(read_only=True)
    async def look(context: dm.ToolContext, place: str) -> None:
        await asyncio.to_thread(work, context)

    async def go() -> None:
        bench = Bench([look])
        run = asyncio.create_task(bench.scheduler.run([CALL]))
        await asyncio.to_thread(began.wait, 60)
        run.cancel()
        await asyncio.wait([run])
        assert await asyncio.to_thread(seen.wait, 60)

    asyncio.run(go())


def test_a_test_may_cancel_it() -> None:
    @dm.tool
    def look(context: dm.ToolContext, place: str) -> str:
        return "left" if context.wait_cancelled(0) else "stayed"

    context = dm.ToolContext()
    assert look(context, "Muscat") == "stayed"
    context.cancel()
    assert look(context, "Muscat") == "left"


# --- timeouts


def test_a_function_that_takes_too_long_is_ended_and_the_model_is_told() -> None:
    @dm.tool(timeout_s=0.05)
    async def look(place: str) -> None:
        await asyncio.sleep(30)

    bench = Bench([look])
    (report,) = bench.run(CALL)
    assert (report.outcome, report.output.error_type, report.result.is_error) == ("failed", "timeout", True)
    told = "look was ended: it took longer than 0.05 s. It had started and may have taken effect in part: check before you rely on it."
    assert text_of(report) == told
    assert bench.states("c1")[-1] == "error"
    assert bench.finished("c1").error_type == "timeout"


def test_a_thread_that_looks_ends_in_time_and_one_that_does_not_is_abandoned() -> None:
    release = threading.Event()

    @dm.tool(timeout_s=0.05, read_only=True)
    def look(context: dm.ToolContext, place: str) -> bool:
        return context.wait_cancelled(300)

    @dm.tool(timeout_s=0.05, read_only=True)
    def stare(place: str) -> None:
        release.wait(300)

    async def go() -> None:
        bench = Bench([look, stare])
        looked, stared = await bench.scheduler.run([CALL, ToolCall("c2", "stare", CALL.arguments)])
        assert text_of(looked) == "look was ended: it took longer than 0.05 s."
        assert text_of(stared).endswith("It did not stop when told to, and may still be running.")
        assert [each.output.error_type for each in (looked, stared)] == ["timeout", "timeout"]
        assert bench.scheduler.abandoned == {"c2"}

    try:
        asyncio.run(asyncio.wait_for(go(), 60))
    finally:
        release.set()


def test_what_it_returned_at_the_end_is_kept() -> None:
    @dm.tool(timeout_s=0.05, read_only=True)
    async def look(place: str) -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "the first half"
        return "all"

    (report,) = Bench([look]).run(CALL)
    assert text_of(report) == "look was ended: it took longer than 0.05 s.\n\nBefore it stopped it returned:\nthe first half"
    assert report.output.error_type == "timeout"


def test_in_time_nothing_happens() -> None:
    @dm.tool(timeout_s=30, read_only=True)
    def look(place: str) -> str:
        return place

    (report,) = Bench([look]).run(CALL)
    assert (text_of(report), report.outcome) == ("Muscat", "finished")


def test_any_tool_may_have_a_timeout() -> None:
    async def hang(args: Mapping[str, Any], show: Show) -> ToolOutput:
        await asyncio.Event().wait()
        return ToolOutput()

    tool = PlainTool("look", hang)
    tool.timeout_s = 0.01  # type: ignore[attr-defined]
    (report,) = Bench([tool]).run(CALL)
    assert report.output.error_type == "timeout"


def test_once_it_has_returned_it_is_in_time(tmp_path: Path) -> None:
    """Its output is still to be written to a file, which takes as long as the disk does."""

    class Slow(Outputs):
        def cap(self, text: str, label: str) -> CappedText:
            time.sleep(0.3)
            return super().cap(text, label)

    @dm.tool(timeout_s=0.2, read_only=True)
    async def look(place: str) -> str:
        return "x" * 2_000_000

    (report,) = Bench([look], outputs=Slow(str(tmp_path), 1000)).run(CALL)
    assert report.outcome == "finished"


def test_a_call_that_was_cancelled_leaves_no_timer_behind() -> None:
    async def go() -> list[object]:
        began = asyncio.Event()

        @dm.tool(timeout_s=3600, read_only=True)
        async def look(place: str) -> None:
            began.set()
            await asyncio.sleep(30)

        bench = Bench([look])
        run = asyncio.create_task(bench.scheduler.run([CALL]))
        await began.wait()
        bench.scheduler.cancel("c1")
        (report,) = await run
        assert (report.outcome, report.output.error_type) == ("cancelled", "cancelled")
        return [timer for timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]

    assert asyncio.run(go()) == []


@pytest.mark.parametrize("wrong", [0, -1, True, "30", float("nan")])
def test_a_timeout_is_seconds(wrong: Any) -> None:
    with pytest.raises(InputError, match="timeout_s of look is"):
        dm.tool(lambda place: place, name="look", timeout_s=wrong)


# --- bytes


def test_bytes_can_be_kept_and_looked_at_in_a_test() -> None:
    context = dm.ToolContext()
    blob = context.keep(PNG)
    assert (blob.mime, blob.size) == ("image/png", len(PNG))
    assert context.run.blobs.get(blob.sha256) == PNG
    assert context.keep(b"RIFF....WAVE", "audio/wav").mime == "audio/wav"
    with pytest.raises(InputError, match="give their type"):
        context.keep(b"what is this")


@pytest.mark.parametrize("value", [PNG, Media(PNG), [Media(PNG, "image/png")]])
def test_outside_a_run_nobody_keeps_what_was_returned(value: object) -> None:
    output = asyncio.run(dm.tool(lambda: value, name="look").run({}, print))
    assert output.is_error
    assert "there is no session that could keep it" in text_of_output(output)


def test_bytes_that_are_no_image_stay_text() -> None:
    output = asyncio.run(dm.tool(lambda: b"abc", name="look").run({}, print))
    assert text_of_output(output) == '"YWJj"'
    assert not any(isinstance(part, Blob) for part in output.content)


def text_of_output(output: ToolOutput) -> str:
    return "".join(part.text for part in output.content if isinstance(part, Text))
