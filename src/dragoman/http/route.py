"""The route to a server: its host, whether TLS is used, and the proxy in between."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from base64 import b64encode
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from dragoman.values.errors import ConfigError
from dragoman.words import say

_HOST = re.compile(r"[0-9A-Za-z._~!$&'()*+,;=%:-]+")
HTTP_PROXIES = ("http", "https")
SOCKS_PROXIES = ("socks5", "socks5h")
"""URL schemes of proxies. Our own client only supports HTTP proxies."""


class Hop(NamedTuple):
    """Where the TCP connection goes."""

    name: str
    port: int
    tls: bool


class Route(msgspec.Struct, frozen=True):
    """Where a request goes, and through which proxy."""

    host: str
    """As in the Host header and in messages: without user, password or default port."""
    tls: bool
    proxy: str = ""
    """The proxy's URL with its credentials: for connecting, never for display."""
    name: str = ""
    port: int = 0
    login: str = ""
    """The Authorization header for the URL's user and password."""

    def __repr__(self) -> str:
        return f"Route({self.host!r}, tls={self.tls}, proxy={self.proxy_host!r})"

    @property
    def key(self) -> tuple[str, ...]:
        """Routes with the same key can share connections."""
        return ("", self.proxy) if self.is_forwarded else ("tls" if self.tls else "tcp", self.name, str(self.port), self.proxy)

    @property
    def is_forwarded(self) -> bool:
        """Whether the proxy itself is sent the whole URL."""
        return bool(self.proxy) and not self.tls and not self.is_socks

    @property
    def is_tunnelled(self) -> bool:
        """Whether the proxy is asked for a tunnel (HTTP CONNECT)."""
        return bool(self.proxy) and self.tls and not self.is_socks

    @property
    def is_socks(self) -> bool:
        return self.proxy.lower().startswith("socks")

    @property
    def hop(self) -> Hop:
        if not self.proxy:
            return Hop(self.name, self.port, False)

        parts = urlsplit(self.proxy)
        ordinary = {"https": 443, "http": 80}.get(parts.scheme, 1080)
        return Hop(parts.hostname or "", parts.port or ordinary, parts.scheme == "https")

    @property
    def bracketed_name(self) -> str:
        return f"[{self.name}]" if ":" in self.name else self.name

    @property
    def proxy_fields(self) -> list[tuple[bytes, bytes]]:
        """The header fields of a CONNECT request."""
        login = self.proxy_login
        host = (b"host", f"{self.bracketed_name}:{self.port}".encode("latin-1"))
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
    def full_route(self) -> str:
        return f"{self.host} (through the proxy {self.proxy_host})" if self.proxy else self.host


class PinnedRoute(Route, frozen=True):
    """A route to an address that was checked beforehand: the name is used for the Host header and TLS, not resolved again.

    Through a proxy it is a tunnel to that address, even for http: a proxy that is sent a URL resolves the name itself, and may get
    another address than the one that was checked.
    """

    address: str = ""

    @property
    def is_forwarded(self) -> bool:
        return False

    @property
    def is_tunnelled(self) -> bool:
        return bool(self.proxy) and not self.is_socks

    @property
    def hop(self) -> Hop:
        return super().hop if self.proxy else Hop(self.address, self.port, False)

    @property
    def bracketed_name(self) -> str:
        """The host a proxy is asked to connect to."""
        return f"[{self.address}]" if ":" in self.address else self.address


def pin(route: Route, address: str) -> Route:
    """The route pinned to one address; unchanged if the address is empty."""
    if not address:
        return route
    return PinnedRoute(route.host, route.tls, route.proxy, route.name, route.port, route.login, address)


def route_to(origin: str, proxy: str | None, kinds: Sequence[str] = HTTP_PROXIES) -> Route:
    """The route to `scheme://host:port`: through `proxy`, or through the proxy of the environment if it is None.

    `kinds` are the proxy schemes the client supports.
    """
    try:
        parts = urlsplit(origin)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
        if host and not host.isascii():
            host = host.encode("idna").decode("ascii")
    except ValueError:  # UnicodeError is one
        scheme = host = port = None
    if scheme not in {"http", "https"} or not host or not _HOST.fullmatch(host):
        raise ConfigError(say("http.not_an_address", address=origin.rpartition("@")[2]))
    ordinary = 443 if scheme == "https" else 80
    if proxy is None:
        proxy = proxy_from_environment(scheme, host, port or ordinary)
    shown = f"[{host}]" if ":" in host else host
    shown = shown if port in {None, ordinary} else f"{shown}:{port}"
    return Route(shown, scheme == "https", _check_proxy(proxy, kinds), host, port or ordinary, _login(origin))


def _login(url: str) -> str:
    """The credentials in a URL as the value of a Basic Authorization header, or ""."""
    credentials = _credentials(url)
    if credentials is None:
        return ""

    return f"Basic {b64encode(':'.join(credentials).encode()).decode()}"


def _credentials(url: str) -> tuple[str, str] | None:
    user_and_password, at, _ = url.rpartition("://")[2].rpartition("@")
    if not at:
        return None

    user, _, password = user_and_password.partition(":")
    return unquote(user), unquote(password)


# --- proxies ----------------------------------------------------------------------------------------------------------------


def proxy_from_environment(scheme: str, host: str, port: int) -> str:
    """The proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY set for a server; "" if there is none or NO_PROXY excludes the server."""
    proxies = _proxies_from_environment()
    if not proxies and sys.platform in {"darwin", "win32"}:
        return _system_proxy(scheme, host, port)
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    if not proxy or is_loopback(host) or _is_excepted(host, port, proxies.get("no", "")):
        return ""
    return proxy


def _proxies_from_environment() -> dict[str, str]:
    """The environment's proxies by scheme. Same as urllib.request, which takes 10 ms to import."""
    named = [(name, name[:-6].lower(), value) for name, value in os.environ.items() if name[-6:].lower() == "_proxy" and len(name) > 6]
    proxies = {scheme: value for _, scheme, value in named if value}
    if "REQUEST_METHOD" in os.environ:
        proxies.pop("http", None)  # in a CGI program HTTP_PROXY is the client's Proxy header
    for name, scheme, value in named:  # lower case takes precedence, even if empty
        if name.endswith("_proxy"):
            proxies.pop(scheme, None)
            if value:
                proxies[scheme] = value
    return proxies


def _is_excepted(host: str, port: int, exceptions: str) -> bool:
    if exceptions == "*":
        return True
    names = {host.lower(), f"{host.lower()}:{port}"}
    for entry in exceptions.lower().split(","):
        entry = entry.strip().lstrip(".")
        if entry and any(name == entry or name.endswith(f".{entry}") for name in names):
            return True
    return _is_in_networks(host, exceptions)


def _system_proxy(scheme: str, host: str, port: int) -> str:
    """The proxy from the system settings. Only macOS and Windows have them."""
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    return "" if not proxy or is_loopback(host) or proxy_bypass(f"{host}:{port}") else proxy


def _check_proxy(url: str, kinds: Sequence[str]) -> str:
    if not url:
        return ""

    url = url if "://" in url else f"http://{url}"
    scheme = url.partition("://")[0].lower()
    if scheme not in kinds:
        raise ConfigError(say("http.proxy_kind", scheme=scheme, kinds=_list_kinds(kinds), hint=_socks_hint(scheme, kinds)))
    try:
        host, _ = urlsplit(url).hostname, urlsplit(url).port
    except ValueError:
        host = None
    if not host:
        raise ConfigError(say("http.not_a_proxy", address=url.rpartition("@")[2]))
    return url


def _list_kinds(kinds: Sequence[str]) -> str:
    return ", ".join(f"{kind}://" for kind in kinds)


def _socks_hint(scheme: str, kinds: Sequence[str]) -> str:
    if not scheme.startswith("socks") or "socks5" in kinds:
        return ""
    return say("http.proxy_kind_socks")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine. A remote proxy cannot reach it: most tools go there without one; curl does not."""
    return host == "localhost" or host.endswith(".localhost") or _is_in_networks(host, "127.0.0.0/8,::1")


def _is_in_networks(host: str, entries: str) -> bool:
    """Whether an IP address is in one of the comma-separated addresses and networks. The standard library only compares names."""
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
