"""Answers that are not whole yet.

A service pauses an answer that takes it long (a search of its own), and goes on when it is sent the piece back: `Pieces`. What has come of
an answer that is under way is kept, so that nothing of it is lost if it is cancelled, cut or fails: `Arrived`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from io import StringIO

import msgspec

from dragoman.values.errors import AnswerTooLong
from dragoman.values.events import (
    FieldOmitted,
    RequestDelayed,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallDelta,
    ToolCallReady,
    ToolCallStarted,
    UsageUpdated,
)
from dragoman.values.messages import FinishReason, Message, Part, Response, Text, Thought
from dragoman.values.record import Spent
from dragoman.values.usage import Usage
from dragoman.words import say

MAX_PAUSES = 8
"""How often a service may pause one answer."""
MAX_ANSWER_CHARS = 32_000_000
"""Longest answer, thinking and arguments of calls included: many times what any model writes at once."""
MAX_ANSWER_EVENTS = 1_000_000
"""Most pieces of an answer: most services send one for each token."""


class Pieces:
    """The pieces of one answer that have come so far."""

    def __init__(self) -> None:
        self._pieces: list[Response] = []

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def text(self) -> str:
        """What a person has read of it. It still stands where a retry makes void what came after it."""
        return "".join(piece.message.text for piece in self._pieces)

    def take(self, response: Response) -> bool:
        """Keep it if the service will go on from there. False if the answer is over, or has been paused too often."""
        if response.fault != "paused" or response.message.calls or len(self) >= MAX_PAUSES:
            return False
        self._pieces.append(response)
        return True

    def join(self, last: Response | None = None) -> Response:
        """The whole answer: what the pieces say, and how the last one ended."""
        pieces = [*self._pieces, *([last] if last is not None else [])]
        parts = tuple(part for piece in pieces for part in piece.message.parts)
        usage = sum((piece.usage for piece in pieces), Usage())
        return msgspec.structs.replace(pieces[-1], message=Message("assistant", parts), usage=usage) if len(pieces) > 1 else pieces[-1]


class AnswerBound:
    """How long one answer may become, so that one that never ends does not fill the memory. 0: without bound."""

    def __init__(self, max_chars: int = MAX_ANSWER_CHARS, max_events: int = MAX_ANSWER_EVENTS) -> None:
        self._max_chars, self._max_events = max_chars, max_events
        self._chars = self._events = self._argument_chars = 0

    def take(self, event: StreamEvent) -> None:
        """Count it. Raises AnswerTooLong where it is too much."""
        self._events += 1
        if isinstance(event, TextDelta | ThoughtDelta):
            self._chars += len(event.text)
        elif isinstance(event, ToolCallDelta):
            self._chars += len(event.arguments)
            self._argument_chars += len(event.arguments)
        elif isinstance(event, ToolCallReady):  # they may have come in pieces before
            self._chars += max(len(event.call.arguments) - self._argument_chars, 0)
            self._argument_chars = 0
        if 0 < self._max_chars < self._chars:
            raise AnswerTooLong(say("values.answer_too_long", most=self._max_chars))
        if 0 < self._max_events < self._events:
            raise AnswerTooLong(say("values.too_many_events", most=self._max_events))


class Arrived:
    """One attempt at an answer. Adding an event costs the same however many came before, and the text is kept once."""

    def __init__(self, now_ms: Callable[[], int], max_chars: int = MAX_ANSWER_CHARS, max_events: int = MAX_ANSWER_EVENTS) -> None:
        self._limits = max_chars, max_events
        self._now_ms = now_ms
        self.begin()

    def begin(self, wait_s: float = 0.0) -> None:
        """Forget what came: a request is sent, at once or after this wait."""
        self._parts: list[Part] = []
        self._open: type[Text] | type[Thought] = Text
        self._text = StringIO()
        self._usage = Usage()
        self._bound = AnswerBound(*self._limits)
        self._has_begun = False
        self._is_over = False
        self._send_in(wait_s)

    def _send_in(self, wait_s: float) -> None:
        self._sent_s = time.monotonic() + wait_s
        self.sent_ms, self.first_ms = self._now_ms() + round(wait_s * 1000), 0
        """When the request of the last attempt was sent, and when the first words, thinking or call of its answer came; 0: not yet."""

    def finish(self) -> None:
        """The whole answer has come: whoever has it records it."""
        times = self.sent_ms, self.first_ms
        self.begin()
        self.sent_ms, self.first_ms = times
        self._is_over = True

    def add(self, event: StreamEvent) -> None:
        """Raises AnswerTooLong once there is too much; what had arrived stays."""
        if isinstance(event, RequestDelayed):
            self._send_in(event.wait_s)  # nothing is sent before
        self._has_begun = self._has_begun or not isinstance(event, FieldOmitted | RequestDelayed)
        self._bound.take(event)
        if not self.first_ms and isinstance(event, TextDelta | ThoughtDelta | ToolCallStarted | ToolCallReady):
            self.first_ms = self._now_ms()
        if isinstance(event, TextDelta):
            self._write(Text, event.text)
        elif isinstance(event, ThoughtDelta):
            self._write(Thought, event.text)
        elif isinstance(event, ToolCallReady):
            self._seal()
            self._parts.append(event.call)
        elif isinstance(event, UsageUpdated):
            self._usage = event.usage

    def message(self) -> Message:
        """As much of the answer as arrived."""
        self._seal()
        return Message("assistant", tuple(self._parts))

    def usage(self, *, may_have_cost: bool = True) -> Usage | None:
        """What the attempt took as far as it was told, which is not all of it; None where nothing was sent, or the service refused."""
        if self._is_over or not (self._has_begun or (may_have_cost and time.monotonic() >= self._sent_s)):
            return None
        return msgspec.structs.replace(self._usage, incomplete=1)

    def response(self, reason: str) -> Response:
        """What arrived, as an answer that ended for this reason."""
        return Response(self.message(), FinishReason.OTHER, reason, usage=self.usage() or Usage())

    def as_spent(self, model: str, deployment: str) -> list[Spent]:
        """What the attempt has taken so far, for whoever adds up what is on record already."""
        usage = self.usage()
        return [] if usage is None else [Spent(0, 0, model, usage, deployment=deployment)]

    def _write(self, kind: type[Text] | type[Thought], text: str) -> None:
        if self._open is not kind and text:
            self._seal()
            self._open = kind
        self._text.write(text)

    def _seal(self) -> None:
        if text := self._text.getvalue():
            self._parts.append(self._open(text))
            self._text = StringIO()
