"""HTTP/1.1 as far as a loopback server needs it: reading requests, and sending answers with every fault a wire can have."""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from http import HTTPStatus

import msgspec

MAX_HEAD_BYTES = 1 << 18


class HttpRequest(msgspec.Struct, frozen=True):
    method: str
    path: str
    """Without the query."""
    query: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    keep_alive: bool


class Malformed(Exception):
    """What came is not HTTP."""


class Hangup(Exception):
    """The connection ends now. The message says who ended it."""


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> HttpRequest | None:
    """The next request of a connection, or None where the client has no more."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError as error:
        raise Malformed("The request's headers are too long.") from error
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
    return HttpRequest(method, path, query, headers, body, keep_alive)


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
        if size == 0:
            while await reader.readuntil(b"\r\n") != b"\r\n":
                pass
            return b"".join(chunks)
        chunks.append(await reader.readexactly(size))
        await reader.readexactly(2)


class Sender:
    """Sends one answer. Pieces, pauses and cuts happen here, below any protocol. Raises Hangup when the connection is over."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._piece_bytes = 0
        self._piece_wait_s = 0.0
        self._cut: int | None = None
        self._chunked = False
        self._sent = 0
        self._waiting = b""

    def trouble(self, *, piece_bytes: int = 0, piece_wait_s: float = 0.0, cut: int | None = None) -> None:
        """Before the head: send the body in such pieces, with such pauses, and not beyond that byte."""
        self._piece_bytes, self._piece_wait_s, self._cut = piece_bytes, piece_wait_s, cut

    async def head(self, status: int, headers: dict[str, str], length: int | None = None) -> None:
        """The status line and headers; without a length the body goes in chunks."""
        self._chunked = length is None
        framing = {"transfer-encoding": "chunked"} if length is None else {"content-length": str(length)}
        lines = [f"HTTP/1.1 {status} {_phrase(status)}", f"date: {formatdate(usegmt=True)}"]
        lines += [f"{name}: {value}" for name, value in (headers | framing).items()]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))
        await self._drained()
        if self._cut == 0:
            raise Hangup("cut by the script")

    async def send(self, data: bytes) -> None:
        """Part of the body. With a piece size it waits until a piece is full."""
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
        await self._drained()

    async def pause(self, seconds: float | None) -> None:
        """Nothing for a while, or for ever; but a client that goes away ends it."""
        if seconds == 0:
            return
        watch = asyncio.ensure_future(self._reader.read(1))
        try:
            done, _ = await asyncio.wait({watch}, timeout=seconds)
        finally:
            watch.cancel()
        if done:
            raise Hangup("the client went away")

    async def _put(self, data: bytes) -> None:
        if self._cut is not None:
            data = data[: self._cut - self._sent]
        if data:
            self._writer.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
            self._sent += len(data)
            await self._drained()
        if self._cut is not None and self._sent >= self._cut:
            raise Hangup("cut by the script")

    async def _drained(self) -> None:
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise Hangup("the client went away") from error


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Overloaded" if status == 529 else "Unknown"
