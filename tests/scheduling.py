"""What tests of the scheduler share: tools made of a coroutine, a ledger that remembers, and a way to run a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from dragoman.tools.registry import Registry
from dragoman.tools.scheduler import CallReport, Scheduler
from dragoman.values.calls import Allow, Decide, Intent, Show, Tool, ToolOutput
from dragoman.values.events import ToolCallFinished, ToolCallUpdated, TurnEvent
from dragoman.values.messages import Text, ToolCall, ToolResult, ToolSpec
from dragoman.values.record import ToolOutcome

OPEN = {"type": "object", "properties": {}}


def output(text: str = "done", **fields: Any) -> ToolOutput:
    return ToolOutput((Text(text),), **fields)


class PlainTool:
    """A tool that does what it is told to."""

    def __init__(
        self,
        name: str,
        act: Callable[[Mapping[str, Any], Show], Awaitable[Any]] | None = None,
        *,
        read_only: bool = True,
        parameters: dict[str, Any] | None = None,
        intent: Intent | None = None,
    ) -> None:
        self.spec = ToolSpec.of(name, f"The tool {name}.", parameters or OPEN, read_only=read_only)
        self.ran: list[dict[str, Any]] = []
        self._act = act
        self._intent = intent or Intent(name)

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return self._intent

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        self.ran.append(dict(args))
        return output() if self._act is None else await self._act(args, show)


class Notebook:
    """A ledger that remembers what it was told, in order, and what was synced."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.starts: dict[str, str] = {}
        self.beginnings: list[str] = []
        """Of calls that only read."""
        self.results: dict[str, ToolResult] = {}
        self.outcomes: dict[str, ToolOutcome] = {}
        self.displays: dict[str, tuple[str, str]] = {}

    def start_tool(self, call: ToolCall, arguments: str = "", *, outside: bool = False, read_only: bool = False) -> None:
        if read_only:
            return self.beginnings.append(call.id)
        self.lines.append(("started", call.id))
        self.starts[call.id] = arguments

    def finish_tool(
        self, result: ToolResult, outcome: ToolOutcome = "finished", display: str = "", extras: str = "", **files: tuple[str, ...]
    ) -> None:
        self.lines.append(("finished", result.call_id))
        assert result.call_id not in self.results, "a call has one result"
        self.results[result.call_id] = result
        self.outcomes[result.call_id] = outcome
        self.displays[result.call_id] = (display, extras)

    async def sync(self) -> None:
        self.lines.append(("synced", ""))


class Bench:
    """A scheduler with everything around it."""

    def __init__(self, tools: Sequence[Tool], decide: Decide = lambda call: Allow(), **settings: Any) -> None:
        self.ledger = Notebook()
        self.events: list[TurnEvent] = []
        self.scheduler = Scheduler(Registry(tools), self.ledger, decide, self._emit, **settings)
        self._hooks: dict[str, Callable[[], None]] = {}

    def run(self, *calls: ToolCall) -> tuple[CallReport, ...]:
        return asyncio.run(self.scheduler.run(calls))

    def when_finished(self, call_id: str, hook: Callable[[], None]) -> None:
        self._hooks[call_id] = hook

    def _emit(self, event: TurnEvent) -> None:
        self.events.append(event)
        if isinstance(event, ToolCallFinished) and event.call_id in self._hooks:
            self._hooks[event.call_id]()

    def states(self, call_id: str) -> list[str]:
        """The states a call went through; output it showed is left out."""
        return [
            event.state
            for event in self.events
            if isinstance(event, ToolCallUpdated) and event.call_id == call_id and not event.output_delta
        ]

    def finished(self, call_id: str) -> ToolCallFinished:
        (event,) = [event for event in self.events if isinstance(event, ToolCallFinished) and event.call_id == call_id]
        return event


def text_of(report: CallReport) -> str:
    return "".join(part.text for part in report.result.content if isinstance(part, Text))
