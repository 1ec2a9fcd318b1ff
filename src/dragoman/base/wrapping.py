"""Lays text out to a width: lines are broken between words, and what is continued stands under where it began.

A terminal breaks a long line wherever it ends, in the middle of a word too. Only a word that is wider than the whole line is cut here.
Columns are counted as a terminal shows them, and escape sequences for styles take none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple, TextIO

from dragoman.base.graphemes import clusters, unbroken_parts, width, width_of

LEAST_TEXT_COLUMNS = 24
"""With less room than this, continued lines do not stand under the last column of a table but at its left."""
LEAST_COLUMNS = 20
USUAL_COLUMNS = 80
_SMALL_INDENT = 4
_STYLE = re.compile(r"\x1b\[([0-9;]*)m")
_CLOSING = {"1": "22", "2": "22"}
"""What ends a style; colours end with 39."""


def columns_of(stream: TextIO | None) -> int:
    """How wide a line may be there: COLUMNS, if that is set, else the terminal's width; 0 for any width, as in a pipe."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and 0 < len(wanted) < 6 and int(wanted):
        return max(int(wanted), LEAST_COLUMNS)
    try:
        if stream is None or not stream.isatty():
            return 0
        return max(os.get_terminal_size(stream.fileno()).columns or USUAL_COLUMNS, LEAST_COLUMNS)
    except (OSError, ValueError):
        return USUAL_COLUMNS


def lay_out(text: str, columns: int) -> str:
    """Every line of the text wrapped to the width. 0 columns: unchanged."""
    return "\n".join(wrapped for line in text.split("\n") for wrapped in wrap_line(line, columns))


def wrap_line(line: str, columns: int, hang: int | None = None) -> list[str]:
    """The line in as many lines as it takes. `hang` is the indent of all but the first; by default the one of the last cell, if the line
    has cells (more than one blank between them) and there is room for text under it. 0 columns: unchanged."""
    if not columns:
        return [line]
    columns = max(columns, LEAST_COLUMNS)
    if len(line) <= columns and line.isascii() and "\t" not in line:
        return [line]
    line = line.expandtabs(8)
    plain = _STYLE.sub("", line)
    if width(plain) <= columns:
        return [line]
    styles = _Styles(line)
    return [styles.apply(row) for row in _Wrapper(plain, columns, hang).rows()]


class _Piece(NamedTuple):
    """What is never broken: a word, or a part of one where its script allows a break."""

    start: int
    text: str
    blanks: int
    """How many blanks are before it."""


class _Row(NamedTuple):
    indent: int
    pieces: tuple[_Piece, ...]


class _Wrapper:
    def __init__(self, text: str, columns: int, hang: int | None) -> None:
        self._columns = columns
        self._pieces = list(_pieces_of(text, columns))
        self._lead = self._allowed_indent(len(text) - len(text.lstrip(" ")))
        gaps = [width(text[: piece.start]) for piece in self._pieces[1:] if piece.blanks > 1]
        under = [start for start in gaps if columns - start >= LEAST_TEXT_COLUMNS]
        self._hang = hang if hang is not None else under[-1] if under else self._lead
        if hang is None and gaps and not under:  # too narrow for a table: its cells follow each other
            self._hang = self._lead + _SMALL_INDENT
            self._pieces = [piece._replace(blanks=min(piece.blanks, 2)) for piece in self._pieces]

    def rows(self) -> Iterator[_Row]:
        row: list[_Piece] = []
        indent, used = self._lead, 0
        for piece in self._pieces:
            columns = width(piece.text)
            if row and used + piece.blanks + columns <= self._columns:
                row.append(piece)
                used += piece.blanks + columns
                continue
            if row:
                yield _Row(indent, tuple(row))
                indent = self._hang
            indent = max(min(indent, self._columns - columns), 0)
            row, used = [piece], indent + columns
        if row:
            yield _Row(indent, tuple(row))

    def _allowed_indent(self, indent: int) -> int:
        return indent if self._columns - indent >= LEAST_TEXT_COLUMNS else min(indent, _SMALL_INDENT)


def _pieces_of(text: str, columns: int) -> Iterator[_Piece]:
    end = 0
    for found in re.finditer(r"[^ ]+", text):
        blanks = found.start() - end
        end = found.end()
        at = found.start()
        for part in _parts(found.group(), columns):
            yield _Piece(at, part, blanks)
            at += len(part)
            blanks = 0


def _parts(word: str, columns: int) -> Iterator[str]:
    """What is not broken, and of what is too wide for a line as much as a line holds."""
    for part in unbroken_parts(word):
        if width(part) <= columns:
            yield part
            continue
        piece, used = "", 0
        for cluster in clusters(part):
            if piece and used + width_of(cluster) > columns:
                yield piece
                piece, used = "", 0
            piece += cluster
            used += width_of(cluster)
        yield piece


class _Styles:
    """Puts the styles of a line back into what became of it. A style that goes over a line break ends there and begins again."""

    def __init__(self, line: str) -> None:
        self._codes: list[tuple[int, str]] = []
        removed = 0
        for found in _STYLE.finditer(line):
            self._codes.append((found.start() - removed, found.group(1)))
            removed += len(found.group())
        self._open = ""

    def apply(self, row: _Row) -> str:
        shown = [" " * row.indent, _sequence(self._open)]
        for number, piece in enumerate(row.pieces):
            shown.append(" " * piece.blanks if number else "")
            at = piece.start
            while self._codes and self._codes[0][0] < piece.start + len(piece.text):
                start, code = self._codes.pop(0)
                shown.append(piece.text[at - piece.start : max(start, at) - piece.start])
                at = max(start, at)
                shown.append(self._take(code))
            shown.append(piece.text[at - piece.start :])
        end = row.pieces[-1].start + len(row.pieces[-1].text)
        while self._codes and self._codes[0][0] <= end:
            shown.append(self._take(self._codes.pop(0)[1]))
        return "".join(shown) + (_sequence(_CLOSING.get(self._open, "39")) if self._open else "")

    def _take(self, code: str) -> str:
        self._open = "" if code in ("", "0", "22", "39") else code
        return _sequence(code)


def _sequence(code: str) -> str:
    return f"\x1b[{code}m" if code else ""
