"""Which hosts a rule or a list names: `example.org`, with those below it; `example.org:8080`; an address, which has nothing below it.

What refuses or asks covers more than what allows: a host is the same at every port and however its name is written.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

_WEB_PORTS = ("", "80", "443")
"""A name without a port stands for these."""
_URL = re.compile(r"(?:https?:)?//(?P<authority>[^/?#]*)(?P<rest>.*)|(?P<plain>[^/?#]*)(?P<more>.*)", re.IGNORECASE | re.DOTALL)
_NOT_IN_HOST = re.compile(r"[\s@,]")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def is_host(pattern: str) -> bool:
    """Whether it names hosts, and not a page of one, or nothing."""
    parts = _URL.fullmatch(pattern.strip())
    assert parts is not None, "the second half takes anything"
    authority, path = (parts["authority"], parts["rest"]) if parts["authority"] is not None else (parts["plain"], parts["more"])
    host, _ = _split(authority)
    return bool(host) and not path.strip("/") and not _NOT_IN_HOST.search(authority)


def fits_host(pattern: str, name: str, *, is_refusal: bool = False) -> bool:
    """`name`: a host, with its port if that is not one of the web's. `is_refusal`: for rules that refuse or ask."""
    parts = _URL.fullmatch(pattern.strip())
    assert parts is not None, "the second half takes anything"
    authority, path = (parts["authority"], parts["rest"]) if parts["authority"] is not None else (parts["plain"], parts["more"])
    if path.strip("/") and not is_refusal:
        return False  # a page was allowed, and a host is asked for
    host, port = _split(authority)
    asked_host, asked_port = _split(name)
    return _fits_port(port, asked_port, is_refusal) and _fits_name(host, asked_host, is_refusal)


def _split(name: str) -> tuple[str, str]:
    """The host in its one form, and its port; empty if none is named."""
    name = name.strip().lower()
    if name.startswith("["):
        host, _, port = name[1:].partition("]")
        return _plain_address(host), port.removeprefix(":")
    if name.count(":") > 1:  # an address of IPv6 without brackets has no port
        return _plain_address(name), ""
    host, _, port = name.partition(":")
    return _in_ascii(host.strip(".")), port


def _plain_address(text: str) -> str:
    import ipaddress

    try:
        return str(ipaddress.IPv6Address(text))
    except ValueError:
        return ""


def _in_ascii(host: str) -> str:
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return ""


def _fits_port(port: str, asked: str, is_refusal: bool) -> bool:
    if port == "*":
        return True
    if not port:
        return is_refusal or asked in _WEB_PORTS
    return port == asked or (asked == "" and port in _WEB_PORTS)


def _fits_name(pattern: str, host: str, is_refusal: bool) -> bool:
    if pattern == "*":
        return bool(host)
    pattern = pattern.removeprefix("*.")
    if not pattern or not host:
        return False
    if host == pattern:
        return True
    if "*" in pattern:
        return is_refusal and (fnmatchcase(host, pattern) or fnmatchcase(host, f"*.{pattern}"))
    return host.endswith(f".{pattern}") and not is_address(host)


def is_address(host: str) -> bool:
    """What ends in a number is an address, not a name: `0.0.1` names nothing of which 127.0.0.1 is a part."""
    return ":" in host or _NUMBER.fullmatch(host.rpartition(".")[2]) is not None
