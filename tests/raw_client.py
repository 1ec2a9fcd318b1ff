"""A client of the loopback server that sees every byte, and reads each protocol by its documents alone."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from dragoman.testing.mock.server import MockServer
from dragoman.testing.script import Source

USER = {"role": "user", "content": "hello"}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gemini": ("/v1beta/models/gemini-mock:streamGenerateContent?alt=sse", {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}),
    "openai_chat": (
        "/v1/chat/completions",
        {"model": "gpt-mock", "messages": [USER], "stream": True, "stream_options": {"include_usage": True}},
    ),
    "openai_responses": ("/v1/responses", {"model": "gpt-mock", "input": [USER], "stream": True}),
    "anthropic": ("/v1/messages", {"model": "claude-mock", "max_tokens": 100, "messages": [USER], "stream": True}),
}
PROTOCOLS = list(REQUESTS)
SAID = 'text piece=4: Let me see: naïve \U0001f642\ncall id=c1 piece=5: read_file {"path": "a.txt"}'


class Got(msgspec.Struct):
    """An HTTP answer as it came over the socket."""

    status: int
    headers: dict[str, str]
    body: bytes
    complete: bool
    """Whether the body ended as HTTP says it should."""
    chunks: list[bytes] = []

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def run(source: Source, ask: Callable[[MockServer], Awaitable[Any]], **options: Any) -> Any:
    async def within() -> Any:
        async with MockServer(source, **options) as server:
            return await asyncio.wait_for(ask(server), 60)

    return asyncio.run(within())


async def connect(server: MockServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = server.url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


def request_bytes(protocol: str, *, path: str = "", body: dict[str, Any] | bytes | None = None, headers: str = "") -> bytes:
    own_path, own_body = REQUESTS[protocol]
    data = body if isinstance(body, bytes) else json.dumps(own_body if body is None else body).encode()
    head = f"POST {path or own_path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


async def read_answer(reader: asyncio.StreamReader) -> Got:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    got = Got(int(first.split(" ")[1]), headers, b"", False, [])
    if "content-length" in headers:
        try:
            got.body = await reader.readexactly(int(headers["content-length"]))
            got.complete = True
        except asyncio.IncompleteReadError as error:
            got.body = error.partial
        return got
    try:
        while size := int(await reader.readuntil(b"\r\n"), 16):
            got.chunks.append(await reader.readexactly(size))
            await reader.readexactly(2)
        await reader.readexactly(2)
        got.complete = True
    except asyncio.IncompleteReadError:
        pass
    got.body = b"".join(got.chunks)
    return got


async def read_for(reader: asyncio.StreamReader, seconds: float) -> bytes:
    """What comes within a while."""
    said = b""
    try:
        async with asyncio.timeout(seconds):
            while more := await reader.read(65536):
                said += more
    except TimeoutError:
        pass
    return said


async def ask(server: MockServer, protocol: str, **request: Any) -> Got:
    reader, writer = await connect(server)
    try:
        writer.write(request_bytes(protocol, **request))
        return await read_answer(reader)
    finally:
        writer.close()


def answered(source: Source, protocol: str, *, options: dict[str, Any] | None = None, **request: Any) -> Got:
    got: Got = run(source, lambda server: ask(server, protocol, **request), **(options or {}))
    return got


def events(body: bytes) -> list[tuple[str, str]]:
    """Server-sent events by the letter of the standard, as (name, data)."""
    found: list[tuple[str, str]] = []
    name, data = "", list[str]()
    for line in [*re.split("\r\n|\n|\r", body.decode().removeprefix("\ufeff")), ""]:
        field, _, value = line.partition(":")
        match field:
            case "event":
                name = value.removeprefix(" ")
            case "data":
                data.append(value.removeprefix(" "))
            case "" if not line and data:
                found.append((name, "\n".join(data)))
                name, data = "", []
    return found


def objects(body: bytes) -> list[Any]:
    return [json.loads(data) for _, data in events(body) if data != "[DONE]"]


def text_of(protocol: str, body: bytes) -> str:
    """The text a stream says, read the way each service's documents have it."""
    said = ""
    for event in objects(body):
        match protocol:
            case "gemini":
                parts = event["candidates"][0]["content"].get("parts", [])
                said += "".join(part.get("text", "") for part in parts if not part.get("thought"))
            case "openai_chat":
                said += "".join(choice["delta"].get("content") or "" for choice in event["choices"])
            case "openai_responses":
                said += event["delta"] if event["type"] == "response.output_text.delta" else ""
            case _:
                said += event["delta"]["text"] if event.get("delta", {}).get("type") == "text_delta" else ""
    return said


def ends(protocol: str, body: bytes) -> str | None:
    """The word with which a stream ends."""
    word = None
    for event in objects(body):
        match protocol:
            case "gemini":
                word = event["candidates"][0].get("finishReason") or word
            case "openai_chat":
                word = next((choice["finish_reason"] for choice in event["choices"] if choice["finish_reason"]), word)
            case "openai_responses":
                if event["type"] in ("response.completed", "response.incomplete", "response.failed"):
                    response = event["response"]
                    word = (response["incomplete_details"] or {}).get("reason") or response["status"]
            case _:
                word = event["delta"]["stop_reason"] if event["type"] == "message_delta" else word
    return word
