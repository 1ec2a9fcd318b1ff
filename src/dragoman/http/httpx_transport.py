"""A second HTTP client behind the same contract, for what our own cannot do: SOCKS proxies and HTTP/2.

It stands on httpcore2, the engine of httpx2, without the client above it: that would keep cookies, follow redirects, and read ~/.netrc and
the environment in its own way. Routes, trust, headers and the sentences for faults are those of our own client.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from dragoman.http.client_parts import AnswerBody, PerLoop, Routes
from dragoman.http.framing import NotHTTP, Unsendable, request_fields, request_head
from dragoman.http.route import HTTP_PROXIES, SOCKS_PROXIES, Route, pin, route_to
from dragoman.http.transport import GAVE_UP_WAITING
from dragoman.values.errors import ConfigError, ConnectionFailed

if TYPE_CHECKING:
    import ssl

    import httpcore2

    from dragoman.http.httpx_exchange import Exchange
    from dragoman.http.httpx_pool import Pools
    from dragoman.values.contracts import Answer

PACKAGES = ("httpcore2", "anyio", "h2", "socksio")


def require_httpx() -> None:
    """Raise ConfigError where the packages of the extra `httpx` are not installed. Nothing of them is loaded."""
    from importlib.util import find_spec

    if any(find_spec(package) is None for package in PACKAGES):
        raise ConfigError("[http] client = \"httpx\" needs one more package: pip install 'dragoman[httpx]'")


class HttpxTransport:
    """`contracts.Transport` over httpcore2. It may be used from several event loops, one after the other or at once.

    proxy: as HttpTransport has it, and socks5:// and socks5h:// as well; with both it is the proxy that looks names up.
    address: every connection goes to this IP address, as with PinnedTransport.
    tls: a context of the caller's. HTTP/2 is spoken where it offers that, as the one does that is used otherwise.
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
    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[Answer, None]:
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
        """Nothing: httpcore2 opens connections for requests alone."""

    async def aclose(self) -> None:
        """Close the connections of this event loop. Those of a loop in another thread are closed there, by and by."""
        await self._pools.aclose()

    def _make_pools(self) -> Pools:
        from dragoman.http.httpx_pool import Pools

        return Pools(self._tls)

    async def _ask(self, pool: httpcore2.AsyncConnectionPool, route: Route, request: Callable[[], httpcore2.Request]) -> _HttpxAnswer:
        """Send a request and wait for the answer's head. A kept connection may turn out to be dead: then once more on a new one."""
        from dragoman.http.httpx_exchange import Exchange
        from dragoman.http.httpx_faults import FAULTS, not_answered

        for is_second in (False, True):
            exchange = Exchange(pool, self._connect_timeout_s)
            try:
                response = await exchange.ask(request())
            except FAULTS as error:
                if exchange.unsendable:
                    raise _not_sent(route) from None
                if is_second or not exchange.found_dead(error):
                    raise not_answered(error, exchange, route, self._connect_timeout_s) from error
            else:
                if response.status < 200:  # 101: it speaks another protocol from now on
                    await response.aclose()
                    raise not_answered(NotHTTP(), exchange, route, self._connect_timeout_s)
                if is_second or not exchange.is_kept or response.status != GAVE_UP_WAITING:
                    return _HttpxAnswer(response, exchange, route)
                await response.aclose()
            await exchange.close_kept()
        raise AssertionError("unreachable")


def _request(method: str, route: Route, target: str, fields: Sequence[tuple[bytes, bytes]], body: bytes) -> httpcore2.Request:
    import httpcore2

    host = route.shown_name.strip("[]")  # of a pinned route the address
    url = httpcore2.URL(scheme="https" if route.tls else "http", host=host, port=route.port, target=target)
    return httpcore2.Request(method, url, headers=fields, content=body, extensions={"sni_hostname": route.name})


def _not_sent(route: Route) -> ConnectionFailed:
    # Nothing of the request is told or chained: a header may hold a key.
    return ConnectionFailed(f"the request to {route.host} is not valid HTTP and was not sent", retryable=False)


class _HttpxAnswer(AnswerBody):
    def __init__(self, response: httpcore2.Response, exchange: Exchange, route: Route) -> None:
        super().__init__(_headers(response.headers), route)
        self.status = response.status
        self._response = response
        self._exchange = exchange

    async def _read(self) -> AsyncGenerator[bytes, None]:
        from dragoman.http.httpx_faults import FAULTS, not_completed

        received = 0
        try:
            async with aclosing(self._response.aiter_stream()) as pieces:
                async for piece in pieces:
                    if piece:
                        received += len(piece)
                        yield piece
        except FAULTS as error:
            raise not_completed(error, self._exchange, self._route, received) from error

    async def aclose(self) -> None:
        try:
            await self._let_go()
        finally:
            await self._response.aclose()


def _headers(fields: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in fields:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
