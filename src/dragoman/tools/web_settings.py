"""What the user may set of the web: which hosts, and how much. Values alone: whoever reads a configuration loads nothing else with them."""

from __future__ import annotations

import msgspec


class HostRules(msgspec.Struct, frozen=True):
    """What the user says of hosts. A rule is a host or a domain: it holds for the name itself and for all beneath it."""

    allowed: tuple[str, ...] = ()
    """These may be fetched wherever they are: in the local network, on this machine."""
    only: tuple[str, ...] = ()
    """Where there are any, nothing but these and the allowed ones is fetched."""


class FetchLimits(msgspec.Struct, frozen=True):
    total_s: float = 30.0
    max_bytes: int = 10_000_000
    """Of the body, its compression undone."""
    max_redirects: int = 5


NO_RULES = HostRules()
LIMITS = FetchLimits()
