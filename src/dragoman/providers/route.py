"""The way to a server: its host, whether TLS is spoken, and the proxy in between."""

from __future__ import annotations

import msgspec

from dragoman.errors import ConfigError


class Route(msgspec.Struct, frozen=True):
    """Where a request goes, and through what."""

    host: str
    """As a message names it: without user, password or the ordinary port."""
    tls: bool
    proxy: str = ""
    """The proxy's URL with its credentials: for connecting, never for showing."""

    def __repr__(self) -> str:
        return f"Route({self.host!r}, tls={self.tls}, proxy={self.proxy_host!r})"

    @property
    def key(self) -> tuple[bool, str]:
        return self.tls, self.proxy

    @property
    def proxy_host(self) -> str:
        return self.proxy.rpartition("://")[2].rpartition("@")[2].rstrip("/")

    @property
    def first_hop(self) -> str:
        return f"the proxy {self.proxy_host}" if self.proxy else self.host

    @property
    def whole_way(self) -> str:
        return f"{self.host} (through the proxy {self.proxy_host})" if self.proxy else self.host


def route_to(origin: str, proxy: str | None) -> Route:
    """The route to `scheme://host:port`: through `proxy`, or through what the environment says where it is None."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(origin)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme = host = port = None
    if scheme not in {"http", "https"} or not host:
        raise ConfigError(f"{origin.rpartition('@')[2]!r} is not the address of a server; it should look like https://api.example.com")
    ordinary = 443 if scheme == "https" else 80
    if proxy is None:
        proxy = proxy_from_environment(scheme, host, port or ordinary)
    shown = f"[{host}]" if ":" in host else host
    return Route(shown if port in {None, ordinary} else f"{shown}:{port}", scheme == "https", _checked_proxy(proxy))


def proxy_from_environment(scheme: str, host: str, port: int) -> str:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and ALL_PROXY name for a server, or "" where there is none or NO_PROXY excepts it."""
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    if not proxy or _on_this_machine(host) or proxy_bypass(f"{host}:{port}") or _in_networks(host, proxies.get("no", "")):
        return ""
    return proxy


def _checked_proxy(url: str) -> str:
    if not url:
        return ""
    url = url if "://" in url else f"http://{url}"
    scheme = url.partition("://")[0].lower()
    if scheme not in {"http", "https", "socks5", "socks5h"}:
        raise ConfigError(f"cannot use a proxy of the kind {scheme}://; http://, https:// and socks5:// can be used")
    return url


def _on_this_machine(host: str) -> bool:
    # A proxy elsewhere cannot reach our loopback. Most tools do the same; curl does not.
    return host == "localhost" or host.endswith(".localhost") or _in_networks(host, "127.0.0.0/8,::1")


def _in_networks(host: str, entries: str) -> bool:
    """Whether a numeric host is in one of the comma-separated addresses and networks. The standard library compares names only."""
    import ipaddress

    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    for entry in entries.split(","):
        try:
            if address in ipaddress.ip_network(entry.strip().strip("[]"), strict=False):
                return True
        except ValueError:
            continue
    return False
