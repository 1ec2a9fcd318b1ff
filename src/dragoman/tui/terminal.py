"""The terminal itself: its modes, its size, writing to it without waiting for it. Whatever ends the program restores it.

In raw mode every key arrives as it is pressed, Ctrl-C and Ctrl-Z too. This module imports little: it is loaded before the first frame.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dragoman.tui.keys import ANSWER

if TYPE_CHECKING:
    import asyncio

    from dragoman.tui.pace import Pace
try:
    import termios

    HAS_RAW_MODE = True
except ImportError:  # Windows
    HAS_RAW_MODE = False

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_PASTE_ON, _PASTE_OFF = b"\x1b[?2004h", b"\x1b[?2004l"
_KEEP_TITLE, _OLD_TITLE = "\x1b[22;2t", b"\x1b[23;2t"
_SHOW_CURSOR = b"\x1b[?25h"
_ASK = "\x1b[5n"
"""Asks the terminal whether it is there; keys.ANSWER is what it says."""
SIGN_S = 0.3
"""How long a sign that the terminal was asked for is waited for at the end."""
LEAST_COLUMNS, LEAST_ROWS = 8, 2
"""Of a smaller window nobody reads anything."""


class Terminal:
    """Standard input and output of a conversation. Between `open` and `close` it is in raw mode."""

    def __init__(self, *, synchronised: bool = False) -> None:
        self._synchronised = synchronised
        self._before: list[Any] | None = None
        self._fd = _reopen(1)
        self._backlog = b""
        self._loop: asyncio.AbstractEventLoop | None = None
        self.on_written: Callable[[], None] | None = None
        """Called when everything that waited is written."""
        self.gone = False
        self._title = ""
        self._pace: Pace | None = None

    # --- modes

    def open(self) -> None:
        """Raises termios.error if it is not a terminal."""
        if self._before is None:
            self._before = termios.tcgetattr(0)
        self.enter_raw_mode()

    def enter_raw_mode(self) -> None:
        """Also when the stopped program continues."""
        if self._before is None:
            return
        iflag, oflag, cflag, lflag, ispeed, ospeed, characters = self._before
        iflag &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON | termios.ISTRIP | termios.BRKINT)
        lflag &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        characters = list(characters)
        characters[termios.VMIN], characters[termios.VTIME] = 1, 0
        self._set([iflag, oflag, cflag, lflag, ispeed, ospeed, characters])
        self.write_now(_PASTE_ON)
        if self._title:  # another program has had the terminal
            self._write_title(_KEEP_TITLE)

    def leave_raw_mode(self) -> None:
        """The modes from before, for the shell or another program. May be called twice, and from a signal handler."""
        if self._before is None:
            return
        self.write_now(_PASTE_OFF + _SHOW_CURSOR + (_OLD_TITLE if self._title else b""))
        self._set(self._before)

    def set_title(self, title: str) -> None:
        """Set the window's title. The old title is restored when the terminal is closed."""
        keep = "" if self._title else _KEEP_TITLE
        self._title = "".join(char for char in title if char.isprintable())[:200]
        self._write_title(keep)

    def _write_title(self, before: str) -> None:
        self.write(f"{before}\x1b]2;{self._title}\x07")

    def close(self) -> None:
        self.finish()
        self.leave_raw_mode()
        self._before = None
        self.detach()

    def _set(self, mode: list[Any]) -> None:
        try:
            termios.tcsetattr(0, termios.TCSANOW, mode)
        except termios.error:
            self.gone = True

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            columns, rows = os.get_terminal_size(self._fd)
        except OSError:
            columns = rows = 0
        return max(columns, LEAST_COLUMNS) if columns else 80, max(rows, LEAST_ROWS) if rows else 24

    # --- writing

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on what the terminal does not take at once is written in the background."""
        from dragoman.tui.pace import Pace

        self._loop, self._pace = loop, self._pace or Pace()

    def detach(self) -> None:
        self._stop_waiting()
        self._loop = None

    @property
    def is_behind(self) -> bool:
        """Whether it has not taken or shown the last frame yet: then the next one waits, and is drawn from how things stand by then."""
        return len(self._backlog) > 0 or self.room == 0

    @property
    def is_slow(self) -> bool:
        return self._pace is not None and self._pace.is_slow

    @property
    def room(self) -> int | None:
        """How many bytes it can take soon; None: any number."""
        return self._pace.room(self._loop.time()) if self._loop is not None and self._pace is not None else None

    def note_sign(self) -> None:
        """It has shown what was written up to where it was asked."""
        if self._loop is not None and self._pace is not None:
            if self._pace.answer(self._loop.time()):
                self.write(_ASK)
            if self.on_written is not None:
                self.on_written()

    def write_frame(self, text: str, *, is_last: bool = False) -> None:
        """`is_last`: somebody else may read the terminal next, so it is asked for nothing."""
        if not text:
            return
        text = f"{_BEGIN}{text}{_END}" if self._synchronised else text
        if self._loop is not None and self._pace is not None and not is_last:
            size = len(text.encode("utf-8", "replace"))
            text = f"{text}{_ASK}" if self._pace.write(size, self._loop.time()) else text
        self.write(text)

    def write(self, text: str) -> None:
        self._backlog += text.encode("utf-8", "replace")
        self._flush()

    def write_now(self, data: bytes) -> None:
        """Without a loop, waiting at most a moment for a terminal that is behind."""
        self._backlog += data
        for _ in range(20):
            if not self._backlog or self.gone:
                return
            self._flush_once()
            if self._backlog:
                _wait_writable(self._fd, 0.05)

    def finish(self) -> None:
        """Write all that waits, for a second at most."""
        self._stop_waiting()
        self.write_now(b"")
        self._await_sign()

    def _await_sign(self) -> None:
        """An answer that is on its way must not reach whoever reads the terminal next."""
        pace, self._pace = self._pace, None
        until_s, read = time.monotonic() + SIGN_S, b""
        while pace is not None and pace.is_asked and not self.gone and ANSWER not in read:
            if not select.select([0], (), (), max(until_s - time.monotonic(), 0))[0]:
                break
            try:
                read += os.read(0, 64)
            except OSError:
                break
        if self._loop is not None:
            self.attach(self._loop)

    def _flush(self) -> None:
        if self._backlog and not self.gone:
            self._flush_once()
        if self._loop is None:
            if self._backlog:
                self.write_now(b"")
            return
        if self._backlog and not self.gone:
            self._loop.add_writer(self._fd, self._flush)
        else:
            self._stop_waiting()
            if self.on_written is not None:
                self.on_written()

    def _flush_once(self) -> None:
        try:
            written = os.write(self._fd, self._backlog[: 1 << 16])
        except BlockingIOError:
            return
        except OSError:  # the window was closed
            self.gone = True
            self._backlog = b""
            return
        self._backlog = self._backlog[written:]

    def _stop_waiting(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_writer(self._fd)


def _wait_writable(descriptor: int, seconds: float) -> None:
    select.select((), [descriptor], (), seconds)


def _reopen(terminal: int) -> int:
    """The same terminal, non-blocking: the shell shares our own descriptor and does not expect that of it."""
    try:
        return os.open(os.ttyname(terminal), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return terminal
