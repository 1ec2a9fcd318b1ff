"""Terminal output from top to bottom: text, lines, and one transient line at the end that the next output replaces."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Literal

from dragoman.app.output import FLUSH_EVERY_S, Output
from dragoman.base.graphemes import fit
from dragoman.base.text import one_line, strip_controls
from dragoman.base.wrapping import lay_out, wrap_line
from dragoman.conversation.style import Style, add_style

_PLAIN = str.maketrans(
    {
        "●": "*",
        "✓": "ok:",
        "✗": "failed:",
        "…": "...",
        "·": "-",
        "›": ">",
        "▸": ">",
        "│": "|",
        "┆": ":",
        "⋮": ":",
        "⚠": "!",
        "—": "-",
        "’": "'",
    }
)
"""ASCII replacements of our own symbols, for terminals that cannot show them."""


class Screen(Output):
    """Escape sequences are removed from all text: nothing from a model or a tool can act on the terminal."""

    def __init__(self, *, color: Literal["auto", "always", "never"] = "auto", on_stderr: bool = False) -> None:
        stream = sys.stderr if on_stderr else sys.stdout
        super().__init__(getattr(stream, "encoding", None) or "ascii")
        if on_stderr:
            self._fd, self.gone = stream.fileno(), False
            self.is_terminal = os.isatty(self._fd)
        self.descriptor = self._fd
        """The original descriptor, for a program that takes over the terminal for a while."""
        if self.is_terminal:
            self._fd = _reopen(self._fd)
        self._can_rewrite = self.is_terminal and os.environ.get("TERM", "dumb") not in ("", "dumb")
        self._color = color == "always" or (color == "auto" and self._can_rewrite)
        self._plain = not self._can_show("●✓…›")
        self._after_drop = b"\x1b[0m\n" if self._color else b"\n"
        self._has_transient = False
        self._at_line_start = True

    def drop_queued(self) -> bool:
        was_dropped = super().drop_queued()
        if was_dropped:
            self._has_transient, self._at_line_start = False, True
        return was_dropped

    @property
    def columns(self) -> int:
        try:
            columns = os.get_terminal_size(self._fd).columns
        except OSError:
            columns = 0
        return max(columns, 20) if columns else 80

    @property
    def can_rewrite(self) -> bool:
        """Whether a transient line can be shown at all."""
        return self._can_rewrite

    def readable(self, text: str) -> str:
        """Replace our own symbols if this terminal cannot show them."""
        return text.translate(_PLAIN) if self._plain else text

    def text(self, text: str, style: Style = "") -> None:
        """Continues where the last text ended."""
        text = self.readable(strip_controls(text))
        if not text:
            return
        self.clear()
        self._at_line_start = text.endswith("\n")
        self.write(self._style(text, style))

    def line(self, text: str, style: Style = "") -> None:
        """Text on a line of its own. Line breaks in it are kept; `message` removes them."""
        self.to_line_start()
        self.text(f"{text}\n", style)

    def message(self, text: str, style: Style = "") -> None:
        """A message of ours as one line, whatever a service or a file name put into it. A longer one than the terminal is wide is broken
        between words, and what follows its beginning is indented."""
        self.line("\n".join(wrap_line(self.readable(one_line(text)), self.columns, hang=2)), style)

    def page(self, text: str) -> None:
        """A text of ours in lines, each wrapped to the terminal's width."""
        self.line(lay_out(self.readable(text), self.columns))

    def to_line_start(self) -> None:
        self.clear()
        if not self._at_line_start:
            self.write("\n")
            self._at_line_start = True

    def mark_line_ended(self) -> None:
        """The terminal itself has written a newline."""
        self._at_line_start = True

    def transient_line(self, text: str, style: Style = "dim") -> None:
        """A line that the next output replaces, truncated to fit. Shows nothing if the terminal cannot rewrite lines."""
        if not self._can_rewrite:
            return
        self.to_line_start()
        self.write(self._style(fit(self.readable(one_line(text)), self.columns - 1), style))
        self._has_transient = True

    def clear(self) -> None:
        if self._has_transient:
            self._has_transient = False
            self.write("\r\x1b[K")

    async def drain(self) -> None:
        """Wait until everything is on the screen."""
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

    def _style(self, text: str, style: Style) -> str:
        return add_style(text, style) if self._color else text

    def _can_show(self, signs: str) -> bool:
        """False in a non-UTF-8 locale as well: line editing would count one symbol as several columns."""
        try:
            signs.encode(self._encoding)
        except (UnicodeError, LookupError):
            return False
        try:
            from locale import CODESET, nl_langinfo
        except ImportError:
            return True
        return nl_langinfo(CODESET).upper().replace("-", "") == "UTF8"


def _reopen(terminal: int) -> int:
    """Open the same terminal non-blocking: one that is paused (Ctrl-S) must not keep a run from being cancelled.

    A new descriptor is needed, because processes that share ours (the shell) do not expect it to be non-blocking.
    """
    try:
        return os.open(os.ttyname(terminal), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (AttributeError, OSError):
        return terminal
