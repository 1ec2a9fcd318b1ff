"""A minimal HTTP/1.1 server for loopback: connections, reading requests, and sending answers with simulated network faults."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from email.utils import formatdate
from http import HTTPStatus

import msgspec

MAX_HEAD_BYTES = 1 << 18
BACKLOG = 4096
"""How many clients may wait to be accepted, if the system allows it. Beyond that, connecting takes a second or more."""
WRITES_IN_A_ROW = 16
"""After this many pieces of one answer, other clients get a turn."""


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
    """The client's data is not HTTP."""


class Hangup(Exception):
    """Ends the connection. The message says who ended it."""


class ClientReader(asyncio.StreamReader):
    """Reads what a client sends. Notices at once that it hung up, even while unread bytes of its next request are waiting."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=MAX_HEAD_BYTES, loop=loop)
        self.gone: asyncio.Future[None] = loop.create_future()
        """Done when the client has hung up."""

    def set_transport(self, transport: asyncio.BaseTransport) -> None:
        """Keep no transport, so that it is never paused: a hangup on a paused one would go unnoticed."""

    def feed_eof(self) -> None:
        super().feed_eof()
        self._note_hangup()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self._note_hangup()

    def _note_hangup(self) -> None:
        if not self.gone.done():
            self.gone.set_result(None)


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ReceivedRequest | None:
    """The next request of a connection, or None if the client has no more or left before it was complete."""
    try:
        return await _read_request(reader, writer)
    except (asyncio.IncompleteReadError, OSError):
        return None
    except asyncio.LimitOverrunError as error:
        raise Malformed("The request's headers, or a line between the chunks of its body, are too long.") from error


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ReceivedRequest:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    match first.split(" "):
        case [method, target, version] if version.startswith("HTTP/1."):
            pass
        case _:
            raise Malformed(f"Not a request line: {first[:80]}")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = await _read_body(reader, headers)
    path, _, query = target.partition("?")
    keep_alive = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    return ReceivedRequest(method, path, query, headers, body, keep_alive)


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return await _read_chunks(reader)
    try:
        length = int(headers.get("content-length", "0"))
    except ValueError as error:
        raise Malformed("Content-Length is not a number.") from error
    return await reader.readexactly(length) if length > 0 else b""


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    chunks: list[bytes] = []
    while True:
        line = await reader.readuntil(b"\r\n")
        try:
            size = int(line.split(b";")[0], 16)
        except ValueError as error:
            raise Malformed("A chunk's size is not a number.") from error
        if size < 0:
            raise Malformed("A chunk's size is below zero.")
        if size == 0:
            while await reader.readuntil(b"\r\n") != b"\r\n":
                pass
            return b"".join(chunks)
        chunks.append(await reader.readexactly(size))
        await reader.readexactly(2)


class Sender:
    """Sends one answer. Pieces, pauses and cuts happen here, below any protocol. Raises Hangup when the connection is over."""

    def __init__(self, reader: ClientReader, writer: asyncio.StreamWriter) -> None:
        self._client_gone = reader.gone
        self._writer = writer
        self._piece_bytes = 0
        self._piece_wait_s = 0.0
        self._cut: int | None = None
        self._chunked = False
        self._writes = 0
        self._sent = 0
        self._waiting = b""

    def set_faults(self, *, piece_bytes: int = 0, piece_wait_s: float = 0.0, cut: int | None = None) -> None:
        """Call before `send_head`: piece size and pauses of the body, and the byte at which to cut it."""
        self._piece_bytes, self._piece_wait_s, self._cut = piece_bytes, piece_wait_s, cut

    async def send_head(self, status: int, headers: dict[str, str], length: int | None = None) -> None:
        """Send the status line and headers; without a length the body is chunked."""
        self._chunked = length is None
        framing = {"transfer-encoding": "chunked"} if length is None else {"content-length": str(length)}
        lines = [f"HTTP/1.1 {status} {_phrase(status)}", f"date: {formatdate(usegmt=True)}"]
        lines += [f"{name}: {value}" for name, value in (headers | framing).items()]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))
        await self._drain()
        if self._cut == 0:
            raise Hangup("cut by the script")

    async def send(self, data: bytes) -> None:
        """Send part of the body. With a piece size it is buffered until a piece is full."""
        if not self._piece_bytes:
            await self._put(data)
            return
        data = self._waiting + data
        whole = len(data) - len(data) % self._piece_bytes
        for start in range(0, whole, self._piece_bytes):
            await self._put(data[start : start + self._piece_bytes])
            await self.pause(self._piece_wait_s)
        self._waiting = data[whole:]

    async def flush(self) -> None:
        waiting, self._waiting = self._waiting, b""
        await self._put(waiting)

    async def end(self) -> None:
        await self.flush()
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

    async def pause(self, seconds: float | None) -> None:
        """Wait for a while, or for ever; ends early if the client hangs up."""
        if seconds == 0:
            return
        done, _ = await asyncio.wait({self._client_gone}, timeout=seconds)
        if done:
            raise Hangup("the client went away")

    async def _put(self, data: bytes) -> None:
        if self._cut is not None:
            data = data[: self._cut - self._sent]
        if data:
            # `drain` only waits for slow readers: without this, an answer to a fast one would be sent before other clients get a turn.
            if self._writes and self._writes % WRITES_IN_A_ROW == 0:
                await asyncio.sleep(0)
            self._writer.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
            self._writes += 1
            self._sent += len(data)
            await self._drain()
        if self._cut is not None and self._sent >= self._cut:
            raise Hangup("cut by the script")

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError as error:
            raise Hangup("the client went away") from error


class Listener:
    """Accepts clients and serves each in a task of its own, which lives as long as the connection.

    `respond` answers one request, and raises Hangup to end the connection. Any other exception ends it too, and is reported by the loop.
    """

    def __init__(self, respond: Callable[[ReceivedRequest, Sender], Awaitable[None]]) -> None:
        self._respond = respond
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.accepted = 0
        """Number of connections opened."""

    async def open(self, host: str, port: int) -> str:
        """Listen, and return the URL to connect to."""
        loop = asyncio.get_running_loop()

        def make_protocol() -> asyncio.StreamReaderProtocol:
            reader = ClientReader(loop)
            return asyncio.StreamReaderProtocol(reader, lambda _, writer: self._begin_connection(reader, writer), loop=loop)

        self._server = await loop.create_server(make_protocol, host, port, backlog=BACKLOG)
        bound = self._server.sockets[0].getsockname()
        return f"http://[{bound[0]}]:{bound[1]}" if ":" in bound[0] else f"http://{bound[0]}:{bound[1]}"

    async def aclose(self) -> None:
        """Stop listening and end every connection. Leaves no task and no socket behind."""
        if self._server is not None:
            await _stop_accepting(self._server)
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _begin_connection(self, reader: ClientReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.create_task(self._serve_connection(reader, writer))
        self._connections.add(task)
        task.add_done_callback(lambda _: self._end_connection(task, writer))

    async def _serve_connection(self, reader: ClientReader, writer: asyncio.StreamWriter) -> None:
        while await self._serve_request(reader, writer):
            pass
        writer.close()
        with suppress(OSError):  # the client left before it had read everything
            await writer.wait_closed()

    async def _serve_request(self, reader: ClientReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request of a connection. False if it was the last."""
        sender = Sender(reader, writer)
        try:
            request = await read_request(reader, writer)
        except Malformed as error:
            with suppress(Hangup):
                await sender.send_text(400, str(error))
            return False
        if request is None:
            return False
        try:
            await self._respond(request, sender)
        except Hangup:
            return False
        return request.keep_alive

    def _end_connection(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        self._connections.discard(task)
        writer.transport.abort()  # already closed unless the task was cancelled or failed
        if not task.cancelled() and (error := task.exception()) is not None:
            # The client only sees a hangup. The author of the script, or of the function that chooses answers, must see why.
            task.get_loop().call_exception_handler({"message": "The mock server failed to answer", "exception": error, "task": task})


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
