"""Which URLs may be used for signing in: https, or this machine; and no address in a private network that a public server names.

A server says where its metadata is, its metadata who the issuer is, the issuer where its endpoints are. Each of them could point at what
only this machine reaches (a router, a cloud's metadata service): only a server that is itself inside may do that.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from urllib.parse import urlsplit

from dragoman.base.text import clip
from dragoman.base.visible import escape_hidden
from dragoman.http.route import is_loopback, route_to
from dragoman.values.errors import ConnectionFailed, Unauthorized
from dragoman.words import say

MOST_CHARS = 8_000
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\<>\"`{}|^]")
_LOCAL_NAMES = (".local", ".internal", ".localhost", ".lan", ".home", ".corp", ".intranet")


def check_url(url: str, *, what: str) -> str:
    """The same URL. Raises Unauthorized if it is not a plain https URL, or http on this machine. Nothing is looked up."""
    shown = show(url)
    if len(url) > MOST_CHARS or _FORBIDDEN.search(url):
        raise Unauthorized(say("mcp_auth.bad_url", what=what, url=shown))
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise Unauthorized(say("mcp_auth.bad_url", what=what, url=shown)) from None
    if not host or "@" in parts.netloc or parts.fragment or url.endswith("#"):
        raise Unauthorized(say("mcp_auth.bad_url", what=what, url=shown))
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)):
        return url
    raise Unauthorized(say("mcp_auth.not_https", what=what, url=shown))


def origin_of(url: str) -> str:
    """Scheme, host and port, so that two URLs can be compared: in lower case, without a default port."""
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme.lower(), 0)
    return f"{parts.scheme.lower()}://{(parts.hostname or '').lower()}:{port}"


def covers(resource: str, url: str) -> bool:
    """Whether a token for this resource is meant for the server at this URL: the same origin, and its path or one above it."""
    wanted, path = (urlsplit(each).path.rstrip("/") for each in (resource, url))
    return origin_of(resource) == origin_of(url) and (path == wanted or path.startswith(f"{wanted}/"))


def canonical(url: str) -> str:
    """A server's URL as its name for issuers: without query, fragment, and a slash that stands for nothing."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    bracketed = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port and parts.port != {"https": 443, "http": 80}.get(parts.scheme.lower()) else ""
    path = "" if parts.path == "/" else parts.path
    return f"{parts.scheme.lower()}://{bracketed}{port}{path}"


def is_inside(url: str) -> bool:
    """Whether a host is, by its name alone, on this machine or in a network of its own."""
    host = (urlsplit(url).hostname or "").lower().rstrip(".")
    return is_loopback(host) or ("." not in host and ":" not in host) or host.endswith(_LOCAL_NAMES) or not _is_public(host, unknown=True)


async def is_server_inside(url: str) -> bool:
    """The same, for the server that the user has configured: its addresses count too. On this machine it is only by name."""
    if is_inside(url):
        return True
    try:
        addresses = await _addresses(url)
    except OSError:
        return False
    return bool(addresses) and not any(_is_public(each, unknown=False) or is_loopback(each) for each in addresses)


async def find_address(url: str, *, inside: bool) -> str:
    """The address to connect to, checked; empty where any will do (`inside`), or a proxy looks the name up.

    Raises Unauthorized if the host is inside a network and `inside` is False. The address is what is connected to afterwards: a name that
    resolves to something else a moment later changes nothing.
    """
    if inside:
        return ""
    host = urlsplit(url).hostname or ""
    refused = Unauthorized(say("mcp_auth.inside", host=show(host)))
    if is_inside(url):
        raise refused
    try:
        addresses = await _addresses(url)
    except OSError as error:
        raise ConnectionFailed(say("mcp_auth.no_address", host=show(host), reason=error.strerror or str(error))) from error
    if not all(_is_public(each, unknown=False) for each in addresses):
        raise refused
    return addresses[0] if addresses else ""


async def _addresses(url: str) -> list[str]:
    """The addresses of a host; empty if a proxy resolves the name. Raises OSError."""
    parts = urlsplit(url)
    if route_to(f"{parts.scheme}://{parts.netloc}", None).proxy:
        return []
    found = await asyncio.get_running_loop().getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


def show(text: str, most: int = 200) -> str:
    """A text of a stranger, for a message: on one line, nothing hidden in it, not long, and no query: secrets stand there."""
    return clip(escape_hidden(text.partition("?")[0], one_line=True), most)


def _is_public(host: str, *, unknown: bool) -> bool:
    """`unknown` is the answer for a name."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return unknown
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_global) and not mapped.is_multicast
