"""The terminal as a page that is written from top to bottom: text, lines, and one passing line at the end that the next thing replaces."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Literal

from dragoman.base.graphemes import fit
from dragoman.base.text import harmless, one_line
from dragoman.cli.output import FLUSH_EVERY_S, Output

Style = Literal["", "dim", "red", "green", "yellow", "cyan", "bold"]
_CODES = {"dim": ("2", "22"), "bold": ("1", "22"), "red": ("31", "39"), "green": ("32", "39"), "yellow": ("33", "39"), "cyan": ("36", "39")}
_PLAIN = str.maketrans(
    {"●": "*", "✓": "ok:", "✗": "failed:", "…": "...", "·": "-", "›": ">", "▸": ">", "│": "|", "⚠": "!", "—": "-", "’": "'"}
)
"""Our own signs, for terminals that cannot show them."""


class Screen(Output):
    """Everything written here is harmless: nothing a model or a tool says can act on the terminal."""

    def __init__(self, *, color: Literal["auto", "always", "never"] = "auto", on_stderr: bool = False) -> None:
        stream = sys.stderr if on_stderr else sys.stdout
        super().__init__(getattr(stream, "encoding", None) or "ascii")
        if on_stderr:
            self._fd, self.gone = stream.fileno(), False
            self.is_terminal = os.isatty(self._fd)
        self.descriptor = self._fd
        """The stream's own, for a program that takes the terminal over for a while."""
        if self.is_terminal:
            self._fd = _opened_again(self._fd)
        self._clever = self.is_terminal and os.environ.get("TERM", "dumb") not in ("", "dumb")
        self._color = color == "always" or (color == "auto" and self._clever)
        self._plain = not self._shows("●✓…›")
        self._passing = False
        self._at_line_start = True

    @property
    def columns(self) -> int:
        try:
            columns = os.get_terminal_size(self._fd).columns
        except OSError:
            columns = 0
        return max(columns, 20) if columns else 80

    @property
    def rewrites(self) -> bool:
        """Whether a passing line can be shown at all."""
        return self._clever

    def readable(self, text: str) -> str:
        """Our own signs as this terminal can show them."""
        return text.translate(_PLAIN) if self._plain else text

    def text(self, text: str, style: Style = "") -> None:
        """Goes on where the last text ended."""
        text = self.readable(harmless(text))
        if not text:
            return
        self.clear()
        self._at_line_start = text.endswith("\n")
        self.write(self._styled(text, style))

    def line(self, text: str, style: Style = "") -> None:
        """A line of its own. Line breaks in it stand: see `message` for what must be one line."""
        self.to_line_start()
        self.text(f"{text}\n", style)

    def message(self, text: str, style: Style = "") -> None:
        """A line of our own, whatever a service or a file name put into it."""
        self.line(one_line(text), style)

    def to_line_start(self) -> None:
        self.clear()
        if not self._at_line_start:
            self.write("\n")
            self._at_line_start = True

    def enter_was_echoed(self) -> None:
        """The terminal itself wrote a line end."""
        self._at_line_start = True

    def passing(self, text: str, style: Style = "dim") -> None:
        """A line that whatever comes next takes the place of; no more of it than fits. Nothing where a line cannot be taken back."""
        if not self._clever:
            return
        self.to_line_start()
        self.write(self._styled(fit(self.readable(one_line(text)), self.columns - 1), style))
        self._passing = True

    def clear(self) -> None:
        if self._passing:
            self._passing = False
            self.write("\r\x1b[K")

    async def shown(self) -> None:
        """Returns when all of it is on the screen, however slow that is."""
        self.flush()
        while self._texts or self._backlog:
            if self.gone:
                return
            await asyncio.sleep(FLUSH_EVERY_S)

    def close(self) -> None:
        self.finish()
        if self._fd != self.descriptor:
            os.close(self._fd)
            self._fd, self.gone = self.descriptor, True

    def _styled(self, text: str, style: Style) -> str:
        return styled(text, style) if self._color else text

    def _shows(self, signs: str) -> bool:
        """Also a locale that is not UTF-8 counts: line editing would take one sign for several columns."""
        try:
            signs.encode(self._encoding)
        except (UnicodeError, LookupError):
            return False
        try:
            from locale import CODESET, nl_langinfo
        except ImportError:
            return True
        return nl_langinfo(CODESET).upper().replace("-", "") == "UTF8"


def styled(text: str, style: Style) -> str:
    if not style:
        return text
    on, off = _CODES[style]
    body = text.rstrip("\n")
    return f"\x1b[{on}m{body}\x1b[{off}m{text[len(body) :]}"


def _opened_again(terminal: int) -> int:
    """The same terminal, so that writing never waits for it: one that is stopped (Ctrl-S) must not keep a run from being cancelled.

    It is another open file, because those who share ours (the shell) do not expect it to be non-blocking.
    """
    try:
        return os.open(os.ttyname(terminal), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (AttributeError, OSError):
        return terminal


def wrapped(text: str, columns: int) -> str:
    """Broken between words, where a terminal would break in the middle of one."""
    from textwrap import wrap

    return "\n".join(wrap(text, max(columns, 20)))
