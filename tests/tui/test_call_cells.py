"""What a call looks like: at work, done, refused, opened; and what becomes of its events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base import jsontext
from dragoman.conversation.result_words import result_in_words
from dragoman.policy.sandbox.refusal_words import sentence
from dragoman.tui import call_cells, cells, question
from dragoman.tui.call_cells import TAIL_LINES, CallCell, clean_output, finish
from dragoman.tui.layout import lay_out, question_rows
from dragoman.tui.line import columns_of, line, plain
from dragoman.tui.theme import Theme
from dragoman.values.calls import Intent
from dragoman.values.events import ToolCallFinished
from dragoman.values.messages import Text, ToolCall, ToolResult
from dragoman.values.usage import Usage
from dragoman.words import choose_language, chosen_language
from tui.scenes import ASK_COMMAND, ASK_EDIT, ASK_TOOL, DIFF, EDIT, SHELL, TESTS, call


def finished(name: str, text: str, **fields: object) -> ToolCallFinished:
    return ToolCallFinished("c1", (ToolResult("c1", name, (Text(text),), bool(fields.get("error"))),), name=name, **fields)  # type: ignore[arg-type]


def ended(code: int, stdout: str, stderr: str = "", **fields: object) -> ToolCallFinished:
    told = {"stdout": stdout, "stderr": stderr, "exitCode": code, **fields}
    return finished("run_shell", jsontext.dumps(told), display=f"(exit code {code})")


def test_a_command_that_succeeded_says_its_last_line() -> None:
    cell = finish(SHELL, ended(0, "one\ntwo\n", "three\n"), 1.5)
    rows = [plain(row) for row in call_cells.folded_lines(cell, 90)]
    assert rows[0].endswith("1.5 s  exit 0")
    assert rows[1:] == ["  … 3 lines · three"]


def test_a_call_that_was_edited_is_shown_as_it_ran() -> None:
    cell = finish(SHELL, finished("run_shell", "", arguments='{"command": "make -n install"}'), 1.5)
    assert plain(call_cells.folded_lines(cell, 90)[0]).startswith("● $ make -n install")


def test_a_command_that_failed_shows_the_lines_that_tell_why() -> None:
    cell = finish(SHELL, ended(2, "one\ntwo\n", "three\n"), 1.5)
    assert (cell.state, cell.exit_code, cell.line_count) == ("done", 2, 3)
    rows = [plain(row) for row in call_cells.folded_lines(cell, 90)]
    assert rows[0].endswith("1.5 s  exit 2")
    assert rows[1:] == ["  one", "  two", "  three"]
    output = "".join(f"step {number}\n" for number in range(40)) + "error: no rule for it\nmake: *** [all] Error 2\n"
    rows = [plain(row) for row in call_cells.folded_lines(finish(SHELL, ended(2, output), 1.5), 90)]
    assert rows[1:] == ["  error: no rule for it", "  make: *** [all] Error 2", "  … 42 lines in all · Ctrl-O"]


@pytest.mark.parametrize("columns", [40, 80])
def test_a_long_line_of_a_failed_command_takes_two_rows_at_most(columns: int) -> None:
    cell = finish(SHELL, ended(1, "", f"KeyError: {'x ' * 500}\n" * 9), 1.5)
    rows = call_cells.folded_lines(cell, columns)
    assert len(rows) == 1 + 2 * 5 + 1
    assert max(map(columns_of, rows)) <= columns


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_stopped_a_command_stands_under_it_in_the_users_language(language: str) -> None:
    before = chosen_language()
    choose_language(language)
    try:
        told = sentence("writing", can_leave=True, path="/etc/x", temporary="/tmp")
        event = ended(1, "", "x\n", sandbox=told, network={"reached": [], "refused": ["a.test"]}, allowedLate=["b.test"])
        rows = [plain(row).strip() for row in call_cells.folded_lines(finish(SHELL, event, 1.5), 100)][2:]
    finally:
        choose_language(before)
    wanted = {
        "en": ["stopped by the sandbox: /etc/x is read-only there", "not allowed to reach a.test"],
        "zh": ["被沙箱阻止：/etc/x 在沙箱内是只读的", "不允许连接 a.test"],
    }
    assert rows[:2] == wanted[language]
    assert "b.test" in rows[2]


def test_a_command_whose_time_was_up_shows_no_json() -> None:
    told = jsontext.dumps({"stdout": "half\n", "stderr": "", "exitCode": 143, "signal": "SIGTERM", "timedOut": True})
    event = finished("run_shell", told, display="half\n(ended after 120 s)", error=told, error_type="timed_out")
    rows = [plain(row) for row in call_cells.folded_lines(finish(SHELL, event, 120), 90)]
    assert rows[1:] == ["  half", "  ended: its time was up"]


def test_all_that_a_command_put_out_can_be_opened() -> None:
    cell = finish(SHELL, ended(2, "one\ntwo\n", "three\n"), 1.5)
    assert [plain(row) for row in call_cells.opened_lines(cell, 90)][-3:] == ["  one", "  two", "  three"]


@pytest.mark.parametrize(
    ("outcome", "state"), [("finished", "done"), ("refused", "refused"), ("cancelled", "cancelled"), ("not_run", "failed")]
)
def test_how_it_ended(outcome: str, state: str) -> None:
    assert finish(CallCell(call("read_file", file_path="a")), finished("read_file", "x", outcome=outcome), 0).state == state


@pytest.mark.parametrize(
    ("told", "shown"), [("the user said no", "you said no"), ("the user refused it and said: keep it", "you said no: keep it")]
)
def test_what_the_user_refused_is_told_in_their_words(told: str, shown: str) -> None:
    event = finished("edit", "", outcome="refused", error=f"not run: {told}")
    rows = call_cells.folded_lines(finish(CallCell(call("edit", file_path="a.py")), event, 0), 80)
    assert [plain(row) for row in rows] == [f"✗ edit a.py  {shown}"]
    command = call_cells.folded_lines(
        finish(CallCell(SHELL.call), finished("run_shell", "", outcome="refused", error=f"not run: {told}"), 0), 120
    )
    assert [plain(row).strip() for row in command][1:] == [shown]


def test_of_a_list_of_tasks_it_says_how_far_it_is() -> None:
    event = finished("todo", "", display="[x] read it\n[>] write it\n[ ] test it")
    assert plain(call_cells.folded_lines(finish(CallCell(call("todo")), event, 0), 80)[0]) == "● todo  1 of 3 done · write it"


def test_what_the_user_answered_stands_under_the_question() -> None:
    event = finished("ask_user", "green", display="green 绿色")
    rows = call_cells.folded_lines(finish(CallCell(call("ask_user", question="Which colour? " * 9)), event, 0), 60)
    assert [plain(row) for row in rows] == ["  └ green 绿色"]


@pytest.mark.parametrize(
    ("names", "columns", "wanted"),
    [
        (("a.py", "b.py"), 80, "a.py · b.py"),
        (("a.py", "a_long_name_of_a_file.py"), 70, "2 files"),
        (tuple(f"{number}.py" for number in range(9)), 80, "9 files"),
        (("a_long_name_of_a_file.py",), 60, "$0.10"),
    ],
)
def test_the_files_of_a_run_are_all_named_or_counted(names: tuple[str, ...], columns: int, wanted: str) -> None:
    usage = Usage(fresh_tokens=1_000, output_tokens=20)
    shown = plain(cells.ended(cells.Ended(3.0, usage, 0.1, 1, names, can_undo=True), columns))
    assert shown.endswith(f" · {wanted} · /undo · /diff ──"), shown


def test_what_a_service_has_not_told_to_the_end_is_the_least_it_can_be() -> None:
    """As `/usage` and `/stats` say of the same run."""
    stopped = cells.Ended(3.0, Usage(fresh_tokens=1_000, output_tokens=20, incomplete=1), 0.1, 1)
    assert plain(cells.ended(stopped, 80)) == "─ 3.0 s · ≥1,000 in · ≥20 out · ≥$0.10 ──"
    refused = cells.Ended(3.0, Usage(incomplete=1), 0.0, 1)
    assert plain(cells.ended(refused, 80)) == "─ 3.0 s · $0.00 ──"


@pytest.mark.parametrize(("output", "wanted"), [("", []), ("one\n", ["  one"]), ("one\ntwo\n", ["  … 2 lines · two"])])
def test_a_command_that_was_stopped_says_so_once_and_what_it_put_out(output: str, wanted: list[str]) -> None:
    cell = CallCell(SHELL.call, "cancelled", output=output, display="cancelled")
    title, *rows = (plain(row) for row in call_cells.folded_lines(cell, 80))
    assert title.endswith("stopped")
    assert rows == wanted


def test_an_error_of_several_lines_is_not_cut_at_its_colon() -> None:
    event = finished("todo", "", outcome="not_run", error="todo was not run, because its arguments do not fit:\n- items[0].text is missing")
    rows = call_cells.folded_lines(finish(CallCell(call("todo")), event, 0), 120)
    assert plain(rows[0]) == "✗ todo  todo was not run, because its arguments do not fit: items[0].text is missing"


def test_files_that_were_read_several_times_are_counted() -> None:
    reads = [CallCell(call("read_file", file_path=name), "done") for name in ("a.py", "b.py", "a.py")]
    assert [plain(row) for row in call_cells.folded_group(reads, 80)] == ["● read_file a.py ×2, b.py"]


def test_an_error_is_told_whole() -> None:
    cell = finish(CallCell(call("read_file", file_path="a")), finished("read_file", "no", error="a does not exist; " + "list it " * 20), 0)
    assert cell.state == "failed"
    assert " ".join(plain(row).strip() for row in call_cells.folded_lines(cell, 40)).endswith("list it list it")


def test_only_the_end_of_a_long_output_is_live() -> None:
    cell = CallCell(call("run_shell", command="make"), "running", output="".join(f"line {number}\n" for number in range(5_000)))
    rows = [plain(row) for row in call_cells.running_lines(cell, 60)]
    assert rows[1:] == ["  ⋮ 5,000 lines", *(f"  line {number}" for number in range(5_000 - TAIL_LINES, 5_000))]


def test_a_command_of_many_lines_is_one_title_and_opens_whole() -> None:
    cell = CallCell(call("run_shell", command="for x in 1 2; do\n  echo $x\ndone"), "done", exit_code=0)
    assert plain(call_cells.folded_lines(cell, 80)[0]).startswith("● $ for x in 1 2; do echo $x done")
    assert plain(call_cells.opened_lines(cell, 80)[0]) == "● $ for x in 1 2; do ↵   echo $x ↵ done"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m text", "red text"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("done\r\nnext\r\n", "done\nnext\n"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bplain\x1b[?25l", "plain"),
        ("", ""),
    ],
)
def test_output_is_shown_as_its_reader_saw_it(text: str, shown: str) -> None:
    assert clean_output(text) == shown


ODD = st.text(st.characters(), max_size=40) | st.lists(
    st.sampled_from(["\x1b[2J", "\x1b]0;", "\r", "\n", "汉", "\u202e", "a" * 50]), max_size=8
).map("".join)


@given(ODD, ODD, st.integers(8, 130), st.sampled_from(["waiting", "running", "done", "failed", "refused", "cancelled"]), st.booleans())
def test_whatever_a_tool_says_every_row_fits_and_acts_on_nothing(title: str, text: str, columns: int, state: str, is_shell: bool) -> None:
    made = call("run_shell", command=title) if is_shell else call("edit", file_path=title)
    cell = CallCell(made, state, output=text, display=text, seconds=3, answer="yes")  # type: ignore[arg-type]
    asked = question.Question(
        made, Intent(title=title, preview=text, problem=title, scope=title), "command" if is_shell else "edit", harm=text
    )
    rows = [*call_cells.running_group([cell, SHELL], columns, "⠼"), *call_cells.folded_group([cell, TESTS], columns)]
    rows += [*call_cells.opened_lines(cell, columns), *question.subject(asked, columns), *question.choices(asked, columns)]
    rows += [*cells.prompt(text, columns), *cells.error(text, columns), *cells.notice(title, columns), *cells.thinking(text, columns)]
    for row in rows:
        assert columns_of(row) <= columns
        assert not any(ord(char) < 32 or 127 <= ord(char) < 160 or char in "\u202e\u2028" for char in plain(row))


# --- questions


def test_every_key_answers_one_thing() -> None:
    for asked in (ASK_EDIT, ASK_COMMAND, ASK_TOOL):
        keys = [choice.key for choice in question.offered(asked)]
        assert len(keys) == len(set(keys))
        assert {"y", "n", "r", "e", "esc"} <= set(keys)


def test_always_is_offered_only_where_it_holds() -> None:
    def keys(asked: question.Question) -> set[str]:
        return {choice.key for choice in question.offered(asked)}

    assert {"a", "s"} <= keys(ASK_EDIT)
    assert not {"a", "s"} & keys(ASK_COMMAND)
    guarded = question.Question(EDIT.call, Intent(title="edit x", preview=DIFF, guarded="own"), "edit")
    assert not {"a", "s"} & keys(guarded)
    assert any("Dragoman's own files" in plain(row) for row in question.subject(guarded, 120))


def test_a_long_diff_says_how_much_of_it_is_left_out() -> None:
    long = "--- a/x\n+++ b/x\n@@ -1,0 +1,50 @@\n" + "".join(f"+line {number}\n" for number in range(50))
    rows = question.subject(question.Question(EDIT.call, Intent(preview=long), "edit"), 80, most_rows=10)
    assert len(rows) == 11
    assert plain(rows[-1]) == "  … 41 more lines · Ctrl-O"


def test_in_a_small_window_the_question_stands_with_its_keys() -> None:
    rows = question.choices(ASK_EDIT, 39)
    frame = lay_out(None, Theme("none"), (40, 20), above=rows, status=line("ask first"), most=question_rows(20, len(rows) + 1))
    assert [row.text for row in frame.rows] == [*(plain(row) for row in rows), "ask first"]


def test_a_choice_is_not_broken_where_it_fits() -> None:
    for columns in range(30, 130):
        rows = [plain(row) for row in question.choices(ASK_EDIT, columns)]
        for choice in question.offered(ASK_EDIT):
            assert any(f"{choice.key} {choice.label}" in row for row in rows)


def test_what_a_call_would_do_cannot_look_like_our_question() -> None:
    made = ToolCall("c", "run_shell", "{}")
    preview = "echo\nRun this command?\ny yes"
    rows = question.subject(question.Question(made, Intent(preview=preview), "command"), 60)
    assert [plain(row) for row in rows[1:]] == ["  │ echo", "  │ Run this command?", "  │ y yes"]


def test_how_long_a_command_took_is_not_made_up_where_it_is_not_known() -> None:
    recalled = CallCell(call("run_shell", command="make"), "done")
    assert plain(call_cells.folded_lines(recalled, 80)[0]).rstrip() == "● $ make"
    known = CallCell(call("run_shell", command="make"), "done", exit_code=0, seconds=0.04)
    assert plain(call_cells.folded_lines(known, 80)[0]).endswith("0.0 s  exit 0")


def test_the_title_of_a_question_hides_nothing_and_padding_is_named() -> None:
    made = ToolCall("1", "lift", "{}")
    asked = question.Question(made, Intent(title="lift x\u202egnp.exe \u200b", preview=f"lift{' ' * 90}; more"))
    shown = "\n".join(plain(row) for row in (*question.subject(asked, 80), *question.choices(asked, 80)))
    assert shown.count("x<U+202E>gnp.exe <U+200B>") == 2
    assert "90 blanks in a row" in shown


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("a.py has not been read yet: read it first with read_file", "a.py 尚未读取"),
        ("a.py exists: read it with read_file before you replace the whole of it, or change parts of it with edit", "a.py 尚未读取"),
        ("a.py was read only in part (lines 1-2): change parts of it with edit; to replace the whole of it, …", "a.py 只读取了一部分"),
        ("edit 2 of 3 failed, so none was made: old_string was not found in a.py", "在 a.py 中没有找到要替换的文本"),
        ("my a.py changed since it was read: read it again", "my a.py 在读取之后已被更改"),
        ("a.py exists already: give the text to replace as old_string, or use write_file", "a.py 已存在"),
        ("old_string was not found in a.py; the nearest lines are 3–5", "在 a.py 中没有找到要替换的文本"),
        ("old_string was not found in a.py", "在 a.py 中没有找到要替换的文本"),
        ("/etc/x is outside the workspace /w: stay inside, or …", "/etc/x 在工作区之外"),
        ("todo was not run, because its arguments do not fit:", "todo 没有运行，因为参数不符合要求："),
        ("something that only another tool says", "something that only another tool says"),
    ],
)
def test_what_tools_refuse_is_said_in_the_users_language(told: str, shown: str) -> None:
    before = chosen_language()
    choose_language("zh")
    try:
        assert result_in_words(told) == shown
    finally:
        choose_language(before)


def test_a_question_about_a_command_outside_says_so_first_and_last() -> None:
    shell = call("run_shell", command="docker ps")
    intent = Intent(preview="docker ps", command="docker ps", outside="May\n\x1b[2J I?", guarded="outside", prefix="docker ps")
    asked = question.Question(shell, intent, "command")
    rows = [plain(row) for row in question.subject(asked, 100)]
    assert rows[0] == "▸ Run a command outside the sandbox"
    assert 'The model says: "May<U+000A><U+001B>[2J I?"' in rows[2]
    assert rows[3] == "  │ docker ps"
    assert plain(question.choices(asked, 100)[0]) == "Run OUTSIDE the sandbox, with all your rights?"
    assert [choice.key for choice in question.offered(asked)] == ["y", "b", "n", "r", "e", "esc"]
    alone = question.Question(shell, Intent(preview="x", command="x", outside="why", guarded="outside"), "command")
    assert [choice.key for choice in question.offered(alone)] == ["y", "n", "r", "e", "esc"]


def test_what_ran_outside_says_so_on_its_line() -> None:
    event = finished("run_shell", jsontext.dumps({"stdout": "", "stderr": "", "exitCode": 0, "outside": True}), outside=True)
    assert "outside the sandbox  1.0 s  exit 0" in plain(call_cells.folded_lines(finish(SHELL, event, 1.0), 90)[0])
