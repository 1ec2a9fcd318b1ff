"""What the parser returns: events while the text streams, and the whole answer at the end. Frozen values."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Span = tuple[int, int]
"""A range of the answer in characters: start, and end (exclusive)."""

Trust = Literal["negotiated", "recognised", "bare", "fenced"]
"""Why a call is trusted: it is in the requested dialect; in another one with an unmistakable marker; only because its shape, its
place and a tool's name allow no other reading; or it fills a code fence beside other text, and may be an example."""


class Call(msgspec.Struct, frozen=True):
    """A call ready to run: the tool's own name, and arguments typed by its schema."""

    name: str
    args: dict[str, Any]
    repairs: tuple[str, ...] = ()
    """What was changed to read it, one short line each. Shown in the approval dialog."""
    trust: Trust = "negotiated"
    dialect: str = ""
    span: Span = (0, 0)
    problems: tuple[str, ...] = ()
    """Why the arguments do not fit the schema, in words for the model."""


class Rejected(msgspec.Struct, frozen=True):
    """Something that looked like a call but is not. Its text stays text."""

    span: Span
    reason: str
    text: str = ""
    name: str = ""
    suggestions: tuple[str, ...] = ()


class Piece(msgspec.Struct, frozen=True):
    """Part of the answer. All pieces in order make up the whole answer without gaps."""

    kind: Literal["text", "reasoning", "call", "marker"]
    start: int
    end: int


class Parsed(msgspec.Struct, frozen=True):
    """A whole parsed answer."""

    calls: tuple[Call, ...]
    text: str
    reasoning: str
    rejected: tuple[Rejected, ...]
    original_text: str
    pieces: tuple[Piece, ...] = ()


# --- while it streams -----------------------------------------------------------------------------------------------------------------


class PlainText(msgspec.Struct, frozen=True):
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
    """More of the call's text, as the model wrote it. For display only."""

    index: int
    text: str


class CallReady(msgspec.Struct, frozen=True):
    """The only event that may cause a call to run. It is emitted at the end of the answer: until then a call may turn out to be part of
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


Event = PlainText | Reasoning | CallBegin | CallName | ArgDelta | CallReady | CallRejected | Done
