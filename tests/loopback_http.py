"""A real HTTP server on the loopback interface, simple enough to misbehave in every way a test needs."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from dragoman.values.contracts import Transport


@dataclass
class Received:
    """A request as it came over the wire."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Handler = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]
"""Writes the whole answer, head included. Closing the writer ends the connection."""


@dataclass
class Server:
    port: int = 0
    scheme: str = "http"
    connections: int = 0
    requests: list[Received] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the first request has arrived."""
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client has closed a connection."""

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"


@asynccontextmanager
async def serving(handler: Handler, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Answer every request on every connection with `handler`, until the block ends."""
    server = Server(scheme="https" if tls else "http")
    tasks: set[asyncio.Task[None]] = set()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        answering: asyncio.Task[None] | None = None
        try:
            while (request := await read_request(reader)) is not None:
                server.requests.append(request)
                server.asked.set()
                answering = asyncio.create_task(handler(request, writer))  # type: ignore[arg-type]
                if not await finished_before_hang_up(answering, reader):
                    break
                if writer.is_closing():
                    return
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        except asyncio.CancelledError:
            pass  # the block has ended, and asyncio's own callback cannot bear a cancelled task
        finally:
            if answering is not None and not answering.done():
                answering.cancel()
            server.hung_up.set()
            writer.close()
            await asyncio.gather(*filter(None, [answering]), writer.wait_closed(), return_exceptions=True)
            tasks.discard(asyncio.current_task())  # type: ignore[arg-type]

    listener = await asyncio.start_server(converse, "127.0.0.1", 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await listener.wait_closed()


async def finished_before_hang_up(answering: asyncio.Task[None], reader: asyncio.StreamReader) -> bool:
    """Wait for the answer, and notice a client that leaves in the middle of it."""
    while not answering.done():
        if reader.at_eof() or reader.exception():
            return False
        await asyncio.wait({answering}, timeout=0.01)
    try:
        answering.result()
    except ConnectionError:
        return False
    return True


async def read_request(reader: asyncio.StreamReader) -> Received | None:
    """One request with its body, or None where the client has nothing more to ask."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, target, headers, body)


def answer(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body


def chunked_head(headers: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{headers}Transfer-Encoding: chunked\r\n\r\n".encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


def always(data: bytes, *, then_close: bool = False) -> Handler:
    """Answer everything with the same bytes."""

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        if then_close:
            writer.close()

    return handler


# --- the client's side ------------------------------------------------------------------------------------------------------

Client = Callable[..., Transport]
"""Makes a transport: HttpTransport, or another that takes the same arguments."""


@asynccontextmanager
async def closing(transport: Transport) -> AsyncIterator[Transport]:
    try:
        yield transport
    finally:
        await transport.aclose()


async def fetch(
    transport: Transport, url: str, body: bytes = b"", *, method: str = "POST", headers: Mapping[str, str] | None = None
) -> tuple[int, Mapping[str, str], bytes]:
    async with transport.send(method, url, headers or {}, body) as got:
        data = b"".join([piece async for piece in got.chunks()])
        return got.status, got.headers, data


async def endless(request: Received, writer: asyncio.StreamWriter) -> None:
    """One event, and then nothing, and no end."""
    writer.write(chunked_head() + chunk(b"data: 1\n\n"))
    await asyncio.sleep(600)


async def silent(request: Received, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(600)


def against(handler: Handler, transport: Transport, test: Callable[[Server], Any]) -> Any:
    """Run an async test against a server, in an event loop of its own."""

    async def run() -> Any:
        async with serving(handler) as server, closing(transport):
            return await asyncio.wait_for(test(server), 60)

    return asyncio.run(run())
