"""Streamable HTTP: each message is a POST, whose response is one message or a stream of them.

Legacy servers (2025-03-26 to 2025-11-25) also have a session, a stream of their own that we GET, streams that go on after a cut from the
last event, and questions in the middle of a stream that are answered by another POST. The modern era has none of that: every request
stands for itself, and what it is about is repeated in headers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from dragoman.mcp_client.channel import Hear, Lose
from dragoman.mcp_client.errors import McpError, ServerDied, ServerGarbled, ServerRefused, SessionLost
from dragoman.mcp_client.events import ResumableDecoder
from dragoman.mcp_client.http_calls import HttpCalls, read_body
from dragoman.mcp_client.messages import Id, Incoming, NotAMessage, RpcError, RpcResult, from_wire, to_wire
from dragoman.mcp_client.mirrored import header_value
from dragoman.mcp_client.peer import refusal_as_error
from dragoman.values.contracts import HttpResponse
from dragoman.values.errors import DragomanError, ProviderError
from dragoman.words import say

BOTH = "application/json, text/event-stream"
STREAM = "text/event-stream"
RETRY_S = 1.0
MOST_RETRY_WAIT_S = 30.0
MOST_RESUMES = 8
"""How often in a row a stream that brings nothing is opened again."""
LASTING_S = 10.0
"""A stream that was open for so long was of use though nothing came: something on the way cuts idle ones."""
CLOSING_S = 1.0
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_TAIL_S = 0.2


class StreamableChannel:
    """A POST for each message; its response, or a stream, carries the answer."""

    stderr = ""

    def __init__(self, calls: HttpCalls, name: str) -> None:
        self._calls = calls
        self._name = name
        self._version = ""
        self._is_modern = False
        self._session = ""
        self._hear: Hear = lambda message: None
        self._listening: asyncio.Task[None] | None = None
        self._is_open = False

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def cancels_by_message(self) -> bool:
        return not self._is_modern  # in the modern era a stream that is closed says it

    async def open(self, hear: Hear, lose: Lose) -> None:
        self._hear = hear
        self._is_open = True

    def settle(self, version: str, is_modern: bool) -> None:
        self._version, self._is_modern = version, is_modern

    async def request(self, identity: Id, message: dict[str, Any], headers: Mapping[str, str]) -> None:
        decoder = ResumableDecoder()
        async with self._posting(message, headers) as response:
            if message["method"] == "initialize":
                self._session = response.headers.get("mcp-session-id", "")
            if await self._read(response, identity, decoder):
                return
        if self._is_modern or not decoder.last_id:
            raise ServerDied(say("mcp.no_answer", server=self._name))
        await self._resume(identity, decoder)

    async def tell(self, message: dict[str, Any], headers: Mapping[str, str]) -> None:
        async with self._posting(message, headers) as response:
            await read_body(response, 1024 * 1024)

    async def listen(self) -> None:
        if not self._is_modern and self._listening is None:
            self._listening = asyncio.ensure_future(self._listen())

    async def aclose(self) -> None:
        self._is_open = False
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening}, timeout=CLOSING_S)
        if self._session and not self._is_modern:
            try:
                async with asyncio.timeout(CLOSING_S), self._calls.send("DELETE", self._own_headers(), accepts=frozenset({404, 405})):
                    pass
            except (DragomanError, TimeoutError):
                pass
        self._session = ""

    # --- sending

    def _posting(self, message: dict[str, Any], headers: Mapping[str, str]) -> Any:
        fields = {"accept": BOTH, "content-type": "application/json", **self._own_headers(), **self._about(message), **headers}
        return _Posting(self._calls.send("POST", fields, to_wire(message)), self)

    def _own_headers(self) -> dict[str, str]:
        fields = {"mcp-protocol-version": self._version} if self._version else {}
        return {**fields, "mcp-session-id": self._session} if self._session else fields

    def _about(self, message: dict[str, Any]) -> dict[str, str]:
        if not self._is_modern or "method" not in message:
            return {}
        method = message["method"]
        fields = {"mcp-method": header_value(method)}
        named = message.get("params", {}).get(_NAMED.get(method, ""))
        return {**fields, "mcp-name": header_value(named)} if isinstance(named, str) else fields

    def meaning_of(self, refusal: ServerRefused) -> McpError:
        """A 404 with a session means that the session is gone; a body may hold an error of the protocol."""
        if refusal.status in {401, 403}:
            return refusal
        # Many servers say 400 where the protocol wants 404.
        is_about_session = refusal.status == 404 or (refusal.status == 400 and "session" in refusal.body.lower())
        if not is_about_session or not self._session:
            return refusal_as_error(self._name, refusal)
        self._session = ""
        return SessionLost(say("mcp.session_lost", server=self._name), refusal.status, refusal.body)

    # --- reading

    async def _read(self, response: HttpResponse, identity: Id | None, decoder: ResumableDecoder) -> bool:
        """Whether the answer with this id was there."""
        if _kind(response) == STREAM:
            return await self._read_stream(response, identity, decoder)
        body = await read_body(response)
        if not body.strip():
            return False
        try:
            messages = from_wire(body)
        except NotAMessage as error:
            raise ServerGarbled(say("mcp.not_mcp", server=self._name, reason=error)) from error
        return self._pass_on(messages, identity)

    async def _read_stream(self, response: HttpResponse, identity: Id | None, decoder: ResumableDecoder) -> bool:
        """A stream that is cut ends like any other: the answer may come by the next one."""
        is_answered = False
        try:
            async with aclosing(response.chunks()) as chunks:
                async for chunk in chunks:
                    for event in decoder.feed(chunk):
                        is_answered = self._hear_event(event.data, identity) or is_answered
                    if is_answered:
                        await self._read_tail(chunks)
                        return True
        except ProviderError:
            return is_answered
        for event in decoder.close():  # some servers forget the blank line
            is_answered = self._hear_event(event.data, identity) or is_answered
        return is_answered

    async def _read_tail(self, chunks: Any) -> None:
        """Read to the end of the stream if it comes soon, so that the connection can be reused."""
        try:
            async with asyncio.timeout(_TAIL_S):
                async for _ in chunks:
                    pass
        except TimeoutError:
            pass

    def _hear_event(self, data: bytes, identity: Id | None) -> bool:
        if not data.strip():
            return False
        try:
            messages = from_wire(data)
        except NotAMessage:
            return False
        return self._pass_on(messages, identity)

    def _pass_on(self, messages: list[Incoming], identity: Id | None) -> bool:
        for message in messages:
            self._hear(message)
        return any(isinstance(message, RpcResult | RpcError) and str(message.id) == str(identity) for message in messages)

    # --- legacy streams

    async def _resume(self, identity: Id, decoder: ResumableDecoder) -> None:
        """Go on from the last event until the answer is there."""
        last = decoder.last_id
        idle = 0
        while idle < MOST_RESUMES:
            await asyncio.sleep(self._pause(decoder, idle))
            if await self._get(identity, decoder):
                return
            idle = 0 if decoder.last_id != last else idle + 1
            last = decoder.last_id
        raise ServerDied(say("mcp.no_answer", server=self._name))

    async def _listen(self) -> None:
        """The server's own stream, for what belongs to no request. A server need not have one."""
        decoder, loop = ResumableDecoder(), asyncio.get_running_loop()
        idle = 0
        while idle < MOST_RESUMES:
            last, began = decoder.last_id, loop.time()
            try:
                await self._get(None, decoder)
            except ServerRefused:  # 405: it has none
                return
            except DragomanError:
                pass
            was_of_use = decoder.last_id != last or loop.time() - began > LASTING_S
            idle = 0 if was_of_use else idle + 1
            await asyncio.sleep(self._pause(decoder, idle))

    async def _get(self, identity: Id | None, decoder: ResumableDecoder) -> bool:
        resuming = {"last-event-id": decoder.last_id} if decoder.last_id else {}
        decoder.restart()
        sending = self._calls.send("GET", {"accept": STREAM, **self._own_headers(), **resuming})
        try:
            async with sending as response:
                return await self._read(response, identity, decoder)
        except ProviderError:
            if identity is None:
                raise
            return False

    def _pause(self, decoder: ResumableDecoder, idle: int) -> float:
        """How long to wait before reconnecting: what the server asks for, else longer after each attempt that brought nothing."""
        if decoder.retry_s is not None:
            return decoder.retry_s
        return min(RETRY_S * 2 ** max(idle - 1, 0), MOST_RETRY_WAIT_S)


class _Posting:
    """Sends, and says what a refusal means."""

    def __init__(self, sending: Any, channel: StreamableChannel) -> None:
        self._sending = sending
        self._channel = channel

    async def __aenter__(self) -> HttpResponse:
        try:
            return await self._sending.__aenter__()
        except ServerRefused as refusal:
            raise self._channel.meaning_of(refusal) from refusal

    async def __aexit__(self, *error: Any) -> Any:
        return await self._sending.__aexit__(*error)


def _kind(response: HttpResponse) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()
