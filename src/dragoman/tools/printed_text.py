"""What a command printed, as its reader sees it: without colours, and of a line that was written over only its last state.

Text without such things stays exactly as it is, tabs and trailing blanks included. What moves the cursor is drawn on a sheet of the last
rows, which has no right edge to speak of.
"""

from __future__ import annotations

import re

from dragoman.tools.terminal_text import TerminalRow, TerminalText

ROWS, COLUMNS = 50, 4096
_ORDINARY = bytes(byte for byte in range(256) if byte in b"\t\n\v\f" or (byte >= 0x20 and byte != 0x7F))
_C1 = re.compile(r"[\x80-\x9f]")
_NO_EFFECT = re.compile(r"\x1b\[(?:[0-9;:]{0,64}m|0?K)")
"""Colours; and erasing the rest of a line where there is none, as grep does behind each colour."""
_INCOMPLETE = re.compile(r"(?:\r|\x1b(?:\[[0-?]{0,64}[ -/]{0,4})?)\Z")
_SILENT = frozenset("\x07\x0e\x0f\x7f")
_PICTURES = 0x2400


class PrintedText:
    """Feed it what a program prints; it returns what can no longer change. `take` returns the rest. How the text was split into pieces
    makes no difference."""

    def __init__(self, rows: int = ROWS, columns: int = COLUMNS) -> None:
        """`rows`: how far back a redraw reaches. `columns`: a longer line is drawn in several rows, and is whole again after it."""
        self._size = rows, columns
        self._rows = ""
        """The last rows, which a redraw may still change."""
        self._pending = ""
        """The beginning of a sequence, or a return that a newline may follow."""
        self._sheet: _Sheet | None = None
        """Set while there is more to keep than the text of the rows."""

    def feed(self, text: str, *, is_end: bool = False) -> str:
        if self._sheet is None:
            text, self._pending = self._pending + text, ""
            if not is_end and (incomplete := _INCOMPLETE.search(text, max(0, len(text) - 70))):
                text, self._pending = text[: incomplete.start()], incomplete.group()
            plain = _NO_EFFECT.sub("", text) if "\x1b" in text else text
            plain = plain.replace("\r\n", "\n") if "\r" in plain else plain
            if _is_plain(plain):
                return self._add(plain)
        return self._draw(text, is_end=is_end)

    def take(self) -> str:
        """What was not returned yet. It counts as returned: no redraw changes it any more."""
        text = self._sheet.text() if self._sheet is not None else self._rows
        if self._sheet is not None:
            self._sheet.clear()
        self._rows = ""
        return text

    @property
    def is_full_screen(self) -> bool:
        return self._sheet is not None and self._sheet.is_full_screen

    def _add(self, text: str) -> str:
        held = self._rows + text
        start = _start_of_rows(held, self._size[0])
        gone, self._rows = held[:start], held[start:]
        return gone + self._draw("") if len(self._rows) > self._size[0] * self._size[1] else gone

    def _draw(self, text: str, *, is_end: bool = False) -> str:
        gone = ""
        if self._sheet is None:
            self._sheet = _Sheet(*self._size)
            gone, self._rows = self._sheet.write(self._rows), ""
        text, self._pending = text + self._pending, ""
        gone += self._sheet.write(text, is_end=is_end)
        if self._sheet.is_only_text:
            self._rows, self._sheet = self._sheet.text(), None
        return gone


def as_printed(text: str) -> str:
    """A whole text as its reader sees it."""
    printed = PrintedText()
    return printed.feed(text, is_end=True) + printed.take()


def _is_plain(text: str) -> bool:
    """Whether it holds no controls but tabs and line breaks. Floods pass here: no regular expression is as fast as `translate`."""
    return not text.encode("utf-8", "surrogatepass").translate(None, _ORDINARY) and (text.isascii() or not _C1.search(text))


def _start_of_rows(text: str, rows: int) -> int:
    """Where the last rows begin."""
    end = len(text)
    for _ in range(rows):
        end = text.rfind("\n", 0, end)
        if end < 0:
            return 0
    return end + 1


class _Sheet(TerminalText):
    """A terminal that keeps what is printed as it is: tabs, trailing blanks, every mark; and a line feed begins a line."""

    @property
    def is_only_text(self) -> bool:
        """Whether the text of the rows says everything about it."""
        rows = self._screen
        return (
            not (self._held or self._is_in_string or self.is_full_screen or any(row.is_wrapped for row in rows))
            and self._wraps
            and (self._saved, self._top, self._bottom) == ((0, 0), 0, self.rows - 1)
            and self._x == len(rows[self._y].cells)
            and not any(row.cells for row in rows[self._y + 1 :])
        )

    def text(self) -> str:
        """The rows, up to the last that holds anything or has the cursor."""
        rows, y = (self._screen, self._y) if self._behind is None else (self._behind[0], self._behind[2])
        last = max(y, max((number for number, row in enumerate(rows) if row.cells), default=0))
        whole = "".join(map(self._text_of, rows[: last + 1]))
        return whole if rows[last].is_wrapped else whole[:-1]

    def clear(self) -> None:
        """An empty sheet; the cursor stands at the beginning of its first row."""
        if self._behind is None:
            self._screen = [TerminalRow() for _ in range(self.rows)]
            self._x = self._y = 0
        else:
            self._behind = ([TerminalRow() for _ in range(self.rows)], 0, 0)

    def _text_of(self, row: TerminalRow) -> str:
        return "".join(row.cells) + ("" if row.is_wrapped else "\n")

    def _control(self, char: str) -> None:
        if char == "\n":
            self._x = 0
            self._feed_line()
        elif char == "\t":
            self._tab()
        elif char in "\v\f":
            self._put_char(char)
        elif char in "\r\b":
            super()._control(char)
        elif char < " " and char not in _SILENT:
            self._put_char(chr(_PICTURES + ord(char)))

    def _tab(self) -> None:
        if self._x >= self.columns:
            self._wrap()
        width = 8 - self._x % 8
        if self._x < len(self._screen[self._y].cells):
            self._x += width
        else:
            self._put(["\t"] + [""] * (width - 1))

    def _combine(self, char: str) -> None:
        cells = self._screen[self._y].cells
        place = min(self._x, len(cells)) - 1
        while place > 0 and not cells[place]:
            place -= 1
        if place >= 0 and len(cells[place]) < 8:
            cells[place] += char
        else:
            self._put_char(char)

    def _put_char(self, char: str) -> None:
        if self._x >= self.columns:
            self._wrap()
        self._put([char])
