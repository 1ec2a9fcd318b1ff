"""HTTP/1.1 over asyncio: pooled connections, one trust store, and faults told in a sentence a person can act on.

It needs no HTTP library, and a first request costs 70 ms of CPU less for it (docs/decisions/001). asyncio and all that does the work
are imported on the first send, and the certificate store is read on the first https URL: a program that talks to a server on this
machine never pays for it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from dragoman import __version__
from dragoman.errors import ConfigError, ConnectionFailed
from dragoman.providers.framing import PACKED, NotHTTP, Unpacker, Unsendable, request_head
from dragoman.providers.route import Route, route_to

if TYPE_CHECKING:
    import asyncio
    import ssl

    from dragoman.contracts import Answer
    from dragoman.providers.connection import HttpConnection
    from dragoman.providers.framing import Head

IDLE_S = 55.0
"""How long an idle connection is kept: tools run between two requests, and most servers wait a minute before they hang up."""
IDLE_CONNECTIONS = 20
"""Kept at once, for one event loop and one route."""
FRAMING = frozenset({b"content-length", b"transfer-encoding"})
"""Headers that say where a body ends. The transport alone knows."""


class HttpTransport:
    """`contracts.Transport` over asyncio. It may be used from several event loops, one after the other or at once.

    proxy: None takes HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY from the environment (servers on this machine are always
    reached directly); a URL is used for everything; "" means none.
    There is no read timeout: only the layer above knows what counts as an event.
    """

    def __init__(self, *, proxy: str | None = None, connect_timeout_s: float = 10.0, tls: ssl.SSLContext | None = None) -> None:
        self._proxy = proxy
        self._connect_timeout_s = connect_timeout_s
        self._tls = tls
        self._routes: dict[str, Route] = {}
        self._pools: dict[asyncio.AbstractEventLoop, tuple[_Pool, AsyncGenerator[None, None]]] = {}

    @asynccontextmanager
    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[Answer, None]:
        route, target = self._route(url)
        try:
            head = request_head(method, target, _fields(method, headers, body, route))
        except Unsendable:
            # Nothing of the request is told or chained: a header may hold a key.
            raise ConnectionFailed(f"the request to {route.host} is not valid HTTP and was not sent", retryable=False) from None
        pool = await self._pool()
        connection, answered = await self._ask(pool, route, method, head, body)
        answer = _HttpAnswer(connection, answered, route)
        try:
            yield answer
        finally:
            await answer.aclose(pool)

    async def preconnect(self, url: str) -> None:
        try:
            route, _ = self._route(url)
            pool = await self._pool()
            if pool.idle.get(route.key) or route.key in pool.opening:
                return
            with pool.announced(route.key):
                pool.put(route.key, await self._dial(route))
        except Exception:
            pass  # the request itself will tell

    async def aclose(self) -> None:
        """Close the connections of this event loop. Those of a loop in another thread are closed there, by and by."""
        import asyncio

        held = self._pools.pop(asyncio.get_running_loop(), None)
        self._pools.clear()
        if held is not None:
            await held[1].aclose()

    # --- where to

    def _route(self, url: str) -> tuple[Route, str]:
        """The way to a URL's server, and what to ask it for."""
        scheme, _, rest = url.partition("#")[0].partition("://")
        authority = rest.partition("/")[0].partition("?")[0]
        origin = f"{scheme}://{authority}"
        route = self._routes.get(origin)
        if route is None:
            route = self._routes[origin] = route_to(origin, self._proxy)
        target = _target(rest[len(authority) :])
        return route, f"http://{route.host}{target}" if route.forwarded else target

    async def _pool(self) -> _Pool:
        import asyncio

        loop = asyncio.get_running_loop()
        held = self._pools.get(loop)
        if held is None:
            # A pool belongs to its loop. Those of loops that are gone hold nothing but memory.
            for gone in [other for other in list(self._pools) if other.is_closed()]:
                self._pools.pop(gone, None)
            pool = _Pool()
            held = self._pools[loop] = pool, _keep(pool)
            await anext(held[1])
        return held[0]

    # --- connections

    async def _ask(self, pool: _Pool, route: Route, method: str, head: bytes, body: bytes) -> tuple[HttpConnection, Head]:
        """Send the request and wait for the answer's head. A kept connection may turn out to be dead: then once more on a new one."""
        from dragoman.providers.connection import FAULTS

        try:
            connection = await pool.take(route.key)
            if connection is not None:
                try:
                    return connection, await _asked(connection, method, head, body)
                except OSError:
                    if connection.answered:
                        raise
            connection = await self._dial(route)
            return connection, await _asked(connection, method, head, body)
        except FAULTS as error:
            from dragoman.providers.connection_faults import not_answered

            raise not_answered(error, route, self._connect_timeout_s) from error

    async def _dial(self, route: Route) -> HttpConnection:
        import asyncio

        from dragoman.providers.connection import dial

        context = None
        if route.tls or route.hop.tls:
            from dragoman.providers.tls import trust

            context = trust(self._tls, asyncio.get_running_loop())
        async with asyncio.timeout(self._connect_timeout_s):
            return await dial(route, context)


async def _asked(connection: HttpConnection, method: str, head: bytes, body: bytes) -> Head:
    try:
        return await connection.ask(method, head, body)
    except BaseException:
        await connection.aclose()
        raise


class _Pool:
    """The connections of one event loop that wait for a request."""

    def __init__(self) -> None:
        self.idle: dict[tuple[str, ...], list[HttpConnection]] = {}
        self.opening: dict[tuple[str, ...], asyncio.Future[None]] = {}
        self.closed = False

    async def take(self, key: tuple[str, ...]) -> HttpConnection | None:
        """A connection that is open for all we know, or None."""
        import asyncio

        if opening := self.opening.pop(key, None):
            await asyncio.wait([opening])  # it began before us, so it is there before another could be
        waiting = self.idle.get(key)
        if not waiting:
            return None
        # Whether the server has hung up is known when the event loop has looked: once in these two turns, after whatever kept it busy.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        while waiting:
            connection = waiting.pop()
            connection.rise()
            if connection.alive:
                return connection
        return None

    def put(self, key: tuple[str, ...], connection: HttpConnection) -> None:
        waiting = self.idle[key] = [each for each in self.idle.get(key, ()) if each.alive]
        if self.closed or len(waiting) >= IDLE_CONNECTIONS:
            connection.abort()
            return
        connection.rest(IDLE_S)
        waiting.append(connection)

    @contextmanager
    def announced(self, key: tuple[str, ...]) -> Iterator[None]:
        """While a connection is being opened ahead of its request: the request that comes meanwhile waits for it."""
        import asyncio

        opened = self.opening[key] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            if self.opening.get(key) is opened:
                del self.opening[key]
            opened.set_result(None)


async def _keep(pool: _Pool) -> AsyncGenerator[None, None]:
    """Close the pool when asked to, and also when its loop ends or nobody holds it any more.

    Event loops finish their asynchronous generators before they close: so a program that calls asyncio.run several times leaves
    no socket open, though it may never have called aclose.
    """
    import asyncio

    try:
        yield
    finally:
        pool.closed = True
        for connection in [each for waiting in pool.idle.values() for each in waiting]:
            connection.abort()
        pool.idle.clear()
        await asyncio.sleep(0)  # the turn in which the sockets are closed


class _HttpAnswer:
    def __init__(self, connection: HttpConnection, head: Head, route: Route) -> None:
        self.status = head.status
        self.headers: Mapping[str, str] = head.headers
        self._connection = connection
        self._route = route
        self._body: AsyncGenerator[bytes, None] | None = None

    def chunks(self) -> AsyncGenerator[bytes, None]:
        encoding = self.headers.get("content-encoding", "").strip().lower()
        self._body = self._read() if encoding in {"", "identity"} else self._unpack(encoding)
        return self._body

    async def _read(self) -> AsyncGenerator[bytes, None]:
        connection, body = self._connection, self._connection.body
        received = 0
        try:
            while not body.done:
                if data := connection.take():
                    if piece := body.feed(data):
                        received += len(piece)
                        yield piece
                elif not connection.ended:
                    await connection.arrival()
                elif body.to_the_end:
                    return
                else:
                    raise EOFError("the server closed the connection")
        except (OSError, EOFError, NotHTTP) as error:
            from dragoman.providers.connection_faults import not_completed

            raise not_completed(error, self._route, received) from error

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
            from dragoman.providers.connection_faults import not_completed

            raise not_completed(error, self._route, 0) from error

    async def aclose(self, pool: _Pool) -> None:
        if self._body is not None:
            await self._body.aclose()
        if self._connection.reusable():
            pool.put(self._route.key, self._connection)
        else:
            await self._connection.aclose()


# --- requests ---------------------------------------------------------------------------------------------------------------


def _fields(method: str, headers: Mapping[str, str], body: bytes, route: Route) -> list[tuple[bytes, bytes]]:
    fields = {
        b"host": route.host.encode("latin-1"),
        b"accept": b"*/*",
        # identity: events are small and arrive one by one, so compression saves little, costs a flush per event
        # and lets servers and proxies sit on them until a block is full. What is sent compressed is still undone.
        b"accept-encoding": b"identity",
        b"user-agent": f"Dragoman/{__version__}".encode(),
    }
    if route.login:
        fields[b"authorization"] = route.login.encode("latin-1")
    if route.forwarded and route.proxy_login:
        fields[b"proxy-authorization"] = route.proxy_login.encode("latin-1")
    for name, value in headers.items():
        try:
            fields[name.lower().encode("ascii")] = value.encode("latin-1")
        except UnicodeEncodeError:
            raise ConfigError(f"the header {name!r} holds a character that cannot travel in a header") from None
    for name in FRAMING & fields.keys():
        del fields[name]
    if body or method in {"POST", "PUT", "PATCH"}:
        fields[b"content-length"] = b"%d" % len(body)
    return list(fields.items())


def _target(path: str) -> str:
    path = path if path.startswith("/") else f"/{path}"
    if path.isascii() and path.isprintable() and " " not in path:
        return path
    from urllib.parse import quote

    return quote(path, safe="/?:@!$&'()*+,;=%[]|~")
