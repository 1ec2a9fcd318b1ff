"""One-line descriptions for the user: a tool call, its outcome, what changed during a run, prompt progress."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.base.text import one_line
from dragoman.values.events import (
    CompressionStarted,
    ContextCompressed,
    ContextPruned,
    ErrorRaised,
    FieldOmitted,
    LoopSuspected,
    ModelSwitched,
    NoticeGiven,
    PromptRead,
    RequestDelayed,
    SavingChanged,
    ToolCallFinished,
    ToolModeChanged,
    TurnEvent,
)
from dragoman.values.messages import Text, ToolCall, ToolResult
from dragoman.values.parts import call_in_words
from dragoman.words import chosen_language, say

TITLE_CHARS = 100
_PASSING = frozenset(("ConnectionFailed", "TimedOut", "StreamBroken", "Overloaded", "ServerError", "RateLimited"))
"""Failures of the network or the service: they may be over later, even if retrying at once is of no use."""


def title(call: ToolCall, *, outside: bool = False, folder: str = "") -> str:
    """`outside`: its command ran outside the sandbox. `folder`: paths inside it are written as from there."""
    words = one_line(call_in_words(call, folder), TITLE_CHARS)
    return say("call_outside", title=words) if outside else words


def outcome(event: ToolCallFinished) -> str:
    """`✓ 120 lines`, `✗ no such file`."""
    if event.error or any(isinstance(part, ToolResult) and part.is_error for part in event.parts):
        return say("call_failed", why=_first_line(shown_of(event)))
    return say("call_done", what=_first_line(event.display))


def result_text(event: ToolCallFinished) -> str:
    """The result as the model is given it."""
    return "".join(part.text for part in event.parts if isinstance(part, Text | ToolResult))


def shown_of(event: ToolCallFinished) -> str:
    """What a person is shown of a call that did not succeed: its error, but of a command whose time was up what the tool shows, because
    there the error is the result as the model gets it."""
    return event.display if event.error_type == "timed_out" else event.error or event.display


def in_words(told: str) -> str:
    """A line of what a tool says of its result, in the chosen language: tools say it in English."""
    if chosen_language() == "en":
        return told
    from dragoman.conversation.result_words import result_in_words

    return result_in_words(told)


class RunNotice(msgspec.Struct, frozen=True):
    """One line about a run, besides its answers and calls."""

    text: str
    weight: Literal["quiet", "warning", "bad"] = "warning"


def notice_of(event: TurnEvent) -> RunNotice | None:
    """What every report tells of an event in one line; None for events that a report shows in its own way, or not at all."""
    match event:
        case FieldOmitted():
            return RunNotice(omission(event))
        case RequestDelayed(reason=reason):
            return RunNotice(reason, "quiet")
        case LoopSuspected(reason=reason, count=1):
            return RunNotice(say("loop_suspected", reason=reason))
        case ToolModeChanged(dialect=dialect):
            return RunNotice(say("tools_in_text", dialect=dialect))
        case ModelSwitched(model=model, reason=reason):
            return RunNotice(say("model_switched", reason=reason, model=model))
        case NoticeGiven(message=message):
            return RunNotice(message)
        case CompressionStarted():
            return RunNotice(compressing(event), "quiet")
        case ContextPruned() | ContextCompressed():
            return RunNotice(context_change(event), "quiet")
        case SavingChanged(saved=saved, reason=reason):
            return RunNotice(reason, "warning" if saved else "bad")
        case _:
            return None


def retry_words(event: ErrorRaised) -> str:
    """How to try again, after a failure that may be over by then."""
    return say("retry_hint") if event.retryable or event.error_type in _PASSING else ""


def context_change(event: ContextPruned | ContextCompressed) -> str:
    """Describes what was pruned or compressed."""
    words = _context_change(event)
    return say("told_for_window", what=words, window=f"{event.window:,}") if event.window else words


def _context_change(event: ContextPruned | ContextCompressed) -> str:
    if isinstance(event, ContextPruned):
        return say("told_pruned", results=len(event.call_ids), tokens=event.saved_tokens)
    before, after = event.original_tokens, event.new_tokens
    if event.status == "compressed":
        return say("told_compressed", before=before, after=after)
    if event.status == "extracted":
        return say("told_extracted", before=before, after=after)
    return say("told_not_compressed", reason=event.reason or event.status, before=before)


def compressing(event: CompressionStarted) -> str:
    """A summary is being written: that may take a while."""
    return say("told_compressing", tokens=event.tokens, window=event.window)


def omission(event: FieldOmitted) -> str:
    """Tells of a setting that was left out."""
    model, reason = f"{event.deployment}/{event.model}", one_line(event.reason, 2 * TITLE_CHARS)
    return say("setting_left_out", model=model, field=event.field, reason=reason)


def prompt_progress(event: PromptRead) -> str:
    """How much of the prompt the model has read."""
    percent = min(100 * event.done_tokens // max(event.total_tokens, 1), 100)
    return say("reading_prompt", percent=percent, tokens=event.total_tokens)


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return one_line(in_words(lines[0]), TITLE_CHARS) if lines else ""
