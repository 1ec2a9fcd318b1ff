"""The text of a call that needs approval, wrapped to the terminal's width: nothing of it is cut, folded or reordered."""

from __future__ import annotations

import re

from dragoman.base.graphemes import clusters, width_of

CONTINUES = "┆ "
"""Marks the continuation of a wrapped line, so that it cannot pass for a line of its own."""
_LEAST_COLUMNS = 10

MAX_BLANKS = 40
"""A longer run of blanks is named: what follows it may be out of sight."""


def break_line(line: str, columns: int, mark: str = "") -> list[str]:
    """The line in rows of at most so many columns, each with a mark; put together without marks they are the line, tabs as blanks."""
    line = line.expandtabs(8)
    if len(line) + len(mark) < columns and line.isascii():
        return [f"{mark}{line}"]
    rows: list[str] = []
    row, used, room = mark, len(mark), max(columns, _LEAST_COLUMNS) - 1
    for cluster in clusters(line):
        if used + (wide := width_of(cluster)) > room:
            rows.append(row)
            row, used = CONTINUES, len(CONTINUES)
        row += cluster
        used += wide
    return [*rows, row]


def longest_blank(text: str) -> int:
    """How many blanks and line ends follow each other at most."""
    return max((len(run) for run in re.findall(r"[ \t\n]{2,}", text)), default=0)
