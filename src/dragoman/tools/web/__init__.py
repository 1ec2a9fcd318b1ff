"""The web: searching, with markers where the support ends, and reading one page, never from the user's own network.

Here are its settings, values only: reading the configuration imports nothing else.
"""

from __future__ import annotations

import msgspec


class HostRules(msgspec.Struct, frozen=True):
    """The user's rules for hosts. A rule is a host or a domain: it matches the name itself and all subdomains."""

    allowed: tuple[str, ...] = ()
    """May be fetched even in the local network or on this machine."""
    only: tuple[str, ...] = ()
    """If not empty, only these and the allowed ones are fetched."""


class FetchLimits(msgspec.Struct, frozen=True):
    total_s: float = 30.0
    max_bytes: int = 10_000_000
    """Of the decompressed body."""
    max_redirects: int = 5


NO_RULES = HostRules()
LIMITS = FetchLimits()
