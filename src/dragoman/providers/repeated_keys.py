"""Takes keys out of answers: a service, or a gateway before it, may repeat the key it was sent. It must reach neither log nor screen.

A streamed answer comes in pieces, and a key may be split anywhere between them. So the end of a piece is held back for as long as it may be
the beginning of a key, and no longer; the text as a whole is the same however it was cut. Most pieces hold no beginning of a key: for these
it costs two searches of a short text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from dragoman.base import jsontext
from dragoman.providers.redact import REDACTED, known_secrets
from dragoman.providers.wire import StreamDecoder
from dragoman.values.events import (
    ResponseFinished,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallDelta,
    ToolCallReady,
    ToolCallStarted,
    UsageUpdated,
)
from dragoman.values.messages import Response

T = TypeVar("T")
Piece = TextDelta | ThoughtDelta | ToolCallDelta

LONG_ENOUGH = 12
"""Shorter values count only if they have a digit: `lm-studio` and `not-needed` are words that an answer may well contain."""
PLACEHOLDERS = frozenset({"sk-no-key-required", "no-key-required", "dummy-api-key", "placeholder-key"})
"""What people set where a server wants some key."""


def keys_to_hide(secrets: Iterable[str]) -> tuple[str, ...]:
    """The secrets that are looked for in answers, each also as JSON may write it; the longest first."""
    found = [
        key for key in known_secrets(secrets) if key.lower() not in PLACEHOLDERS and (len(key) >= LONG_ENOUGH or any(map(str.isdigit, key)))
    ]
    forms = {form for key in found for form in (key, key.replace("/", "\\/"), jsontext.dumps(key)[1:-1])}
    return tuple(sorted(forms, key=len, reverse=True))


class HiddenKeys:
    """Replaces keys in texts."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(keys)
        self._starts = tuple((key, key[:2], key[0]) for key in keys)

    @property
    def beginning(self) -> tuple[str, str]:
        """The first two characters of the only key, and the first; empty, and so in every text, where there are more keys."""
        return self._starts[0][1:] if len(self._starts) == 1 else ("", "")

    def split_quickly(self, text: str) -> tuple[str, str] | None:
        """The same as `split` where no key begins, but for one character at the end; else None."""
        held = ""
        for key, two, one in self._starts:
            at = text.find(two)
            while at >= 0:
                if key.startswith(text[at : at + len(key)]):
                    return None
                at = text.find(two, at + 1)
            if text.endswith(one):
                held = one
        return (text[:-1], held) if held else (text, "")

    def is_in(self, data: bytes) -> bool:
        """Say whether the bytes of a file hold a key."""
        return any(key.encode() in data for key in self._keys)

    def replace(self, text: str) -> str:
        """A whole text without keys."""
        return self.split(text, is_end=True)[0] if any(key in text for key in self._keys) else text

    def split(self, text: str, *, is_end: bool) -> tuple[str, str]:
        """What can be said of a text without its keys, and the rest that may still become one; at the end there is no such rest."""
        said: list[str] = []
        done = at = 0
        while at < len(text):
            at = min((found for key in self._keys if (found := text.find(key[0], at)) >= 0), default=len(text))
            if not is_end and any(len(text) - at < len(key) and key.startswith(text[at:]) for key in self._keys if at < len(text)):
                return "".join([*said, text[done:at]]), text[at:]
            key = next((key for key in self._keys if text.startswith(key, at)), "")
            if key:
                said += [text[done:at], REDACTED]
                done = at + len(key)
            at = done if key else at + 1
        return "".join([*said, text[done:]]), ""

    def clean(self, value: T, kind: type[T]) -> T:
        """Anything that is written as JSON, without keys; the same object if it has none."""
        text = msgspec.json.encode(value).decode()
        if not any(key in text for key in self._keys):
            return value
        return msgspec.json.decode(self.replace(text), type=kind)


def hiding_decoder(decoder: StreamDecoder, secrets: Iterable[str]) -> StreamDecoder:
    keys = keys_to_hide(secrets)
    return HidingDecoder(decoder, HiddenKeys(keys)) if keys else decoder


def hide_keys(response: Response, secrets: Iterable[str]) -> Response:
    keys = keys_to_hide(secrets)
    return HiddenKeys(keys).clean(response, Response) if keys else response


class HidingDecoder(StreamDecoder):
    """A decoder whose events have no keys in them."""

    def __init__(self, decoder: StreamDecoder, hidden: HiddenKeys) -> None:
        self._decoder = decoder
        self._hidden = hidden
        self._feed = decoder.feed
        self._two, self._one = hidden.beginning
        self._held: Piece | None = None
        """What may be the beginning of a key."""

    @property
    def complete(self) -> bool:
        return self._decoder.complete

    @property
    def ended(self) -> bool:
        return self._decoder.ended

    def feed(self, name: str, data: bytes) -> list[StreamEvent] | None:
        events = self._feed(name, data)
        if not events:
            return events
        if len(events) == 1 and type(event := events[0]) is TextDelta:
            text = event.text
            if self._held is None and self._two not in text and not text.endswith(self._one):
                return events
            return self._hide_piece(event, text)
        return [hidden for event in events for hidden in self._hide(event)]

    def close(self) -> list[StreamEvent]:
        events = self._decoder.close()
        return [*(hidden for event in events for hidden in self._hide(event)), *self.flush()]

    def flush(self) -> list[StreamEvent]:
        """What is held back is no key after all: nothing follows it."""
        held, self._held = self._held, None
        return [held] if held is not None else []

    def _hide(self, event: StreamEvent) -> list[StreamEvent]:
        match event:
            case TextDelta():
                return self._hide_piece(event, event.text)
            case ThoughtDelta():
                event = ThoughtDelta(event.text, self._hidden.replace(event.subject), self._hidden.replace(event.description))
                return self._hide_piece(event, event.text)
            case ToolCallDelta():
                return self._hide_piece(event, event.arguments)
            case UsageUpdated():
                return [event]  # comes between pieces of text, and says nothing
            case ToolCallStarted():
                return [*self.flush(), self._hidden.clean(event, ToolCallStarted)]
            case ToolCallReady():
                return [*self.flush(), self._hidden.clean(event, ToolCallReady)]
            case ResponseFinished():
                return [*self.flush(), self._hidden.clean(event, ResponseFinished)]
            case _:
                return [*self.flush(), self._hidden.clean(event, type(event))]

    def _hide_piece(self, event: Piece, text: str) -> list[StreamEvent]:
        before: list[StreamEvent] = []
        whole = text
        if self._held is not None:
            if _continues(self._held, event):
                whole = _text_of(self._held) + text
                self._held = None
            else:
                before = self.flush()
        said, held = self._hidden.split_quickly(whole) or self._hidden.split(whole, is_end=False)
        if held:
            self._held = _with_text(event, held)
        if said == text:
            return [*before, event]
        if said or (isinstance(event, ThoughtDelta) and (event.subject or event.description)):
            return [*before, _saying(event, said)]
        return before


def _continues(held: Piece, event: Piece) -> bool:
    if isinstance(held, ToolCallDelta):
        return isinstance(event, ToolCallDelta) and held.call_id == event.call_id
    return type(held) is type(event)


def _text_of(event: Piece) -> str:
    return event.arguments if isinstance(event, ToolCallDelta) else event.text


def _with_text(event: Piece, text: str) -> Piece:
    """A piece of the same thing. What a thought is about was said with its first piece."""
    match event:
        case TextDelta():
            return TextDelta(text)
        case ThoughtDelta():
            return ThoughtDelta(text)
        case ToolCallDelta(call_id=call_id):
            return ToolCallDelta(call_id, text)


def _saying(event: Piece, text: str) -> Piece:
    """The same piece with another text."""
    return ThoughtDelta(text, event.subject, event.description) if isinstance(event, ThoughtDelta) else _with_text(event, text)
