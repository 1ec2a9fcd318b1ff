"""What is only to be seen while it happens: the events of a run that leave nothing of their own on the record, and a subagent at work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.conversation import call_lines
from dragoman.conversation.inner_work import InnerWork
from dragoman.conversation.types import ViewEvent, ViewState
from dragoman.values.events import (
    CitationAdded,
    ContextCompressed,
    ContextPruned,
    ErrorRaised,
    FieldOmitted,
    ModelSwitched,
    OutputUpdated,
    PromptRead,
    Retrying,
    StreamInvalid,
    ToolCallConfirmation,
    ToolCallUpdated,
    ToolState,
    TurnEvent,
    UserCancelled,
)
from dragoman.words import say

_STATES: dict[ToolState, ViewState] = {
    "validating": "waiting",
    "awaiting_approval": "waiting",
    "scheduled": "waiting",
    "executing": "running",
    "pending": "waiting",
    "success": "done",
    "error": "failed",
    "cancelled": "cancelled",
    "refused": "refused",
}


def passing_event(event: TurnEvent, calls: Mapping[str, tuple[str, Any]]) -> ViewEvent | None:
    """None for what is nothing to show, and for what entries say. `calls`: call ids → the id of the block, and more."""
    match event:
        case ToolCallUpdated(call_id=call_id) if call_id in calls:
            return _update(event, calls[call_id][0])
        case ToolCallConfirmation(call=call, prompt=prompt) if call.id in calls:
            id = calls[call.id][0]
            data = {"call": id, "call_id": call.id, "arguments": call.arguments}
            return ViewEvent(0, "question", f"{id}.question", prompt, state="waiting", data=data, passing=True)
        case PromptRead():
            return _status("prompt_read", call_lines.prompt_progress(event), {"done": event.done_tokens, "total": event.total_tokens})
        case Retrying():
            data = {"attempt": event.attempt, "wait_s": event.wait_s, "model": event.model}
            return _status("retry", event.reason, data)
        case OutputUpdated(value=value):
            return _status("output", "", {"value": value})
        case CitationAdded(citation=citation):
            return _status("source", citation.title, {"title": citation.title, "uri": citation.uri})
        case StreamInvalid():
            return _notice(say("answer_void"), "warning")
        case ErrorRaised():
            words = event.message + call_lines.retry_words(event)
            data = {"error_type": event.error_type, "retryable": event.retryable, "exit_code": event.exit_code}
            return ViewEvent(0, "ended", "ended", words, state="failed", data=data, passing=True)
        case UserCancelled():
            return ViewEvent(0, "ended", "ended", say("run_cancelled"), state="cancelled", passing=True)
        case FieldOmitted() | ContextPruned() | ContextCompressed(status="compressed" | "extracted") | ModelSwitched():
            return None  # the record says it
        case _ if (notice := call_lines.notice_of(event)) is not None:
            return _notice(notice.text, notice.weight)
        case _:
            return None


def _update(event: ToolCallUpdated, id: str) -> ViewEvent:
    told = {"now": event.state, "output": event.output_delta, "progress": event.progress_line}
    data = {key: value for key, value in told.items() if value}
    return ViewEvent(0, "call", id, append=True, state=_STATES[event.state], data=data, passing=True)


def _status(id: str, text: str, data: dict[str, Any]) -> ViewEvent:
    return ViewEvent(0, "status", id, text, data=data, passing=True)


def _notice(text: str, weight: str) -> ViewEvent:
    return ViewEvent(0, "notice", "notice", text, data={"weight": weight}, passing=True)


class InnerView:
    """A subagent at work in a call: its own blocks inside that of the call, and what it does now in a line. `show`: makes ViewEvents of its
    events, as of any conversation."""

    def __init__(self, call: str, show: Callable[[TurnEvent], Sequence[ViewEvent]]) -> None:
        self._call = call
        self._show = show
        self._work = InnerWork()

    def take(self, event: TurnEvent) -> Iterator[ViewEvent]:
        for told in self._show(event):
            inside = f"{self._call}/{told.inside}" if told.inside else self._call
            yield msgspec.structs.replace(told, id=f"{self._call}/{told.id}", inside=inside, passing=True)
        if self._work.take(event):
            work = self._work
            data = {"inner": {"now": work.now, "calls": work.calls, "tokens": work.tokens, "counts": work.counts}}
            yield ViewEvent(0, "call", self._call, append=True, data=data, passing=True)
