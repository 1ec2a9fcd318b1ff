"""One HTTP/1.1 connection over asyncio: TCP, a proxy's tunnel and TLS on the way in, then one exchange at a time.

A protocol with a buffer of its own, not a stream: asyncio's streams and plain protocols allocate a quarter of a megabyte for every
packet, which costs as much as all the rest of reading a small one (docs/decisions/001).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, cast

from dragoman.providers.framing import MAX_INFORMATIONAL, Body, Head, NotHTTP, Sized, body_of, read_head, request_head

if TYPE_CHECKING:
    import ssl

    from dragoman.providers.route import Route

READ_BYTES = 64 * 1024
RECORD_BYTES = 16 * 1024
"""What TLS encrypts at once."""
UNREAD_BYTES = 256 * 1024
"""When this much lies unread, the server is made to wait."""
WRITE_BYTES = 128 * 1024
"""A body is written in pieces of this size, each when the one before is on its way."""
HAPPY_EYEBALLS_S = 0.25
KEEPALIVE_S = 60
"""A model may think for minutes without a word: probes keep the way open, and find out when the other end is gone."""


class HungUp(ConnectionError):
    """The server closed the connection where an answer, or more of one, was due."""


class ProxyRefused(Exception):
    """A proxy answered, and would not open a tunnel."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}".strip())
        self.status = status


FAULTS = (OSError, UnicodeError, NotHTTP, ProxyRefused)
"""What dialling and asking may raise. ssl.SSLError and TimeoutError are OSErrors."""


class HttpConnection(asyncio.BufferedProtocol):
    """An open connection. Whoever takes it asks once, reads the body, and asks `reusable`; all else ends in `abort`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = cast(asyncio.Transport, None)
        self._view = memoryview(bytearray(READ_BYTES))
        self._unread: list[bytes] = []
        self._unread_bytes = 0
        self._reading_paused = False
        self._arrival: asyncio.Future[None] | None = None
        self._unsent = memoryview(b"")
        self._writing_paused = False
        self._busy = True
        self._rest: asyncio.TimerHandle | None = None
        self._lost: Exception | None = None
        self._closed = False
        self._head: Head | None = None
        self.ended = False
        """Whether the server has said that it will send nothing more. Over TLS a mere end of the TCP stream does not say that."""
        self.answered = False
        """Whether anything of an answer to the present request has arrived."""
        self.body: Body = Sized(0)

    # --- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        # TLS hints at what lies undecrypted. asyncio loses what does not fit when the server hangs up right behind it.
        if sizehint + RECORD_BYTES > len(self._view):
            self._view = memoryview(bytearray(sizehint + RECORD_BYTES))
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        if not self._busy:  # nothing was asked: whatever this answers, it is not our next request
            self.abort()
            return
        self.answered = True
        self._unread.append(bytes(self._view[:nbytes]))
        self._unread_bytes += nbytes
        if self._unread_bytes > UNREAD_BYTES and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self.ended = self._took_leave()
        self._wake()

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
        self._closed = True
        self._lost = exc
        self._unsent = memoryview(b"")
        self._wake()

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._write_on()

    def _wake(self) -> None:
        arrival = self._arrival
        if arrival is not None:
            self._arrival = None
            if not arrival.done():
                arrival.set_result(None)

    # --- an exchange

    async def ask(self, method: str, head: bytes, body: bytes) -> Head:
        """Send a request and return the head of its answer, which may come before the request's body is on its way in full."""
        self._busy, self.answered = True, bool(self._unread)
        if len(body) <= WRITE_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._unsent = memoryview(body)
            self._write_on()
        answer = await self._final_head()
        if answer.status >= 400:
            self._unsent = self._unsent[:0]  # the rest of the question does not matter any more
        self._head, self.body = answer, body_of(answer, method)
        return answer

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
        self._arrival = arrival = self._loop.create_future()
        return arrival

    def reusable(self) -> bool:
        """Whether both have said all they had to say, and the connection may serve the next request."""
        if not self.body.done:
            try:
                self.body.feed(self.take())
            except (NotHTTP, OSError):
                return False
        return (
            self.body.done
            and not self.body.excess
            and not self._unread
            and self._head is not None
            and self._head.stays_open
            and not self._unsent
            and not self._transport.get_write_buffer_size()
            and self.alive
        )

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
        """Wait for the next request, and close when none has come."""
        self._busy = False
        self._head, self.body = None, Sized(0)
        self._rest = self._loop.call_later(idle_s, self.abort)

    def rise(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def abort(self) -> None:
        """Close now, unsent and unread bytes or not. The socket is closed in the event loop's next turn."""
        self.rise()
        self._unsent = memoryview(b"")
        self._transport.abort()

    async def aclose(self) -> None:
        self.abort()
        await asyncio.sleep(0)

    async def tunnel(self, authority: str, fields: list[tuple[bytes, bytes]]) -> None:
        """Have the proxy at the other end pass everything through to `authority`."""
        answer = await self.ask("CONNECT", request_head("CONNECT", authority, fields), b"")
        if not 200 <= answer.status < 300:
            raise ProxyRefused(answer.status, answer.reason)

    async def encrypt(self, context: ssl.SSLContext, name: str) -> None:
        """Speak TLS from now on."""
        if self._unread:  # whoever wrote it, it was not the server, and must not pass for its answer
            raise NotHTTP("the proxy said more than was asked")
        encrypted = await self._loop.start_tls(self._transport, self, context, server_hostname=name)
        if encrypted is None:  # asyncio gives None where the connection was lost meanwhile
            raise HungUp("the connection was cut")
        self._transport = encrypted


async def dial(route: Route, context: asyncio.Future[ssl.SSLContext] | None) -> HttpConnection:
    """Connect to a route's server, through its proxy and with TLS where it says so. The context is needed only once TCP stands."""
    loop = asyncio.get_running_loop()
    hop = route.hop
    try:
        transport, connection = await loop.create_connection(HttpConnection, hop.name, hop.port, happy_eyeballs_delay=HAPPY_EYEBALLS_S)
    except OSError:
        if context is not None:
            await context  # certificates that cannot be read are the first thing to tell
        raise
    try:
        _probe(transport.get_extra_info("socket"))
        if hop.tls and context is not None:
            await connection.encrypt(await context, hop.name)
        if route.tunnelled:
            await connection.tunnel(f"{route.shown_name}:{route.port}", route.proxy_fields)
        if route.tls and context is not None:
            await connection.encrypt(await context, route.name)
    except BaseException:
        await connection.aclose()
        raise
    return connection


def _probe(sock: Any) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_S)
    except OSError:
        pass  # a nicety
