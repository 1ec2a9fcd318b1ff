"""The input prompt between runs: line editing and history; several lines by paste or a trailing backslash."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from typing import Any

from dragoman.base.jsontext import valid_unicode
from dragoman.plain.screen import Screen

MARK, MORE = "› ", "… "
PASTE_S = 0.03
"""Lines that arrive faster than this were pasted."""


class LinePrompt:
    """Reads a prompt in the plain conversation, with readline if there is one."""

    def __init__(self, screen: Screen, read: Callable[[str], str] = input) -> None:
        """`read`: shows the mark and reads a line, as `input` does."""
        self._read = read
        self._screen = screen
        self._readline: Any = None
        self._has_bracketed_paste = False
        if screen.descriptor == 1:  # otherwise input() does not use readline
            self._load_readline()

    def read(self, typed: str = "") -> str:
        """Read a prompt. `typed` is put on the line first, to be edited or sent. Raises EOFError, KeyboardInterrupt and UnicodeError."""
        lines = [self._read_line(MARK, typed)]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(self._read_line(MORE))
        while not self._has_bracketed_paste and _has_more_input():
            lines.append(self._read_line(""))
        return valid_unicode("\n".join(lines))

    def _read_line(self, mark: str, typed: str = "") -> str:
        mark = self._screen.readable(mark)
        shown = typed if self._readline is None else ""  # it cannot be edited then, and is sent with the line
        mark += shown
        if self._screen.descriptor != 1:
            self._screen.text(mark)
            mark = ""
        self._screen.finish()
        if self._readline is not None:
            self._readline.set_startup_hook(lambda: self._readline.insert_text(typed) if typed else None)
        try:
            return shown + self._read(mark)
        finally:
            self._screen.mark_line_ended()

    def _load_readline(self) -> None:
        try:
            import readline
        except ImportError:
            return
        self._readline = readline
        if self._screen.can_rewrite and "libedit" not in (readline.__doc__ or ""):
            readline.parse_and_bind("set enable-bracketed-paste on")  # the default only since 8.1
            self._has_bracketed_paste = True


def _has_more_input() -> bool:
    if sys.platform == "win32":
        return False

    poll = select.poll()
    poll.register(0, select.POLLIN)
    return bool(poll.poll(PASTE_S * 1000))
