"""Plays a recorded answer to our real provider: over HTTP on the loopback interface, in pieces that are cut anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle

from dragoman.providers.connect import Connection, connect
from dragoman.providers.retry import RetryPolicy
from dragoman.values.errors import DragomanError
from dragoman.values.events import ResponseFinished, StreamEvent
from dragoman.values.messages import Request, Response, Settings, user
from loopback_http import LAST_CHUNK, Received, chunk, serving
from recorded.exchanges import Exchange
from recorded.services import deployment_of

_PIECES = (1777, 1, 64, 2, 4096, 3, 509, 7, 8191, 16384)
"""Sizes of the pieces of a stream in bytes: single bytes and odd sizes cut through lines, escapes and characters."""
_SETTINGS = Settings(max_output_tokens=1000)
"""Few, because answers that may be long are streamed even where nobody watches."""
_KEPT_HEADERS = ("retry-after", "retry-after-ms", "x-should-retry", "request-id", "x-request-id")
_ENV = {"GOOGLE_CLOUD_PROJECT": "project", "AZURE_OPENAI_ENDPOINT": "http://127.0.0.1:9"}


@dataclass
class Played:
    """What our provider made of an answer: a response with its events, or what it raised."""

    response: Response | None = None
    events: tuple[StreamEvent, ...] = ()
    error: DragomanError | None = None
    crash: Exception | None = None


class Stage:
    """A loopback server that answers as the services did. `url` has the number of the exchange in its path."""

    def __init__(self) -> None:
        self.url = ""
        self._exchanges: dict[str, Exchange] = {}

    def connect(self, exchange: Exchange) -> Connection:
        """Our provider for the service of an exchange, at the address where its answer is played."""
        self._exchanges[exchange.id] = exchange
        name = f"{deployment_of(exchange).name}/{exchange.model or 'some-model'}"
        return connect(name, key="key-for-tests", env=_ENV, base_url=f"{self.url}/{exchange.id}", retry=RetryPolicy(attempts=1))

    async def answer(self, request: Received, writer: asyncio.StreamWriter) -> None:
        exchange = self._exchanges[request.target.split("/")[1]]
        body = exchange.body.encode("utf-8", "surrogatepass")
        writer.write(_head(exchange))
        for piece in _cut(body) if exchange.stream else [body]:
            writer.write(chunk(piece))
        writer.write(LAST_CHUNK)
        await writer.drain()


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    opened = Stage()
    async with serving(opened.answer) as server:
        opened.url = server.url
        yield opened


async def play(exchange: Exchange, connection: Connection) -> Played:
    """Ask, in the way the recorded program asked, and read the answer."""
    request = Request(connection.model, (user("hi"),), settings=_SETTINGS)
    played = Played()
    try:
        if exchange.stream:
            played.events = tuple([event async for event in connection.stream(request)])
            last = played.events[-1]
            assert isinstance(last, ResponseFinished), last
            played.response = last.response
        else:
            played.response = await connection.generate(request)
    except DragomanError as error:
        played.error = error
    except Exception as error:
        played.crash = error
    return played


def _head(exchange: Exchange) -> bytes:
    kind = str(exchange.response_headers.get("content-type") or "application/json")
    if exchange.stream and exchange.status < 400 and "event-stream" not in kind:
        kind = "text/event-stream"
    kept = {name: value for name, value in exchange.response_headers.items() if name in _KEPT_HEADERS}
    fields = {"content-type": kind, "transfer-encoding": "chunked", **kept}
    lines = [f"HTTP/1.1 {exchange.status} Recorded", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace")


def _cut(body: bytes) -> Iterator[bytes]:
    start = 0
    for size in cycle(_PIECES):
        if start >= len(body):
            return
        yield body[start : start + size]
        start += size
