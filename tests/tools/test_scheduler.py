"""Calls → results (TOOLS-1 to TOOLS-5): what each call goes through, what the model is told, what is written down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.loop.history import History
from dragoman.testing.journal import MemoryJournal
from dragoman.tools.output import Outputs
from dragoman.values.calls import Allow, Deny, Intent, Show, ToolOutput
from dragoman.values.errors import ToolBroken
from dragoman.values.events import ToolCallConfirmation, ToolCallFinished, ToolCallUpdated
from dragoman.values.messages import Blob, Message, Text, ToolCall, user
from scheduling import Bench, PlainTool, output, text_of

PATH = {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"], "additionalProperties": False}


def later(answer: Allow | Deny) -> Awaitable[Allow | Deny]:
    async def asked() -> Allow | Deny:
        return answer

    return asked()


# --- states (TOOLS-1)


def test_a_call_goes_from_validating_to_success() -> None:
    bench = Bench([PlainTool("read")])
    (report,) = bench.run(ToolCall("1", "read"))
    assert bench.states("1") == ["validating", "scheduled", "executing", "success"]
    assert (report.outcome, report.result.is_error, text_of(report)) == ("finished", False, "done")


def test_a_call_that_is_asked_about_awaits_approval_and_shows_its_preview() -> None:
    tool = PlainTool("write", read_only=False, intent=Intent("write a.py", "+ the whole diff"))
    bench = Bench([tool], lambda call: later(Allow()))
    call = ToolCall("1", "write")
    bench.run(call)
    assert bench.states("1") == ["validating", "awaiting_approval", "scheduled", "executing", "success"]
    assert [event for event in bench.events if isinstance(event, ToolCallConfirmation)] == [ToolCallConfirmation(call, "+ the whole diff")]


def test_without_a_preview_the_title_is_shown() -> None:
    bench = Bench([PlainTool("fetch", intent=Intent("fetch example.org"))], lambda call: later(Allow()))
    bench.run(ToolCall("1", "fetch"))
    assert [event.prompt for event in bench.events if isinstance(event, ToolCallConfirmation)] == ["fetch example.org"]


def test_a_tool_that_fails_ends_in_error() -> None:
    async def fail(args: Mapping[str, Any], show: Show) -> ToolOutput:
        return output("no such file", is_error=True, error_type="not_found", display="not found")

    bench = Bench([PlainTool("read", fail)])
    (report,) = bench.run(ToolCall("1", "read"))
    assert bench.states("1")[-1] == "error"
    assert (report.outcome, report.result.is_error) == ("failed", True)
    event = bench.finished("1")
    assert (event.error, event.error_type, event.display, event.content_length) == ("no such file", "not_found", "not found", 12)
    assert event.parts == (report.result,)


def test_output_is_shown_while_the_tool_runs() -> None:
    async def talk(args: Mapping[str, Any], show: Show) -> ToolOutput:
        show("one ")
        show("")
        show("half \ud83d")
        return output()

    bench = Bench([PlainTool("run", talk)])
    bench.run(ToolCall("1", "run"))
    shown = [event.output_delta for event in bench.events if isinstance(event, ToolCallUpdated) and event.output_delta]
    assert shown == ["one ", "half \ufffd"]


# --- what is wrong with a call is a result for the model


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{", "break off before the JSON object is complete"),
        ('{"file_path": "a" "b"}', "Expecting ',' delimiter, line 1 column 19"),
        ('{"file_path": NaN}', "not valid JSON"),
        ('["a.py"]', "not a JSON object"),
        ('"a.py"', "not a JSON object"),
        ('{"file_path": "a", "file_path": "b"}', "the same field twice"),
        ('{"file_path": "a", "file_path": "a:b"}', "the same field twice"),
        ('{"file_path": ' + "[" * 70 + "]" * 70 + "}", "nested deeper than 64"),
        ('{"file_path": "' + "x" * 2_000 + '"}', "2,017 characters long, and at most 1,000"),
        ("", "file_path is required"),
        ('{"filePath": "a"}', "did you mean `file_path`?"),
        ('{"file_path": 1}', "file_path must be a string, not an integer"),
    ],
)
def test_bad_arguments_are_refused_before_anything_else(arguments: str, told: str) -> None:
    tool = PlainTool("read_file", parameters=PATH)
    asked: list[ToolCall] = []

    def decide(call: ToolCall) -> Allow:
        asked.append(call)
        return Allow()

    bench = Bench([tool], decide, max_argument_chars=1_000)
    (report,) = bench.run(ToolCall("1", "read_file", arguments))
    assert told in text_of(report)
    assert text_of(report).startswith("read_file was not run")
    assert (report.outcome, report.output.error_type) == ("failed", "invalid_arguments")
    assert (tool.ran, asked, bench.states("1")) == ([], [], ["validating", "error"])


def test_colons_in_strings_are_no_fields() -> None:
    tool = PlainTool("t")
    bench = Bench([tool])
    bench.run(ToolCall("1", "t", '{"a": "b: \\": c", "d": [{"e:": "\\\\"}]}'))
    assert tool.ran == [{"a": 'b: ": c', "d": [{"e:": "\\"}]}]


def test_whole_numbers_come_as_integers_and_broken_unicode_is_mended() -> None:
    tool = PlainTool("t")
    bench = Bench([tool])
    bench.run(ToolCall("1", "t", '{"a": 3.0, "b": [2.5, 1e300], "c": "\\ud83d"}'))
    assert tool.ran == [{"a": 3, "b": [2.5, 1e300], "c": "\ufffd"}]
    assert isinstance(tool.ran[0]["a"], int)


def test_an_unknown_tool_names_the_nearest() -> None:
    bench = Bench([PlainTool("read_file"), PlainTool("edit")])
    (report,) = bench.run(ToolCall("1", "Read-File"))
    assert text_of(report) == "There is no tool called 'Read-File'. Did you mean read_file?"
    assert (report.outcome, report.output.error_type) == ("failed", "unknown_tool")


def test_an_unknown_tool_like_no_other_names_all() -> None:
    bench = Bench([PlainTool("read_file"), PlainTool("edit")])
    (report,) = bench.run(ToolCall("1", "xyzzy" * 1000))
    assert text_of(report).endswith("The tools are: read_file, edit.")
    assert len(text_of(report)) < 300


def test_what_cannot_work_is_not_asked_about() -> None:
    tool = PlainTool("edit", read_only=False, intent=Intent("edit a", problem="the text is not in a.py"))
    bench = Bench([tool], lambda call: later(Allow()))
    (report,) = bench.run(ToolCall("1", "edit"))
    assert text_of(report) == "the text is not in a.py"
    assert (tool.ran, bench.states("1"), bench.ledger.starts) == ([], ["validating", "error"], {})


@pytest.mark.parametrize("error", [ValueError("bad luck"), SystemExit(3), TimeoutError()])
def test_a_tool_that_raises_tells_type_and_words_and_keeps_the_traceback_for_debugging(error: BaseException) -> None:
    async def explode(args: Mapping[str, Any], show: Show) -> ToolOutput:
        raise error

    bench = Bench([PlainTool("t", explode)])
    (report,) = bench.run(ToolCall("1", "t"))
    assert text_of(report) == f"t failed: {type(error).__name__}" + (f": {error}" if str(error) else "")
    assert "Traceback" not in text_of(report)
    assert "explode" in bench.ledger.displays["1"][1]
    assert bench.ledger.outcomes["1"] == "failed"


@pytest.mark.parametrize("value", [None, "text", ToolOutput(("text",))])  # type: ignore[arg-type]
def test_a_tool_that_breaks_its_promise_fails(value: Any) -> None:
    async def wrong(args: Mapping[str, Any], show: Show) -> Any:
        return value

    (report,) = Bench([PlainTool("t", wrong)]).run(ToolCall("1", "t"))
    assert report.outcome == "failed"
    assert "where a ToolOutput was due" in text_of(report)


def test_a_tool_that_cancels_itself_has_failed() -> None:
    async def cancel(args: Mapping[str, Any], show: Show) -> ToolOutput:
        raise asyncio.CancelledError

    reports = Bench([PlainTool("t", cancel), PlainTool("u")]).run(ToolCall("1", "t"), ToolCall("2", "u"))
    assert [report.outcome for report in reports] == ["failed", "finished"]


def test_intend_that_raises_is_a_failure() -> None:
    class Odd(PlainTool):
        def intend(self, args: Mapping[str, Any]) -> Intent:
            raise KeyError("path")

    (report,) = Bench([Odd("t")]).run(ToolCall("1", "t"))
    assert text_of(report) == "t failed: KeyError: 'path'"


# --- may it run


def test_a_denied_call_is_not_run() -> None:
    tool = PlainTool("write", read_only=False)
    bench = Bench([tool], lambda call: Deny("plan mode"))
    (report,) = bench.run(ToolCall("1", "write"))
    assert (text_of(report), report.outcome, report.result.is_error) == ("not run: plan mode", "refused", True)
    assert (tool.ran, bench.states("1"), bench.ledger.lines) == ([], ["validating", "refused"], [("finished", "1"), ("synced", "")])


def test_a_person_may_refuse() -> None:
    bench = Bench([PlainTool("write", read_only=False)], lambda call: later(Deny("use the other file")))
    (report,) = bench.run(ToolCall("1", "write"))
    assert text_of(report) == "not run: use the other file"
    assert bench.states("1") == ["validating", "awaiting_approval", "refused"]


def test_where_no_answer_can_be_had_the_answer_is_no() -> None:
    async def broken() -> Allow:
        raise EOFError("the terminal is gone")

    async def nonsense() -> Any:
        return "yes"

    def raising(call: ToolCall) -> Allow:
        raise OSError("no rules")

    tool = PlainTool("write", read_only=False)
    answers: list[Any] = [lambda call: broken(), lambda call: nonsense(), raising, lambda call: None, lambda call: True]
    for decide in answers:
        (report,) = Bench([tool], decide).run(ToolCall("1", "write"))
        assert report.outcome == "refused"
        assert text_of(report).startswith("not run: whether it may run could not be decided")
    assert tool.ran == []


def test_edited_arguments_run_and_are_recorded_and_told() -> None:
    tool = PlainTool("read_file", parameters=PATH)
    edited = '{"file_path": "b.py"}'
    bench = Bench([tool], lambda call: later(Allow(arguments=edited)))
    call = ToolCall("1", "read_file", '{"file_path": "a.py"}')
    (report,) = bench.run(call)
    assert tool.ran == [{"file_path": "b.py"}]
    assert bench.ledger.starts == {"1": edited}
    assert text_of(report) == f"The arguments of this call were changed before it ran, to {edited}\n\ndone"
    assert report.call is call
    finished = bench.finished("1")
    assert finished.arguments == edited
    assert finished.as_run(call) == ToolCall("1", "read_file", edited)


def test_edited_arguments_are_validated_again() -> None:
    tool = PlainTool("read_file", parameters=PATH)
    bench = Bench([tool], lambda call: later(Allow(arguments='{"file": 1}')))
    (report,) = bench.run(ToolCall("1", "read_file", '{"file_path": "a.py"}'))
    assert tool.ran == []
    assert text_of(report).startswith('The arguments of this call were changed before it ran, to {"file": 1}')
    assert "file_path is required" in text_of(report)


def test_edited_arguments_that_cannot_work_are_not_run() -> None:
    class Careful(PlainTool):
        def intend(self, args: Mapping[str, Any]) -> Intent:
            return Intent(problem="outside of the workspace" if args["file_path"].startswith("/") else "")

    tool = Careful("read_file", parameters=PATH)
    bench = Bench([tool], lambda call: Allow(arguments='{"file_path": "/etc/passwd"}'))
    (report,) = bench.run(ToolCall("1", "read_file", '{"file_path": "a.py"}'))
    assert tool.ran == []
    assert text_of(report).endswith("outside of the workspace")


def test_arguments_written_differently_are_not_changed() -> None:
    tool = PlainTool("read_file", parameters=PATH)
    bench = Bench([tool], lambda call: Allow(arguments='{ "file_path":"a.py" }'))
    (report,) = bench.run(ToolCall("1", "read_file", '{"file_path": "a.py"}'))
    assert (text_of(report), bench.ledger.starts) == ("done", {})


# --- what a result holds (TOOLS-4; the wire layer adds "Tool execution succeeded." and the like)


def test_content_goes_as_it_is() -> None:
    parts = (Text("a"), Blob("image/png", "00", 3), Text("b"))

    async def mixed(args: Mapping[str, Any], show: Show) -> ToolOutput:
        return ToolOutput(parts)

    (report,) = Bench([PlainTool("t", mixed)]).run(ToolCall("1", "t"))
    assert report.result.content == parts


def test_binary_content_alone_stays_alone() -> None:
    async def picture(args: Mapping[str, Any], show: Show) -> ToolOutput:
        return ToolOutput((Blob("image/png", "00", 3),))

    (report,) = Bench([PlainTool("t", picture)]).run(ToolCall("1", "t"))
    assert report.result.content == (Blob("image/png", "00", 3),)


@pytest.mark.parametrize("content", [(), (Text(""),), (Text(" \n"), Text(""))])
def test_no_output_is_said(content: tuple[Text, ...]) -> None:
    async def nothing(args: Mapping[str, Any], show: Show) -> ToolOutput:
        return ToolOutput(content)

    (report,) = Bench([PlainTool("t", nothing)]).run(ToolCall("1", "t"))
    assert report.result.content == (Text("(no output)"),)
    assert not report.result.is_error


def test_long_output_is_capped_whoever_made_it(tmp_path: Path) -> None:
    async def long(args: Mapping[str, Any], show: Show) -> ToolOutput:
        return ToolOutput((Text("x" * 6_000), Text("y" * 6_000)))

    bench = Bench([PlainTool("t", long)], outputs=Outputs(tmp_path / "spill", max_chars=1_000))
    (report,) = bench.run(ToolCall("1", "t"))
    assert len(text_of(report)) < 2_000
    assert text_of(report).startswith("x" * 500)
    assert text_of(report).endswith("y" * 500)
    assert Path(report.output.output_file).read_text() == "x" * 6_000 + "y" * 6_000
    assert bench.finished("1").output_file == report.output.output_file


def test_output_a_tool_has_capped_itself_is_not_capped_again(tmp_path: Path) -> None:
    outputs = Outputs(tmp_path / "spill", max_chars=1_000)
    capped = outputs.cap("x" * 5_000, "t")

    async def long(args: Mapping[str, Any], show: Show) -> ToolOutput:
        return ToolOutput((Text(capped.text),), output_file=capped.output_file)

    (report,) = Bench([PlainTool("t", long)], outputs=outputs).run(ToolCall("1", "t"))
    assert (text_of(report), report.output.output_file) == (capped.text, capped.output_file)
    assert len(list((tmp_path / "spill").iterdir())) == 1


def test_lone_surrogates_never_reach_a_result() -> None:
    async def broken(args: Mapping[str, Any], show: Show) -> ToolOutput:
        return ToolOutput((Text("a\udc80"),), display="b\udc80")

    (report,) = Bench([PlainTool("t", broken)]).run(ToolCall("1", "t"))
    assert (text_of(report), report.output.display) == ("a\ufffd", "b\ufffd")


# --- order


def test_reads_run_side_by_side() -> None:
    """Two that wait for each other end: one after the other, they would not."""

    async def scenario() -> None:
        met = asyncio.Barrier(2)

        async def meet(args: Mapping[str, Any], show: Show) -> ToolOutput:
            await met.wait()
            return output()

        bench = Bench([PlainTool("read", meet)])
        async with asyncio.timeout(60):
            reports = await bench.scheduler.run([ToolCall("1", "read"), ToolCall("2", "read")])
        assert [report.outcome for report in reports] == ["finished", "finished"]

    asyncio.run(scenario())


def test_results_come_in_call_order_whatever_finishes_first() -> None:
    async def scenario() -> None:
        second_done = asyncio.Event()

        async def act(args: Mapping[str, Any], show: Show) -> ToolOutput:
            if args["n"] == 1:
                await second_done.wait()
            return output(str(args["n"]))

        bench = Bench([PlainTool("read", act)])
        bench.when_finished("b", second_done.set)
        reports = await bench.scheduler.run([ToolCall("a", "read", '{"n": 1}'), ToolCall("b", "read", '{"n": 2}')])
        assert [text_of(report) for report in reports] == ["1", "2"]
        assert [each for what, each in bench.ledger.lines if what == "finished"] == ["b", "a"]

    asyncio.run(scenario())


def test_a_write_waits_for_earlier_reads_and_later_reads_wait_for_it() -> None:
    async def scenario() -> None:
        running: list[str] = []
        overlaps: list[tuple[str, ...]] = []

        async def act(args: Mapping[str, Any], show: Show) -> ToolOutput:
            running.append(args["id"])
            overlaps.append(tuple(running))
            await asyncio.sleep(0)
            running.remove(args["id"])
            return output()

        bench = Bench([PlainTool("read", act), PlainTool("write", act, read_only=False)])
        names = ["read", "read", "write", "read", "write", "write", "read", "read"]
        await bench.scheduler.run([ToolCall(str(n), name, f'{{"id": "{n}"}}') for n, name in enumerate(names)])
        assert overlaps == [("0",), ("0", "1"), ("2",), ("3",), ("4",), ("5",), ("6",), ("6", "7")]

    asyncio.run(scenario())


def test_no_more_reads_run_at_once_than_allowed() -> None:
    async def scenario() -> None:
        running = most = 0

        async def act(args: Mapping[str, Any], show: Show) -> ToolOutput:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1
            return output()

        bench = Bench([PlainTool("read", act)], max_parallel=3)
        await bench.scheduler.run([ToolCall(str(n), "read") for n in range(20)])
        assert most == 3

    asyncio.run(scenario())


def test_an_open_question_holds_up_no_ready_sibling() -> None:
    async def scenario() -> None:
        question: asyncio.Future[Allow | Deny] = asyncio.get_running_loop().create_future()
        read, told = asyncio.Event(), asyncio.Event()

        async def act(args: Mapping[str, Any], show: Show) -> ToolOutput:
            read.set()
            return output()

        bench = Bench([PlainTool("fetch"), PlainTool("read", act)], lambda call: question if call.name == "fetch" else Allow())
        bench.when_finished("2", told.set)
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "fetch"), ToolCall("2", "read")]))
        async with asyncio.timeout(60):
            await read.wait()
            await told.wait()
            assert bench.states("1") == ["validating", "awaiting_approval"]
            question.set_result(Allow())
            assert [report.outcome for report in await task] == ["finished", "finished"]

    asyncio.run(scenario())


def test_a_write_is_asked_about_while_earlier_reads_still_run() -> None:
    async def scenario() -> None:
        asked = asyncio.Event()

        async def until_asked(args: Mapping[str, Any], show: Show) -> ToolOutput:
            await asked.wait()
            return output()

        async def ask() -> Allow:
            asked.set()
            return Allow()

        tools = [PlainTool("read", until_asked), PlainTool("write", read_only=False)]
        bench = Bench(tools, lambda call: ask() if call.name == "write" else Allow())
        async with asyncio.timeout(60):
            reports = await bench.scheduler.run([ToolCall("1", "read"), ToolCall("2", "write")])
        assert [report.outcome for report in reports] == ["finished", "finished"]

    asyncio.run(scenario())


def test_nobody_is_asked_about_a_call_before_earlier_writes_are_done() -> None:
    """What is shown must be true: a second edit is previewed against what the first one made of the file."""
    story: list[str] = []

    class Edit(PlainTool):
        def intend(self, args: Mapping[str, Any]) -> Intent:
            story.append(f"looked {args['n']}")
            return Intent()

        async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
            story.append(f"ran {args['n']}")
            return output()

    bench = Bench([Edit("edit", read_only=False)], lambda call: later(Allow()))
    bench.run(ToolCall("1", "edit", '{"n": 1}'), ToolCall("2", "edit", '{"n": 2}'))
    assert story == ["looked 1", "ran 1", "looked 2", "ran 2"]


def test_too_many_calls_at_once_are_not_run() -> None:
    tool = PlainTool("read")
    reports = Bench([tool], max_calls=2).run(*[ToolCall(str(n), "read") for n in range(4)])
    assert [report.outcome for report in reports] == ["finished", "finished", "not_run", "not_run"]
    assert "at most 2 calls" in text_of(reports[3])
    assert len(tool.ran) == 2


def test_a_second_call_of_the_same_id_is_not_run() -> None:
    tool = PlainTool("write", read_only=False)
    bench = Bench([tool])
    reports = bench.run(ToolCall("1", "write"), ToolCall("1", "write"))
    assert [report.outcome for report in reports] == ["finished", "not_run"]
    assert len(tool.ran) == 1
    assert [line for line in bench.ledger.lines if line[0] == "finished"] == [("finished", "1")]
    assert bench.states("1") == ["validating", "scheduled", "executing", "success"]


def test_no_calls_are_no_reports() -> None:
    assert Bench([]).run() == ()


# --- written down before it is run, and before it is told


def test_a_write_is_on_disk_before_it_runs_and_a_result_before_it_is_told() -> None:
    story: list[str] = []

    async def act(args: Mapping[str, Any], show: Show) -> ToolOutput:
        story.append("ran")
        return output()

    bench = Bench([PlainTool("write", act, read_only=False)])
    ledger = bench.ledger

    class Storied(type(ledger)):  # type: ignore[misc]
        def start_tool(self, call: ToolCall, arguments: str = "", *, outside: bool = False, read_only: bool = False) -> None:
            story.append("started")

        def finish_tool(self, *args: Any, **files: Any) -> None:
            story.append("finished")

        async def sync(self) -> None:
            await asyncio.sleep(0)
            story.append("synced")

    ledger.__class__ = Storied
    bench.scheduler._emit = lambda event: story.append("told") if isinstance(event, ToolCallFinished) else None
    bench.run(ToolCall("1", "write"))
    assert story == ["started", "synced", "ran", "finished", "synced", "told"]


def test_the_beginning_of_a_read_is_noted_and_nothing_waits_for_it() -> None:
    bench = Bench([PlainTool("read")])
    bench.run(ToolCall("1", "read"))
    assert bench.ledger.beginnings == ["1"]
    assert bench.ledger.lines == [("finished", "1"), ("synced", "")]


def test_history_is_a_ledger() -> None:
    journal = MemoryJournal()
    history = History(journal)
    calls = (ToolCall("1", "read"), ToolCall("2", "nope"))
    history.say(user("go"))
    history.say(Message("assistant", calls))
    bench = Bench([PlainTool("read")])
    bench.scheduler._ledger = history
    reports = bench.run(*calls)
    assert history.curated()[-1].results == tuple(report.result for report in reports)
    assert journal.synced == len(journal.entries)


def test_a_ledger_that_fails_ends_the_run_and_leaves_nothing_running() -> None:
    async def scenario() -> None:
        ended = asyncio.Event()

        async def hang(args: Mapping[str, Any], show: Show) -> ToolOutput:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return output()

        bench = Bench([PlainTool("hang", hang), PlainTool("read")])

        async def full() -> None:
            raise OSError("disk full")

        bench.ledger.sync = full  # type: ignore[method-assign]
        with pytest.raises(OSError, match="disk full"):
            await bench.scheduler.run([ToolCall("1", "hang"), ToolCall("2", "read")])
        assert ended.is_set()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


# --- a tool that cannot work at all


def test_a_broken_tool_ends_the_run_when_its_siblings_are_closed() -> None:
    async def scenario() -> None:
        async def hang(args: Mapping[str, Any], show: Show) -> ToolOutput:
            await asyncio.Event().wait()
            return output()

        async def broken(args: Mapping[str, Any], show: Show) -> ToolOutput:
            raise ToolBroken("no space left on the device")

        bench = Bench([PlainTool("hang", hang), PlainTool("broken", broken), PlainTool("write", read_only=False)])
        with pytest.raises(ToolBroken, match="no space left"):
            await bench.scheduler.run([ToolCall("1", "hang"), ToolCall("2", "broken"), ToolCall("3", "write")])
        assert bench.ledger.outcomes == {"1": "cancelled", "2": "failed", "3": "cancelled"}
        assert [event.call_id for event in bench.events if isinstance(event, ToolCallFinished)] == ["2", "3", "1"]
        assert "It had not started." in text_of(bench.scheduler.reports[2])
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


def test_a_call_that_ended_beside_a_broken_one_has_ended_well() -> None:
    async def scenario() -> None:
        go = asyncio.Event()

        async def broken(args: Mapping[str, Any], show: Show) -> ToolOutput:
            await go.wait()
            raise ToolBroken("no space left on the device")

        async def well(args: Mapping[str, Any], show: Show) -> ToolOutput:
            await go.wait()
            return output()

        bench = Bench([PlainTool("broken", broken), PlainTool("well", well)])
        asyncio.get_running_loop().call_later(0.01, go.set)
        with pytest.raises(ToolBroken):
            await bench.scheduler.run([ToolCall("1", "broken"), ToolCall("2", "well")])
        assert bench.ledger.outcomes == {"1": "failed", "2": "finished"}

    asyncio.run(scenario())
