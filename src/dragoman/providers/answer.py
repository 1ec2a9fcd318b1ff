"""Builds an answer from deltas: parts in the order they arrived, unique call ids, valid Unicode."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Literal

from dragoman.base import jsontext
from dragoman.providers.wire import Destination, Taken
from dragoman.values.errors import ProviderError
from dragoman.values.events import (
    CitationAdded,
    ResponseFinished,
    ResponseStarted,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallDelta,
    ToolCallReady,
    ToolCallStarted,
    UsageUpdated,
)
from dragoman.values.messages import (
    Citation,
    Fault,
    FinishReason,
    Message,
    Opaque,
    Part,
    Response,
    SafetyRating,
    Text,
    Thought,
    ToolCall,
    unique_id,
)
from dragoman.values.partial import AnswerBound
from dragoman.values.usage import Usage

log = logging.getLogger("dragoman.providers")

Piece = tuple[Literal["text", "thought"], str]
MALFORMED_CALL = "MALFORMED_FUNCTION_CALL"
"""Gemini's word for an answer with a call that it could not read itself and leaves out. The calls beside it are good."""
PARTLY_READ = (
    "Another tool call of your last answer could not be read ({detail}). It was not run; the others were. "
    "If it is still needed, write that call again, correctly."
)
"""For the model, beside the results of the others."""
_CLOSERS = {"<think>": "</think>", "<thinking>": "</thinking>"}


class AnswerBuilder:
    """Collects one answer. Every method that adds something returns the events for it."""

    def __init__(self, taken: Taken) -> None:
        self.usage = Usage()
        self.response_id = ""
        self.model_version = ""
        self.started = False
        self.fault: Fault = ""
        self.ratings: tuple[SafetyRating, ...] = ()
        self._taken_source = taken
        self._taken: set[str] | None = None
        self._parts: list[Part] = []
        self._open: type[Text] | type[Thought] | None = None
        self._pieces: list[str] = []
        self._half = ""
        """A high surrogate at the end of a delta; its other half comes with the next one."""
        self._call_halves: dict[str, str] = {}
        """The same for the arguments of calls being written."""
        self._pending: list[StreamEvent] = []
        """Events for lone surrogates, found when their part was sealed; sent with the next events."""

    # --- what arrives

    def start(self, response_id: str = "", model_version: str = "") -> list[StreamEvent]:
        self.response_id = self.response_id or response_id
        self.model_version = self.model_version or model_version
        if self.started:
            return []
        self.started = True
        return [ResponseStarted(self.response_id, self.model_version)]

    def add_text(self, delta: str) -> list[StreamEvent]:
        whole = self._append(Text, delta)
        return self._with_pending(TextDelta(whole)) if whole else self._with_pending()

    def add_thought(self, delta: str, subject: str = "", description: str = "") -> list[StreamEvent]:
        whole = self._append(Thought, delta)
        told = ThoughtDelta(whole, jsontext.valid_unicode(subject), jsontext.valid_unicode(description))
        return self._with_pending(told) if whole else self._with_pending()

    def seal(self, opaque: Opaque | None = None) -> None:
        """End the part being written, and attach what the provider wants sent back with it."""
        if self._open is not None:
            if self._half:
                self._pieces.append("\ufffd")
                self._pending.append(TextDelta("\ufffd") if self._open is Text else ThoughtDelta("\ufffd"))
                self._half = ""
            self._parts.append(self._open("".join(self._pieces), opaque))
            self._open = None
            self._pieces = []
        elif opaque is not None:
            self._parts.append(Thought("", opaque))

    @property
    def open_text(self) -> str:
        """The text so far of the part being written."""
        return "".join(self._pieces) + ("\ufffd" if self._half else "")

    @property
    def last_text(self) -> str:
        """The text being written, or the last that was: what an annotation counts in."""
        if self._open is Text:
            return self.open_text
        return next((part.text for part in reversed(self._parts) if isinstance(part, Text)), "")

    def add_private(self, opaque: Opaque) -> None:
        """Keep a block that only the provider can read, to send it back later."""
        self.seal()
        self._parts.append(Thought("", opaque))

    def attach_to_thinking(self, opaque: Opaque) -> None:
        """Keep what belongs to the thinking of the whole answer: on the first thought, or on an empty one before everything else."""
        self.seal()
        for index, part in enumerate(self._parts):
            if isinstance(part, Thought) and part.opaque is None:
                self._parts[index] = Thought(part.text, opaque)
                return
        self._parts.insert(0, Thought("", opaque))

    def begin_call(self, wanted_id: str, name: str) -> tuple[str, list[StreamEvent]]:
        """Claim an id for a call whose arguments are still coming."""
        call_id = self._claim(wanted_id)
        return call_id, self._with_pending(ToolCallStarted(call_id, jsontext.valid_unicode(name)))

    def add_arguments(self, call_id: str, piece: str) -> list[StreamEvent]:
        """The next piece of a call's arguments, for display only."""
        whole, half = _split_half(self._call_halves.pop(call_id, "") + piece)
        if half:
            self._call_halves[call_id] = half
        return self._with_pending(ToolCallDelta(call_id, whole)) if whole else self._with_pending()

    def end_call(self, call_id: str, name: str, arguments: str, opaque: Opaque | None = None) -> list[StreamEvent]:
        self.seal()
        if self._call_halves.pop(call_id, ""):
            self._pending.append(ToolCallDelta(call_id, "\ufffd"))
        call = ToolCall(call_id, jsontext.valid_unicode(name), jsontext.clean(arguments) or "{}", opaque)
        self._parts.append(call)
        return self._with_pending(ToolCallReady(call))

    def add_call(self, wanted_id: str, name: str, arguments: str, opaque: Opaque | None = None) -> list[StreamEvent]:
        """A call that arrived whole."""
        call_id, events = self.begin_call(wanted_id, name)
        return events + self.end_call(call_id, name, arguments, opaque)

    def add_citation(self, citation: Citation) -> list[StreamEvent]:
        self.seal()
        self._parts.append(citation)
        return self._with_pending(CitationAdded(citation))

    def set_usage(self, usage: Usage) -> list[StreamEvent]:
        if usage == self.usage:
            return []
        self.usage = usage
        return [UsageUpdated(usage)]

    # --- how it ends

    def close(self, reason: FinishReason, raw_reason: str = "", detail: str = "") -> list[StreamEvent]:
        """The last events of a stream."""
        finished = self.finish(reason, raw_reason, detail)
        return self._with_pending(finished)

    def finish(self, reason: FinishReason, raw_reason: str = "", detail: str = "") -> ResponseFinished:
        self.seal()
        message = Message("assistant", tuple(part for part in self._parts if part != _EMPTY_TEXT))
        if reason is FinishReason.STOP and message.calls:
            reason = FinishReason.TOOL_CALLS  # some services say stop for both
        fault = self.fault
        if reason is FinishReason.MALFORMED_TOOL_CALL and raw_reason == MALFORMED_CALL and message.calls:
            reason, fault, detail = FinishReason.TOOL_CALLS, "unreadable_call", PARTLY_READ.format(detail=detail or raw_reason)
        response = Response(message, reason, raw_reason, self.usage, self.response_id, self.model_version, detail, fault, self.ratings)
        return ResponseFinished(reason, response)

    # --- helpers

    def _append(self, kind: type[Text] | type[Thought], delta: str) -> str:
        if self._open is not kind:
            self.seal()
            self._open = kind
        delta, self._half = _split_half(self._half + delta)
        self._pieces.append(delta)
        return delta

    def _with_pending(self, *events: StreamEvent) -> list[StreamEvent]:
        if not self._pending:
            return list(events)
        told = [*self._pending, *events]
        self._pending.clear()
        return told

    def _claim(self, wanted_id: str) -> str:
        if self._taken is None:
            self._taken = set(self._taken_source())
        claimed = unique_id(jsontext.valid_unicode(wanted_id), self._taken)
        self._taken.add(claimed)
        return claimed


_EMPTY_TEXT = Text("")
"""A text block that was opened and never written to. Dropped, because empty text makes an answer invalid."""


def _split_half(delta: str) -> tuple[str, str]:
    """The delta as valid Unicode, and the half surrogate pair it ends with, if any."""
    if delta.isascii():
        return delta, ""
    if "\ud800" <= delta[-1] <= "\udbff":
        return jsontext.valid_unicode(delta[:-1]), delta[-1]
    return jsontext.valid_unicode(delta), ""


def service_error(event: Any, to: Destination) -> ProviderError:
    """The error that a service sent in the place of an answer. What reads errors is loaded where one comes."""
    from dragoman.providers.faults import error_from_event

    return error_from_event(event, to)


class ThinkTags:
    """Parts an answer's text into thinking and text, however it is cut.

    Thinking is what stands between tags at the very beginning. Tags further on are somebody writing about tags.
    """

    def __init__(self, *, opened: bool = False) -> None:
        """`opened`: the chat template has opened the thinking, so the answer begins inside it."""
        self._opened = opened
        self._closer = ""
        self._held = ""
        """What may be the beginning of a tag."""
        self._state: Literal["start", "opened", "thinking", "gap", "text"] = "start"
        self._thought_chars = 0

    @property
    def is_over(self) -> bool:
        """Whether the answer itself has begun and nothing of it is held back: from here on all text is text."""
        return self._state == "text" and not self._held

    def leave_text_alone(self) -> None:
        """The service reads the thinking itself, and sends it in a field of its own."""
        if self._state == "start":
            self._state = "text"

    def feed(self, text: str) -> list[Piece]:
        text, self._held = self._held + text, ""
        pieces: list[Piece] = []
        if self._state == "start":
            text = self._open(text)
        if self._state == "opened":
            text = text.lstrip("\n")
            self._state = "thinking" if text else "opened"
        if self._state == "thinking":
            thought, text = self._close(text)
            pieces.append(("thought", thought))
            self._thought_chars += len(thought)
        if self._state == "gap":  # the blank lines between the thinking and the answer
            text = text.lstrip()
            self._state = "text" if text else "gap"
        if self._state == "text":
            pieces.append(("text", text))
        return [piece for piece in pieces if piece[1]]

    def close(self) -> list[Piece]:
        """What was held back when the answer ended."""
        if self._thought_chars:
            log.debug("took %d characters of thinking out of the text of an answer", self._thought_chars)
        held, self._held, self._thought_chars = self._held, "", 0
        inside = self._state == "thinking" or (self._state == "start" and self._opened)
        return [("thought" if inside else "text", held)] if held else []

    def _open(self, text: str) -> str:
        """What follows the opening tag, once it is known whether there is one."""
        begun = text.lstrip()
        tag = next((tag for tag in _CLOSERS if begun.startswith(tag)), "")
        if not tag and any(tag.startswith(begun) for tag in _CLOSERS):
            self._held = text
            return ""
        if not tag and not self._opened:
            self._state = "text"
            return text
        self._state, self._closer = "opened", _CLOSERS[tag or "<think>"]
        return begun[len(tag) :]

    def _close(self, text: str) -> tuple[str, str]:
        """The thinking, and what follows its closing tag."""
        thought, closed, rest = text.partition(self._closer)
        if closed:
            self._state = "gap"
            return thought, rest
        kept = next((length for length in range(len(self._closer) - 1, 0, -1) if text.endswith(self._closer[:length])), 0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept], ""


async def last_response(stream: AsyncGenerator[StreamEvent, None]) -> Response:
    """The response a stream ends with, for providers that can only stream. Raises AnswerTooLong for one that goes on and on."""
    bound = AnswerBound()
    async with aclosing(stream) as events:
        async for event in events:
            bound.take(event)
            if isinstance(event, ResponseFinished):
                return event.response
    raise AssertionError("a stream ends with ResponseFinished or raises")
