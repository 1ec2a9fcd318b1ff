"""A small HTTP/1.1 server: connections, reading requests, sending answers. What is sent and who may ask is up to whoever listens.

It serves the browser's page and the loopback service of the tests. Whatever a client sends is bounded: the head of a request always, its
body and how long it may take where `ClientLimits` says so.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Generic, TypeVar

import msgspec

MAX_HEAD_BYTES = 1 << 18
BACKLOG = 4096
"""How many clients may wait to be accepted, if the system allows it. Beyond that, connecting takes a second or more."""
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n]*)?\r\n")
_LENGTH = re.compile(r"[0-9]{1,15}")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\0-\x08\x0a-\x1f\x7f]")
ONCE = frozenset({"host", "origin", "content-length", "transfer-encoding"})
"""Headers that two readers could understand differently if they came twice."""


class ClientLimits(msgspec.Struct, frozen=True):
    """What a client may cost."""

    body_bytes: int | None = None
    idle_s: float | None = None
    """How long a whole request may take to arrive, the wait for its first byte included."""
    connections: int | None = None

    @property
    def unread_bytes(self) -> int | None:
        return None if self.body_bytes is None else self.body_bytes + MAX_HEAD_BYTES


UNLIMITED = ClientLimits()


class ReceivedRequest(msgspec.Struct, frozen=True):
    method: str
    path: str
    """Without the query."""
    query: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    keep_alive: bool


class Malformed(Exception):
    """The client's data is not HTTP, or too much of it."""


class Hangup(Exception):
    """Ends the connection. The message says who ended it."""


class ClientReader(asyncio.StreamReader):
    """Reads what a client sends. Notices at once that it hung up, even while unread bytes of its next request are waiting."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most_unread: int | None = None) -> None:
        super().__init__(limit=MAX_HEAD_BYTES, loop=loop)
        self.gone: asyncio.Future[None] = loop.create_future()
        """Done when the client has hung up."""
        self._most_unread = most_unread
        self._arrived = 0
        """Bytes since the last whole request."""

    def set_transport(self, transport: asyncio.BaseTransport) -> None:
        """Keep no transport, so that it is never paused: a hangup on a paused one would go unnoticed."""

    def feed_data(self, data: Any) -> None:
        self._arrived += len(data)
        if self._most_unread is not None and self._arrived > self._most_unread:
            self.set_exception(ConnectionAbortedError("the client sends more than it may"))
        else:
            super().feed_data(data)

    def count_anew(self) -> None:
        """A whole request has been read."""
        self._arrived = 0

    def feed_eof(self) -> None:
        super().feed_eof()
        self._note_hangup()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self._note_hangup()

    def _note_hangup(self) -> None:
        if not self.gone.done():
            self.gone.set_result(None)


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limits: ClientLimits = UNLIMITED
) -> ReceivedRequest | None:
    """The next request of a connection, or None if the client has no more, left before it was complete, or takes too long."""
    try:
        async with asyncio.timeout(limits.idle_s):
            return await _read_request(reader, writer, limits)
    except (asyncio.IncompleteReadError, OSError, TimeoutError):
        return None
    except asyncio.LimitOverrunError as error:
        raise Malformed("The request's headers, or a line between the chunks of its body, are too long.") from error


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limits: ClientLimits) -> ReceivedRequest:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    match first.split(" "):
        case [method, target, version] if version.startswith("HTTP/1."):
            pass
        case _:
            raise Malformed(f"Not a request line: {first[:80]}")
    headers: dict[str, str] = {}
    for name, _, value in (line.partition(":") for line in lines):
        if not _NAME.fullmatch(name) or _CONTROL.search(value):
            raise Malformed(f"Not a header: {name[:80]}")
        name = name.lower()
        if name in headers and name in ONCE:
            raise Malformed(f"The header {name} came twice.")
        headers[name] = value.strip(" \t")
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = await _read_body(reader, headers, limits.body_bytes)
    path, _, query = target.partition("?")
    keep_alive = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    if isinstance(reader, ClientReader):
        reader.count_anew()
    return ReceivedRequest(method, path, query, headers, body, keep_alive)


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str], most: int | None) -> bytes:
    """Strictly: a tunnel in front of us must not take another length from what we read."""
    encoding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if encoding is not None:
        if encoding.lower() != "chunked" or length is not None:
            raise Malformed("How long the body is, is not clear.")
        return await _read_chunks(reader, most)
    if length is None:
        return b""
    if not _LENGTH.fullmatch(length):
        raise Malformed("Content-Length is not a number.")
    if most is not None and int(length) > most:
        raise Malformed("The body is too long.")
    return await reader.readexactly(int(length))


async def _read_chunks(reader: asyncio.StreamReader, most: int | None) -> bytes:
    chunks: list[bytes] = []
    whole = 0
    while True:
        if len(chunks) % 64 == 63:
            await asyncio.sleep(0)  # what is there already is read without a pause: others want their turn
        found = _SIZE.fullmatch(await reader.readuntil(b"\r\n"))
        if found is None:
            raise Malformed("A chunk's size is not a number.")
        size = int(found[1], 16)
        if size == 0:
            await _read_trailers(reader)
            return b"".join(chunks)
        whole += size
        if most is not None and whole > most:
            raise Malformed("The body is too long.")
        chunks.append(await reader.readexactly(size))
        if await reader.readexactly(2) != b"\r\n":
            raise Malformed("A chunk is longer than its size.")


async def _read_trailers(reader: asyncio.StreamReader) -> None:
    left = MAX_HEAD_BYTES
    while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
        left -= len(line)
        if left < 0:
            raise Malformed("There is too much behind the body.")


class AnswerSender:
    """Sends one answer. Raises Hangup when the connection is over."""

    def __init__(self, reader: ClientReader, writer: asyncio.StreamWriter) -> None:
        self.client_gone = reader.gone
        self.is_stuck = False
        """The client takes nothing of what it is sent, or takes it slowly."""
        self._writer = writer
        self._chunked = False

    async def send_head(self, status: int, headers: dict[str, str], length: int | None = None) -> None:
        """Send the status line and headers; without a length the body is chunked."""
        self._chunked = length is None
        framing = {"transfer-encoding": "chunked"} if length is None else {"content-length": str(length)}
        lines = [f"HTTP/1.1 {status} {_phrase(status)}", f"date: {formatdate(usegmt=True)}"]
        lines += [f"{name}: {value}" for name, value in (headers | framing).items()]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))
        await self._drain()

    async def send(self, data: bytes) -> None:
        """Send part of the body."""
        if data:
            self._write_piece(data)
            await self._drain()

    async def end(self) -> None:
        if self._chunked:
            self._writer.write(b"0\r\n\r\n")
        await self._drain()

    async def send_all(self, status: int, headers: dict[str, str], body: bytes) -> None:
        """Send a whole answer."""
        await self.send_head(status, headers, len(body))
        await self.send(body)
        await self.end()

    async def send_text(self, status: int, text: str) -> None:
        await self.send_all(status, {"content-type": "text/plain; charset=utf-8"}, text.encode() + b"\n")

    def _write_piece(self, data: bytes) -> None:
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    async def _drain(self) -> None:
        self.is_stuck = True
        try:
            await self._writer.drain()
        except OSError as error:
            raise Hangup("the client went away") from error
        self.is_stuck = False


AnySender = TypeVar("AnySender", bound=AnswerSender)


class Listener(Generic[AnySender]):
    """Accepts clients and serves each in a task of its own, which lives as long as the connection.

    `respond` answers one request, and raises Hangup to end the connection. Any other exception ends it too, and is reported by the loop.
    `admit` may turn a client away before a byte of it is read.
    """

    def __init__(
        self,
        respond: Callable[[ReceivedRequest, AnySender], Awaitable[None]],
        make_sender: Callable[[ClientReader, asyncio.StreamWriter], AnySender],
        limits: ClientLimits = UNLIMITED,
        admit: Callable[[asyncio.StreamWriter], bool] = lambda writer: True,
        name: str = "server",
    ) -> None:
        self._respond = respond
        self._make_sender = make_sender
        self._limits = limits
        self._admit = admit
        self._name = name
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._waiting: dict[asyncio.Task[None], None] = {}
        """Those whose next request has not come yet, the longest waiting first."""
        self._answering: dict[asyncio.Task[None], AnySender] = {}
        self.accepted = 0
        """Number of connections opened."""

    async def open(self, host: str, port: int) -> str:
        """Listen, and return the URL to connect to."""
        self._server = await asyncio.get_running_loop().create_server(self._make_protocol, host, port, backlog=BACKLOG)
        return url_of(self._server.sockets[0])

    async def open_on(self, bound: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Listen on a socket that has its address already."""
        self._server = await asyncio.get_running_loop().create_server(self._make_protocol, sock=bound, ssl=tls, backlog=BACKLOG)

    def _make_protocol(self) -> asyncio.StreamReaderProtocol:
        loop = asyncio.get_running_loop()
        reader = ClientReader(loop, self._limits.unread_bytes)
        return asyncio.StreamReaderProtocol(reader, lambda _, writer: self._begin_connection(reader, writer), loop=loop)

    async def aclose(self) -> None:
        """Stop listening and end every connection. Leaves no task and no socket behind."""
        if self._server is not None:
            await _stop_accepting(self._server)
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _begin_connection(self, reader: ClientReader, writer: asyncio.StreamWriter) -> None:
        if not self._admit(writer) or not self._make_room():
            writer.transport.abort()
            return
        self.accepted += 1
        task = asyncio.create_task(self._serve_connection(reader, writer))
        self._connections.add(task)
        self._waiting[task] = None
        task.add_done_callback(lambda _: self._end_connection(task, writer))

    def _make_room(self) -> bool:
        """For one more connection: where all are taken, the one that has waited longest is closed, or one that does not take its answer.
        False: all are being answered."""
        most = self._limits.connections
        if most is None or len(self._connections) < most:
            return True
        stuck = (task for task, sender in self._answering.items() if sender.is_stuck)
        longest = next(iter(self._waiting), None) or next(stuck, None)
        if longest is None:
            return False
        self._waiting.pop(longest, None)
        self._answering.pop(longest, None)
        longest.cancel()
        return True

    async def _serve_connection(self, reader: ClientReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        while await self._serve_request(reader, writer, task):
            self._waiting[task] = None
        writer.close()
        with suppress(OSError):  # the client left before it had read everything
            await writer.wait_closed()

    async def _serve_request(self, reader: ClientReader, writer: asyncio.StreamWriter, task: asyncio.Task[None]) -> bool:
        """Answer one request of a connection. False if it was the last."""
        sender = self._make_sender(reader, writer)
        try:
            request = await read_request(reader, writer, self._limits)
        except Malformed as error:
            with suppress(Hangup):
                await sender.send_text(400, str(error))
            return False
        finally:
            self._waiting.pop(task, None)
        if request is None:
            return False
        self._answering[task] = sender
        try:
            await self._respond(request, sender)
        except Hangup:
            return False
        finally:
            self._answering.pop(task, None)
        return request.keep_alive

    def _end_connection(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        self._connections.discard(task)
        writer.transport.abort()  # already closed unless the task was cancelled or failed
        if not task.cancelled() and (error := task.exception()) is not None:
            # The client only sees a hangup. Whoever wrote what should have answered must see why.
            message = f"The {self._name} failed to answer"
            task.get_loop().call_exception_handler({"message": message, "exception": error, "task": task})


def url_of(bound: socket.socket, scheme: str = "http") -> str:
    """The address to connect to."""
    host, port = bound.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


async def _stop_accepting(server: asyncio.Server) -> None:
    """Accept no more clients, but let accepted ones become connections: asyncio never closes their sockets if the server closes first."""
    for listening in server.sockets:
        with suppress(NotImplementedError):  # the default loop on Windows cannot watch sockets
            asyncio.get_running_loop().remove_reader(listening.fileno())
    for _ in range(2):  # a turn of the loop to make the transport, and one to call _begin_connection
        await asyncio.sleep(0)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Overloaded" if status == 529 else "Unknown"
