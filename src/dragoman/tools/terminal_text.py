"""A small terminal: what a program draws in one becomes plain text, so that a progress bar is a line and not a thousand.

It knows cursor moves, returns, erasing, inserting, scrolling and wrapping. Colours, titles and questions to the terminal are dropped, and
so is what is drawn on the alternate screen: it is gone when the program ends. Lines that the terminal wrapped are whole again.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable

_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|\x1b(?:\[(?P<params>[0-?]{0,64})[ -/]{0,4}(?P<final>[@-~])"
    r"|(?P<string>[\]PX^_])"
    r"|(?P<charset>[ -/]{1,4}[0-~])"
    r"|(?P<escape>[0-OQ-WYZ\\`-~]))"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x9f])"
)
_INCOMPLETE = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,4}|[ -/]{0,4})\Z")
_STRING_ENDS = re.compile(r"\x07|\x1b\\|\x18|\x1a|\x9c")
_ALTERNATE = frozenset({"47", "1047", "1049"})
_TAB = 8


class TerminalRow:
    """One row of the screen."""

    __slots__ = ("cells", "is_told", "is_wrapped")

    def __init__(self) -> None:
        self.cells: list[str] = []
        """One character each; a wide one has an empty cell behind it, a tab up to seven."""
        self.is_told = False
        self.is_wrapped = False
        """Whether its text goes on in the next row."""


class TerminalText:
    """Feed it what a program writes; it returns the text that has left the screen. `take` returns the rest."""

    def __init__(self, rows: int = 24, columns: int = 120) -> None:
        self.rows = rows
        self.columns = columns
        self.is_full_screen = False
        """Whether the alternate screen is shown."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._is_in_string = False
        self._gone: list[str] = []
        self._behind: tuple[list[TerminalRow], int, int] | None = None
        self._reset()

    def feed(self, data: bytes, *, is_end: bool = False) -> str:
        """What has left the screen with this, and will not change any more."""
        return self.write(self._decoder.decode(data, final=is_end), is_end=is_end)

    def write(self, text: str, *, is_end: bool = False) -> str:
        """The same for what is decoded."""
        text, self._held = self._held + text, ""
        position = 0
        while position < len(text):
            if self._is_in_string:
                position = self._skip_string(text, position)
                continue
            match = _TOKEN.match(text, position)
            if match is None:
                if not is_end and _INCOMPLETE.match(text, position):
                    self._held = text[position:]
                    break
                position += 1  # an escape that introduces nothing
                continue
            position = match.end()
            self._act(match)
        gone = "".join(self._gone)
        self._gone.clear()
        return gone

    def take(self) -> str:
        """The lines on the screen that have changed since they were last returned. They count as returned now."""
        rows = self._behind[0] if self._behind is not None else self._screen
        last = max((number for number, row in enumerate(rows) if any(cell not in ("", " ") for cell in row.cells)), default=-1)
        said: list[str] = []
        for row in rows[: last + 1]:
            if not row.is_told:
                said.append(self._text_of(row))
                row.is_told = True
        return "".join(said)

    def lines(self) -> list[str]:
        """The screen as it looks."""
        return ["".join(row.cells).rstrip(" ") for row in self._screen]

    def _text_of(self, row: TerminalRow) -> str:
        whole = "".join(row.cells)
        return whole if row.is_wrapped else whole.rstrip(" ") + "\n"

    def _reset(self) -> None:
        self._screen = [TerminalRow() for _ in range(self.rows)]
        self._x = self._y = 0
        self._top, self._bottom = 0, self.rows - 1
        self._saved = (0, 0)
        self._wraps = True

    def _skip_string(self, text: str, position: int) -> int:
        found = _STRING_ENDS.search(text, position)
        if found is None:
            self._held = "\x1b" if text.endswith("\x1b") else ""
            return len(text)
        self._is_in_string = False
        return found.end()

    def _act(self, match: re.Match[str]) -> None:
        kind = match.lastgroup
        if kind == "text":
            self._write(match.group())
        elif kind == "control":
            self._control(match.group())
        elif kind == "final":
            self._sequence(match.group("params"), match.group("final"))
        elif kind == "string":
            self._is_in_string = True
        elif kind == "escape":
            self._escape(match.group("escape"))

    # --- writing

    def _write(self, text: str) -> None:
        if not text.isascii():
            for char in text:
                self._write_char(char)
            return
        position = 0
        while position < len(text):
            if self._x >= self.columns:
                self._wrap()
            piece = text[position : position + self.columns - self._x] if self._wraps else text[position:]
            position += len(piece)
            if not self._wraps and self._x + len(piece) > self.columns:  # what is too long overwrites the last column
                piece = piece[: max(0, self.columns - self._x - 1)] + piece[-1]
            self._put(list(piece))

    def _write_char(self, char: str) -> None:
        width = _width(char)
        if width == 0:
            self._combine(char)
            return
        if self._x + width > self.columns:
            self._wrap()
        self._put([char] if width == 1 else [char, ""])

    def _put(self, cells: list[str]) -> None:
        row = self._screen[self._y]
        there = row.cells
        if len(there) < self._x:
            there.extend(" " * (self._x - len(there)))
        end = self._x + len(cells)
        _split_wide(there, self._x)
        _split_wide(there, end)
        there[self._x : end] = cells
        row.is_told = False
        self._x = end

    def _combine(self, char: str) -> None:
        row = self._screen[self._y]
        place = min(self._x, len(row.cells)) - 1
        while place > 0 and not row.cells[place]:
            place -= 1
        if place >= 0 and len(row.cells[place]) < 8:  # no reader needs more marks on one letter
            row.cells[place] += char
            row.is_told = False

    def _wrap(self) -> None:
        if not self._wraps:
            self._x = self.columns - 1
            return
        self._screen[self._y].is_wrapped = True
        self._x = 0
        self._feed_line()

    # --- control characters

    def _control(self, char: str) -> None:
        if char == "\n" or char in "\v\f":
            self._feed_line()
        elif char == "\r":
            self._x = 0
        elif char == "\b":
            self._x = max(0, min(self._x, self.columns - 1) - 1)
        elif char == "\t":
            self._x = min(self.columns - 1, (self._x // _TAB + 1) * _TAB)

    def _feed_line(self) -> None:
        self._x = min(self._x, self.columns - 1)
        if self._y == self._bottom:
            self._scroll(1)
        elif self._y < self.rows - 1:
            self._y += 1

    def _scroll(self, count: int) -> None:
        """Upwards; lines that leave at the top of the screen are emitted, unless they were before."""
        for _ in range(min(count, self._bottom - self._top + 1)):
            row = self._screen.pop(self._top)
            self._screen.insert(self._bottom, TerminalRow())
            if self._top == 0 and not row.is_told and not self.is_full_screen:
                self._gone.append(self._text_of(row))

    def _scroll_down(self, count: int) -> None:
        for _ in range(min(count, self._bottom - self._top + 1)):
            self._screen.pop(self._bottom)
            self._screen.insert(self._top, TerminalRow())

    def _escape(self, char: str) -> None:
        if char == "D":
            self._feed_line()
        elif char == "E":
            self._x = 0
            self._feed_line()
        elif char == "M":
            self._x = min(self._x, self.columns - 1)
            if self._y == self._top:
                self._scroll_down(1)
            else:
                self._y = max(0, self._y - 1)
        elif char == "7":
            self._saved = (self._x, self._y)
        elif char == "8":
            self._x, self._y = self._saved
        elif char == "c":
            self._show_alternate(False)
            self._reset()

    # --- sequences

    def _sequence(self, parameters: str, final: str) -> None:
        if parameters[:1] in ("?", ">", "<", "="):
            if parameters[0] == "?" and final in "hl":
                self._set_modes(parameters[1:].split(";"), is_on=final == "h")
            return
        act = _SEQUENCES.get(final)
        if act is not None:
            act(self, [int(each[:6]) if each.isdigit() else 0 for each in re.split("[;:]", parameters)])

    def _set_modes(self, modes: list[str], *, is_on: bool) -> None:
        if "7" in modes:
            self._wraps = is_on
        if not _ALTERNATE.isdisjoint(modes):
            self._show_alternate(is_on)

    def _show_alternate(self, is_on: bool) -> None:
        if is_on == self.is_full_screen:
            return
        self.is_full_screen = is_on
        if is_on:
            self._behind = (self._screen, self._x, self._y)
            self._screen = [TerminalRow() for _ in range(self.rows)]
        elif self._behind is not None:
            (self._screen, self._x, self._y), self._behind = self._behind, None
            self._top, self._bottom = 0, self.rows - 1

    def _move(self, x: int, y: int) -> None:
        self._x = max(0, min(x, self.columns - 1))
        self._y = max(0, min(y, self.rows - 1))

    def _move_up(self, args: list[int]) -> None:
        limit = self._top if self._y >= self._top else 0
        self._move(self._x, max(limit, self._y - (args[0] or 1)))

    def _move_down(self, args: list[int]) -> None:
        limit = self._bottom if self._y <= self._bottom else self.rows - 1
        self._move(self._x, min(limit, self._y + (args[0] or 1)))

    def _move_left(self, args: list[int]) -> None:
        self._move(min(self._x, self.columns - 1) - (args[0] or 1), self._y)

    def _move_right(self, args: list[int]) -> None:
        self._move(self._x + (args[0] or 1), self._y)

    def _next_line(self, args: list[int]) -> None:
        self._move_down(args)
        self._x = 0

    def _previous_line(self, args: list[int]) -> None:
        self._move_up(args)
        self._x = 0

    def _go_to_column(self, args: list[int]) -> None:
        self._move((args[0] or 1) - 1, self._y)

    def _go_to_row(self, args: list[int]) -> None:
        self._move(self._x, (args[0] or 1) - 1)

    def _go_to(self, args: list[int]) -> None:
        row, column = (*args, 0)[:2]
        self._move((column or 1) - 1, (row or 1) - 1)

    def _erase_screen(self, args: list[int]) -> None:
        if args[0] == 0:
            self._erase_line(args)
            self._blank(range(self._y + 1, self.rows))
        elif args[0] == 1:
            self._erase_line(args)
            self._blank(range(self._y))
        elif args[0] in (2, 3):
            self._blank(range(self.rows))

    def _blank(self, numbers: range) -> None:
        for number in numbers:
            self._screen[number] = TerminalRow()

    def _erase_line(self, args: list[int]) -> None:
        row = self._screen[self._y]
        if args[0] == 0:
            _split_wide(row.cells, self._x)
            del row.cells[self._x :]
            row.is_wrapped = False
        elif args[0] == 1:
            self._erase(0, self._x + 1)
        elif args[0] == 2:
            self._screen[self._y] = row = TerminalRow()
        row.is_told = False

    def _erase(self, start: int, end: int) -> None:
        row = self._screen[self._y]
        end = min(end, len(row.cells))
        if start < end:
            _split_wide(row.cells, start)
            _split_wide(row.cells, end)
            row.cells[start:end] = " " * (end - start)
            row.is_told = False

    def _erase_characters(self, args: list[int]) -> None:
        self._erase(self._x, self._x + (args[0] or 1))

    def _insert_characters(self, args: list[int]) -> None:
        row = self._screen[self._y]
        if self._x < len(row.cells):
            _split_wide(row.cells, self._x)
            row.cells[self._x : self._x] = " " * min(args[0] or 1, self.columns - self._x)
            _split_wide(row.cells, self.columns)
            del row.cells[self.columns :]
            row.is_told = False

    def _delete_characters(self, args: list[int]) -> None:
        row = self._screen[self._y]
        end = min(self._x + (args[0] or 1), len(row.cells))
        if self._x < end:
            _split_wide(row.cells, self._x)
            _split_wide(row.cells, end)
            del row.cells[self._x : end]
            row.is_told = False

    def _insert_lines(self, args: list[int]) -> None:
        if self._top <= self._y <= self._bottom:
            for _ in range(min(args[0] or 1, self._bottom - self._y + 1)):
                self._screen.pop(self._bottom)
                self._screen.insert(self._y, TerminalRow())
            self._x = 0

    def _delete_lines(self, args: list[int]) -> None:
        if self._top <= self._y <= self._bottom:
            for _ in range(min(args[0] or 1, self._bottom - self._y + 1)):
                self._screen.pop(self._y)
                self._screen.insert(self._bottom, TerminalRow())
            self._x = 0

    def _scroll_up(self, args: list[int]) -> None:
        self._scroll(args[0] or 1)

    def _scroll_back(self, args: list[int]) -> None:
        self._scroll_down(args[0] or 1)

    def _set_region(self, args: list[int]) -> None:
        top, bottom = (*args, 0)[:2]
        top, bottom = (top or 1) - 1, min(bottom or self.rows, self.rows) - 1
        if top < bottom:
            self._top, self._bottom = top, bottom
            self._x = self._y = 0

    def _save(self, args: list[int]) -> None:
        self._saved = (self._x, self._y)

    def _restore(self, args: list[int]) -> None:
        self._x, self._y = self._saved


_SEQUENCES: dict[str, Callable[[TerminalText, list[int]], None]] = {
    "@": TerminalText._insert_characters, "A": TerminalText._move_up, "B": TerminalText._move_down, "C": TerminalText._move_right,
    "D": TerminalText._move_left, "E": TerminalText._next_line, "F": TerminalText._previous_line, "G": TerminalText._go_to_column,
    "H": TerminalText._go_to, "J": TerminalText._erase_screen, "K": TerminalText._erase_line, "L": TerminalText._insert_lines,
    "M": TerminalText._delete_lines, "P": TerminalText._delete_characters, "S": TerminalText._scroll_up, "T": TerminalText._scroll_back,
    "X": TerminalText._erase_characters, "`": TerminalText._go_to_column, "a": TerminalText._move_right, "d": TerminalText._go_to_row,
    "e": TerminalText._move_down, "f": TerminalText._go_to, "r": TerminalText._set_region, "s": TerminalText._save,
    "u": TerminalText._restore,
}  # fmt: skip


def _split_wide(cells: list[str], place: int) -> None:
    """If a wide character or a tab stands across this column, blanks replace all of it."""
    if 0 < place < len(cells) and not cells[place]:
        start = end = place
        while start and not cells[start]:
            start -= 1
        while end < len(cells) and not cells[end]:
            end += 1
        cells[start:end] = " " * (end - start)


def _width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
