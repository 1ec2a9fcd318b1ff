"""HTTP/1.1 over asyncio: kept connections, one trust store, and faults told in a sentence a person can act on.

It needs no HTTP library, and a first request costs 70 ms of CPU less for it (docs/decisions/001). asyncio and all that does the work
are imported on the first send, and the certificate store is read on the first https URL: a program that talks to a server on this
machine never pays for it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from dragoman.http.client_parts import AnswerBody, PerLoop, Routes
from dragoman.http.framing import NotHTTP, Unsendable, request_fields, request_head
from dragoman.http.pool import Pool, open_connections
from dragoman.http.route import Route, route_to
from dragoman.values.errors import ConnectionFailed

if TYPE_CHECKING:
    import ssl

    from dragoman.http.connection import Exchange, HttpConnection
    from dragoman.values.contracts import Answer

GAVE_UP_WAITING = 408
"""Said by a server that was tired of a silent connection. On a kept one it may be on its way before our request is."""
CROWDED_TRIES = 20
CROWDED_WAIT_S = 0.25
"""How often, and how long each time, a request waits for another to end where the process has no file left for a socket."""


class HttpTransport:
    """`contracts.Transport` over asyncio. It may be used from several event loops, one after the other or at once.

    proxy: None takes HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY from the environment (servers on this machine are always
    reached directly); a URL is used for everything; "" means none.
    There is no read timeout: only the layer above knows what counts as an event.
    """

    def __init__(self, *, proxy: str | None = None, connect_timeout_s: float = 10.0, tls: ssl.SSLContext | None = None) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._tls = tls
        self._routes = Routes(lambda origin: route_to(origin, proxy))
        self._pools: PerLoop[Pool[HttpConnection]] = PerLoop(Pool)

    @asynccontextmanager
    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[Answer, None]:
        route, target = self._routes.to(url)
        try:
            head = request_head(method, target, request_fields(method, headers, body, route))
        except Unsendable:
            # Nothing of the request is told or chained: a header may hold a key.
            raise ConnectionFailed(f"the request to {route.host} is not valid HTTP and was not sent", retryable=False) from None
        pool = await self._pools.get()
        exchange = await self._ask(pool, route, method, head, body)
        answer = _HttpAnswer(exchange, route)
        connection = None
        try:
            yield answer
            connection = exchange.finish()
        finally:
            if connection is not None:
                pool.put(route.key, connection)
            else:
                exchange.abort()
            await answer.aclose(is_kept=connection is not None)

    async def preconnect(self, url: str) -> None:
        try:
            route, _ = self._routes.to(url)
            pool = await self._pools.get()
            if pool.has(route.key) or not open_connections.has_room:
                return
            with pool.opening(route.key) as opened:
                opened(await self._dial(route))
        except Exception:
            pass  # the request itself will tell

    async def aclose(self) -> None:
        """Close the connections of this event loop. Those of a loop in another thread are closed there, by and by."""
        await self._pools.aclose()

    # --- connections

    async def _ask(self, pool: Pool[HttpConnection], route: Route, method: str, head: bytes, body: bytes) -> Exchange:
        """Send the request and wait for the answer's head. A kept connection may turn out to be dead: then once more on a new one."""
        from dragoman.http.connection import FAULTS

        try:
            connection = await pool.take(route.key)
            if connection is not None:
                try:
                    exchange = await connection.ask(method, head, body)
                except OSError:
                    if connection.answered:
                        raise
                else:
                    if exchange.head.status != GAVE_UP_WAITING:
                        return exchange
                    exchange.abort()
            connection = await self._dial(route)
            return await connection.ask(method, head, body)
        except FAULTS as error:
            if _is_crowded(error):
                raise _crowded() from error
            from dragoman.http.faults import not_answered

            raise not_answered(error, route, self._connect_timeout_s) from error

    async def _dial(self, route: Route) -> HttpConnection:
        import asyncio

        from dragoman.http.dialling import dial

        context = None
        if route.tls or route.hop.tls:
            from dragoman.http.tls import trust

            context = trust(self._tls, asyncio.get_running_loop())
        for tries in range(CROWDED_TRIES):
            try:
                with open_connections.one_more():
                    async with asyncio.timeout(self._connect_timeout_s):
                        return await dial(route, context)
            except OSError as error:
                if not _is_crowded(error) or tries == CROWDED_TRIES - 1:
                    raise
            open_connections.close_idle(len(open_connections))
            await asyncio.sleep(CROWDED_WAIT_S)
        raise AssertionError("unreachable")


class _HttpAnswer(AnswerBody):
    def __init__(self, exchange: Exchange, route: Route) -> None:
        super().__init__(exchange.head.headers, route)
        self.status = exchange.head.status
        self._exchange = exchange

    async def _read(self) -> AsyncGenerator[bytes, None]:
        exchange, received = self._exchange, 0
        try:
            while not exchange.complete:
                if piece := exchange.take():
                    received += len(piece)
                    yield piece
                elif piece is None:
                    await exchange.arrival()
        except (OSError, EOFError, NotHTTP) as error:
            from dragoman.http.faults import not_completed

            raise not_completed(error, self._route, received) from error

    async def aclose(self, *, is_kept: bool) -> None:
        """Let go of the body. Its exchange has ended before: nothing that happens here can reach the connection."""
        import asyncio

        try:
            await self._let_go()
        finally:
            if not is_kept:
                await asyncio.sleep(0)  # the turn in which its socket is closed


def _is_crowded(error: BaseException) -> bool:
    """Whether the process, or the machine, has as many files open as it may."""
    import errno

    return isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}


def _crowded() -> ConnectionFailed:
    # Told without loading anything: a module could not be opened either.
    return ConnectionFailed("too many files and connections are open in this process: run fewer agents at once, or allow more (ulimit -n)")
