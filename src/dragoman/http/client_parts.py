"""What both HTTP clients do alike: the way to a server, one pool for each event loop, closed with it, and a body
that is read once and unpacked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from dragoman.http.framing import PACKED, Unpacker, request_target
from dragoman.http.route import Route
from dragoman.values.errors import ConnectionFailed

if TYPE_CHECKING:
    import asyncio


class Closable(Protocol):
    async def aclose(self) -> None: ...


P = TypeVar("P", bound=Closable)


class PerLoop(Generic[P]):
    """A pool for each event loop that asks for one, and closed when that loop ends, though nobody may ever close it.

    Event loops finish their asynchronous generators before they close: so a program that calls asyncio.run several times leaves no socket
    open.
    """

    def __init__(self, make: Callable[[], P]) -> None:
        self._make = make
        self._held: dict[asyncio.AbstractEventLoop, tuple[P, AsyncGenerator[None, None]]] = {}

    def __len__(self) -> int:
        return len(self._held)

    async def get(self) -> P:
        import asyncio

        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is None:
            # Connections belong to their loop. Those of loops that are gone hold nothing but memory.
            for gone in [other for other in list(self._held) if other.is_closed()]:
                self._held.pop(gone, None)
            pool = self._make()
            held = self._held[loop] = pool, _keep(pool)
            await anext(held[1])
        return held[0]

    async def aclose(self) -> None:
        """Close the pool of this event loop. Those of a loop in another thread are closed there, by and by."""
        import asyncio

        held = self._held.pop(asyncio.get_running_loop(), None)
        self._held.clear()
        if held is not None:
            await held[1].aclose()


async def _keep(pool: Closable) -> AsyncGenerator[None, None]:
    """Close the pool when asked to, and also when its loop ends or nobody holds it any more."""
    try:
        yield
    finally:
        await pool.aclose()


class Routes:
    """The way to each server, found once, and what to ask it for. `find` makes the route to an origin (`https://host:port`)."""

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
        return route, f"http://{route.host}{target}" if route.forwarded else target


class AnswerBody(ABC):
    """The body of an answer: read once, its content encoding undone. A client says how the bytes are read (`_read`)."""

    def __init__(self, headers: Mapping[str, str], route: Route) -> None:
        self.headers = headers
        self._route = route
        self._body: AsyncGenerator[bytes, None] | None = None

    def chunks(self) -> AsyncGenerator[bytes, None]:
        if self._body is not None:
            raise RuntimeError("the body of an answer can be read only once")
        encoding = self.headers.get("content-encoding", "").strip().lower()
        self._body = self._read() if encoding in {"", "identity"} else self._unpack(encoding)
        return self._body

    @abstractmethod
    def _read(self) -> AsyncGenerator[bytes, None]: ...

    async def _unpack(self, encoding: str) -> AsyncGenerator[bytes, None]:
        import zlib

        if encoding not in PACKED:
            raise ConnectionFailed(f"{self._route.host} sent a body in the encoding {encoding!r}, which was not asked for", retryable=False)
        unpacker = Unpacker(encoding)
        try:
            async with aclosing(self._read()) as packed:
                async for data in packed:
                    for piece in unpacker.feed(data):
                        yield piece
            if not unpacker.done:
                raise zlib.error("the packed data is incomplete")
        except zlib.error as error:
            from dragoman.http.faults import not_completed

            raise not_completed(error, self._route, 0) from error

    async def _let_go(self) -> None:
        """End the reading. Whoever reads at this moment finds that the answer has ended."""
        try:
            if self._body is not None:
                await self._body.aclose()
        except RuntimeError:
            pass  # it is being read
