"""HTTP to an address that was checked beforehand: the name in the URL is for the server and its certificate, not for finding it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.http.client_parts import Routes
from dragoman.http.route import pin, route_to
from dragoman.http.transport import HttpTransport

if TYPE_CHECKING:
    import ssl


class PinnedTransport(HttpTransport):
    """`contracts.Pin`: every connection goes to `address`. Through a proxy it is a tunnel to that address: see PinnedRoute."""

    def __init__(
        self, address: str, *, proxy: str | None = None, connect_timeout_s: float = 10.0, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(proxy=proxy, connect_timeout_s=connect_timeout_s, tls=tls)
        self._routes = Routes(lambda origin: pin(route_to(origin, proxy), address))
