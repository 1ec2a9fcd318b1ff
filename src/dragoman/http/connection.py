"""One HTTP/1.1 connection over asyncio: one exchange at a time, through a proxy's tunnel and TLS where the way there asks for them.

A protocol with a buffer of its own, not a stream: asyncio's streams and plain protocols allocate a quarter of a megabyte for every
packet, which costs as much as all the rest of reading a small one (docs/decisions/001).
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
"""What is read at once to begin with: events are small, and a thousand streams have a buffer each."""
READ_BYTES = 64 * 1024
"""What is read at once when much comes."""
RECORD_BYTES = 16 * 1024
"""What TLS encrypts at once."""
UNREAD_BYTES = 256 * 1024
"""When this much lies unread, the server is made to wait."""
WRITE_BYTES = 128 * 1024
"""A body is written in pieces of this size, each when the one before is on its way."""


class HungUp(ConnectionError):
    """The server closed the connection where an answer, or more of one, was due."""


class ProxyRefused(Exception):
    """A proxy answered, and would not open a tunnel."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}".strip())
        self.status = status


class Busy(RuntimeError):
    """A connection was used by two at once. Never answered with somebody else's words: the exchange fails, and the connection is closed."""


FAULTS = (OSError, UnicodeError, NotHTTP, ProxyRefused)
"""What dialling and asking may raise. ssl.SSLError and TimeoutError are OSErrors."""


class HttpConnection(asyncio.BufferedProtocol):
    """An open connection. Its owner asks, reads the exchange that it gets, and ends it; a second question before that is refused."""

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
        """Whether the server may speak: while it is asked something, and before, for some refuse a client before it has said a word."""
        self._bedtime: asyncio.TimerHandle | None = None
        self._lost: Exception | None = None
        self._closed = False
        self.resting_since: float | None = None
        """When it began to wait for its next owner, or None while it has one."""
        self.ended = False
        """Whether the server has said that it will send nothing more. Over TLS a mere end of the TCP stream does not say that."""
        self.answered = False
        """Whether anything of an answer to the present request has arrived."""

    # --- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        open_connections.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        # TLS hints at what lies undecrypted. asyncio loses what does not fit when the server hangs up right behind it.
        if sizehint >= 0 and sizehint + RECORD_BYTES > len(self._view):
            self._view = memoryview(bytearray(sizehint + RECORD_BYTES))
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        if not self._expects_bytes:  # nothing was asked: whatever this answers, it is not our next request
            self.abort()
            return
        self.answered = True
        view = self._view
        self._unread.append(bytes(view[:nbytes]))
        self._unread_bytes += nbytes
        if nbytes == len(view) < READ_BYTES:  # much comes at once: read more of it at once
            self._view = memoryview(bytearray(4 * nbytes))
        if self._unread_bytes > UNREAD_BYTES and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
        self._wake_reader()

    def eof_received(self) -> None:
        self.ended = self._took_leave()
        self._wake_reader()

    def _took_leave(self) -> bool:
        """Whether the end is the server's own word: over TLS, anyone on the way can end the TCP stream beneath."""
        encrypted = self._transport.get_extra_info("ssl_object")
        if encrypted is None:
            return True
        try:
            return not encrypted.read(1)  # asyncio has read everything before
        except OSError:  # it wants to read more
            return False

    def connection_lost(self, exc: Exception | None) -> None:
        open_connections.remove(self)
        self.wake()
        self._closed = True
        self._lost = exc
        self._unsent = memoryview(b"")
        self._wake_reader()

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._write_on()

    def _wake_reader(self) -> None:
        arrival = self._arrival
        if arrival is not None:
            self._arrival = None
            if not arrival.done():
                arrival.set_result(None)

    # --- an exchange

    async def ask(self, method: str, head: bytes, body: bytes) -> Exchange:
        """Send a request and wait for the head of its answer, which may come before the request's body is on its way in full.

        Whatever keeps the head from coming, a cancel too, closes the connection.
        """
        if self._exchange is not None:
            raise Busy("a second request was made on a connection before the answer to the first was read: this is a fault of Dragoman's")
        exchange = self._exchange = Exchange(self)
        self.wake()
        self._expects_bytes, self.answered = True, bool(self._unread)
        try:
            if len(body) <= WRITE_BYTES:
                self._transport.write(head + body)
            else:
                self._transport.write(head)
                self._unsent = memoryview(body)
                self._write_on()
            answered = await self._final_head()
            exchange.answer(answered, body_of(answered, method))
        except BaseException:
            exchange.abort()
            raise
        if answered.status >= 400:
            self._unsent = self._unsent[:0]  # the rest of the question does not matter any more
        return exchange

    def take(self) -> bytes:
        """What has arrived, or b"". Raises when nothing has and nothing more can come, except where the server said so: see `ended`."""
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
        """To be awaited after `take` gave nothing: done when there is something to take, or to know."""
        self._arrival = arrival = self.loop.create_future()
        return arrival

    def release(self, exchange: Exchange) -> bool:
        """End an exchange. True where both have said all they had to say, so that the connection may serve the next request."""
        if self._exchange is not exchange:
            raise Busy("an exchange was ended twice: this is a fault of Dragoman's")
        self._exchange, self._expects_bytes = None, False
        self._wake_reader()
        if not self.alive or not exchange.head.stays_open:
            return False
        return not (self._unread or self._unsent or self._transport.get_write_buffer_size())

    async def _final_head(self) -> Head:
        data = b""
        informational = 0
        while True:
            data += await self._more()
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

    async def _more(self) -> bytes:
        while not (data := self.take()):
            if self.ended:
                raise HungUp("the server closed the connection")
            await self.arrival()
        return data

    def _write_on(self) -> None:
        while self._unsent and not self._writing_paused and not self._closed:
            piece, self._unsent = self._unsent[:WRITE_BYTES], self._unsent[WRITE_BYTES:]
            self._transport.write(piece)

    # --- before and after

    @property
    def alive(self) -> bool:
        return not (self.ended or self._closed or self._transport.is_closing())

    def rest(self, idle_s: float) -> None:
        """Wait for the next owner, and close when none has come."""
        if self._exchange is not None:
            raise Busy("a connection was put aside before its answer was read: this is a fault of Dragoman's")
        self._expects_bytes = False
        if len(self._view) > FIRST_READ_BYTES:
            self._view = memoryview(bytearray(FIRST_READ_BYTES))
        self.resting_since = self.loop.time()
        self._bedtime = self.loop.call_later(idle_s, self.abort)

    def wake(self) -> None:
        """Somebody owns it now."""
        self.resting_since = None
        if self._bedtime is not None:
            self._bedtime.cancel()
            self._bedtime = None

    def close_if_idle(self) -> None:
        if self.resting_since is not None:
            self.abort()

    def abort(self) -> None:
        """Close now, unsent and unread bytes or not. The socket is closed in the event loop's next turn."""
        self.wake()
        self._unsent = memoryview(b"")
        self._transport.abort()

    async def aclose(self) -> None:
        self.abort()
        await asyncio.sleep(0)

    async def tunnel(self, authority: str, fields: list[tuple[bytes, bytes]]) -> None:
        """Have the proxy at the other end pass everything through to `authority`."""
        exchange = await self.ask("CONNECT", request_head("CONNECT", authority, fields), b"")
        if not 200 <= exchange.head.status < 300:
            raise ProxyRefused(exchange.head.status, exchange.head.reason)
        exchange.leave_open()
        self._expects_bytes = True  # of the server behind the proxy

    async def encrypt(self, context: ssl.SSLContext, name: str) -> None:
        """Speak TLS from now on."""
        if self._unread:  # whoever wrote it, it was not the server, and must not pass for its answer
            raise NotHTTP("the proxy said more than was asked")
        encrypted = await self.loop.start_tls(self._transport, self, context, server_hostname=name)
        if encrypted is None:  # asyncio gives None where the connection was lost meanwhile
            raise HungUp("the connection was cut")
        self._transport = encrypted


class Exchange:
    """One request and its answer, on a connection that serves nobody else until it is ended. Once ended it gives no byte more."""

    __slots__ = ("_body", "_connection", "complete", "head")

    def __init__(self, connection: HttpConnection) -> None:
        self._connection: HttpConnection | None = connection
        self._body: Body = Sized(0)
        self.head = cast(Head, None)
        self.complete = False
        """Whether the body has been taken to its end."""

    def answer(self, head: Head, body: Body) -> None:
        """The head has come, and says how the body is to be read."""
        self.head, self._body, self.complete = head, body, body.done

    def take(self) -> bytes | None:
        """What has arrived of the body, or None. Raises OSError, EOFError or NotHTTP where it will not come to its end."""
        connection = self._connection
        if connection is None:
            raise EOFError("the answer was closed while it was read")
        if data := connection.take():
            piece = self._body.feed(data)
            self.complete = self._body.done
            return piece
        if not connection.ended:
            return None
        if not self._body.to_the_end:
            raise EOFError("the server closed the connection")
        self.complete = True
        return b""

    def arrival(self) -> Awaitable[None]:
        """To be awaited after `take` gave None."""
        assert self._connection is not None
        return self._connection.arrival()

    def finish(self) -> HttpConnection | None:
        """End it. The connection, where it can serve the next request; else it is closed. What has arrived of the body is read first."""
        connection, is_whole = self._connection, self._is_whole()
        self._connection = None
        if connection is None:
            return None
        if connection.release(self) and is_whole:
            return connection
        connection.abort()
        return None

    def abort(self) -> None:
        """End it and close the connection: it was cancelled, took too long or broke."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()
            connection.release(self)

    def leave_open(self) -> None:
        """End it though the connection goes on as something else: a tunnel."""
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
