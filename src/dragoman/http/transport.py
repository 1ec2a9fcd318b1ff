"""HTTP/1.1 over asyncio: keep-alive connections, one certificate store, and error messages a person can act on.

It needs no HTTP library, which saves 70 ms of CPU on the first request (docs/inside/decisions/001). asyncio and the rest are imported
on the first send, and the certificate store is read on the first https URL: a program that only talks to a server on this machine never
pays for it.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from dragoman.http.client_parts import AnswerBody, PerLoop, Routes
from dragoman.http.connection import FAULTS
from dragoman.http.dialling import dial
from dragoman.http.framing import NotHTTP, Unsendable, request_fields, request_head
from dragoman.http.pool import Pool, open_connections
from dragoman.http.route import Route, route_to
from dragoman.values.errors import ConnectionFailed
from dragoman.words import say

if TYPE_CHECKING:
    import ssl

    from dragoman.http.connection import Exchange, HttpConnection
    from dragoman.values.contracts import HttpResponse

REQUEST_TIMEOUT = 408
"""Sent by a server that closes an idle connection. On a reused one it may have been sent before our request."""
FILE_LIMIT_TRIES = 20
FILE_LIMIT_WAIT_S = 0.25
"""How often, and how long each time, a request waits for another to end if the process has no file descriptor left for a socket."""


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
    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[HttpResponse, None]:
        route, target = self._routes.to(url)
        try:
            head = request_head(method, target, request_fields(method, headers, body, route))
        except Unsendable:
            # The request is neither quoted nor chained: a header may contain a key.
            raise ConnectionFailed(say("http.not_sent", host=route.host), retryable=False) from None
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
            await answer.aclose(is_reusable=connection is not None)

    async def preconnect(self, url: str) -> None:
        try:
            route, _ = self._routes.to(url)
            pool = await self._pools.get()
            if pool.has(route.key) or not open_connections.has_room:
                return
            with pool.opening(route.key) as hand_over:
                hand_over(await self._dial(route))
        except Exception:
            pass  # the request itself will report it

    async def aclose(self) -> None:
        """Close the connections of this event loop. Those of a loop in another thread are closed there later."""
        await self._pools.aclose()

    # --- connections

    async def _ask(self, pool: Pool[HttpConnection], route: Route, method: str, head: bytes, body: bytes) -> Exchange:
        """Send the request and wait for the answer's head. If a reused connection turns out to be dead, retry once on a new one."""
        try:
            connection = await pool.take(route.key)
            if connection is not None:
                try:
                    exchange = await connection.ask(method, head, body)
                except OSError:
                    if connection.has_answer:
                        raise
                else:
                    if exchange.head.status != REQUEST_TIMEOUT:
                        return exchange
                    exchange.abort()
            connection = await self._dial(route)
            return await connection.ask(method, head, body)
        except FAULTS as error:
            if _is_out_of_files(error):
                raise _too_many_open() from error
            from dragoman.http.faults import error_before_head

            raise error_before_head(error, route, self._connect_timeout_s) from error

    async def _dial(self, route: Route) -> HttpConnection:
        context = None
        if route.tls or route.hop.tls:
            from dragoman.http.tls import load_tls_context

            context = load_tls_context(self._tls, asyncio.get_running_loop())
        for tries in range(FILE_LIMIT_TRIES):
            try:
                with open_connections.opening_one():
                    async with asyncio.timeout(self._connect_timeout_s):
                        return await dial(route, context)
            except OSError as error:
                if not _is_out_of_files(error) or tries == FILE_LIMIT_TRIES - 1:
                    raise
            open_connections.close_idle(len(open_connections))
            await asyncio.sleep(FILE_LIMIT_WAIT_S)
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
            from dragoman.http.faults import error_in_body

            raise error_in_body(error, self._route, received) from error

    async def aclose(self, *, is_reusable: bool) -> None:
        """End reading the body. Its exchange has already ended, so nothing here can affect the connection."""
        try:
            await self._end_reading()
        finally:
            if not is_reusable:
                await asyncio.sleep(0)  # its socket is closed in this turn of the loop


def _is_out_of_files(error: BaseException) -> bool:
    """Whether the process or the machine has reached its limit of open files."""
    return isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}


def _too_many_open() -> ConnectionFailed:
    # Imports nothing: a module could not be opened either.
    return ConnectionFailed(say("http.too_many_open"))
