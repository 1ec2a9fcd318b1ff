"""The keyboard and the signals of a conversation while its loop runs, and lending the terminal to others."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

from dragoman.tui.canvas import Canvas
from dragoman.tui.keys import Key, KeyReader, Paste

EXIT_HUNG_UP = 129
_AT_ONCE_S = 0.5
"""The signal that continues us after a suspension of our own comes within this time."""
_SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGWINCH", "SIGTSTP", "SIGCONT", "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)  # Windows has two of them
)


class Listening:
    """Between `start` and `stop` keys go to `press`; the window's size, suspension and the end of the terminal are heeded."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        reader: KeyReader,
        press: Callable[[Key | Paste], None],
        canvas: Canvas,
        leave: Callable[[int], None],
    ) -> None:
        self._loop = loop
        self._reader = reader
        self._press = press
        self._canvas = canvas
        self._leave = leave
        self._timer: asyncio.TimerHandle | None = None
        self._continued_s = float("-inf")
        reader.on_sign = lambda: canvas.terminal.note_sign()

    def start(self) -> None:
        loop = self._loop
        loop.add_reader(0, self._read)
        loop.add_signal_handler(signal.SIGWINCH, self._canvas.note_size)
        loop.add_signal_handler(signal.SIGTSTP, self.suspend)
        loop.add_signal_handler(signal.SIGCONT, self._go_on)
        loop.add_signal_handler(signal.SIGINT, self._press, Key("ctrl-c"))
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            loop.add_signal_handler(number, self._leave, 128 + number)
        self._wait_for_rest()  # an Esc that was read before us, just now, is still to be told from the beginning of another key

    def stop(self) -> None:
        self._loop.remove_reader(0)
        if self._timer is not None:
            self._timer.cancel()
        for number in _SIGNALS:
            self._loop.remove_signal_handler(number)

    def _read(self) -> None:
        try:
            data = os.read(0, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:  # in raw mode this means that the terminal is gone
            self._canvas.terminal.gone = True
            self._loop.remove_reader(0)
            return self._leave(EXIT_HUNG_UP)
        for event in self._reader.feed(data):
            self._press(event)
        self._wait_for_rest()

    def _wait_for_rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._reader.waits_s:
            self._timer = self._loop.call_later(self._reader.waits_s, self._take_rest)

    def _take_rest(self) -> None:
        self._timer = None
        for event in self._reader.rest():
            self._press(event)

    # --- others on this terminal

    @contextmanager
    def lend(self) -> Generator[None]:
        """Lend the terminal to another program: the live region is removed, and keys and Ctrl-C go to that program."""
        self._canvas.lend()
        self._loop.remove_reader(0)
        self._loop.add_signal_handler(signal.SIGINT, lambda: None)
        try:
            yield
        finally:
            self._canvas.take()
            self._loop.add_reader(0, self._read)
            self._loop.add_signal_handler(signal.SIGINT, self._press, Key("ctrl-c"))

    def suspend(self) -> None:
        """Ctrl-Z: the shell gets its terminal back; a run goes on when we do."""
        if self._canvas.is_lent:
            return
        self._canvas.lend()
        self._loop.remove_signal_handler(signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(0, signal.SIGTSTP)  # this process stands still here until it is continued
        self._continued_s = self._loop.time()
        self._loop.add_signal_handler(signal.SIGTSTP, self.suspend)
        self._canvas.take()

    def _go_on(self) -> None:
        """Continued after a stop that we did not see coming: the shell has changed the terminal's modes."""
        if not self._canvas.is_lent and self._loop.time() - self._continued_s > _AT_ONCE_S:
            self._canvas.take()
