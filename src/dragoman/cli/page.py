"""Text output with styles, and columns that align in any script. Control characters are removed, so nothing can act on the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from textwrap import wrap
from typing import Literal

import msgspec

from dragoman.base.graphemes import fit, width
from dragoman.base.text import one_line
from dragoman.cli.screen import Style, add_style

Piece = str | tuple[str, Style]
_PLAIN = str.maketrans(
    {"…": "...", "·": "-", "–": "-", "→": "->", "░": ".", "█": "#", **dict.fromkeys("▏▎▍", " "), **dict.fromkeys("▌▋▊▉", "#")}
)
"""ASCII replacements of our own symbols, for encodings that lack them."""


class Look(msgspec.Struct, frozen=True):
    """What the output can show."""

    columns: int = 0
    """0: unlimited."""
    color: bool = False
    plain: bool = False
    """Whether our own symbols must be ASCII."""


def look_of(color: Literal["auto", "always", "never"]) -> Look:
    """The look for standard output: a terminal has columns and may have colours, a pipe has neither."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    dumb = os.environ.get("TERM", "dumb") in ("", "dumb")
    plain = not _can_show_symbols(getattr(sys.stdout, "encoding", None) or "ascii")
    return Look(_terminal_columns() if is_terminal else 0, color == "always" or (color == "auto" and is_terminal and not dumb), plain)


class Page:
    def __init__(self, look: Look) -> None:
        self.look = look
        self._lines: list[str] = []

    def line(self, *pieces: Piece) -> None:
        """Add one line of these pieces, cut at the page's width. Line breaks in them are removed."""
        room = self.look.columns - 2 * self.look.plain if self.look.columns else sys.maxsize  # "..." is longer than "…"
        shown: list[str] = []
        for piece in pieces:
            text, style = (piece, "") if isinstance(piece, str) else piece
            text = _one_line(text)
            if (used := width(text)) > room:
                text, used = fit(text, max(room, 1)), room
            room -= used
            shown.append(add_style(text, style) if self.look.color and text.strip() else text)
            if room <= 0:
                break
        self._lines.append("".join(shown).rstrip() if not self.look.color else "".join(shown))

    def fact(self, label: str, indent: int, *texts: str) -> None:
        """Add a label and the texts beside it, wrapped to as many lines as needed."""
        room = self.look.columns - indent if self.look.columns else 10_000
        lines = [line for text in texts for line in wrap(_one_line(text), max(room, 20))]
        for number, line in enumerate(lines or [""]):
            self.line((pad(label if number == 0 else "", indent), "bold"), line)

    def blank(self) -> None:
        self._lines.append("")

    @property
    def text(self) -> str:
        text = "\n".join(self._lines) + "\n"
        return text.translate(_PLAIN) if self.look.plain else text


def table(page: Page, rows: Sequence[Sequence[Piece]], *, right: Sequence[int], head: bool = True) -> None:
    """Columns as wide as their widest cell; the last one takes the rest of the page. With `head`, the first row is the heading."""
    texts = [[_one_line(cell if isinstance(cell, str) else cell[0]) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(*(row[: len(texts[0])] for row in texts), strict=True)]
    for number, (row, cells) in enumerate(zip(rows, texts, strict=True)):
        pieces: list[Piece] = []
        for place, (cell, text) in enumerate(zip(row, cells, strict=True)):
            style: Style = "dim" if head and number == 0 else "" if isinstance(cell, str) else cell[1]
            last = place >= len(widths) - 1
            pieces.append((text if last and place not in right else pad(text, widths[place], right=place in right), style))
            if not last:
                pieces.append("  ")
        page.line(*pieces)


def pad(text: str, columns: int, *, right: bool = False) -> str:
    blank = " " * (columns - width(text))
    return blank + text if right else text + blank


def _one_line(text: str) -> str:
    """Without invisible and control characters. Leading and trailing spaces, which align columns, stay."""
    if text.isprintable() and text.isascii():
        return text
    kept = text.strip(" ")
    start = text.index(kept) if kept else len(text)
    return text[:start] + one_line(kept) + " " * (len(text) - start - len(kept))


def _terminal_columns() -> int:
    try:
        return max(os.get_terminal_size(sys.stdout.fileno()).columns, 40)
    except (OSError, ValueError):
        return 80


def _can_show_symbols(encoding: str) -> bool:
    try:
        "█…·".encode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True
