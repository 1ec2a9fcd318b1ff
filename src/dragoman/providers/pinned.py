"""HTTP to an address that was checked beforehand: the name in the URL is for the server and its certificate, not for finding it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.providers.route import Hop, Route
from dragoman.providers.transport import HttpTransport

if TYPE_CHECKING:
    import ssl


class PinnedTransport(HttpTransport):
    """`contracts.Pin`: every connection goes to `address`. Through a proxy it is a tunnel to that address, for http as well: a proxy that
    is asked for a URL resolves the name itself, and may come to another answer than the one that was checked.
    """

    def __init__(
        self, address: str, *, proxy: str | None = None, connect_timeout_s: float = 10.0, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(proxy=proxy, connect_timeout_s=connect_timeout_s, tls=tls)
        self._address = address

    def _route(self, url: str) -> tuple[Route, str]:
        route, target = super()._route(url)
        if not self._address:
            return route, target
        pinned = _PinnedRoute(route.host, route.tls, route.proxy, route.name, route.port, route.login, self._address)
        return pinned, target[len(f"http://{route.host}") :] if route.forwarded else target


class _PinnedRoute(Route, frozen=True):
    address: str = ""

    @property
    def forwarded(self) -> bool:
        return False

    @property
    def tunnelled(self) -> bool:
        return bool(self.proxy)

    @property
    def hop(self) -> Hop:
        return super().hop if self.proxy else Hop(self.address, self.port, False)

    @property
    def shown_name(self) -> str:
        """What a proxy is asked to connect to."""
        return f"[{self.address}]" if ":" in self.address else self.address
