"""The way to a server: its host, whether TLS is spoken, and the proxy in between."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from dragoman.values.errors import ConfigError

_HOST = re.compile(r"[0-9A-Za-z._~!$&'()*+,;=%:-]+")
HTTP_PROXIES = ("http", "https")
SOCKS_PROXIES = ("socks5", "socks5h")
"""What the proxies of each kind are called in a URL. Our own client speaks with the first alone."""


class Hop(NamedTuple):
    """Where the TCP connection goes."""

    name: str
    port: int
    tls: bool


class Route(msgspec.Struct, frozen=True):
    """Where a request goes, and through what."""

    host: str
    """As the Host header and a message name it: without user, password or the ordinary port."""
    tls: bool
    proxy: str = ""
    """The proxy's URL with its credentials: for connecting, never for showing."""
    name: str = ""
    port: int = 0
    login: str = ""
    """The Authorization that the URL's user and password stand for."""

    def __repr__(self) -> str:
        return f"Route({self.host!r}, tls={self.tls}, proxy={self.proxy_host!r})"

    @property
    def key(self) -> tuple[str, ...]:
        """Routes of the same key can use each other's connections."""
        return ("", self.proxy) if self.forwarded else ("tls" if self.tls else "tcp", self.name, str(self.port), self.proxy)

    @property
    def forwarded(self) -> bool:
        """Whether the proxy itself is asked for the whole URL."""
        return bool(self.proxy) and not self.tls and not self.by_socks

    @property
    def tunnelled(self) -> bool:
        """Whether the proxy is asked by HTTP to pass everything through."""
        return bool(self.proxy) and self.tls and not self.by_socks

    @property
    def by_socks(self) -> bool:
        return self.proxy.lower().startswith("socks")

    @property
    def hop(self) -> Hop:
        if not self.proxy:
            return Hop(self.name, self.port, False)
        from urllib.parse import urlsplit

        parts = urlsplit(self.proxy)
        ordinary = {"https": 443, "http": 80}.get(parts.scheme, 1080)
        return Hop(parts.hostname or "", parts.port or ordinary, parts.scheme == "https")

    @property
    def shown_name(self) -> str:
        return f"[{self.name}]" if ":" in self.name else self.name

    @property
    def proxy_fields(self) -> list[tuple[bytes, bytes]]:
        """What a proxy is told with a CONNECT."""
        login = self.proxy_login
        host = (b"host", f"{self.shown_name}:{self.port}".encode("latin-1"))
        return [host, (b"proxy-authorization", login.encode("latin-1"))] if login else [host]

    @property
    def proxy_login(self) -> str:
        return _login(self.proxy)

    @property
    def proxy_credentials(self) -> tuple[str, str] | None:
        """The proxy's user and password."""
        return _credentials(self.proxy)

    @property
    def proxy_host(self) -> str:
        return self.proxy.rpartition("://")[2].rpartition("@")[2].rstrip("/")

    @property
    def first_hop(self) -> str:
        return f"the proxy {self.proxy_host}" if self.proxy else self.host

    @property
    def whole_way(self) -> str:
        return f"{self.host} (through the proxy {self.proxy_host})" if self.proxy else self.host


class PinnedRoute(Route, frozen=True):
    """A route to an address that was checked beforehand: the name is for the server and its certificate, not for finding it.

    Through a proxy it is a tunnel to that address, for http as well: a proxy that is asked for a URL resolves the name itself, and may
    come to another answer than the one that was checked.
    """

    address: str = ""

    @property
    def forwarded(self) -> bool:
        return False

    @property
    def tunnelled(self) -> bool:
        return bool(self.proxy) and not self.by_socks

    @property
    def hop(self) -> Hop:
        return super().hop if self.proxy else Hop(self.address, self.port, False)

    @property
    def shown_name(self) -> str:
        """What a proxy is asked to connect to."""
        return f"[{self.address}]" if ":" in self.address else self.address


def pin(route: Route, address: str) -> Route:
    """The same route to one address alone; as it is where there is none."""
    if not address:
        return route
    return PinnedRoute(route.host, route.tls, route.proxy, route.name, route.port, route.login, address)


def route_to(origin: str, proxy: str | None, kinds: Sequence[str] = HTTP_PROXIES) -> Route:
    """The route to `scheme://host:port`: through `proxy`, or through what the environment says where it is None.

    `kinds` are the proxies that whoever asks can use.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(origin)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
        if host and not host.isascii():
            host = host.encode("idna").decode("ascii")
    except ValueError:  # UnicodeError is one
        scheme = host = port = None
    if scheme not in {"http", "https"} or not host or not _HOST.fullmatch(host):
        raise ConfigError(f"{origin.rpartition('@')[2]!r} is not the address of a server; it should look like https://api.example.com")
    ordinary = 443 if scheme == "https" else 80
    if proxy is None:
        proxy = proxy_from_environment(scheme, host, port or ordinary)
    shown = f"[{host}]" if ":" in host else host
    shown = shown if port in {None, ordinary} else f"{shown}:{port}"
    return Route(shown, scheme == "https", _checked_proxy(proxy, kinds), host, port or ordinary, _login(origin))


def _login(url: str) -> str:
    """The Basic credentials in a URL, as a header says them, or ""."""
    credentials = _credentials(url)
    if credentials is None:
        return ""
    from base64 import b64encode

    return f"Basic {b64encode(':'.join(credentials).encode()).decode()}"


def _credentials(url: str) -> tuple[str, str] | None:
    user_and_password, at, _ = url.rpartition("://")[2].rpartition("@")
    if not at:
        return None
    from urllib.parse import unquote

    user, _, password = user_and_password.partition(":")
    return unquote(user), unquote(password)


# --- proxies ----------------------------------------------------------------------------------------------------------------


def proxy_from_environment(scheme: str, host: str, port: int) -> str:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and ALL_PROXY name for a server, or "" where there is none or NO_PROXY excepts it."""
    proxies = _named_proxies()
    if not proxies and sys.platform in {"darwin", "win32"}:
        return _system_proxy(scheme, host, port)
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    if not proxy or _on_this_machine(host) or _excepted(host, port, proxies.get("no", "")):
        return ""
    return proxy


def _named_proxies() -> dict[str, str]:
    """The environment's proxies by scheme. urllib.request reads them just so, and takes 10 ms to load."""
    named = [(name, name[:-6].lower(), value) for name, value in os.environ.items() if name[-6:].lower() == "_proxy" and len(name) > 6]
    proxies = {scheme: value for _, scheme, value in named if value}
    if "REQUEST_METHOD" in os.environ:
        proxies.pop("http", None)  # in a CGI program HTTP_PROXY is the Proxy header of whoever asks
    for name, scheme, value in named:  # the lower case wins, and may be empty
        if name.endswith("_proxy"):
            proxies.pop(scheme, None)
            if value:
                proxies[scheme] = value
    return proxies


def _excepted(host: str, port: int, exceptions: str) -> bool:
    if exceptions == "*":
        return True
    names = {host.lower(), f"{host.lower()}:{port}"}
    for entry in exceptions.lower().split(","):
        entry = entry.strip().lstrip(".")
        if entry and any(name == entry or name.endswith(f".{entry}") for name in names):
            return True
    return _in_networks(host, exceptions)


def _system_proxy(scheme: str, host: str, port: int) -> str:
    """What the system's own settings say. Only macOS and Windows have any."""
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    return "" if not proxy or _on_this_machine(host) or proxy_bypass(f"{host}:{port}") else proxy


def _checked_proxy(url: str, kinds: Sequence[str]) -> str:
    if not url:
        return ""
    from urllib.parse import urlsplit

    url = url if "://" in url else f"http://{url}"
    scheme = url.partition("://")[0].lower()
    if scheme not in kinds:
        raise ConfigError(f"cannot use a proxy of the kind {scheme}://; {_listed(kinds)} can be used{_way_out(scheme, kinds)}")
    try:
        host, _ = urlsplit(url).hostname, urlsplit(url).port
    except ValueError:
        host = None
    if not host:
        raise ConfigError(
            f"the proxy {url.rpartition('@')[2]!r} is not the address of one; it should look like http://proxy.example.com:8080"
        )
    return url


def _listed(kinds: Sequence[str]) -> str:
    *most, last = [f"{kind}://" for kind in kinds]
    return f"{', '.join(most)} and {last}"


def _way_out(scheme: str, kinds: Sequence[str]) -> str:
    if not scheme.startswith("socks") or "socks5" in kinds:
        return ""
    return "; for SOCKS: pip install 'dragoman[httpx]', and client = \"httpx\" under [http] in the configuration"


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
