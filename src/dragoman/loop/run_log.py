"""Log lines of a run, for programs that set logging up: when it starts and ends, its calls and retries. Nothing of what was said.

Loaded, and events looked at, only where the logger `dragoman.runs` is enabled for INFO when a run starts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable
from typing import Any

from dragoman.loop.result import Result
from dragoman.loop.trace_content import Cleaner
from dragoman.values.events import Retrying, ToolCallFinished, ToolCallUpdated, TurnEvent
from dragoman.values.usage import Usage

_log = logging.getLogger("dragoman.runs")


async def log_run(run: Any, drive: Awaitable[None]) -> None:
    """Carry a Run out and log it."""
    label, emit = run.prompt_id, run._emit
    lines = _Lines(label)
    lines.clean.know(run._session.model.provider)

    def emit_and_log(event: TurnEvent | None) -> None:
        emit(event)
        lines.see(event)

    run._emit = emit_and_log  # in place of the method, so that other runs pay nothing for it
    _log.info("%s: started with %s", label, run._session.model.full_name)
    try:
        await drive
    finally:
        result = run.result
        _log.info("%s: %s", label, lines.clean(_describe(result)))


class _Lines:
    def __init__(self, label: str) -> None:
        self._label = label
        self._began_s: dict[str, float] = {}
        self.clean = Cleaner()

    def see(self, event: TurnEvent | None) -> None:
        match event:
            case ToolCallUpdated(state="executing", call_id=call_id):
                self._began_s.setdefault(call_id, time.monotonic())
            case ToolCallFinished():
                self._log_call(event)
            case Retrying():
                _log.info("%s: retry %d in %.1f s: %s", self._label, event.attempt, event.wait_s, self.clean(str(event.reason)))

    def _log_call(self, event: ToolCallFinished) -> None:
        began_s = self._began_s.pop(event.call_id, None)
        took = "not run" if began_s is None else f"{time.monotonic() - began_s:.3f} s"
        why = f" ({event.error_type})" if event.error_type else ""
        _log.info("%s: %s %s%s, %s", self._label, event.name, event.outcome, why, took)


def _describe(result: Result) -> str:
    how = "finished" if not result.error_type else "cancelled" if result.error_type == "Cancelled" else f"failed: {result.error_type}: "
    words = " ".join(result.error.split())[:1_000] if how.startswith("failed") else ""
    figures = [
        _count(result.turns, "turn"),
        _count(result.requests, "request"),
        f"{_count(result.tool_calls, 'call')}, {result.tool_failures} failed",
        _tokens(result.usage),
        f"{result.duration_ms / 1000:.3f} s",
    ]
    return f"{how}{words}; {', '.join(figures)}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _tokens(usage: Usage) -> str:
    return f"{_count_in_words(usage, usage.input_tokens, 'tokens in')}, {_count_in_words(usage, usage.output_tokens, 'out')}"


def _count_in_words(usage: Usage, count: int, what: str) -> str:
    """A token count in words. If the usage is incomplete, a count is a lower bound, and 0 means unknown."""
    if not usage.incomplete:
        return f"{count} {what}"
    return f"at least {count} {what}" if count else f"{what} unknown"
