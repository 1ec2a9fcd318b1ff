"""What a subagent has done so far, from the events of its run: for its line on the screen, and to read when it is done."""

from __future__ import annotations

from dragoman.base.text import one_line
from dragoman.conversation import call_lines
from dragoman.values.events import (
    ErrorRaised,
    Retrying,
    SubagentEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallFinished,
    ToolCallRequested,
    TurnEvent,
    TurnFinished,
    TurnStarted,
)
from dragoman.values.messages import ToolCall
from dragoman.words import say

MAX_LINES = 1_000


class InnerWork:
    """One call of a subagent. What the subagents do that it calls itself counts with it."""

    def __init__(self) -> None:
        self.now = ""
        """What it does at the moment."""
        self.calls = 0
        self.tokens = 0
        self.lines: list[str] = []
        """A line for each call that has ended."""
        self._open: dict[str, ToolCall] = {}

    @property
    def counts(self) -> str:
        """`3 calls · 12,000 tokens`."""
        parts = [say("subagents.calls", count=self.calls)] if self.calls else []
        parts += [say("subagents.tokens", count=self.tokens)] if self.tokens else []
        return " · ".join(parts)

    def take(self, event: TurnEvent) -> bool:
        """Whether what is shown of it changed."""
        before = (self.now, self.calls, self.tokens)
        callers = ""
        while isinstance(event, SubagentEvent):
            callers, event = f"{callers}{event.name} › ", event.event
        self._note(event, callers)
        return before != (self.now, self.calls, self.tokens)

    def _note(self, event: TurnEvent, callers: str) -> None:
        match event:
            case TurnStarted():
                self.now = callers + say("subagents.waits")
            case ThoughtDelta():
                self.now = callers + say("subagents.thinks")
            case TextDelta():
                self.now = callers + say("subagents.writes")
            case ToolCallRequested(call=call):
                self.calls += 1
                self.now = callers + call_lines.title(call)
                self._open[call.id] = call
            case ToolCallFinished():
                if (ended := self._open.pop(event.call_id, None)) is not None:
                    title = call_lines.title(event.as_run(ended), outside=event.outside)
                    self._add(callers + say("call_ended", title=title, outcome=call_lines.outcome(event)))
            case TurnFinished(usage=usage):
                self.tokens += usage.total_tokens
            case Retrying(reason=reason):
                self.now = callers + reason
            case ErrorRaised(message=message):
                self._add(callers + message)
            case _:
                pass

    def _add(self, line: str) -> None:
        if len(self.lines) < MAX_LINES:
            self.lines.append(one_line(line, 300))
