"""From a scripted answer to bytes: an Encoder speaks one protocol, `play` feeds it the script, `frame_events` makes bytes of the result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Protocol, assert_never

import msgspec

from dragoman.testing.script import pieces
from dragoman.testing.script_steps import (
    BlockStep,
    CallQuirk,
    CallStep,
    Cite,
    CutStep,
    Fail,
    Finish,
    Garbage,
    Ping,
    RawStep,
    ReportStep,
    Say,
    ScriptedAnswer,
    ScriptFraming,
    Stall,
    Step,
    Think,
    Wait,
)
from dragoman.values.profile import ProtocolName
from dragoman.values.usage import Usage


class ModelRequest(msgspec.Struct, frozen=True):
    """The parts of a client's request that an answer depends on."""

    protocol: ProtocolName
    model: str
    body: dict[str, Any]
    """The decoded request."""
    number: int
    """Number of the request since the server started; ids are derived from it."""
    input_tokens: int
    """A quarter of the request's bytes, without the environment message: its usage unless the script says otherwise."""
    stream: bool = True
    created: int = 0
    """Unix time."""

    def id(self, prefix: str, part: int = 0) -> str:
        """An id as services make them, the same in every run."""
        return f"{prefix}{self.number:08d}{part:04d}"


# --- frames: what an encoder returns -----------------------------------------------------------------------------------------


class Event(msgspec.Struct, frozen=True):
    data: bytes
    name: str = ""
    delta: bool = False
    """Whether it carries a part of a tool call."""


class Comment(msgspec.Struct, frozen=True):
    text: str = "ping"


class Bytes(msgspec.Struct, frozen=True):
    """Sent unchanged."""

    data: bytes


class Pause(msgspec.Struct, frozen=True):
    seconds: float | None = None
    """None: for ever."""


class Close(msgspec.Struct, frozen=True):
    """The connection ends here."""


Frame = Event | Comment | Bytes | Pause | Close


class ParallelCalls(msgspec.Struct, frozen=True):
    """Adjacent calls of the script."""

    calls: tuple[CallStep, ...]


PlayedStep = Say | Think | ParallelCalls | Cite | ReportStep | Finish | BlockStep | Wait | Fail | CutStep | Stall | Ping | Garbage | RawStep
"""A step, or the calls of several."""


class Encoder(Protocol):
    """Encodes one answer in one protocol. Its output accumulates, and `whole` is all of it as one body."""

    def start(self) -> list[Event]: ...

    def say(self, piece: str) -> list[Event]: ...

    def think(self, step: Think) -> list[Event]: ...

    def call(self, calls: Sequence[CallStep]) -> list[Event]:
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


# --- playing the script ---------------------------------------------------------------------------------------


def play(answer: ScriptedAnswer, encoder: Encoder, request: ModelRequest, call_prefix: str) -> Iterator[Frame]:
    """The frames of a streamed answer. Afterwards `encoder.whole` returns the complete body."""
    started = blocked = False
    held: list[Event] = []
    call_number = 0
    for step in _group_parallel_calls(answer.steps):
        if not started and isinstance(step, Say | Think | ParallelCalls | Cite | Finish | BlockStep | ReportStep):
            started = True
            yield from encoder.start()
        match step:
            case Say(text, piece_chars):
                for piece in pieces(text, piece_chars):
                    yield from encoder.say(piece)
            case ParallelCalls(calls):
                named = tuple(
                    call if call.id is not None else msgspec.structs.replace(call, id=request.id(call_prefix, call_number + n))
                    for n, call in enumerate(calls)
                )
                call_number += len(calls)
                events = encoder.call(named)
                held = _last_delta(events) if CallQuirk.LATE_DELTA in answer.calls else []
                yield from events[: len(events) - len(held)]
            case Think():
                yield from encoder.think(step)
            case Cite():
                yield from encoder.cite(step)
            case BlockStep(reason):
                blocked = True
                yield from encoder.block(reason)
            case Fail():
                yield from encoder.fail(step)
                return
            case Ping(count, every_s):
                yield from _pings(encoder, count, every_s)
            case Garbage(text):
                yield Event(text.encode("utf-8", "surrogatepass"))
            case RawStep(data):
                yield Bytes(data)
            case Wait(seconds):
                yield Pause(seconds)
            case Stall(None):
                yield Pause()
            case CutStep(None):
                yield Close()
                return
            case ReportStep() | Finish() | CutStep() | Stall():
                pass  # sent at the end, or handled by count in `stop_at_stall`
            case _:
                assert_never(step)
    if not started or blocked:
        return
    last = encoder.finish(answer.finish) if answer.finish.reason else []
    yield from last[:1]
    yield from held
    yield from last[1:]


def _group_parallel_calls(steps: Sequence[Step]) -> Iterator[PlayedStep]:
    calls: list[CallStep] = []
    for step in steps:
        if isinstance(step, CallStep):
            calls.append(step)
            continue
        if calls:
            yield ParallelCalls(tuple(calls))
            calls.clear()
        yield step
    if calls:
        yield ParallelCalls(tuple(calls))


def _last_delta(events: list[Event]) -> list[Event]:
    """The events from the last delta of a call on."""
    last = max((at for at, event in enumerate(events) if event.delta), default=len(events))
    return events[last:]


def _pings(encoder: Encoder, count: int | None, every_s: float) -> Iterator[Frame]:
    sent = 0
    while count is None or sent < count:
        yield Pause(every_s)
        yield encoder.ping()
        sent += 1


def argument_pieces(calls: Sequence[CallStep], quirks: Iterable[CallQuirk]) -> Iterator[tuple[int, str]]:
    """The pieces of the calls' arguments with the call they belong to, in the order in which they are sent."""
    if CallQuirk.INTERLEAVED not in quirks:
        yield from ((number, piece) for number, call in enumerate(calls) for piece in pieces(call.arguments, call.piece_chars))
        return
    columns = [list(pieces(call.arguments, call.piece_chars or max(len(call.arguments) // 2, 1))) for call in calls]
    for row in zip_longest(*columns):
        yield from ((number, piece) for number, piece in enumerate(row) if piece is not None)


def stop_at_stall(frames: Iterable[Frame], answer: ScriptedAnswer) -> Iterator[Frame]:
    """The frames until the answer stalls by count."""
    after = next((step.after_events for step in answer.steps if isinstance(step, Stall) and step.after_events is not None), None)
    seen = 0
    for frame in frames:
        if after is not None and seen >= after:
            yield Pause()
        yield frame
        seen += isinstance(frame, Event)


def usage_of(answer: ScriptedAnswer, request: ModelRequest) -> Usage:
    return answer.usage_or(request.input_tokens)


# --- JSON and framing ----------------------------------------------------------------------------------------------------


def to_json(value: object) -> bytes:
    """JSON as services write it. A lone surrogate is escaped, as some services do."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=lambda raw: json.loads(bytes(raw))).encode()


def raw_object(arguments: str) -> msgspec.Raw | None:
    """Arguments for protocols that send an object instead of text, spliced in unchanged. None if they are not JSON."""
    try:
        json.loads(arguments)
    except ValueError:
        return None
    except RecursionError:
        pass  # nested far too deeply, but still JSON
    return msgspec.Raw(arguments.encode("utf-8", "surrogatepass"))


def frame_events(frames: Iterable[Frame], framing: Sequence[ScriptFraming]) -> Iterator[bytes | Pause | Close]:
    """Server-sent events as bytes, in the given framing variants."""
    end = b"\r\n" if ScriptFraming.CRLF in framing else b"\r" if ScriptFraming.CR in framing else b"\n"
    written = _write_frames(frames, framing, end)
    return _without_last_blank(written, end) if ScriptFraming.OPEN_END in framing else written


def _write_frames(frames: Iterable[Frame], framing: Sequence[ScriptFraming], end: bytes) -> Iterator[bytes | Pause | Close]:
    colon = b":" if ScriptFraming.NO_SPACE in framing else b": "
    if ScriptFraming.BOM in framing:
        yield b"\xef\xbb\xbf"
    for frame in frames:
        match frame:
            case Event(data, name):
                lines = [b": a comment"] if ScriptFraming.COMMENTS in framing else []
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


def _data_lines(data: bytes, framing: Sequence[ScriptFraming]) -> list[bytes]:
    if ScriptFraming.MULTILINE in framing and data.startswith(b"{") and data.endswith(b"}"):
        return [b"{", data[1:-1], b"}"]
    return data.split(b"\n")


def frame_as_array(frames: Iterable[Frame]) -> Iterator[bytes | Pause | Close]:
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
