"""Subagents on the screen: what each does while it runs, folded when it is done, and one of them ended by itself."""

from __future__ import annotations

import json
import re
from typing import Any

from dragoman.testing import Script
from dragoman.testing.script_steps import ScriptedAnswer
from dragoman.tui.calls import RunningCalls
from dragoman.tui.line import plain
from dragoman.values.events import SubagentEvent, ToolCallFinished, ToolCallRequested, ToolCallUpdated, TurnFinished, TurnStarted
from dragoman.values.messages import FinishReason, Text, ToolCall, ToolResult
from dragoman.values.usage import Usage
from loop.together_service import Parts
from program import Place, calls, script, service
from terminals import tmux
from tui.test_conversation import begin

READ = ToolCall("r1", "read_file", '{"file_path": "map.txt"}')


def made(number: int, about: str) -> ToolCall:
    return ToolCall(f"t{number}", "task", json.dumps({"agent": "explore", "description": about, "prompt": "Go."}))


def rows(calls: RunningCalls) -> list[str]:
    return [plain(row).rstrip() for row in calls.lines(90, "⠋", 20)]


def test_each_shows_what_it_does_and_how_much_it_has_done() -> None:
    shown = RunningCalls()
    for number, about in ((1, "look east"), (2, "look west")):
        shown.add(made(number, about))
        shown.update(ToolCallUpdated(f"t{number}", "executing"))
        shown.take_inner(SubagentEvent(f"t{number}", "explore", TurnStarted(1, "a/b")))
    shown.take_inner(SubagentEvent("t1", "explore", ToolCallRequested(READ)))
    shown.take_inner(SubagentEvent("t1", "explore", TurnFinished(FinishReason.TOOL_CALLS, Usage(12_000, output_tokens=400))))
    first, second, third, *_ = rows(shown)
    assert first.startswith("▸ task explore: look east"), "the one that x ends"
    assert first.endswith("1 call · 12,400 tokens")
    assert second.strip() == "read_file map.txt"
    assert third.startswith("● task explore: look west")
    inner = ToolCallFinished("r1", (ToolResult("r1", "read_file", (Text("a bay"),)),), name="read_file", display="1 line")
    shown.take_inner(SubagentEvent("t1", "explore", inner))
    ended = ToolCallFinished("t1", (ToolResult("t1", "task", (Text("A bay.\nAnd more."),)),), name="task")
    title, answer = (plain(row).rstrip() for row in shown.finish(ended, 90))
    assert re.search(r"1 call · 12,400 tokens · \d+\.\d s$", title)
    assert answer == "  A bay."
    opened = shown.folded[-1].whole()
    assert opened is not None
    assert "read_file map.txt" in opened.output
    assert opened.output.endswith("And more.")


class Looking(Parts):
    """Whoever is to go east looks again and again, until the test has what it waits for."""

    is_done = False

    def __call__(self, request: Any) -> ScriptedAnswer:
        answer = super().__call__(request)
        if self.asked[-1] != "Go east." or self.is_done:
            return answer
        self._answers["Go east."] = iter([answer])
        looking = calls(("glob", {"pattern": f"*.{len(self.asked)}"}))  # another one each time: it is not a loop
        return Script.parse(f"wait: 0.1\n{looking}").answers[0]


def test_one_of_them_is_ended_and_the_others_go_on(place: Place, with_tmux: None) -> None:
    task = [("task", {"agent": "explore", "description": f"look {way}", "prompt": f"Go {way}."}) for way in ("west", "east", "south")]
    scripts = {
        "Where to?": script(calls(*task), "text: Only the east is known."),
        "Go east.": "text: A bay.",
        "Go west.": "wait: 30\ntext: never",
        "Go south.": "wait: 30\ntext: never",
    }
    parts = Looking(scripts)
    with service(parts) as place.service, tmux(place, size=(30, 100)) as pane:
        begin(pane, "Where to?")
        pane.expect("task explore: look west")
        pane.type("/agents stop 1")
        pane.keys("Enter")
        pane.expect("stopped: task explore: look west")
        pane.expect("▸ task explore: look east")
        pane.keys("Down")
        pane.expect("▸ task explore: look south")
        pane.type("x")
        pane.expect("✗ task explore: look south")
        parts.is_done = True
        screen = pane.expect("Only the east is known.")
        assert "✗ task explore: look west" in screen
        assert "✗ task explore: look south" in screen
        pane.type("/agents")
        pane.keys("Enter")
        pane.expect("built in")
