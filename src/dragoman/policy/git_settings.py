"""Reads a file of git's settings strictly: what could be read in two ways is an error, for its author would choose the other.

git ends a line at a newline and at nothing else, and several sections may stand in one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_SECTION = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\][ \t]*(.*)', re.DOTALL)
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?", re.DOTALL)


class Setting(NamedTuple):
    section: str
    inner: str
    """The name in quotes behind the section's; empty if there is none."""
    key: str
    value: str


def read_settings(text: str) -> Iterator[Setting]:
    """Names of sections and keys in lower case. Raises ValueError with the line that is not read."""
    section, inner = "", ""
    for line in text.split("\n"):
        rest = line.strip(" \t\r")
        while header := _SECTION.fullmatch(rest):
            section, inner, rest = header[1].lower(), header[2] or "", header[3]
        if not rest or rest[0] in "#;":
            continue
        key = _KEY.fullmatch(rest)
        if key is None or rest.endswith("\\"):
            raise ValueError(rest)
        yield Setting(section, inner, key[1].lower(), key[2] or "")
