"""What a reader of calls tells: events while the text streams, and the whole at the end. Frozen values."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Span = tuple[int, int]
"""Where something stands in the answer, in characters: from, and up to."""

Trust = Literal["negotiated", "recognised", "bare"]
"""Why a call is believed: written in the dialect asked for; in another one that nothing else looks like; or only because its shape, its
place and a tool's name leave no other reading."""


class Call(msgspec.Struct, frozen=True):
    """A call as it would run: the tool's own name, arguments as its schema has them."""

    name: str
    args: dict[str, Any]
    repairs: tuple[str, ...] = ()
    """What was changed to read it, one short line each. Shown where approval is asked."""
    trust: Trust = "negotiated"
    dialect: str = ""
    span: Span = (0, 0)
    problems: tuple[str, ...] = ()
    """What keeps the arguments from fitting the schema, in words for the model."""


class Rejected(msgspec.Struct, frozen=True):
    """What looked like a call and is none. Its text stays text."""

    span: Span
    reason: str
    text: str = ""
    name: str = ""
    suggestions: tuple[str, ...] = ()


class Piece(msgspec.Struct, frozen=True):
    """Part of the answer. All pieces, in order, are the answer without a gap."""

    kind: Literal["text", "reasoning", "call", "marker"]
    start: int
    end: int


class Parsed(msgspec.Struct, frozen=True):
    """A whole answer, read."""

    calls: tuple[Call, ...]
    text: str
    reasoning: str
    rejected: tuple[Rejected, ...]
    original_text: str
    pieces: tuple[Piece, ...] = ()


# --- while it streams -----------------------------------------------------------------------------------------------------------------


class Text(msgspec.Struct, frozen=True):
    text: str


class Reasoning(msgspec.Struct, frozen=True):
    text: str


class CallBegin(msgspec.Struct, frozen=True):
    """What follows looks like a call. It may still be rejected."""

    index: int
    start: int


class CallName(msgspec.Struct, frozen=True):
    index: int
    name: str
    """As the model wrote it."""


class ArgDelta(msgspec.Struct, frozen=True):
    """More of the call's text, as the model wrote it. For the eye alone."""

    index: int
    text: str


class CallReady(msgspec.Struct, frozen=True):
    """The only event that may lead to anything being run. It comes when the answer is over: until then a call may turn out to be part of
    the model's thinking."""

    call: Call
    span: Span
    repairs: tuple[str, ...]
    trust: Trust


class CallRejected(msgspec.Struct, frozen=True):
    span: Span
    reason: str
    suggestions: tuple[str, ...] = ()


class Done(msgspec.Struct, frozen=True):
    reason: str


Event = Text | Reasoning | CallBegin | CallName | ArgDelta | CallReady | CallRejected | Done
