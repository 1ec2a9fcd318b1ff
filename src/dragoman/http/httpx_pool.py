"""The httpcore2 connection pools of one event loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from typing import cast

import httpcore2

from dragoman.http.httpx_network import FixedContext, Network, TunnelNetwork
from dragoman.http.pool import IDLE_S
from dragoman.http.route import Route
from dragoman.http.tls import load_tls_context

MOST_STREAMS = 100
"""Concurrent requests that httpcore2 sends over one HTTP/2 connection. It makes further ones wait, so we open another connection."""


class Pools:
    """One httpcore2 pool per route and per hundred concurrent requests on it."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._held: dict[tuple[tuple[str, ...], int], _CountedPool] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @asynccontextmanager
    async def hold(self, route: Route) -> AsyncGenerator[httpcore2.AsyncConnectionPool, None]:
        """The pool to send a request with. It stays open until the block ends, even if `aclose` is called meanwhile."""
        held = await self._find(route)
        held.requests += 1
        try:
            yield held.pool
        finally:
            held.requests -= 1
            if not self._closed:
                self._schedule_expiry()
            elif not held.requests:
                await held.aclose()

    async def aclose(self) -> None:
        """Close the idle pools. Those in use are closed once their answers have been read."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for held in self._held.values():
            if not held.requests:
                await held.aclose()

    async def _find(self, route: Route) -> _CountedPool:
        loop = asyncio.get_running_loop()
        for_server = FixedContext(await load_tls_context(self._tls, loop, http2=True)) if route.tls else None
        for_proxy = FixedContext(await load_tls_context(self._tls, loop)) if route.hop.tls else None
        for number in count():
            held = self._held.get((route.key, number))
            if held is None:
                held = self._held[route.key, number] = _CountedPool(route, for_server, for_proxy)
            if held.requests < MOST_STREAMS:
                return held
        raise AssertionError("unreachable")

    def _schedule_expiry(self) -> None:
        """Close expired connections later. httpcore2 itself only checks for them on the next request."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(IDLE_S / 4, self._close_expired)

    def _close_expired(self) -> None:
        self._timer = None
        connections = [connection for held in self._held.values() for connection in held.pool.connections]
        for connection in connections:
            if connection.is_idle() and connection.has_expired():
                _closing.add(task := asyncio.ensure_future(connection.aclose()))
                task.add_done_callback(_closing.discard)
        if connections:
            self._schedule_expiry()


_closing: set[asyncio.Future[None]] = set()
"""Keeps the tasks alive: an event loop holds them only weakly."""


class _CountedPool:
    def __init__(self, route: Route, for_server: FixedContext | None, for_proxy: FixedContext | None) -> None:
        self.requests = 0
        self._network = TunnelNetwork(route, for_proxy) if route.is_tunnelled else Network()
        self.pool = httpcore2.AsyncConnectionPool(
            ssl_context=cast("ssl.SSLContext | None", for_server),
            proxy=_proxy(route, for_proxy),
            max_connections=None,
            keepalive_expiry=IDLE_S,
            http2=True,
            network_backend=self._network,
        )

    async def aclose(self) -> None:
        try:
            await self.pool.aclose()
        finally:
            await self._network.aclose()


def _proxy(route: Route, context: FixedContext | None) -> httpcore2.Proxy | None:
    """The proxy for httpcore2 to use. Forwarded requests carry the proxy credentials in their own headers."""
    if not (route.is_forwarded or route.is_socks):
        return None
    hop, credentials = route.hop, route.proxy_credentials
    url = httpcore2.URL(scheme=route.proxy.partition("://")[0].lower(), host=hop.name, port=hop.port, target="/")
    if not route.is_socks:
        return httpcore2.Proxy(url, ssl_context=cast("ssl.SSLContext | None", context))
    return httpcore2.Proxy(url, auth=(_Secret(credentials[0].encode()), _Secret(credentials[1].encode())) if credentials else None)


class _Secret(bytes):
    """Hides a password: httpcore2 logs the credentials it sends to a SOCKS proxy with repr."""

    def __repr__(self) -> str:
        return "b'…'"
