"""HTTP to an address that was checked beforehand: the host in the URL is used for the Host header and TLS, not resolved again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.http.client_parts import Routes
from dragoman.http.route import pin, route_to
from dragoman.http.transport import HttpTransport

if TYPE_CHECKING:
    import ssl


class PinnedTransport(HttpTransport):
    """`contracts.Pin`: every connection goes to `address`; through a proxy, by a tunnel to that address: see PinnedRoute."""

    def __init__(
        self, address: str, *, proxy: str | None = None, connect_timeout_s: float = 10.0, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(proxy=proxy, connect_timeout_s=connect_timeout_s, tls=tls)
        self._routes = Routes(lambda origin: pin(route_to(origin, proxy), address))
