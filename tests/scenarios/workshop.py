"""An agent in this process whose model is a script and whose tools do what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any

import msgspec

from agents import make_agent
from destinations import MAIN, connection, violation_in
from dragoman.context.view import View
from dragoman.loop.agent import Agent
from dragoman.loop.history import History
from dragoman.loop.options import AnswerPolicy, Limits
from dragoman.loop.run import Run
from dragoman.testing.script import Source
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.calls import Intent, Show, ToolOutput
from dragoman.values.contracts import Provider
from dragoman.values.events import ErrorRaised, ToolCallFinished, ToolCallRequested, ToolCallUpdated, TurnEvent, UserCancelled
from dragoman.values.messages import Text, ToolKind, ToolSpec, user
from dragoman.values.record import Said, ToolFinished

Act = Callable[[Mapping[str, Any], Show], Awaitable[ToolOutput | str]]
_PARAMETERS = {"type": "object", "properties": {"what": {"type": "string"}}}


async def no_wait(_: float) -> None:
    await asyncio.sleep(0)


QUICK = Limits(answers=AnswerPolicy(sleep=no_wait))


class PlainTool:
    """A tool that does what it is given to do, and remembers what it was asked."""

    def __init__(
        self,
        name: str = "look",
        act: Act | None = None,
        *,
        read_only: bool = True,
        kind: ToolKind = "read",
        writes: tuple[str, ...] = (),
        parameters: dict[str, Any] | None = None,
    ) -> None:
        self.spec = ToolSpec.of(name, f"The tool {name}.", parameters or _PARAMETERS, kind=kind, read_only=read_only)
        self.asked: list[dict[str, Any]] = []
        self.running = asyncio.Event()
        """Set once it runs."""
        self._act = act or self._nothing
        self._writes = writes

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return Intent(f"{self.spec.name} {args.get('what', '')}".strip(), writes=self._writes)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        self.asked.append(dict(args))
        self.running.set()
        made = await self._act(args, show)
        return ToolOutput((Text(made),), made) if isinstance(made, str) else made

    async def _nothing(self, args: Mapping[str, Any], show: Show) -> str:
        return f"looked at {args.get('what', 'nothing')}"


def writer(name: str = "change", act: Act | None = None, **options: Any) -> PlainTool:
    """A tool that has effects, and so must be asked for."""
    return PlainTool(name, act, **{"read_only": False, "kind": "edit", "writes": ("/somewhere/a.txt",), **options})


async def forever(args: Mapping[str, Any], show: Show) -> str:
    await asyncio.Event().wait()
    raise AssertionError("nothing ends this wait")


def failing(text: str = "no such thing", error_type: str = "not_found") -> Act:
    async def fail(args: Mapping[str, Any], show: Show) -> ToolOutput:
        return ToolOutput((Text(text),), text, is_error=True, error_type=error_type)

    return fail


def agent_for(model: Source | Provider, *tools: PlainTool, **options: Any) -> Agent:
    """An agent with these tools and no others. A script stands for a model that plays it."""
    provider = model if hasattr(model, "stream") else ScriptedProvider(model)  # type: ignore[arg-type]
    return make_agent(provider, **{"tools": tools, "builtin": False, "describe": False, "system": "", "limits": QUICK, **options})  # type: ignore[arg-type]


async def events_of(run: Run) -> list[TurnEvent]:
    return [event async for event in run]


def play(test: Callable[[], Coroutine[Any, Any, Any]], within_s: float = 60) -> Any:
    """Run an async test, in an event loop of its own. Debug mode would tell of a call that blocks the loop."""

    async def bounded() -> Any:
        async with asyncio.timeout(within_s):
            return await test()

    return asyncio.run(bounded())


# --- what must be so after every run ---------------------------------------------------------------------------------------------


def check_record(history: History, *, protocols: Iterable[str] = MAIN) -> None:
    """Every call has one result, none is open, the record tells the same story again, and every service would take the next request."""
    view = history.view
    assert view.open_calls == ()
    answered: set[str] = set()
    waiting: list[str] = []
    for message in view.messages:
        assert message.parts, "nothing empty is sent"
        results = [part.call_id for part in message.results]
        assert results == waiting, "results come right behind their calls, in the same order, each once"
        assert not answered & set(results)
        answered |= set(results)
        waiting = [call.id for call in message.calls]
    assert waiting == []
    finished = [entry.result.call_id for entry in history.entries if isinstance(entry, ToolFinished)]
    assert len(set(finished)) == len(finished), "a call was finished twice"
    again = View()
    for entry in history.entries:
        again.feed(entry)
    assert again.request == view.request
    if any(message.parts for message in view.messages):
        for name in protocols:
            check_request(history, name)


def check_request(history: History, protocol: str) -> None:
    """The next prompt would be taken by this service, whoever answered so far."""
    where, request = connection(protocol), history.request
    body = where.prepare(msgspec.structs.replace(request, model=where.model, messages=(*request.messages, user("What next?")))).body
    assert violation_in(where, body) is None, (violation_in(where, body), body)


def said(history: History, text: str) -> int:
    """How often a prompt was said, and stayed."""
    spoken = [entry.message.text for entry in history.entries if isinstance(entry, Said)]
    assert spoken.count(text) >= [message.text for message in history.view.messages].count(text)
    return spoken.count(text)


def finished_calls(events: Iterable[TurnEvent]) -> list[str]:
    return [event.call_id for event in events if isinstance(event, ToolCallFinished)]


_NEXT = {
    "": {"validating", "cancelled"},
    "validating": {"awaiting_approval", "scheduled", "error", "cancelled", "refused"},
    "awaiting_approval": {"scheduled", "error", "cancelled", "refused"},
    "scheduled": {"executing", "error", "cancelled"},
    "executing": {"executing", "success", "error", "cancelled"},
    "success": set[str](),
    "error": set[str](),
    "cancelled": set[str](),
    "refused": set[str](),
}


def check_told(events: list[TurnEvent], exit_code: int) -> None:
    """Each call that was asked for goes its way and is finished once, and a failure is the last thing told."""
    requested = [event.call.id for event in events if isinstance(event, ToolCallRequested)]
    assert sorted(finished_calls(events)) == sorted(requested)
    states = dict.fromkeys(requested, "")
    for event in events:
        if isinstance(event, ToolCallUpdated):
            assert event.state in _NEXT[states[event.call_id]], (states[event.call_id], event)
            states[event.call_id] = event.state
        elif isinstance(event, ToolCallFinished):
            assert states[event.call_id] in ("success", "error", "cancelled", "refused")
    ends = [event for event in events if isinstance(event, ErrorRaised | UserCancelled)]
    assert len(ends) == (exit_code != 0)
    if ends:
        assert events[-1] is ends[0]
