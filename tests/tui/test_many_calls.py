"""Hundreds of calls in one answer on the screen: a frame costs what it shows. Work is counted, not timed."""

from __future__ import annotations

from dragoman.tui.calls import RunningCalls
from dragoman.values.events import ToolCallFinished, ToolCallUpdated
from dragoman.values.messages import ToolCall, tool_result
from loop.test_many_calls import count_steps

ROWS = 20


def play(count: int) -> RunningCalls:
    """A frame after every event, as a slow terminal would never see them."""
    calls = RunningCalls()
    for number in range(count):
        calls.add(ToolCall(f"c{number}", "run_shell", f'{{"command": "make {number}"}}'))
    for number in range(count):
        call = ToolCall(f"c{number}", "run_shell", f'{{"command": "make {number}"}}')
        calls.update(ToolCallUpdated(call.id, "executing", "output\n"))
        assert calls.running == 1
        assert calls.next_title or number == count - 1
        assert f"make {number}" in "".join(span.text for span in calls.lines(80, "*", ROWS)[0])
        calls.finish(ToolCallFinished(call.id, (tool_result(call, "done"),)), 80)
        assert calls.lines(80, "*", ROWS) == []
    return calls


def test_many_calls_cost_what_their_number_says() -> None:
    play(3)
    few, more, many = (count_steps(lambda count=count: play(count)) for count in (200, 400, 800))
    assert more < 2.5 * few
    assert many < 2.5 * more
