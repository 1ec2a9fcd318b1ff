"""The scheduler of a run on its own: for calls that come from elsewhere than a conversation of ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from dragoman.loop.assembly import assemble
from dragoman.loop.history import History
from dragoman.loop.options import ApprovalOptions, ToolOptions, WorkspaceOptions
from dragoman.policy.judge import Mode
from dragoman.providers.offline import OfflineProvider
from dragoman.tools.job import CallReport
from dragoman.tools.scheduler import Scheduler
from dragoman.values.calls import Tool
from dragoman.values.errors import InputError, shown
from dragoman.values.events import ToolCallRequested, TurnEvent
from dragoman.values.messages import Message, ToolCall, is_list, unique_id
from dragoman.values.parts import to_messages, used_call_ids
from dragoman.values.profile import Profile
from dragoman.words import say


class CallScheduler:
    """Carries calls out as a run does: the CoreToolScheduler of the founding documents.

        async with CallScheduler([search_files], approval=ApprovalOptions(ask=ask), watch=print) as scheduler:
            reports = await scheduler.run(answer.calls)

    Each call is validated, judged by the approval mode and its rules, asked about where that says so, run, and recorded. Calls that only
    read run side by side. `watch` gets every state: validating, awaiting_approval, scheduled, executing, then success, error or cancelled
    (and `refused`, or `pending` for a call whose result comes later).
    """

    def __init__(
        self,
        tools: Iterable[Tool | Callable[..., Any]] | ToolOptions,
        *,
        approval: Mode | ApprovalOptions = "default",
        workspace: str | os.PathLike[str] | WorkspaceOptions = ".",
        watch: Callable[[TurnEvent], None] | None = None,
    ) -> None:
        nobody = OfflineProvider(None, Profile(known=False))
        self._harness, _ = assemble(nobody, tools=tools, workspace=workspace, approval=approval)
        self._watch = watch or _ignore
        self._scheduler: Scheduler | None = None

    @property
    def history(self) -> History:
        """The record of all calls and their results."""
        return self._harness.session.history

    async def run(self, calls: Iterable[ToolCall | Mapping[str, Any]], *, client_initiated: bool = False) -> tuple[CallReport, ...]:
        """Carry out these calls: ours, or `functionCall`, `tool_calls` and `tool_use` as the services write them. Raises InputError for
        anything else. The reports come back in call order, and a call that failed has one too; `report.result` is for the model.

        `client_initiated` says that a person asked for them and not the model (the documents' isClientInitiated): they are told so.
        """
        history, taken = self.history, used_call_ids(self.history.view.messages)
        numbered: list[ToolCall] = []
        for call in _calls_of(calls):
            fresh = unique_id(call.id, taken)
            taken.add(fresh)
            numbered.append(call if fresh == call.id else ToolCall(fresh, call.name, call.arguments, call.opaque))
        if not numbered:
            return ()
        history.close_interrupted()
        history.say(Message("assistant", tuple(numbered)))
        for call in numbered:
            self._watch(ToolCallRequested(call, client_initiated=client_initiated))
        self._scheduler = self._harness.scheduler(self._watch)
        try:
            return await self._scheduler.run(numbered)
        finally:
            await self._harness.settle()

    def cancel(self, call_id: str) -> bool:
        """End one call and leave the others. False where no such call is under way."""
        return self._scheduler is not None and self._scheduler.cancel(call_id)

    async def aclose(self) -> None:
        """End background commands and what else was opened."""
        await self._harness.session.aclose()
        if self._harness.commands is not None:
            self._harness.commands.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _calls_of(given: Iterable[ToolCall | Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    items: tuple[Any, ...] = tuple(given) if is_list(given) else (given,)
    if all(isinstance(item, ToolCall) for item in items):
        return items
    calls: tuple[ToolCall, ...] = ()
    if not any(item is None or isinstance(item, str | int) for item in items):
        calls = tuple(call for message in to_messages(items, "assistant") for call in message.calls)
    if len(calls) < len(items):
        raise InputError(say("loop.not_calls", given=shown(given)))
    return calls


def _ignore(event: TurnEvent) -> None:
    return
