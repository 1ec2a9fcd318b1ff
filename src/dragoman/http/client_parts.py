"""What both HTTP clients share: routes to servers, one pool per event loop that is closed with it, and a body that is read once
and decompressed."""

from __future__ import annotations

import asyncio
import zlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Generic, Protocol, TypeVar

from dragoman.http.framing import COMPRESSIONS, Decompressor, request_target
from dragoman.http.route import Route
from dragoman.values.errors import ConnectionFailed
from dragoman.words import say


class Closable(Protocol):
    async def aclose(self) -> None: ...


P = TypeVar("P", bound=Closable)


class PerLoop(Generic[P]):
    """One pool per event loop, closed when the loop ends even if it is never closed explicitly.

    Event loops finish their asynchronous generators before they close, so a program that calls asyncio.run several times leaves no
    socket open.
    """

    def __init__(self, make: Callable[[], P]) -> None:
        self._make = make
        self._held: dict[asyncio.AbstractEventLoop, tuple[P, AsyncGenerator[None, None]]] = {}

    def __len__(self) -> int:
        return len(self._held)

    async def get(self) -> P:
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is None:
            # Connections belong to their loop. Those of closed loops only hold memory.
            for gone in [other for other in list(self._held) if other.is_closed()]:
                self._held.pop(gone, None)
            pool = self._make()
            held = self._held[loop] = pool, _close_at_end(pool)
            await anext(held[1])
        return held[0]

    async def aclose(self) -> None:
        """Close the pool of this event loop. Those of a loop in another thread are closed there later."""
        held = self._held.pop(asyncio.get_running_loop(), None)
        self._held.clear()
        if held is not None:
            await held[1].aclose()


async def _close_at_end(pool: Closable) -> AsyncGenerator[None, None]:
    """Close the pool when this generator is closed, its loop ends, or it is garbage collected."""
    try:
        yield
    finally:
        await pool.aclose()


class Routes:
    """Caches the route to each server, and gives the request target. `find` makes the route to an origin (`https://host:port`)."""

    def __init__(self, find: Callable[[str], Route]) -> None:
        self._find = find
        self._found: dict[str, Route] = {}

    def to(self, url: str) -> tuple[Route, str]:
        scheme, _, rest = url.partition("#")[0].partition("://")
        authority = rest.partition("/")[0].partition("?")[0]
        origin = f"{scheme}://{authority}"
        route = self._found.get(origin)
        if route is None:
            route = self._found[origin] = self._find(origin)
        target = request_target(rest[len(authority) :])
        return route, f"http://{route.host}{target}" if route.is_forwarded else target


class AnswerBody(ABC):
    """The body of an answer: read once, and decompressed. Each client implements `_read`."""

    def __init__(self, headers: Mapping[str, str], route: Route) -> None:
        self.headers = headers
        self._route = route
        self._body: AsyncGenerator[bytes, None] | None = None

    def chunks(self) -> AsyncGenerator[bytes, None]:
        if self._body is not None:
            raise RuntimeError("the body of an answer can be read only once")
        encoding = self.headers.get("content-encoding", "").strip().lower()
        self._body = self._read() if encoding in {"", "identity"} else self._decompress(encoding)
        return self._body

    @abstractmethod
    def _read(self) -> AsyncGenerator[bytes, None]: ...

    async def _decompress(self, encoding: str) -> AsyncGenerator[bytes, None]:
        if encoding not in COMPRESSIONS:
            raise ConnectionFailed(say("http.unknown_encoding", host=self._route.host, encoding=encoding), retryable=False)
        decompressor = Decompressor(encoding)
        try:
            async with aclosing(self._read()) as packed:
                async for data in packed:
                    for piece in decompressor.feed(data):
                        yield piece
            if not decompressor.done:
                raise zlib.error("the packed data is incomplete")
        except zlib.error as error:
            from dragoman.http.faults import error_in_body

            raise error_in_body(error, self._route, 0) from error

    async def _end_reading(self) -> None:
        """Stop reading. For a concurrent reader the answer ends here."""
        try:
            if self._body is not None:
                await self._body.aclose()
        except RuntimeError:
            pass  # it is being read
