"""A unified diff, as our tools show it, as pieces of files before and after. The record keeps the diff alone, so a session that is loaded
shows the same as one that is watched."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dragoman.acp.outgoing import DiffPart, Location

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")
NO_NEWLINE = "\\ No newline at end of file"


def read_diff(text: str, path: str) -> tuple[list[DiffPart], list[Location]]:
    """A part and a place for each hunk; none where the text holds no diff. `path`: of the file that it changes, absolute."""
    lines = text.split("\n")
    start = next((at for at, line in enumerate(lines) if line.startswith("--- ")), None)
    if start is None or start + 1 >= len(lines) or not lines[start + 1].startswith("+++ "):
        return [], []
    is_new = lines[start] == "--- /dev/null"
    parts, places = list[DiffPart](), list[Location]()
    for first_line, hunk in _hunks(lines[start + 2 :]):
        old, new = _side(hunk, "-"), _side(hunk, "+")
        parts.append(DiffPart(path, new, None if is_new else old))
        places.append(Location(path, max(first_line + _lines_before_change(hunk), 1)))
    return parts, places


def _hunks(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The line of the new file that each begins on, and its lines."""
    first_line, hunk, has_begun = 0, list[str](), False
    for line in lines:
        if begins := _HUNK.fullmatch(line):
            if hunk:
                yield first_line, hunk
            first_line, hunk, has_begun = int(begins[1]), list[str](), True  # of a file that is emptied: line 0
        elif has_begun and line[:1] in ("+", "-", " ", "\\"):
            hunk.append(line)
        elif has_begun:
            break  # what follows is no diff: a note that it was cut
    if hunk:
        yield first_line, hunk


def _side(hunk: list[str], sign: str) -> str:
    """The hunk as it was, or as it is."""
    kept: list[str] = []
    for line in hunk:
        if line == NO_NEWLINE:
            continue
        if line[:1] in (sign, " "):
            kept.append(f"{line[1:]}\n")
    text = "".join(kept)
    return text.removesuffix("\n") if _ends_without_newline(hunk, sign) else text


def _ends_without_newline(hunk: list[str], sign: str) -> bool:
    last = ""
    for at, line in enumerate(hunk):
        if line != NO_NEWLINE and line[:1] in (sign, " "):
            last = hunk[at + 1] if at + 1 < len(hunk) else ""
    return last == NO_NEWLINE


def _lines_before_change(hunk: list[str]) -> int:
    return next((at for at, line in enumerate(hunk) if line[:1] in ("+", "-")), 0)
