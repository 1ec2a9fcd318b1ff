"""Finds the line of a key in TOML text, for error messages: tomllib reports values without their positions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_HEADER = re.compile(r"\s*\[\[?\s*(.+?)\s*\]\]?\s*(?:#.*)?\Z")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_WORD = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


def line_of(text: str, path: Sequence[str]) -> int:
    """The line of a key, counted from 1; else of the closest table that contains it; 0 if none is found.

    `*` in the path matches any key.
    """
    best = depth = 0
    for line, found in _keys(text):
        common = _common(found, path)
        holds_it = common == len(found)
        is_in_it = common == len(path)  # a table may have no header of its own
        if common > depth and (holds_it or is_in_it):
            best, depth = line, common
    return best


def place_of_fault(path: str, error: Exception) -> str:
    """File and line of what tomllib could not read."""
    found = re.search(r"at line (\d+)", str(error))
    return f"{path}:{found[1]}" if found else path


def _keys(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Every key and table header with its line."""
    table: tuple[str, ...] = ()
    open_string = ""
    for number, line in enumerate(text.splitlines(), 1):
        inside = open_string
        for mark in ('"""', "'''"):
            if open_string in ("", mark) and line.count(mark) % 2:
                open_string = "" if open_string else mark
        if inside:
            continue
        if header := _HEADER.match(line):
            table = _path(header.group(1))
            yield number, table
        elif key := _KEY.match(line):
            yield number, table + _path(key.group(1))


def _path(dotted: str) -> tuple[str, ...]:
    return tuple(word.strip("\"'") for word in _WORD.findall(dotted))


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if right not in (left, "*"):
            break
        count += 1
    return count
