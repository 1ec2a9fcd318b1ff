"""From an answer to what goes over the wire: a Voice speaks one protocol, `play` reads it the script, `framed` makes bytes of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Protocol, assert_never

import msgspec

from dragoman.testing.script import (
    Answer,
    Block,
    Call,
    CallQuirk,
    Cite,
    Cut,
    Fail,
    Finish,
    Framing,
    Garbage,
    Ping,
    Raw,
    Report,
    Say,
    Stall,
    Step,
    Think,
    Wait,
    pieces,
)
from dragoman.values.profile import ProtocolName
from dragoman.values.usage import Usage


class Asked(msgspec.Struct, frozen=True):
    """What a client wants to know: its request as far as an answer depends on it."""

    protocol: ProtocolName
    model: str
    body: dict[str, Any]
    """The decoded request."""
    number: int
    """Which request of the server's life this is: ids are made of it."""
    input_tokens: int
    """A quarter of the request's bytes: what it counts for where the script does not say."""
    stream: bool = True
    created: int = 0
    """Unix time."""

    def id(self, prefix: str, part: int = 0) -> str:
        """An id as services make them, the same in every run."""
        return f"{prefix}{self.number:08d}{part:04d}"


# --- frames: what a voice utters -----------------------------------------------------------------------------------------


class Event(msgspec.Struct, frozen=True):
    data: bytes
    name: str = ""
    delta: bool = False
    """It carries a part of a tool call."""


class Comment(msgspec.Struct, frozen=True):
    text: str = "ping"


class Bytes(msgspec.Struct, frozen=True):
    """As they are."""

    data: bytes


class Pause(msgspec.Struct, frozen=True):
    seconds: float | None = None
    """None: for ever."""


class Close(msgspec.Struct, frozen=True):
    """The connection ends here."""


Frame = Event | Comment | Bytes | Pause | Close


class Parallel(msgspec.Struct, frozen=True):
    """Calls that stand next to each other in the script."""

    calls: tuple[Call, ...]


Beat = Say | Think | Parallel | Cite | Report | Finish | Block | Wait | Fail | Cut | Stall | Ping | Garbage | Raw
"""A step, or the calls of several."""


class Voice(Protocol):
    """One answer in one protocol. What it says adds up, and `whole` is all of it as one body."""

    def start(self) -> list[Event]: ...

    def say(self, piece: str) -> list[Event]: ...

    def think(self, step: Think) -> list[Event]: ...

    def call(self, calls: Sequence[Call]) -> list[Event]:
        """Parallel calls. Their ids are given."""
        ...

    def cite(self, step: Cite) -> list[Event]: ...

    def block(self, reason: str) -> list[Event]: ...

    def fail(self, fail: Fail) -> list[Event]:
        """An error after the answer has begun."""
        ...

    def finish(self, finish: Finish) -> list[Event]: ...

    def ping(self) -> Event | Comment: ...

    def whole(self) -> dict[str, Any]: ...


# --- reading the script to a voice ---------------------------------------------------------------------------------------


def play(answer: Answer, voice: Voice, asked: Asked, call_prefix: str) -> Iterator[Frame]:
    """The frames of a streamed answer. A voice that was played can say the `whole` as well."""
    started = blocked = False
    held: list[Event] = []
    call_number = 0
    for step in _with_parallel_calls(answer.steps):
        if not started and isinstance(step, Say | Think | Parallel | Cite | Finish | Block | Report):
            started = True
            yield from voice.start()
        match step:
            case Say(text, piece_chars):
                for piece in pieces(text, piece_chars):
                    yield from voice.say(piece)
            case Parallel(calls):
                named = tuple(
                    call if call.id is not None else msgspec.structs.replace(call, id=asked.id(call_prefix, call_number + n))
                    for n, call in enumerate(calls)
                )
                call_number += len(calls)
                events = voice.call(named)
                held = _last_delta(events) if CallQuirk.LATE_DELTA in answer.calls else []
                yield from events[: len(events) - len(held)]
            case Think():
                yield from voice.think(step)
            case Cite():
                yield from voice.cite(step)
            case Block(reason):
                blocked = True
                yield from voice.block(reason)
            case Fail():
                yield from voice.fail(step)
                return
            case Ping(count, every_s):
                yield from _pings(voice, count, every_s)
            case Garbage(text):
                yield Event(text.encode("utf-8", "surrogatepass"))
            case Raw(data):
                yield Bytes(data)
            case Wait(seconds):
                yield Pause(seconds)
            case Stall(None):
                yield Pause()
            case Cut(None):
                yield Close()
                return
            case Report() | Finish() | Cut() | Stall():
                pass  # said at the end, or by count and so seen to below
            case _:
                assert_never(step)
    if not started or blocked:
        return
    last = voice.finish(answer.finish) if answer.finish.reason else []
    yield from last[:1]
    yield from held
    yield from last[1:]


def _with_parallel_calls(steps: Sequence[Step]) -> Iterator[Beat]:
    calls: list[Call] = []
    for step in steps:
        if isinstance(step, Call):
            calls.append(step)
            continue
        if calls:
            yield Parallel(tuple(calls))
            calls.clear()
        yield step
    if calls:
        yield Parallel(tuple(calls))


def _last_delta(events: list[Event]) -> list[Event]:
    """The events from the last piece of a call on."""
    last = max((at for at, event in enumerate(events) if event.delta), default=len(events))
    return events[last:]


def _pings(voice: Voice, count: int | None, every_s: float) -> Iterator[Frame]:
    sent = 0
    while count is None or sent < count:
        yield Pause(every_s)
        yield voice.ping()
        sent += 1


def turns(calls: Sequence[Call], quirks: Iterable[CallQuirk]) -> Iterator[tuple[int, str]]:
    """The pieces of the calls' arguments with the call they belong to, in the order in which they are sent."""
    if CallQuirk.INTERLEAVED not in quirks:
        yield from ((number, piece) for number, call in enumerate(calls) for piece in pieces(call.arguments, call.piece_chars))
        return
    columns = [list(pieces(call.arguments, call.piece_chars or max(len(call.arguments) // 2, 1))) for call in calls]
    for row in zip_longest(*columns):
        yield from ((number, piece) for number, piece in enumerate(row) if piece is not None)


def stalled(frames: Iterable[Frame], answer: Answer) -> Iterator[Frame]:
    """The frames until the answer stalls by count."""
    after = next((step.after_events for step in answer.steps if isinstance(step, Stall) and step.after_events is not None), None)
    seen = 0
    for frame in frames:
        if after is not None and seen >= after:
            yield Pause()
        yield frame
        seen += isinstance(frame, Event)


def usage_of(answer: Answer, asked: Asked) -> Usage:
    return answer.usage_or(asked.input_tokens)


# --- JSON and framing ----------------------------------------------------------------------------------------------------


def to_json(value: object) -> bytes:
    """JSON as services write it. Half a surrogate pair goes out as its escape, as some services let it."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=lambda raw: json.loads(bytes(raw))).encode()


def object_of(arguments: str) -> msgspec.Raw | None:
    """Arguments for protocols that send an object and not text: spliced in as they are. None where they are not JSON."""
    try:
        json.loads(arguments)
    except ValueError:
        return None
    except RecursionError:
        pass  # far too deep, and JSON all the same
    return msgspec.Raw(arguments.encode("utf-8", "surrogatepass"))


def framed(frames: Iterable[Frame], framing: Sequence[Framing]) -> Iterator[bytes | Pause | Close]:
    """Server-sent events as bytes, in any of the allowed ways of writing them."""
    end = b"\r\n" if Framing.CRLF in framing else b"\r" if Framing.CR in framing else b"\n"
    written = _written(frames, framing, end)
    return _without_last_blank(written, end) if Framing.OPEN_END in framing else written


def _written(frames: Iterable[Frame], framing: Sequence[Framing], end: bytes) -> Iterator[bytes | Pause | Close]:
    colon = b":" if Framing.NO_SPACE in framing else b": "
    if Framing.BOM in framing:
        yield b"\xef\xbb\xbf"
    for frame in frames:
        match frame:
            case Event(data, name):
                lines = [b": a comment"] if Framing.COMMENTS in framing else []
                lines += [b"event" + colon + name.encode()] if name else []
                lines += [b"data" + colon + part for part in _data_lines(data, framing)]
                yield b"".join(line + end for line in [*lines, b""])
            case Comment(text):
                yield b": " + text.encode() + end + end
            case Bytes(data):
                yield data
            case Pause() | Close():
                yield frame
            case _:
                assert_never(frame)


def _without_last_blank(written: Iterator[bytes | Pause | Close], end: bytes) -> Iterator[bytes | Pause | Close]:
    last: bytes | Pause | Close = b""
    for each in written:
        if last:
            yield last
        last = each
    yield last.removesuffix(end) if isinstance(last, bytes) else last


def _data_lines(data: bytes, framing: Sequence[Framing]) -> list[bytes]:
    if Framing.MULTILINE in framing and data.startswith(b"{") and data.endswith(b"}"):
        return [b"{", data[1:-1], b"}"]
    return data.split(b"\n")


def array_framed(frames: Iterable[Frame]) -> Iterator[bytes | Pause | Close]:
    """Gemini without `alt=sse`: the same objects as one JSON array."""
    before = b"["
    for frame in frames:
        match frame:
            case Event(data):
                yield before + data
                before = b",\r\n"
            case Bytes(data):
                yield data
            case Comment():
                yield b"\n"
            case Pause() | Close():
                yield frame
            case _:
                assert_never(frame)
    yield b"]" if before != b"[" else b"[]"
