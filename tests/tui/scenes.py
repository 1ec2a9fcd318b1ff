"""The screens of a conversation, as the parts of it draw them: what a reader sees at a width, in a language."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dragoman.base import jsontext
from dragoman.tui import call_cells, cells, question, status
from dragoman.tui.call_cells import CallCell
from dragoman.tui.line import EMPTY, Line, line
from dragoman.tui.markdown import MarkdownStream, render
from dragoman.tui.wrap import wrap
from dragoman.values.calls import Intent
from dragoman.values.messages import ToolCall
from dragoman.values.usage import Usage
from dragoman.words import say

REVIEW = """## Findings

The calculator has three operations and one bug: `div` does not check for zero.

| file | lines | verdict |
|---|---:|---|
| calc.py | 27 | division by zero is not handled, and the error the user sees is a traceback that says nothing about what to do |
| test_calc.py | 9 | no test for div"""

EVERYTHING = """# A title

A paragraph with **strong**, *emphasis*, ~~struck~~, `code` and a [link](https://example.org/page). It is long enough to go over a row, \
whatever the window.

- a list
- with an item that is long enough to be continued under its own first word, as lists are
  1. and a list in it
  2. of two
- [x] done
- [ ] not done

> A quote that goes on for a while, so that it is seen how its second row is marked as well as its first one is.

```python
def div(a: int, b: int) -> float:  # a comment
    \"\"\"Divides.\"\"\"
    return a / b if b != 0 else float("nan")
```

| name | 说明 | 数量 |
|:-----|:----:|----:|
| 计算器 | 除法没有检查除数是否为零 | 3 |
| 🎉 party | e\u0301tude | 12 |

---

中文段落：终端里的一行文字不会在单词中间断开，标点也不会出现在行首。**“强调”**之后继续，直到这一行比窗口更长为止。

Last words."""

DIFF = """--- a/calc.py
+++ b/calc.py
@@ -13,4 +13,6 @@
{blank}
 def div(a, b):
+    if b == 0:
+        raise SystemExit("cannot divide by zero")
     return a / b
{blank}
"""

LEXER = """--- a/src/parser/lexer.py
+++ b/src/parser/lexer.py
@@ -41,3 +41,5 @@
 def tokens(text):
-    if char.isascii():
+    if char.isprintable() and not (
+        unicodedata.category(char) == "Cf"
+    ):
     return out
@@ -90,3 +92,3 @@
{blank}
-WIDTH = 80  # columns of a window
+WIDTH = 120  # columns of a window
{blank}
"""


BLANK = " "  # an empty line of context
DIFF, LEXER = DIFF.replace("{blank}", BLANK), LEXER.replace("{blank}", BLANK)


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall("c1", name, jsontext.dumps(arguments))


SHELL = CallCell(
    call("run_shell", command="python3 -m pytest --maxfail=1 --disable-warnings tests -q"),
    "running",
    output="tests/test_lexer.py::test_width \x1b[32mPASSED\x1b[0m\n"
    "tests/test_lexer.py::test_case PASSED\ntests/test_lexer.py::test_fullwidth",
    line_count=214,
    seconds=12.4,
    limit_s=120,
)
READ = CallCell(call("read_file", file_path="calc.py"), "done", display="25 lines", output="import sys\n")
READ_TESTS = CallCell(call("read_file", file_path="test_calc.py"), "done", display="9 lines")
GREP = CallCell(call("grep", pattern="def "), "done", display="6 matches in 2 files")
EDIT = CallCell(call("edit", file_path="calc.py"), "done", display=f"+2 -0 calc.py\n{DIFF}", answer="yes")
TESTS = CallCell(
    call("run_shell", command="pytest -q"), "done", output="".join(f"test {number}\n" for number in range(37)) + "40 passed in 4.0s\n",
    seconds=4.0, exit_code=0,
)  # fmt: skip
FAILED = msgspec.structs.replace(TESTS, output="1 failed, 39 passed\n", exit_code=1)
LONG_FAILED = CallCell(
    call("run_shell", command="for each in a b c; do echo $each; sleep 1; done; echo this went wrong >&2; exit 3"), "done",
    output="a\nb\nthis went wrong\n", seconds=3.1, exit_code=3, answer="yes",
)  # fmt: skip
REFUSED = CallCell(call("run_shell", command="rm -rf build/ dist/"), "refused", display="the user said no")
MISSING = CallCell(call("read_file", file_path="nowhere.py"), "failed", display="nowhere.py does not exist; list the directory first")

ASK_EDIT = question.Question(EDIT.call, Intent(title="edit calc.py", preview=DIFF), "edit", can_open=True)
ASK_WIDE = question.Question(
    EDIT.call, Intent(title="edit src/parser/lexer.py", preview=LEXER), "edit", number=2, count=4, can_take_all=True, can_open=True
)
ASK_COMMAND = question.Question(
    REFUSED.call,
    Intent(title="$ rm -rf build/ dist/", preview="rm -rf build/ dist/"),
    "command",
    harm="deletes · 2 folders inside ~/proj, 341 files, not in git: cannot be undone",
    may_always=False,
)
ASK_TOOL = question.Question(
    call("web_fetch", url="https://example.org"),
    Intent(title="web_fetch example.org", scope="example.org", preview="https://example.org/a"),
)
FACTS = status.Facts(
    model="anthropic/claude-sonnet-5-5", used_tokens=120_000, window_tokens=1_000_000, cost_usd=0.0061, cache="warm", cache_s=252
)
ENDED = cells.Ended(8.2, Usage(fresh_tokens=1_848, cache_read_tokens=11_350, output_tokens=149), 0.0072, 5, ("calc.py +2 −0",), True)


def idle(columns: int) -> list[Line]:
    facts = msgspec.structs.replace(FACTS, used_tokens=3_000, cost_usd=0.0, cache="", folder="~/proj", branch="master")
    return [status.status_line(facts, columns)]


def streaming(columns: int) -> list[Line]:
    answer = MarkdownStream(columns)
    committed = [row for at in range(0, len(REVIEW), 20) for row in answer.feed(REVIEW[at : at + 20])]
    thought = "Let me think about what the user wants. I should look at the file first."
    return [
        *cells.prompt("review calc.py", columns),
        EMPTY,
        *cells.thinking(thought, columns),
        EMPTY,
        *committed,
        *answer.tail(),
        EMPTY,
        status.sign_of_life(status.Activity("writing", 6, tokens=182, cost_usd=0.0061, first_word_s=0.8), columns, 2),
        status.status_line(msgspec.structs.replace(FACTS, is_running=True), columns),
    ]


def at_work(columns: int) -> list[Line]:
    activity = status.Activity("running", number=1, count=2, about="read_file README.md")
    return [
        *render("I will run the tests.", columns),
        *call_cells.running_lines(SHELL, columns, "⠼"),
        EMPTY,
        status.sign_of_life(activity, columns, 4),
        *status.waiting_lines(["look at the README first"], ["then write the release notes, and say what is missing in them"], columns),
    ]


def side_by_side(columns: int) -> list[Line]:
    waiting = CallCell(call("read_file", file_path="README.md"))
    activity = status.Activity("running", number=1, count=4)
    return [
        *call_cells.running_group([READ, GREP, SHELL, waiting], columns, "⠼"),
        status.sign_of_life(activity, columns, 4, "esc stops all · b background"),
    ]


def edit_question(columns: int) -> list[Line]:
    return [*question.subject(ASK_EDIT, columns), *question.choices(ASK_EDIT, columns)]


def wide_question(columns: int) -> list[Line]:
    return [*question.subject(ASK_WIDE, columns), *question.choices(ASK_WIDE, columns)]


def command_question(columns: int) -> list[Line]:
    return [*question.subject(ASK_COMMAND, columns), *question.choices(ASK_COMMAND, columns)]


def tool_question(columns: int) -> list[Line]:
    return [*question.subject(ASK_TOOL, columns), *question.choices(ASK_TOOL, columns)]


def done(columns: int) -> list[Line]:
    return [
        *cells.prompt("fix div", columns),
        *cells.thought("**Guarding the division**\n\nI add a guard.", 2.1, columns),
        *call_cells.folded_group([READ, READ_TESTS, GREP], columns),
        *render("`div` needs a guard. Let me fix it.", columns),
        *call_cells.folded_lines(EDIT, columns),
        *call_cells.folded_lines(TESTS, columns),
        *render("Done: div refuses zero now, and all 40 tests pass.", columns),
        cells.ended(ENDED, columns),
    ]


def went_wrong(columns: int) -> list[Line]:
    return [
        *call_cells.folded_lines(FAILED, columns),
        *call_cells.folded_lines(LONG_FAILED, columns),
        *call_cells.folded_lines(REFUSED, columns),
        *call_cells.folded_lines(MISSING, columns),
        *cells.error("anthropic does not answer (connection refused); check the network, or choose another model with /model", columns),
        *cells.notice("the answer was cut by the limit of 8,192 tokens; say go on, and it does", columns, "warn"),
        status.sign_of_life(status.Activity("waiting", 14, service="anthropic", usual_s=2), columns),
        status.sign_of_life(status.Activity("retrying", number=2, count=3, wait_s=7, about="overloaded (529)"), columns),
        status.sign_of_life(status.Activity("thinking", 3, about="Guarding the division"), columns),
        status.sign_of_life(status.Activity("reading", 9, percent=40), columns),
        status.sign_of_life(status.Activity("compressing", 4), columns),
    ]


def opened(columns: int) -> list[Line]:
    return [
        *call_cells.opened_lines(FAILED, columns),
        *call_cells.opened_lines(EDIT, columns),
    ]


def answer(columns: int) -> list[Line]:
    return render(EVERYTHING, columns)


def long_prompt(columns: int) -> list[Line]:
    text = "explain this\n" + "\n".join(f"line {number} of what was pasted" for number in range(40))
    return [*cells.prompt(text, columns), *cells.sources([("Dragoman", "https://example.org/d"), ("", "https://example.org/e")], columns)]


def statuses(columns: int) -> list[Line]:
    full = msgspec.structs.replace(FACTS, used_tokens=950_000, cache="cold", next_usd=0.886, mode="auto-edit", cost_usd=1.5)
    return [
        status.status_line(FACTS, columns),
        status.status_line(full, columns),
        status.status_line(msgspec.structs.replace(FACTS, mode="plan", folder="~/proj", branch="master"), columns),
        status.status_line(status.Facts(model="local/qwen2.5-coder-0.5b"), columns),
        *wrap(line(""), columns),
    ]


def subagents(columns: int) -> list[Line]:
    """Three at work, and how they look when they have ended."""
    east, west = (
        {"agent": "explore", "description": f"find what {each} reads the configuration", "prompt": "…"} for each in ("east", "west")
    )
    cells = [
        CallCell(call("task", **east), "running", seconds=12.3, progress="grep load_config src", inner="5 calls · 18,240 tokens"),
        CallCell(call("task", **west), "running", seconds=3.2, progress=say("subagents.waits")),
        CallCell(call("task", **(west | {"agent": "general"}))),
    ]
    answered = msgspec.structs.replace(cells[0], state="done", progress="", display="src/app/config.py:41 reads it, once.")
    failed = msgspec.structs.replace(cells[1], state="failed", progress="", display="explore failed: RateLimited: too many requests")
    return [
        *call_cells.running_group(cells, columns, "⠼"),
        EMPTY,
        *call_cells.running_lines(cells[0], columns, "⠼"),
        EMPTY,
        *call_cells.folded_group([answered, failed, msgspec.structs.replace(cells[2], state="cancelled")], columns),
    ]


SCENES: dict[str, Callable[[int], list[Line]]] = {
    "80-1 idle": idle,
    "80-2 streaming": streaming,
    "80-3 a tool at work": at_work,
    "120-3 tools side by side": side_by_side,
    "80-4 approval of an edit": edit_question,
    "120-4 approval of a longer edit": wide_question,
    "80-5 approval of a command that can do harm": command_question,
    "approval of another tool": tool_question,
    "80-6 done": done,
    "120-5 what goes wrong, and waiting": went_wrong,
    "opened": opened,
    "an answer": answer,
    "a long prompt, sources": long_prompt,
    "status lines": statuses,
    "subagents": subagents,
}
