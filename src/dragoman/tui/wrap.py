"""Lays a line out to a width: rows are broken between words, and every row fits. Only a word that is wider than a whole row is cut.

Two ways. `wrap` is for sentences: the blanks at a break are left out, so that the rows give the words back when they are copied.
`wrap_code` is for code and output, where every blank counts: the rows joined are the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dragoman.base import graphemes
from dragoman.base.graphemes import clusters, unbroken_parts, width, width_of
from dragoman.tui.line import EMPTY, Line, Span, columns_of, line, plain

LEAST_TEXT_COLUMNS = 8
"""With less room than this beside it, a prefix is left out."""
CODE_MARK = "↪ "
"""Before what continues a line of code, in the place of its indent."""

_MOST_CHARS = 16
"""Code points in a column of a readable line. What has more is cut."""
_PIECE = re.compile(r" +|[^ ]+")


def wrap(text: Line, columns: int, first: Line = EMPTY, rest: Line | None = None) -> list[Line]:
    """The line in rows of at most so many columns. `first` stands before the first row, `rest` before the others: by default as many
    blanks. Both take the room of the wider one."""
    first, rest, room = _prefixes(columns, first, rest)
    joined = plain(text)
    if len(joined) <= room and joined.isascii() and joined[-1:] != " ":
        return [first + text]
    return _sliced(text, _breaks(joined, room), first, rest)


def wrap_parts(text: str, columns: int, gap: str, style: str = "") -> list[Line]:
    """Parts with a gap between them, such as keys with what they do: no part is broken that fits into a row."""
    rows: list[str] = []
    for part in text.split(gap):
        if rows and width(f"{rows[-1]}{gap}{part}") <= columns:
            rows[-1] += f"{gap}{part}"
        else:
            rows.append(part)
    return [row for each in rows for row in wrap(line(each, style), columns)]


def flow(text: Line, columns: int, first: Line = EMPTY, rest: Line | None = None) -> tuple[list[Line], Line]:
    """As `wrap`, for a text that is not at its end: the rows that stay as they are whatever follows, and what is not in them."""
    first, rest, room = _prefixes(columns, first, rest)
    joined = plain(text)
    if len(joined) <= room and joined.isascii():
        return [], text
    ranges = list(_breaks(joined, room))
    if len(ranges) < 2:
        return [], text
    return _sliced(text, iter(ranges[:-1]), first, rest), _slice(text, ranges[-1][0], len(joined))


def wrap_code(text: Line, columns: int, first: Line = EMPTY, rest: Line | None = None) -> list[Line]:
    """As `wrap`, but nothing is left out: blanks at a break stay at the end of their row, or begin the next one."""
    first, rest, room = _prefixes(columns, first, rest)
    joined = plain(text)
    if len(joined) <= room and joined.isascii():
        return [first + text]
    return _sliced(text, _cuts(joined, room), first, rest)


def fit(text: Line, columns: int) -> Line:
    """The line cut to so many columns, ending in `…` where something was left out. A word is left out whole, unless it is the first."""
    joined = plain(text)
    if len(joined) <= columns and joined.isascii():
        return text
    if columns <= 0:
        return EMPTY
    start = joined[: columns * _MOST_CHARS + 1]  # enough to fill the row, however long the line is
    if len(start) == len(joined) and graphemes.width(joined) <= columns:
        return text
    shown = graphemes.fit(start, columns)
    kept = _slice(text, 0, len(shown) - 1)
    return (*kept, Span("…", kept[-1].style if kept else ""))


def spread(left: Line, right: Line, columns: int) -> Line:
    """One row with `right` at its end. Where both do not fit, `right` gives way, and then the left is cut."""
    used, end = columns_of(left), columns_of(right)
    if not end or used + 2 + end > columns:
        return fit(left, columns)
    return (*left, Span(" " * (columns - used - end)), *right)


def beside(left: Line, right: Line, columns: int) -> Line:
    """One row with `right` at its end. The left is cut where both do not fit, as long as half of the row is its own."""
    room = columns - columns_of(right) - 2
    return spread(fit(left, room) if room >= columns // 2 else left, right, columns)


def pad(text: Line, columns: int, style: str = "") -> Line:
    """The line with blanks up to so many columns."""
    missing = columns - columns_of(text)
    return (*text, Span(" " * missing, style)) if missing > 0 else text


def _prefixes(columns: int, first: Line, rest: Line | None) -> tuple[Line, Line, int]:
    taken = columns_of(first) if first else 0
    rest = (Span(" " * taken),) if rest is None and taken else rest or EMPTY
    taken = max(taken, columns_of(rest))
    if taken and columns - taken < LEAST_TEXT_COLUMNS:
        return EMPTY, EMPTY, max(columns, 2)
    return first, rest, max(columns - taken, 2)


def _breaks(text: str, room: int) -> Iterator[tuple[int, int]]:
    """Where each row starts and ends. Blanks between two rows belong to neither."""
    start = end = used = 0
    blanks = 0
    for piece, size in _pieces(text, room):
        at = end + blanks
        if piece[0] == " ":
            blanks = size
            continue
        if used + blanks + size > room and (used or blanks):
            if used:
                yield start, end
            start, used, blanks = at, 0, 0
        used += blanks + size
        end, blanks = at + len(piece), 0
    if end > start or not text.strip(" "):
        yield start, end


def _cuts(text: str, room: int) -> Iterator[tuple[int, int]]:
    """Where each row starts and ends, without a gap between them."""
    start = end = used = 0
    for piece, size in _pieces(text, room):
        while piece[0] == " " and used + size > room:  # blanks may be parted anywhere
            taken = room - used
            yield start, end + taken
            start = end = end + taken
            piece, size, used = piece[taken:], size - taken, 0
            if not piece:
                break
        if not piece:
            continue
        if used and used + size > room:
            yield start, end
            start, used = end, 0
        used += size
        end += len(piece)
    if end > start or not text:
        yield start, end


def _pieces(text: str, room: int) -> Iterator[tuple[str, int]]:
    """Runs of blanks, and what is not broken between them, each with its columns. What is wider than a row comes in parts that fit one."""
    for found in _PIECE.finditer(text):
        piece = found.group()
        if piece[0] == " ":
            yield piece, len(piece)
        elif piece.isascii():
            for at in range(0, len(piece), room):
                part = piece[at : at + room]
                yield part, len(part)
        else:
            for part in unbroken_parts(piece):
                yield from _parts(part, room)


def _parts(word: str, room: int) -> Iterator[tuple[str, int]]:
    if len(word) == 1 or (size := graphemes.width(word)) <= room:
        yield word, width_of(word) if len(word) == 1 else size
        return
    start = end = used = 0
    for cluster in _fitting(word, room):
        size = width_of(cluster)
        if used and used + size > room:
            yield word[start:end], used
            start, used = end, 0
        end += len(cluster)
        used += size
    yield word[start:end], used


def _fitting(word: str, room: int) -> Iterator[str]:
    """The characters, those with more marks than a row holds in pieces."""
    for cluster in clusters(word):
        if width_of(cluster) <= room:
            yield cluster
        else:
            yield from cluster


def _sliced(text: Line, ranges: Iterator[tuple[int, int]], first: Line, rest: Line) -> list[Line]:
    rows: list[Line] = []
    number = at = 0  # the piece of the line that is reached, and where it starts
    for start, end in ranges:
        row: list[Span] = list(rest if rows else first)
        while number < len(text) and at < end:
            span = text[number]
            part = span.text[max(start - at, 0) : end - at]
            if part:
                row.append(Span(part, span.style))
            if at + len(span.text) > end:
                break
            at += len(span.text)
            number += 1
        rows.append(tuple(row))
    return rows or [first]


def _slice(text: Line, start: int, end: int) -> Line:
    return _sliced(text, iter([(start, end)]), EMPTY, EMPTY)[0]
