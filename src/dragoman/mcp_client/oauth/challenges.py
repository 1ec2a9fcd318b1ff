"""Parses WWW-Authenticate: one header may hold several challenges, each with parameters, and commas separate both."""

from __future__ import annotations

import re
from typing import NamedTuple

MOST_CHARS = 4_000
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rf"\s*(?P<name>{_TOKEN})\s*=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<plain>[^\s,\"]*))\s*(?:,|$)", re.DOTALL)
_SCHEME = re.compile(rf"\s*,*\s*(?P<scheme>{_TOKEN})(?=\s|,|$)")
_TOKEN68 = re.compile(r"\s*[A-Za-z0-9._~+/-]+=*\s*(?:,|$)")


class Challenge(NamedTuple):
    """What a server says about why it refused. Empty where it does not say."""

    resource_metadata: str = ""
    scope: str = ""
    error: str = ""

    @property
    def scopes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.scope.split()))


def read_challenge(header: str) -> Challenge:
    """The first Bearer challenge of a header. What cannot be read is passed over: the header comes from a stranger."""
    for scheme, parameters in parse_challenges(header):
        if scheme == "bearer":
            return Challenge(parameters.get("resource_metadata", ""), parameters.get("scope", ""), parameters.get("error", ""))
    return Challenge()


def parse_challenges(header: str) -> list[tuple[str, dict[str, str]]]:
    """Every challenge: its scheme and its parameters, names in lower case. The first of a repeated parameter counts."""
    text, at = header[:MOST_CHARS], 0
    found: list[tuple[str, dict[str, str]]] = []
    while at < len(text):
        parameter = _PARAMETER.match(text, at) if found else None
        if parameter is not None:
            value = parameter["plain"] if parameter["quoted"] is None else re.sub(r"\\(.)", r"\1", parameter["quoted"], flags=re.DOTALL)
            found[-1][1].setdefault(parameter["name"].lower(), value)
            at = parameter.end()
        elif (scheme := _SCHEME.match(text, at)) is not None:
            found.append((scheme["scheme"].lower(), {}))
            at = scheme.end()
        elif found and (token := _TOKEN68.match(text, at)) is not None and token.end() > at:
            at = token.end()
        else:
            at += 1
    return found
