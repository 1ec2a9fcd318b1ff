"""Which web addresses may be fetched: a URL read strictly, a host checked by name and by every address it has.

Protection against SSRF: a model may be tricked into asking for URLs, and this machine reaches places that strangers do not (itself, the
local network, a cloud's metadata service). Only public addresses are fetched, unless the user allows a host.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import quote

import msgspec

from dragoman.base.text import clip
from dragoman.base.visible import escape_hidden
from dragoman.tools.web import HostRules
from dragoman.tools.workspace import ToolRefusal

MAX_URL_CHARS = 8_000
WEB_PORTS = (80, 443)
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<slashes>//)?(?P<authority>[^/?#]*)(?P<rest>[^#]*)(?:#.*)?", re.DOTALL)
_PORT = re.compile(r"[0-9]{1,5}")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LOCAL_DOMAINS = frozenset({"corp", "home", "internal", "intranet", "lan", "local", "localdomain", "localhost", "private"})
"""Top-level domains that only exist in a local network or on one machine."""


class Target(msgspec.Struct, frozen=True):
    """A parsed URL whose form is allowed."""

    url: str
    """As sent: without fragment, the host in ASCII."""
    host: str
    port: int
    address: str = ""
    """Set if the host is an IP address and not a name."""

    @property
    def name(self) -> str:
        """The host as written in rules and lists, with its port unless that is 80 or 443."""
        bracketed = f"[{self.host}]" if ":" in self.host else self.host
        return bracketed if self.port in WEB_PORTS else f"{bracketed}:{self.port}"


Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The IP addresses of a host, as text. Raises OSError if there are none."""


async def system_resolve(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


# --- URLs --------------------------------------------------------------------------------------------------------------------


def read_url(url: str) -> Target:
    """Raises ToolRefusal for anything but a plain http or https URL. Nothing is looked up.

    Parsed strictly: what other programs skip or repair (white space, backslashes, a percent-encoded host) is refused.
    """
    shown = escape_hidden(url, one_line=True)
    shown = repr(clip(shown, 200))
    if len(url) > MAX_URL_CHARS:
        raise ToolRefusal(f"the URL {shown} is longer than {MAX_URL_CHARS:,} characters", "invalid")
    if any(char <= " " or char in "\\\x7f" or "\x80" <= char <= "\xa0" or "\ud800" <= char <= "\udfff" for char in url):
        raise ToolRefusal(f"the URL {shown} holds white space, a backslash or a control character: percent-encode it", "invalid")
    parts = _URL.fullmatch(url)
    if parts is None or not parts["slashes"]:
        raise ToolRefusal(f"{shown} is not a whole URL: it must begin with https:// or http://", "invalid")
    scheme, authority = parts["scheme"].lower(), parts["authority"]
    if scheme not in ("http", "https"):
        raise ToolRefusal(f"{scheme}: URLs are not fetched: only https and http", "invalid")
    if "@" in authority:
        raise ToolRefusal(f"the URL {shown} has a user name before its host: leave it out", "invalid")
    name, port = _split_authority(authority, shown)
    host, address = _read_host(name, shown)
    default = 443 if scheme == "https" else 80
    number = int(port) if port else default
    if not 1 <= number <= 65535:
        raise ToolRefusal(f"the URL {shown} has no valid port", "invalid")
    bracketed = f"[{host}]" if ":" in host else host
    at = bracketed if number == default else f"{bracketed}:{number}"
    return Target(f"{scheme}://{at}{_encode_path(parts['rest'])}", host, number, address)


def _split_authority(authority: str, shown: str) -> tuple[str, str]:
    """Host and port."""
    if authority.startswith("["):
        name, bracket, port = authority.partition("]")
        if not bracket or (port and not (port.startswith(":") and _PORT.fullmatch(port[1:]))):
            raise ToolRefusal(f"the URL {shown} has no valid host", "invalid")
        return name + bracket, port[1:]
    name, colon, port = authority.partition(":")
    if colon and not _PORT.fullmatch(port):
        raise ToolRefusal(f"the URL {shown} has no valid port", "invalid")
    return name, port


def _read_host(name: str, shown: str) -> tuple[str, str]:
    """The host in ASCII, and its IP address if it is one, else empty."""
    invalid = ToolRefusal(f"the URL {shown} has no valid host", "invalid")
    if name.startswith("["):
        try:
            address = str(ipaddress.IPv6Address(name[1:-1]))
        except ValueError:
            raise invalid from None
        if "%" in name:
            raise invalid
        return address, address
    host = name
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii") if len(host) <= 253 else ""
        except UnicodeError:
            raise invalid from None
    host = host.lower().removesuffix(".")
    labels = host.split(".")
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise invalid
    if not _NUMBER.fullmatch(labels[-1]):
        return host, ""
    # A host that ends in a number is an address, and programs disagree on the odd forms (0x7f.1, 2130706433, ０).
    try:
        address = str(ipaddress.IPv4Address(host)) if name.isascii() else ""
    except ValueError:
        address = ""
    if not address:
        raise ToolRefusal(f"the URL {shown} has an address in an odd form for its host: write it as four plain numbers", "invalid")
    return address, address


def _encode_path(rest: str) -> str:
    rest = rest if rest.startswith("/") else f"/{rest}"
    if rest.isascii():
        return rest

    return quote(rest, safe="/?:@!$&'()*+,;=%[]|~\"<>^`{}")


# --- hosts -------------------------------------------------------------------------------------------------------------------


def rule_matches(rule: str, host: str) -> bool:
    """Whether a host matches, by whole labels: `python.org` matches docs.python.org but not notpython.org. An address: itself only."""
    rule = rule.strip().lower().removeprefix("*.").strip("[]").removesuffix(".")
    if not rule:
        return False
    if not rule.isascii():
        try:
            rule = rule.encode("idna").decode("ascii")
        except UnicodeError:
            return False
    if host == rule:
        return True
    return host.endswith(f".{rule}") and not _NUMBER.fullmatch(host.rpartition(".")[2]) and ":" not in host


def is_allowed(target: Target, rules: HostRules) -> bool:
    """Whether the user has allowed the host, wherever it is. Raises ToolRefusal for hosts refused by name. No DNS lookup."""
    host = target.host
    if any(rule_matches(rule, host) for rule in rules.allowed):
        return True
    if rules.only and not any(rule_matches(rule, host) for rule in rules.only):
        raise ToolRefusal(f"{host} is not among the hosts that may be fetched: {', '.join(rules.only)}", "forbidden_host")
    labels = host.split(".")
    if target.address:
        _require_public(host, target.address)
    elif len(labels) == 1 or labels[-1] in _LOCAL_DOMAINS or labels[-2:] == ["home", "arpa"]:
        raise ToolRefusal(f"{host} is a name of this machine or the local network, which is not fetched{_HINT}", "forbidden_address")
    return False


async def addresses_to_fetch(target: Target, rules: HostRules, resolve: Resolve) -> Sequence[str]:
    """The checked addresses a target may be fetched from. Empty for an allowed host, which is connected to by name.

    Raises ToolRefusal. A name is resolved once; a single non-public address is enough to refuse it.
    """
    if is_allowed(target, rules):
        return ()
    if target.address:
        return (target.address,)
    try:
        found = await resolve(target.host, target.port)
    except (OSError, UnicodeError):
        found = ()
    if not found:
        raise ToolRefusal(f"{target.host} could not be found: there is no address for it", "not_found")
    for address in found:
        _require_public(target.host, address)
    return found


_HINT = "; the user can allow it in the settings"


def _require_public(host: str, address: str) -> None:
    if kind := non_public_kind(address):
        leads = "is" if host == address else "leads to"
        raise ToolRefusal(f"{host} {leads} {kind}, which is not fetched{_HINT}", "forbidden_address")


# --- addresses -----------------------------------------------------------------------------------------------------------------

_V4 = tuple(
    (ipaddress.IPv4Network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", "a private network"),
        ("100.64.0.0/10", "a carrier's private network"),
        ("127.0.0.0/8", "this machine"),
        ("168.63.129.16/32", "a cloud's own service"),  # a public number, but Azure's own service inside every machine there
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private network"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "a reserved address"),
        ("192.88.99.0/24", "a reserved address"),
        ("192.168.0.0/16", "a private network"),
        ("198.18.0.0/15", "a private network"),
        ("198.51.100.0/24", "a reserved address"),
        ("203.0.113.0/24", "a reserved address"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
)
_V6 = tuple(
    (ipaddress.IPv6Network(network), kind)
    for network, kind in (
        ("::/128", "an unspecified address"),
        ("::1/128", "this machine"),
        ("fc00::/7", "a private network"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a private network"),
        ("ff00::/8", "a multicast address"),
        ("2001::/23", "a reserved address"),  # includes Teredo, which embeds another address
        ("2001:db8::/32", "a reserved address"),
        ("3fff::/20", "a reserved address"),
    )
)
_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")
_HOLDING_V4 = (
    (ipaddress.IPv6Network("::ffff:0:0/96"), 0),
    (ipaddress.IPv6Network("64:ff9b::/96"), 0),
    (ipaddress.IPv6Network("2002::/16"), 80),
)
"""IPv6 ranges that embed an IPv4 address, and how many bits follow it: mapped, NAT64, 6to4."""
_ISATAP = (0x00005EFE, 0x02005EFE)


def non_public_kind(address: str) -> str:
    """What kind of non-public address this is; empty if it is public. An unreadable address counts as non-public."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "something that is no address"
    if isinstance(parsed, ipaddress.IPv4Address):
        return next((kind for network, kind in _V4 if parsed in network), "")
    for network, behind in _HOLDING_V4:
        if parsed in network:
            return non_public_kind(str(ipaddress.IPv4Address(int(parsed) >> behind & 0xFFFF_FFFF)))
    if kind := next((kind for network, kind in _V6 if parsed in network), ""):
        return kind
    if parsed not in _PUBLIC_V6:
        return "a reserved address"
    if int(parsed) >> 32 & 0xFFFF_FFFF in _ISATAP:
        return non_public_kind(str(ipaddress.IPv4Address(int(parsed) & 0xFFFF_FFFF)))
    return ""
