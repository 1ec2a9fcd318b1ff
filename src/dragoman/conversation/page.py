"""Text output with styles, and columns that align in any script. Control characters are removed, so nothing can act on the terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import msgspec

from dragoman.app.surface import surface
from dragoman.base.graphemes import fit, width
from dragoman.base.text import one_line
from dragoman.base.wrapping import LEAST_COLUMNS, wrap_line
from dragoman.conversation.style import Style, add_style

Piece = str | tuple[str, Style]
_INDENT = "    "
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
    """The look of what the command is shown on: a terminal has columns and may have colours, a pipe has neither."""
    shown = surface()
    dumb = os.environ.get("TERM", "dumb") in ("", "dumb")
    has_color = color == "always" or (color == "auto" and shown.is_terminal and not dumb)
    return Look(shown.columns, has_color, not _can_show_symbols(shown.encoding))


class Page:
    """Collects the lines that a command prints, within the width of the terminal."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._lines: list[str] = []

    def line(self, *pieces: Piece) -> None:
        """Add one line of these pieces; over as many as it takes, if the page is narrower. Line breaks in them are removed."""
        shown: list[str] = []
        for piece in pieces:
            text, style = (piece, "") if isinstance(piece, str) else piece
            text = _one_line(text)
            text = text.translate(_PLAIN) if self.look.plain else text
            shown.append(add_style(text, style) if self.look.color and text.strip() else text)
        line = "".join(shown)
        line = line if self.look.color else line.rstrip()
        self._lines += wrap_line(line, self.look.columns)

    def fact(self, label: str, indent: int, *texts: str) -> None:
        """Add a label and the texts beside it, wrapped to as many lines as needed."""
        room = max(self.look.columns - indent, LEAST_COLUMNS) if self.look.columns else 0
        lines = [line for text in texts for line in wrap_line(_one_line(text), room)]
        for number, line in enumerate(lines or [""]):
            self.line((pad(label if number == 0 else "", indent), "bold"), line)

    def blank(self) -> None:
        self._lines.append("")

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def table(page: Page, rows: Sequence[Sequence[Piece]], *, right: Sequence[int], head: bool = True) -> None:
    """Columns as wide as their widest cell; a last one of text is shortened to the rest of the page, or has a line of its own where hardly
    any is left. With `head`, the first row is the heading."""
    texts = [[_one_line(cell if isinstance(cell, str) else cell[0]) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(*(row[: len(texts[0])] for row in texts), strict=True)]
    for number, (row, cells) in enumerate(zip(rows, texts, strict=True)):
        styles: list[Style] = ["dim" if head and number == 0 else "" if isinstance(cell, str) else cell[1] for cell in row]
        last = len(widths) - 1
        pieces: list[Piece] = []
        for place in range(last + (last in right)):
            pieces += ["  "] if place else []
            pieces.append((pad(cells[place], widths[place], right=place in right), styles[place]))
        if last in right:
            page.line(*pieces)
        else:
            _line_with_text(page, pieces, sum(widths[:last]) + 2 * last, (cells[last], styles[last]))


def _line_with_text(page: Page, pieces: list[Piece], before: int, text: tuple[str, Style]) -> None:
    """A row whose last cell is text of any length."""
    words, style = text
    room = page.look.columns - before - 2 * page.look.plain  # "..." is longer than "…"
    if not page.look.columns or width(words) <= room:
        page.line(*pieces, *(["  "] if pieces else []), text)
    elif room >= LEAST_COLUMNS:
        page.line(*pieces, "  ", (fit(words, room), style))
    else:
        page.line(*pieces)
        page.line(_INDENT, (fit(words, page.look.columns - len(_INDENT) - 2 * page.look.plain), style))


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


def _can_show_symbols(encoding: str) -> bool:
    try:
        "█…·".encode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True
