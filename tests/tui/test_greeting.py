"""What a resumed conversation shows of the past: made of the same events as the conversation that goes on."""

from __future__ import annotations

from dragoman.loop.history import History
from dragoman.tui.greeting import blocks_before, lines_before
from dragoman.tui.line import plain
from dragoman.values.messages import FinishReason, Response, Text, Thought, ToolCall, assistant, tool_result, user


def shown(history: History) -> list[str]:
    return [plain(row).rstrip() for row in lines_before(blocks_before(history.entries), 80)]


def test_prompts_answers_and_calls_are_shown_and_what_was_taken_back_is_not() -> None:
    history, call = History(), ToolCall("c1", "run_shell", '{"command": "make"}')
    history.say(user("Today is Friday."), "environment")
    first = history.say(user("Build it."))
    history.answer(Response(assistant(Thought("Hm."), Text("I build it."), call), FinishReason.TOOL_CALLS))
    history.start_tool(call)
    history.finish_tool(tool_result(call, "done"), display="2 lines")
    history.answer(Response(assistant("Built."), FinishReason.STOP))
    rows = shown(history)
    assert next(row for row in rows if row).endswith("Build it.")
    assert "I build it." in rows
    assert len([row for row in rows if "make" in row]) == 1
    assert rows[-2:] == ["Built.", ""]
    assert not [row for row in rows if "Friday" in row or "Hm." in row]
    history.rewind(first)
    assert [row for row in shown(history) if row] == [row for row in rows if row][:1]
