"""docs/reference/events.md: what a run and a stream tell, with the fields of each. `python -m checks.marked events` writes it."""

from __future__ import annotations

import typing

from checks.marked import REFERENCE, Part, docstring, fields_table, words_table
from dragoman.values import events
from dragoman.values.messages import FinishReason
from dragoman.values.record import ToolOutcome

GROUPS: dict[str, tuple[type, ...]] = {
    "The run": (events.PromptAccepted, events.TurnStarted, events.TurnFinished, events.UserCancelled, events.ErrorRaised),
    "The answer": (
        *(events.ResponseStarted, events.PromptRead, events.TextDelta, events.ThoughtDelta, events.CitationAdded, events.OutputUpdated),
        events.StreamInvalid,
    ),
    "Tool calls": (
        *(events.ToolCallRequested, events.ToolCallConfirmation, events.ToolCallUpdated, events.ToolCallFinished, events.ToolModeChanged),
        events.LoopSuspected,
    ),
    "The context": (events.ContextPruned, events.CompressionStarted, events.ContextCompressed, events.ContextOverflowed),
    "The service": (events.Retrying, events.RequestDelayed, events.FieldOmitted, events.ModelSwitched),
    "Other agents": (events.SubagentEvent, events.HandedOver),
    "The program": (events.NoticeGiven, events.SavingChanged),
    "Only in a stream": (
        *(events.ToolCallStarted, events.ToolCallDelta, events.ToolCallReady, events.UsageUpdated),
        events.ResponseFinished,
    ),
}


def made() -> str:
    return "\n\n".join(f"## {title}\n\n" + "\n\n".join(map(_entry, kinds)) for title, kinds in GROUPS.items())


def _entry(kind: type) -> str:
    note = "Also in a stream." if kind in typing.get_args(events.StreamEvent) and kind in typing.get_args(events.TurnEvent) else ""
    fields = fields_table(kind) or "It has no fields."
    return "\n\n".join(filter(None, (f"### {kind.__name__}", "\n".join(filter(None, (docstring(kind), note))), fields)))


def words() -> str:
    return words_table(FinishReason=FinishReason, ToolState=events.ToolState, ToolOutcome=ToolOutcome)


PARTS = (Part(REFERENCE / "events.md", "events", made), Part(REFERENCE / "events.md", "words of events", words))
