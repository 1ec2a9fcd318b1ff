"""One HTTP/1.1 connection over asyncio: one exchange at a time, through a proxy tunnel and TLS if the route needs them.

A BufferedProtocol, not a stream: asyncio's streams and plain protocols allocate a quarter of a megabyte for every packet, which costs
as much as everything else in reading a small one (docs/inside/decisions/001).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, cast

from dragoman.http.framing import MAX_INFORMATIONAL, Body, Head, NotHTTP, Sized, body_of, read_head, request_head
from dragoman.http.pool import open_connections

if TYPE_CHECKING:
    import ssl

FIRST_READ_BYTES = 4 * 1024
"""Initial size of the read buffer: events are small, and a thousand streams need one buffer each."""
READ_BYTES = 64 * 1024
"""Largest read buffer, used when much data arrives."""
RECORD_BYTES = 16 * 1024
"""Size of a TLS record."""
UNREAD_BYTES = 256 * 1024
"""With this many unread bytes, reading pauses and the server has to wait."""
WRITE_BYTES = 128 * 1024
"""A body is written in pieces of this size, each once the previous one has been sent."""


class HungUp(ConnectionError):
    """The server closed the connection when an answer, or more of one, was due."""


class ProxyRefused(Exception):
    """A proxy refused to open a tunnel."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}".strip())
        self.status = status


class Busy(RuntimeError):
    """A connection was used by two requests at once. The exchange fails and the connection is closed, so answers are never mixed up."""


FAULTS = (OSError, UnicodeError, NotHTTP, ProxyRefused)
"""What `dial` and `ask` may raise. ssl.SSLError and TimeoutError are OSErrors."""


class HttpConnection(asyncio.BufferedProtocol):
    """An open connection. Its owner calls `ask`, reads the exchange and ends it; a second request before that raises Busy."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._transport = cast(asyncio.Transport, None)
        self._view = memoryview(bytearray(FIRST_READ_BYTES))
        self._unread: list[bytes] = []
        self._unread_bytes = 0
        self._reading_paused = False
        self._arrival: asyncio.Future[None] | None = None
        self._unsent = memoryview(b"")
        self._writing_paused = False
        self._exchange: Exchange | None = None
        self._expects_bytes = True
        """Whether the server may send: during a request, and before the first one, because some servers reject a client right away."""
        self._idle_timer: asyncio.TimerHandle | None = None
        self._lost: Exception | None = None
        self._closed = False
        self.idle_since: float | None = None
        """When it became idle; None while it has an owner."""
        self.ended = False
        """Whether the server has closed its side properly. Over TLS, a mere end of the TCP stream does not count."""
        self.has_answer = False
        """Whether any byte of the answer to the current request has arrived."""

    # --- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        open_connections.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        # The hint is the number of undecrypted bytes. asyncio loses what does not fit if the server hangs up right after.
        if sizehint >= 0 and sizehint + RECORD_BYTES > len(self._view):
            self._view = memoryview(bytearray(sizehint + RECORD_BYTES))
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        if not self._expects_bytes:  # unexpected bytes: they cannot be the answer to our next request
            self.abort()
            return
        self.has_answer = True
        view = self._view
        self._unread.append(bytes(view[:nbytes]))
        self._unread_bytes += nbytes
        if nbytes == len(view) < READ_BYTES:  # the buffer was full: use a larger one
            self._view = memoryview(bytearray(4 * nbytes))
        if self._unread_bytes > UNREAD_BYTES and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
        self._wake_reader()

    def eof_received(self) -> None:
        self.ended = self._is_clean_close()
        self._wake_reader()

    def _is_clean_close(self) -> bool:
        """Whether the server itself ended the stream: under TLS, anyone on the network path can end the TCP stream."""
        encrypted = self._transport.get_extra_info("ssl_object")
        if encrypted is None:
            return True
        try:
            return not encrypted.read(1)  # asyncio has already read everything else
        except OSError:  # it wants to read more
            return False

    def connection_lost(self, exc: Exception | None) -> None:
        open_connections.remove(self)
        self.stop_idling()
        self._closed = True
        self._lost = exc
        self._unsent = memoryview(b"")
        self._wake_reader()

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._write_pending()

    def _wake_reader(self) -> None:
        arrival = self._arrival
        if arrival is not None:
            self._arrival = None
            if not arrival.done():
                arrival.set_result(None)

    # --- an exchange

    async def ask(self, method: str, head: bytes, body: bytes) -> Exchange:
        """Send a request and wait for the head of its answer, which may come before the request's body is fully sent.

        Any failure before the head, cancellation included, closes the connection.
        """
        if self._exchange is not None:
            raise Busy("a second request was made on a connection before the answer to the first was read: this is a fault of Dragoman's")
        exchange = self._exchange = Exchange(self)
        self.stop_idling()
        self._expects_bytes, self.has_answer = True, bool(self._unread)
        try:
            if len(body) <= WRITE_BYTES:
                self._transport.write(head + body)
            else:
                self._transport.write(head)
                self._unsent = memoryview(body)
                self._write_pending()
            answered = await self._read_final_head()
            exchange.set_head(answered, body_of(answered, method))
        except BaseException:
            exchange.abort()
            raise
        if answered.status >= 400:
            self._unsent = self._unsent[:0]  # the rest of the request no longer matters
        return exchange

    def take(self) -> bytes:
        """Bytes that have arrived, or b"". Raises if there are none and it was cut, not if the server closed it: see `ended`."""
        unread = self._unread
        if not unread:
            if self._closed and not self.ended:
                raise self._lost or HungUp("the connection was cut")
            return b""
        data = unread[0] if len(unread) == 1 else b"".join(unread)
        unread.clear()
        self._unread_bytes = 0
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
        return data

    def arrival(self) -> Awaitable[None]:
        """Await this after `take` returned nothing: done when there are bytes, or the connection ends."""
        self._arrival = arrival = self.loop.create_future()
        return arrival

    def release(self, exchange: Exchange) -> bool:
        """End an exchange. True if both sides have sent everything, so that the connection can be reused."""
        if self._exchange is not exchange:
            raise Busy("an exchange was ended twice: this is a fault of Dragoman's")
        self._exchange, self._expects_bytes = None, False
        self._wake_reader()
        if not self.alive or not exchange.head.stays_open:
            return False
        return not (self._unread or self._unsent or self._transport.get_write_buffer_size())

    async def _read_final_head(self) -> Head:
        data = b""
        informational = 0
        while True:
            data += await self._read_more()
            while (found := read_head(data)) is not None:
                head, end = found
                data = data[end:]
                if head.status >= 200:
                    if data:
                        self._unread.insert(0, data)
                        self._unread_bytes += len(data)
                    return head
                informational += 1
                if head.status == 101 or informational > MAX_INFORMATIONAL:
                    raise NotHTTP(f"the answer is no answer: {head.status} {head.reason}")

    async def _read_more(self) -> bytes:
        while not (data := self.take()):
            if self.ended:
                raise HungUp("the server closed the connection")
            await self.arrival()
        return data

    def _write_pending(self) -> None:
        while self._unsent and not self._writing_paused and not self._closed:
            piece, self._unsent = self._unsent[:WRITE_BYTES], self._unsent[WRITE_BYTES:]
            self._transport.write(piece)

    # --- before and after

    @property
    def alive(self) -> bool:
        return not (self.ended or self._closed or self._transport.is_closing())

    def start_idling(self, idle_s: float) -> None:
        """Wait for the next owner, and close after `idle_s` without one."""
        if self._exchange is not None:
            raise Busy("a connection was put aside before its answer was read: this is a fault of Dragoman's")
        self._expects_bytes = False
        if len(self._view) > FIRST_READ_BYTES:
            self._view = memoryview(bytearray(FIRST_READ_BYTES))
        self.idle_since = self.loop.time()
        self._idle_timer = self.loop.call_later(idle_s, self.abort)

    def stop_idling(self) -> None:
        """A new owner has taken it."""
        self.idle_since = None
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def close_if_idle(self) -> None:
        if self.idle_since is not None:
            self.abort()

    def abort(self) -> None:
        """Close now, discarding unsent and unread bytes. The socket is closed in the event loop's next turn."""
        self.stop_idling()
        self._unsent = memoryview(b"")
        self._transport.abort()

    async def aclose(self) -> None:
        self.abort()
        await asyncio.sleep(0)

    async def tunnel(self, authority: str, fields: list[tuple[bytes, bytes]]) -> None:
        """Ask the proxy at the other end for a tunnel to `authority`."""
        exchange = await self.ask("CONNECT", request_head("CONNECT", authority, fields), b"")
        if not 200 <= exchange.head.status < 300:
            raise ProxyRefused(exchange.head.status, exchange.head.reason)
        exchange.leave_open()
        self._expects_bytes = True  # of the server behind the proxy

    async def encrypt(self, context: ssl.SSLContext, name: str) -> None:
        """Switch to TLS."""
        if self._unread:  # not from the server behind the proxy, so it must not be taken for its answer
            raise NotHTTP("the proxy said more than was asked")
        encrypted = await self.loop.start_tls(self._transport, self, context, server_hostname=name)
        if encrypted is None:  # asyncio returns None if the connection was lost meanwhile
            raise HungUp("the connection was cut")
        self._transport = encrypted


class Exchange:
    """One request and its answer, on a connection that is exclusively its own until it ends. After that it returns no more bytes."""

    __slots__ = ("_body", "_connection", "complete", "head")

    def __init__(self, connection: HttpConnection) -> None:
        self._connection: HttpConnection | None = connection
        self._body: Body = Sized(0)
        self.head = cast(Head, None)
        self.complete = False
        """Whether the body was read to its end."""

    def set_head(self, head: Head, body: Body) -> None:
        """The head has arrived, and with it how to read the body."""
        self.head, self._body, self.complete = head, body, body.done

    def take(self) -> bytes | None:
        """The part of the body that has arrived, or None. Raises OSError, EOFError or NotHTTP if the body cannot be completed."""
        connection = self._connection
        if connection is None:
            raise EOFError("the answer was closed while it was read")
        if data := connection.take():
            piece = self._body.feed(data)
            self.complete = self._body.done
            return piece
        if not connection.ended:
            return None
        if not self._body.ends_with_connection:
            raise EOFError("the server closed the connection")
        self.complete = True
        return b""

    def arrival(self) -> Awaitable[None]:
        """Await this after `take` returned None."""
        assert self._connection is not None
        return self._connection.arrival()

    def finish(self) -> HttpConnection | None:
        """End it. Returns the connection if it can be reused; else closes it. Reads what has arrived of the body first."""
        connection, is_whole = self._connection, self._is_whole()
        self._connection = None
        if connection is None:
            return None
        if connection.release(self) and is_whole:
            return connection
        connection.abort()
        return None

    def abort(self) -> None:
        """End it and close the connection, after a cancellation, timeout or error."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()
            connection.release(self)

    def leave_open(self) -> None:
        """End it, but keep the connection open: it is a tunnel now."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.release(self)

    def _is_whole(self) -> bool:
        try:
            if not self.complete:
                self.take()
        except (NotHTTP, OSError, EOFError):
            return False
        return self._body.done and not self._body.excess
