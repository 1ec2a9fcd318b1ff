"""The transport of 2024-11-05: one stream that we GET for all answers, and an address for POSTs that its first event names."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from dragoman.http.sse import ServerEvent
from dragoman.mcp_client.channel import Hear, Lose
from dragoman.mcp_client.errors import McpError, ServerDied, ServerGarbled, ServerTimedOut
from dragoman.mcp_client.events import ResumableDecoder
from dragoman.mcp_client.http_calls import HttpCalls, read_body
from dragoman.mcp_client.messages import Id, NotAMessage, from_wire, to_wire
from dragoman.values.contracts import HttpResponse
from dragoman.values.errors import DragomanError
from dragoman.words import say

ENDPOINT_S = 15.0
_STREAM = "text/event-stream"


class OldSseChannel:
    """Two connections: events come by one, requests are posted on others."""

    cancels_by_message = True
    stderr = ""

    def __init__(self, calls: HttpCalls, name: str, endpoint_s: float = ENDPOINT_S) -> None:
        self._calls = calls
        self._name = name
        self._endpoint_s = endpoint_s
        self._endpoint: asyncio.Future[str] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._version = ""
        self._is_open = False

    @property
    def is_open(self) -> bool:
        return self._is_open

    async def open(self, hear: Hear, lose: Lose) -> None:
        self._endpoint = asyncio.get_running_loop().create_future()
        self._reading = asyncio.ensure_future(self._read(hear, lose))
        try:
            async with asyncio.timeout(self._endpoint_s):
                await asyncio.shield(self._endpoint)
        except TimeoutError:
            await self.aclose()
            raise ServerTimedOut(say("mcp.timed_out", server=self._name, method="endpoint", seconds=self._endpoint_s)) from None
        except BaseException:
            await self.aclose()
            raise
        self._is_open = True

    def settle(self, version: str, is_modern: bool) -> None:
        self._version = version

    async def request(self, identity: Id, message: dict[str, Any], headers: Mapping[str, str]) -> None:
        await self.tell(message, headers)

    async def tell(self, message: dict[str, Any], headers: Mapping[str, str]) -> None:
        assert self._endpoint is not None
        version = {"mcp-protocol-version": self._version} if self._version else {}
        fields = {"content-type": "application/json", "accept": "application/json", **version, **headers}
        async with self._calls.send("POST", fields, to_wire(message), url=self._endpoint.result()) as response:
            await read_body(response)

    async def listen(self) -> None:
        """Everything comes by the one stream."""

    async def aclose(self) -> None:
        self._is_open = False
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading}, timeout=1.0)

    async def _read(self, hear: Hear, lose: Lose) -> None:
        error: Exception
        try:
            async with self._calls.send("GET", {"accept": _STREAM}) as response:
                await self._read_events(response, hear)
            error = ServerDied(say("mcp.stream_ended", server=self._name))
        except McpError as refusal:
            error = refusal
        except DragomanError as cause:
            error = ServerDied(say("mcp.lost", server=self._name, reason=cause))
            error.__cause__ = cause
        self._is_open = False
        assert self._endpoint is not None
        if not self._endpoint.done():
            self._endpoint.set_exception(error)
            self._endpoint.exception()
        lose(error)

    async def _read_events(self, response: HttpResponse, hear: Hear) -> None:
        if not response.headers.get("content-type", "").lower().startswith(_STREAM):
            raise ServerGarbled(say("mcp.not_mcp", server=self._name, reason=response.headers.get("content-type", "?")))
        decoder = ResumableDecoder()
        async for chunk in response.chunks():
            for event in decoder.feed(chunk):
                self._take(event, hear)

    def _take(self, event: ServerEvent, hear: Hear) -> None:
        assert self._endpoint is not None
        if event.name == "endpoint":
            if not self._endpoint.done():
                self._endpoint.set_result(self._same_host(event.data.decode("utf-8", "replace").strip()))
            return
        try:
            messages = from_wire(event.data)
        except NotAMessage:
            return
        for message in messages:
            hear(message)

    def _same_host(self, given: str) -> str:
        """Our token goes there, so it must be the host that the user configured."""
        target = urljoin(self._calls.url, given)
        ours, theirs = urlsplit(self._calls.url), urlsplit(target)
        if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc):
            raise ServerGarbled(say("mcp.other_host", server=self._name, address=target))
        return target
