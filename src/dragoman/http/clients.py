"""Chooses the HTTP client: our own, or httpx2 for networks that ours does not support. Only the chosen one is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from dragoman.http.transport import HttpTransport

if TYPE_CHECKING:
    from dragoman.values.contracts import Transport

HttpClient = Literal["own", "httpx"]
"""own: HTTP/1.1 over asyncio, with HTTP proxies. httpx: SOCKS proxies and HTTP/2 too; it needs the extra `httpx`."""
CONNECT_S = 10.0


def open_transport(
    client: HttpClient = "own", *, proxy: str | None = None, connect_timeout_s: float = CONNECT_S, address: str = ""
) -> Transport:
    """A transport of the chosen client. With an address, all its connections go there (`contracts.Pin`)."""
    if client == "httpx":
        from dragoman.http.httpx_transport import HttpxTransport

        return HttpxTransport(proxy=proxy, connect_timeout_s=connect_timeout_s, address=address)
    if address:
        from dragoman.http.pinned import PinnedTransport

        return PinnedTransport(address, proxy=proxy, connect_timeout_s=connect_timeout_s)

    return HttpTransport(proxy=proxy, connect_timeout_s=connect_timeout_s)
