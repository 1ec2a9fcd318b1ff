"""A second HTTP client with the same contract, for what our own cannot do: SOCKS proxies and HTTP/2.

It uses httpcore2, the engine of httpx2, without the client on top: that would keep cookies, follow redirects, and read ~/.netrc and
the environment in its own way. Routes, certificates, headers and error messages are those of our own client.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from dragoman.http.client_parts import AnswerBody, PerLoop, Routes
from dragoman.http.framing import NotHTTP, Unsendable, request_fields, request_head
from dragoman.http.route import HTTP_PROXIES, SOCKS_PROXIES, Route, pin, route_to
from dragoman.http.transport import REQUEST_TIMEOUT
from dragoman.values.errors import ConfigError, ConnectionFailed
from dragoman.words import say

if TYPE_CHECKING:
    import ssl

    import httpcore2

    from dragoman.http.httpx_exchange import HttpxExchange
    from dragoman.http.httpx_pool import Pools
    from dragoman.values.contracts import HttpResponse

PACKAGES = ("httpcore2", "anyio", "h2", "socksio")


def require_httpx() -> None:
    """Raise ConfigError if the packages of the extra `httpx` are not installed. Does not import them."""
    from importlib.util import find_spec

    if any(find_spec(package) is None for package in PACKAGES):
        raise ConfigError(say("http.httpx_missing"))


class HttpxTransport:
    """`contracts.Transport` over httpcore2. It may be used from several event loops, one after the other or at once.

    proxy: as in HttpTransport, and also socks5:// and socks5h://; with both, the proxy resolves names.
    address: every connection goes to this IP address, as with PinnedTransport.
    tls: the caller's context. HTTP/2 is used if it offers that; the default context does.
    """

    def __init__(
        self, *, proxy: str | None = None, connect_timeout_s: float = 10.0, tls: ssl.SSLContext | None = None, address: str = ""
    ) -> None:
        require_httpx()
        self._connect_timeout_s = connect_timeout_s
        self._tls = tls
        self._routes = Routes(lambda origin: pin(route_to(origin, proxy, (*HTTP_PROXIES, *SOCKS_PROXIES)), address))
        self._pools: PerLoop[Pools] = PerLoop(self._make_pools)

    @asynccontextmanager
    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[HttpResponse, None]:
        route, target = self._routes.to(url)
        fields = [(name, value.strip(b" \t")) for name, value in request_fields(method, headers, body, route)]
        try:
            request_head(method, target, fields)
        except Unsendable:
            raise _not_sent(route) from None
        pools = await self._pools.get()
        async with pools.hold(route) as pool:
            answer = await self._ask(pool, route, lambda: _request(method, route, target, fields, body))
            try:
                yield answer
            finally:
                await answer.aclose()

    async def preconnect(self, url: str) -> None:
        """Does nothing: httpcore2 opens connections only for requests."""

    async def aclose(self) -> None:
        """Close the connections of this event loop. Those of a loop in another thread are closed there later."""
        await self._pools.aclose()

    def _make_pools(self) -> Pools:
        from dragoman.http.httpx_pool import Pools

        return Pools(self._tls)

    async def _ask(self, pool: httpcore2.AsyncConnectionPool, route: Route, request: Callable[[], httpcore2.Request]) -> _HttpxAnswer:
        """Send a request and wait for the answer's head. If a reused connection turns out to be dead, retry once on a new one."""
        from dragoman.http.httpx_exchange import HttpxExchange
        from dragoman.http.httpx_faults import FAULTS, error_before_head

        for is_second in (False, True):
            exchange = HttpxExchange(pool, self._connect_timeout_s)
            try:
                response = await exchange.ask(request())
            except FAULTS as error:
                if exchange.unsendable:
                    raise _not_sent(route) from None
                if is_second or not exchange.is_dead_connection(error):
                    raise error_before_head(error, exchange, route, self._connect_timeout_s) from error
            else:
                if response.status < 200:  # 101: the server switched protocols
                    await response.aclose()
                    raise error_before_head(NotHTTP(), exchange, route, self._connect_timeout_s)
                if is_second or not exchange.is_reused or response.status != REQUEST_TIMEOUT:
                    return _HttpxAnswer(response, exchange, route)
                await response.aclose()
            await exchange.close_reused()
        raise AssertionError("unreachable")


def _request(method: str, route: Route, target: str, fields: Sequence[tuple[bytes, bytes]], body: bytes) -> httpcore2.Request:
    import httpcore2

    host = route.bracketed_name.strip("[]")  # the address, if the route is pinned
    url = httpcore2.URL(scheme="https" if route.tls else "http", host=host, port=route.port, target=target)
    return httpcore2.Request(method, url, headers=fields, content=body, extensions={"sni_hostname": route.name})


def _not_sent(route: Route) -> ConnectionFailed:
    # The request is neither quoted nor chained: a header may contain a key.
    return ConnectionFailed(say("http.not_sent", host=route.host), retryable=False)


class _HttpxAnswer(AnswerBody):
    def __init__(self, response: httpcore2.Response, exchange: HttpxExchange, route: Route) -> None:
        super().__init__(_headers(response.headers), route)
        self.status = response.status
        self._response = response
        self._exchange = exchange

    async def _read(self) -> AsyncGenerator[bytes, None]:
        from dragoman.http.httpx_faults import FAULTS, error_in_body

        received = 0
        try:
            async with aclosing(self._response.aiter_stream()) as pieces:
                async for piece in pieces:
                    if piece:
                        received += len(piece)
                        yield piece
        except FAULTS as error:
            raise error_in_body(error, self._exchange, self._route, received) from error

    async def aclose(self) -> None:
        try:
            await self._end_reading()
        finally:
            await self._response.aclose()


def _headers(fields: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in fields:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
