"""Streams without a network: recorded by the loopback server's encoders or written by hand, and read by the real provider."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from importlib import import_module
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import strategies as st

from dragoman.providers.catalog import builtin_catalog
from dragoman.providers.http_provider import HttpProvider
from dragoman.testing.mock.encode_anthropic import AnthropicEncoder
from dragoman.testing.mock.encode_chat import ChatEncoder
from dragoman.testing.mock.encode_gemini import GeminiEncoder
from dragoman.testing.mock.encode_responses import ResponsesEncoder
from dragoman.testing.mock.wire import ModelRequest, frame_events, play, to_json
from dragoman.testing.script_steps import ScriptedAnswer
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
from dragoman.values.messages import Citation, Message, Request, Response, Thought, ToolCall, tool_result, user

MODELS = {
    "gemini": "gemini/gemini-3.8-flash",
    "openai_chat": "openai/gpt-4.1",
    "openai_responses": "responses/gpt-6.1-sol",
    "anthropic": "anthropic/claude-opus-5",
}
PROTOCOLS = list(MODELS)
_ENCODERS = {"gemini": GeminiEncoder, "openai_chat": ChatEncoder, "openai_responses": ResponsesEncoder, "anthropic": AnthropicEncoder}
_ASKED = {"stream": True, "stream_options": {"include_usage": True}}

# --- answers as bytes ----------------------------------------------------------------------------------------------------------


def recorded(protocol: str, said: ScriptedAnswer) -> bytes:
    """The body a service of this protocol would stream for an answer."""
    asked = ModelRequest(protocol, "a-model", _ASKED, 1, 100)  # type: ignore[arg-type]
    frames = play(said, _ENCODERS[protocol](said, asked), asked, "call_")
    return b"".join(each for each in frame_events(frames, said.framing) if isinstance(each, bytes))


def recorded_whole(protocol: str, said: ScriptedAnswer) -> bytes:
    """The same answer in one body."""
    asked = ModelRequest(protocol, "a-model", {}, 1, 100, False)  # type: ignore[arg-type]
    encoder = _ENCODERS[protocol](said, asked)
    for _ in play(said, encoder, asked, "call_"):
        pass
    return to_json(encoder.whole())


def sse(*events: Any) -> bytes:
    """Server-sent events: an object, text as it is, or a name with either."""
    body = b""
    for event in events:
        name, data = event if isinstance(event, tuple) else ("", event)
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=True)
        body += (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()
    return body


def typed(*events: dict[str, Any]) -> bytes:
    """Events whose name is their type, as Anthropic and OpenAI Responses write them."""
    return sse(*((event["type"], event) for event in events))


# --- reading them ----------------------------------------------------------------------------------------------------------------


class Replay:
    """A Transport that gives every request the same body, in the given chunks."""

    def __init__(self, chunks: Sequence[bytes], content_type: str = "text/event-stream") -> None:
        self.status = 200
        self.headers: Mapping[str, str] = {"content-type": content_type}
        self._chunks = chunks

    @asynccontextmanager
    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[Replay]:
        yield self

    async def chunks(self) -> AsyncGenerator[bytes]:
        for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        pass


_CATALOG = builtin_catalog()
REQUEST_TEXT = "hello"


def provider_over(protocol: str, transport: Any, model: str = "") -> HttpProvider:
    deployment, _ = _CATALOG.find(model or MODELS[protocol])
    return HttpProvider(deployment, import_module(f"dragoman.providers.{deployment.protocol}"), transport)


def request_for(protocol: str, *messages: Message, model: str = "") -> Request:
    _, name = _CATALOG.find(model or MODELS[protocol])
    return Request(name, messages or (user(REQUEST_TEXT),))


def streamed(protocol: str, body: bytes | Iterable[bytes], *messages: Message, model: str = "") -> list[StreamEvent]:
    """The events of a body, read chunk by chunk. Raises what the provider raises."""
    chunks = [body] if isinstance(body, bytes) else list(body)
    return asyncio.run(collect(provider_over(protocol, Replay(chunks), model), request_for(protocol, *messages, model=model)))


def answered(protocol: str, body: bytes | Iterable[bytes], *messages: Message, model: str = "") -> Response:
    """The response at the end of a stream, after every promise about its events was checked."""
    return checked(streamed(protocol, body, *messages, model=model))


def generated(protocol: str, body: bytes, *messages: Message, model: str = "") -> Response:
    """The same from a body that is not streamed."""
    provider = provider_over(protocol, Replay([body], "application/json"), model)
    return asyncio.run(provider.generate(request_for(protocol, *messages, model=model)))


async def collect(provider: Any, request: Request, into: list[StreamEvent] | None = None) -> list[StreamEvent]:
    events = [] if into is None else into
    async with aclosing(provider.stream(request)) as stream:
        async for event in stream:
            events.append(event)
    return events


def prepared(protocol: str, *messages: Message, model: str = "") -> Any:
    """The decoded body of the request these messages make."""
    body = provider_over(protocol, Replay([]), model).prepare(request_for(protocol, *messages, model=model)).body
    return json.loads(body)


def results_for(message: Message) -> list[Message]:
    """The message that answers a message's calls, if it has any."""
    return [user(*(tool_result(call, "done") for call in message.calls))] if message.calls else []


def signatures(body: dict[str, Any]) -> list[str]:
    """The signatures in a Gemini request, without those that stand for a missing one."""
    found = [part.get("thoughtSignature") for content in body["contents"] for part in content["parts"]]
    return [signature for signature in found if signature and signature != "skip_thought_signature_validator"]


# --- what holds of every stream ----------------------------------------------------------------------------------------------------


def checked(events: list[StreamEvent]) -> Response:
    """What a stream promises, whatever the protocol: its deltas are its message, its ids are unique, its text is valid Unicode."""
    msgspec.json.encode(events)  # raises on half a surrogate pair
    assert isinstance(events[0], ResponseStarted)
    finished = [event for event in events if isinstance(event, ResponseFinished)]
    assert finished == events[-1:]
    response = finished[0].response
    assert response.finish == finished[0].reason
    message = response.message
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == message.text
    thoughts = "".join(part.text for part in message.parts if isinstance(part, Thought))
    assert "".join(event.text for event in events if isinstance(event, ThoughtDelta)) == thoughts
    assert [event.citation for event in events if isinstance(event, CitationAdded)] == [
        part for part in message.parts if isinstance(part, Citation)
    ]
    check_calls(events, message)
    usages = [event.usage for event in events if isinstance(event, UsageUpdated)]
    assert not usages or usages[-1] == response.usage
    usage = response.usage
    assert usage.fresh_tokens + usage.cache_read_tokens + usage.cache_write_tokens == usage.input_tokens
    assert min(usage.fresh_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens) >= 0
    assert usage.thought_tokens <= usage.output_tokens
    return response


def check_calls(events: list[StreamEvent], message: Message) -> None:
    ready = [event.call for event in events if isinstance(event, ToolCallReady)]
    assert tuple(ready) == message.calls
    ids = [call.id for call in ready]
    assert len(set(ids)) == len(ids)
    assert "" not in ids
    started = [event.call_id for event in events if isinstance(event, ToolCallStarted)]
    assert sorted(started) == sorted(ids)
    for call in ready:
        mine = [event for event in events if getattr(event, "call_id", "") == call.id or getattr(event, "call", None) == call]
        assert isinstance(mine[0], ToolCallStarted)
        assert isinstance(mine[-1], ToolCallReady)
    assert {event.call_id for event in events if isinstance(event, ToolCallDelta)} <= set(ids)


def pieces_of(events: list[StreamEvent]) -> dict[str, str]:
    """The arguments of each call as its deltas told them."""
    pieces: dict[str, str] = {}
    for event in events:
        if isinstance(event, ToolCallDelta):
            pieces[event.call_id] = pieces.get(event.call_id, "") + event.arguments
    return pieces


def calls_of(response: Response) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in response.message.calls]


def texts_of(message: Message) -> list[tuple[str, str]]:
    """Text and thoughts in order, as (kind, text)."""
    return [(type(part).__name__, part.text) for part in message.parts if not isinstance(part, ToolCall) and hasattr(part, "text")]


# --- cutting --------------------------------------------------------------------------------------------------------------------------


def cut_at(body: bytes, positions: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(position % (len(body) + 1) for position in positions), len(body)]
    return [body[start:end] for start, end in pairwise(edges)]


def single_bytes(body: bytes) -> list[bytes]:
    return [body[at : at + 1] for at in range(len(body))]


CUTS = st.lists(st.integers(0, 1 << 30), max_size=40)
"""Where to cut: taken modulo the length of the body."""

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def made_valid(text: str) -> str:
    """Pairs joined, lone halves replaced, spelled out."""
    joined = _PAIR.sub(lambda pair: chr(0x10000 + ((ord(pair[0][0]) - 0xD800) << 10) + ord(pair[0][1]) - 0xDC00), text)
    return re.sub("[\ud800-\udfff]", "\ufffd", joined)
