"""Reading what a service answers over HTTP: a stream of events in time, a whole body, and either as the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, closing

from dragoman.base import jsontext
from dragoman.http.deadline import Deadline
from dragoman.providers.wire import Framing, StreamDecoder
from dragoman.values.contracts import HttpResponse
from dragoman.values.errors import ConnectionFailed, ProviderError, StreamBroken, TimedOut
from dragoman.values.events import (
    ResponseFinished,
    ResponseStarted,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallReady,
    ToolCallStarted,
    UsageUpdated,
)
from dragoman.values.messages import Response, Text, Thought, ToolCall
from dragoman.values.profile import Profile
from dragoman.words import say

TRAILING_S = 5.0
"""How long to wait for trailing events after the finish reason."""
MAX_BODY_BYTES = 256 * 1024 * 1024
MAX_SILENT_BYTES = 64 * 1024 * 1024
"""How much a stream may send in events that add nothing to the answer: signatures, progress."""


async def decode_answer(
    answer: HttpResponse, decoder: StreamDecoder, framing: Framing, profile: Profile, deadline: float
) -> AsyncGenerator[StreamEvent, None]:
    """Bytes → events. Time is counted between signs of life: an event, a ping, a comment, but not the bytes of half an event. A service
    that only pings is waited for no longer than `Profile.pings_only_s`."""
    with closing(Deadline(deadline)) as limit:
        async with aclosing(answer.chunks()) as chunks:
            async with aclosing(_events(chunks, decoder, framing, profile, limit)) as events:
                try:
                    async for event in events:
                        yield event
                except ProviderError:
                    for event in _held_back(decoder):
                        yield event
                    raise
            for event in decoder.close():
                yield event
            await _drain(chunks)


async def _events(
    chunks: AsyncIterator[bytes], decoder: StreamDecoder, framing: Framing, profile: Profile, limit: Deadline
) -> AsyncGenerator[StreamEvent, None]:
    """The events of a body, up to its end or the answer's."""
    clock = asyncio.get_running_loop().time
    chunk: bytes | None = b""
    silent_bytes = heartbeats = 0
    pinged_until = clock() + profile.pings_only_s
    while chunk is not None:
        try:
            chunk = await limit.next(chunks)
        except TimeoutError:
            if decoder.complete:
                return
            raise TimedOut(say("providers.stalled")) from None
        except ConnectionFailed as error:
            raise StreamBroken(say("providers.cut_in_stream")) from error
        is_pinged = False
        for name, data in framing.feed(chunk) if chunk is not None else framing.close():
            events = _fed(decoder, name, data)
            if events is None:
                is_pinged = True  # or of a kind that nobody knows: the service is at work
                continue
            for event in events:
                yield event
            silent_bytes = 0 if events else silent_bytes + len(data)
            if silent_bytes > MAX_SILENT_BYTES:
                raise StreamBroken(say("providers.says_nothing", most=MAX_SILENT_BYTES), retryable=False)
            # Counted from here: the time a reader takes over an event is not the service's.
            now = clock()
            limit.at = now + (TRAILING_S if decoder.complete else profile.between_events_s)
            pinged_until = now + profile.pings_only_s
            if decoder.ended:
                return  # nothing behind the end counts, whether it came in the same chunk or in another
        beats = getattr(framing, "heartbeats", 0)
        if (is_pinged or beats > heartbeats) and not decoder.complete:
            heartbeats = beats
            limit.at = max(limit.at, min(clock() + profile.between_events_s, pinged_until))


def _held_back(decoder: StreamDecoder) -> list[StreamEvent]:
    """What a decoder has kept to itself, where the answer broke off."""
    flush = getattr(decoder, "flush", None)
    return flush() if flush is not None else []


def _fed(decoder: StreamDecoder, name: str, data: bytes) -> list[StreamEvent] | None:
    try:
        return decoder.feed(name, data)
    except jsontext.NotJSON as error:
        raise StreamBroken(say("providers.event_not_json", data=first_bytes(data))) from error
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise StreamBroken(say("providers.event_shape", data=first_bytes(data))) from error


def first_bytes(data: bytes) -> str:
    """The beginning of what a service sent, for an error message."""
    return data[:80].decode("utf-8", "backslashreplace")


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the end of the body, so that the connection can be reused; do not wait long for a server that leaves it open."""
    try:
        async with asyncio.timeout(0.25):
            async for _ in chunks:
                pass
    except (TimeoutError, ConnectionFailed):
        pass


async def read_explanation(answer: HttpResponse, deadline: float) -> bytes:
    """The body of an error, without waiting long: the status says enough."""
    return await read_body(answer, min(deadline, asyncio.get_running_loop().time() + TRAILING_S), limit=256 * 1024)


async def read_body(answer: HttpResponse, deadline: float, limit: int = MAX_BODY_BYTES) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async with asyncio.timeout_at(deadline), aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            pieces.append(chunk)
            size += len(chunk)
            if size > limit:
                break
    return b"".join(pieces)


def events_of(response: Response) -> list[StreamEvent]:
    """A whole answer as the events of an equivalent stream."""
    events: list[StreamEvent] = [ResponseStarted(response.response_id, response.model_version)]
    for part in response.message.parts:
        match part:
            case Text(text=text) if text:
                events.append(TextDelta(text))
            case Thought(text=text) if text:
                events.append(ThoughtDelta(text))
            case ToolCall(id=call_id, name=name):
                events += [ToolCallStarted(call_id, name), ToolCallReady(part)]
            case _:
                pass
    return [*events, UsageUpdated(response.usage), ResponseFinished(response.finish, response)]
