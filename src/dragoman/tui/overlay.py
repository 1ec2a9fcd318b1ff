"""What takes the whole window for a while, on the terminal's other screen: a text to read, a list to pick from.

The conversation's own lines are not touched by it: the terminal shows them again when it is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dragoman.base.text import one_line
from dragoman.tui.call_cells import opened_lines
from dragoman.tui.calls import Folded
from dragoman.tui.keys import Key, Paste
from dragoman.tui.line import EMPTY, Line, Span, line, visible
from dragoman.tui.theme import Theme
from dragoman.tui.wrap import fit, spread, wrap_code
from dragoman.words import say

# Emptied before it is left: when tmux puts the conversation back at another size, a row of what stood here may get among its lines.
OPEN, CLOSE = "\x1b[?1049h\x1b[H\x1b[2J\x1b[?25l", "\x1b[H\x1b[2J\x1b[?1049l\x1b[?25h"
_CLEAR = "\x1b[2;1H\x1b[J\x1b[H\x1b[K"
"""In two steps: some terminals keep in their history what is erased as a whole."""
OPEN_OVER, CLOSE_OVER = f"{_CLEAR}\x1b[?25l", f"{_CLEAR}\x1b[?25h"
"""For a terminal that has no second screen."""


class Overlay(Protocol):
    """A view that takes the whole window until it is closed."""

    caret: tuple[int, int] | None
    """Where one writes in it: row and column, once `rows` was called. The real cursor stands there: input methods look for it."""

    def rows(self, columns: int, rows: int) -> Sequence[Line]:
        """At most so many lines, each at most so wide."""
        ...

    def press(self, event: Key | Paste) -> bool:
        """False when it is to be closed."""
        ...


class OverlayPainter:
    """Draws on the terminal's other screen. Only rows that changed are written."""

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._size = (0, 0)
        self._caret: tuple[int, int] | None = None

    def frame(self, overlay: Overlay, theme: Theme, size: tuple[int, int]) -> str:
        columns, rows = size
        out: list[str] = []
        if size != self._size:
            out.append("\x1b[2J")
            self._shown, self._size = [""] * rows, size
        lines = [theme.paint(fit(each, columns - 1)) for each in overlay.rows(columns - 1, rows)][:rows]
        lines += [""] * (rows - len(lines))
        for number, (before, now) in enumerate(zip(self._shown, lines, strict=True), 1):
            if before != now:
                out.append(f"\x1b[{number};1H{now}\x1b[K")
        self._shown = lines
        caret, before = overlay.caret, self._caret
        if caret is not None and caret[0] < rows and caret[1] < columns and (out or caret != before):
            out.append(f"\x1b[{caret[0] + 1};{caret[1] + 1}H")
        self._caret = caret
        return "".join(out)


class Viewer:
    """Texts to read, one at a time: the last one first, the ones before it by the left arrow."""

    def __init__(self, texts: Sequence[Folded], *, at_end: bool = False) -> None:
        self.caret: tuple[int, int] | None = None
        self._texts = texts
        self._at = len(texts) - 1
        self._top = 1 << 30 if at_end else 0
        self._page = 1
        self._laid_out: tuple[int, int, list[Line]] = (-1, 0, [])

    def rows(self, columns: int, rows: int) -> Sequence[Line]:
        lines = self._lines(columns)
        self._page = max(rows - 3, 1)
        self._top = max(min(self._top, len(lines) - self._page), 0)
        title = (Span(visible(one_line(self._texts[self._at].title, 300)), "title"),)
        where = say("conversation.viewer_place", number=self._at + 1, count=len(self._texts))
        body = lines[self._top : self._top + self._page]
        shown = say("conversation.viewer_lines", first=self._top + 1, last=self._top + len(body), count=len(lines))
        foot = spread(line(say("conversation.viewer_keys"), "dim"), line(shown, "dim"), columns)
        return [spread(title, line(where, "dim"), columns), EMPTY, *body, *([EMPTY] * (self._page - len(body))), foot]

    def _lines(self, columns: int) -> list[Line]:
        if self._laid_out[:2] != (self._at, columns):
            folded = self._texts[self._at]
            call = folded.whole()
            lines = wrap_code_lines(folded.text, columns) if call is None else opened_lines(call, columns)
            self._laid_out = (self._at, columns, lines)
        return self._laid_out[2]

    def press(self, event: Key | Paste) -> bool:
        match event.name if isinstance(event, Key) else "":
            case "esc" | "q" | "ctrl-o" | "ctrl-c" | "enter":
                return False
            case "up" | "k":
                self._top -= 1
            case "down" | "j":
                self._top += 1
            case "pageup" | "b" | "ctrl-b":
                self._top -= self._page
            case "pagedown" | "space" | "ctrl-f":
                self._top += self._page
            case "home" | "g":
                self._top = 0
            case "end" | "G":
                self._top = 1 << 30
            case "left" | "p":
                self._go(-1)
            case "right" | "n":
                self._go(1)
        self._top = max(self._top, 0)
        return True

    def _go(self, by: int) -> None:
        self._at = max(min(self._at + by, len(self._texts) - 1), 0)
        self._top = 0


def wrap_code_lines(text: str, columns: int) -> list[Line]:
    return [row for each in text.split("\n") for row in wrap_code(line(visible(each)), columns)]
