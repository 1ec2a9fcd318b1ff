"""One call on its way from validating to its report: what is known of it, and the ways it can end."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from dragoman.tools import results
from dragoman.values.contracts import Tool, ToolOutput
from dragoman.values.events import ToolState
from dragoman.values.messages import ToolCall, ToolResult
from dragoman.values.record import ToolOutcome


class CallReport(msgspec.Struct, frozen=True):
    """How one call went."""

    call: ToolCall
    result: ToolResult
    outcome: ToolOutcome
    output: ToolOutput
    duration_ms: int = 0
    """How long it ran; 0 where it did not."""


class Job:
    """One call on its way."""

    def __init__(self, call: ToolCall, tool: Tool | None) -> None:
        self.call = call
        self.tool = tool
        self.read_only = tool is None or tool.spec.read_only
        self.is_twin = False
        self.state: ToolState = "validating"
        self.args: dict[str, Any] = {}
        self.edited = ""
        """The arguments as JSON text, where a person changed them."""
        self.task: asyncio.Future[Any] | None = None
        """The person being asked, or the tool at work."""
        self.began_s: float | None = None
        self.duration_ms = 0
        self.stopping = ""
        """Why it is being ended, where it is."""
        self.timer: asyncio.TimerHandle | None = None
        self.is_abandoned = False
        self.output: ToolOutput | None = None
        self.outcome: ToolOutcome = "finished"
        self.report: CallReport | None = None
        """There once the ledger has it."""
        self.is_told = False

    @property
    def is_open(self) -> bool:
        return self.output is None

    @property
    def has_run(self) -> bool:
        """Whether the tool has ended, and nobody has looked yet."""
        return self.state == "executing" and self.task is not None and self.task.done()

    def end(self, output: ToolOutput, outcome: ToolOutcome | None = None) -> None:
        self.output = output
        self.outcome = outcome or ("failed" if output.is_error else "finished")
        if self.timer is not None:
            self.timer.cancel()

    def end_stopped(self, returned: ToolOutput | None = None) -> None:
        began = self.began_s is not None
        words = results.stopped(
            self.stopping, began=began, read_only=self.read_only, abandoned=self.is_abandoned, returned=returned if began else None
        )
        self.end(words, "cancelled")

    def salvage(self) -> None:
        """Keep an output that came in while the run was ended."""
        task = self.task
        if not self.is_open or not self.has_run or task is None or task.cancelled() or task.exception():
            return
        if self.stopping:
            self.end_stopped(task.result())
        else:
            self.end(task.result())

    def let_go(self) -> None:
        """Nobody waits for it any more. If it goes on all the same, it is kept until it ends, and nothing it does is heard."""
        task, self.task = self.task, None
        if self.timer is not None:
            self.timer.cancel()
        if task is None:
            return
        if task.done():
            return _forget(task)
        self.is_abandoned = True
        _abandoned.add(task)
        task.add_done_callback(_forget)


_abandoned: set[asyncio.Future[Any]] = set()


def _forget(task: asyncio.Future[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()  # seen, so that nobody is told that it was not
