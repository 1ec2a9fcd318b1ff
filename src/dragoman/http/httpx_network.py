"""Sockets for httpcore2, the engine of httpx2: they count bytes, read while writing, and go through proxy tunnels."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, Protocol, cast

import httpcore2

from dragoman.http.connection import ProxyRefused
from dragoman.http.framing import NotHTTP, read_head, request_head
from dragoman.http.route import Route

READ_BYTES = 64 * 1024
WRITE_BYTES = 128 * 1024
"""A longer request takes a while to write, so we read from the server meanwhile."""
KEEPALIVE_S = 60
"""A model may think for minutes without sending anything: TCP keepalive keeps the connection open and detects a dead peer."""
PROBES = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
if hasattr(socket, "TCP_KEEPIDLE"):
    PROBES.append((socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_S))


class ConnectionWatcher(Protocol):
    """Is notified which socket a request uses."""

    def note_dial(self, stream: Stream) -> None: ...

    def note_stream(self, stream: Stream) -> bool:
        """Returns whether the request uses this stream for the first time."""
        ...


watcher: ContextVar[ConnectionWatcher | None] = ContextVar("watcher", default=None)
"""The watcher of the current task's request."""


class FixedContext:
    """A TLS context that httpcore2 cannot change: it sets the ALPN protocols before every connection, but we share the context."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context

    def set_alpn_protocols(self, protocols: list[str]) -> None:
        pass


class Network(httpcore2.AsyncNetworkBackend):
    """Where httpcore2 gets its sockets."""

    def __init__(self) -> None:
        self._backend = cast(httpcore2.AsyncNetworkBackend, httpcore2.AnyIOBackend())
        self._open: set[httpcore2.AsyncNetworkStream] = set()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        plain = await self._backend.connect_tcp(host, port, timeout, local_address, PROBES)
        self._open.add(plain)
        stream = Stream(plain, lambda: self._open.discard(plain))
        if (watching := watcher.get()) is not None:
            watching.note_dial(stream)
        return stream

    async def aclose(self) -> None:
        """Close what is still open. httpcore2 leaks a connection whose first request was cancelled while it was being opened."""
        while self._open:
            await self._open.pop().aclose()


class TunnelNetwork(Network):
    """Sockets through a proxy tunnel to a route's server.

    httpcore2 has tunnels too, but only for TLS, and it drops unexpected bytes from the proxy.
    """

    def __init__(self, route: Route, context: FixedContext | None) -> None:
        super().__init__()
        self._route = route
        self._context = context

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        route, hop = self._route, self._route.hop
        stream = await super().connect_tcp(hop.name, hop.port, timeout)
        if hop.tls and self._context is not None:
            stream = await stream.start_tls(cast(ssl.SSLContext, self._context), hop.name, timeout)
        await stream.write(request_head("CONNECT", f"{route.bracketed_name}:{route.port}", route.proxy_fields))
        said = b""
        while (found := read_head(said)) is None:
            more = await stream.read(READ_BYTES)
            if not more:
                raise httpcore2.ReadError("the proxy closed the connection")
            said += more
        answer, end = found
        if not 200 <= answer.status < 300:
            raise ProxyRefused(answer.status, answer.reason)
        if said[end:]:  # not from the server behind the proxy, so it must not be taken for its answer
            raise NotHTTP("the proxy said more than was asked")
        return stream


class Stream(httpcore2.AsyncNetworkStream):
    """A socket that counts received bytes, and knows how it ended."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, forget: Callable[[], None]) -> None:
        self._stream = stream
        self._forget = forget
        self._early = b""
        self._is_used = False
        self._turn = asyncio.Lock()
        self._writing: set[asyncio.Future[None]] = set()
        encrypted = self.get_extra_info("ssl_object")
        self._is_http2 = encrypted is not None and encrypted.selected_alpn_protocol() == "h2"
        self.received_bytes = 0
        self.ended = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._early or await self._stream.read(max_bytes, timeout)
        self._early = b""
        self.received_bytes += len(data)
        if not data:
            self.ended = True
            if not self._is_clean_close():
                raise httpcore2.ReadError("the connection was cut")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        watching = watcher.get()
        if watching is not None and watching.note_stream(self) and not self._is_http2:
            if self._is_used and await self._has_unread_bytes():
                raise httpcore2.RemoteProtocolError("the server said something, or hung up, before it was asked")
            self._is_used = True
        if self._is_http2:
            await self._write_whole(buffer)
        elif len(buffer) <= WRITE_BYTES:
            await self._stream.write(buffer, timeout)
        else:
            await self._write_and_listen(buffer)

    async def aclose(self) -> None:
        self._forget()
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        context = ssl_context.context if isinstance(ssl_context, FixedContext) else ssl_context
        return Stream(await self._stream.start_tls(context, server_hostname, timeout), self._forget)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    async def _has_unread_bytes(self) -> bool:
        """Whether there are unread bytes: they cannot be the answer to our next request."""
        listening = asyncio.ensure_future(self._stream.read(READ_BYTES))
        # Give the event loop a few turns to poll the socket.
        for _ in range(3):
            await asyncio.sleep(0)
        return not await _cancel_and_wait(listening)

    async def _write_whole(self, buffer: bytes) -> None:
        """Write everything even if the request is cancelled meanwhile: other requests share the connection, and TLS allows no gap."""
        writing = asyncio.ensure_future(self._write_in_turn(buffer))
        self._writing.add(writing)
        writing.add_done_callback(self._forget_write)
        await asyncio.shield(writing)

    async def _write_in_turn(self, buffer: bytes) -> None:
        async with self._turn:
            await self._stream.write(buffer)

    def _forget_write(self, writing: asyncio.Future[None]) -> None:
        self._writing.discard(writing)
        if not writing.cancelled():
            writing.exception()  # the caller may have stopped waiting

    async def _write_and_listen(self, buffer: bytes) -> None:
        """Write, but stop if the server rejects the request early: it may not read the rest, and httpcore2 would not notice."""
        writing = asyncio.ensure_future(self._stream.write(buffer))
        listening = asyncio.ensure_future(self._stream.read(READ_BYTES))
        try:
            await asyncio.wait({writing, listening}, return_when=asyncio.FIRST_COMPLETED)
            if not (listening.done() and not listening.exception() and _is_refusal(listening.result())):
                await writing
        finally:
            if not await _cancel_and_wait(listening) and not listening.exception():
                self._early = listening.result()
            is_whole = not await _cancel_and_wait(writing)
        if not is_whole:
            raise httpcore2.WriteError("the server refused the request before it had all of it")

    def _is_clean_close(self) -> bool:
        """Whether the server itself ended the stream: under TLS, anyone on the network path can end the TCP stream."""
        encrypted = self.get_extra_info("ssl_object")
        if encrypted is None:
            return True
        try:
            return not encrypted.read(1)
        except OSError:
            return False


def _is_refusal(data: bytes) -> bool:
    return data.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5", b"HTTP/1.0 4", b"HTTP/1.0 5"))


async def _cancel_and_wait(task: asyncio.Future[Any]) -> bool:
    """Cancel a task and wait for its end. Returns whether it was cancelled; it may have finished first."""
    task.cancel()
    await asyncio.wait([task])
    return task.cancelled()
