"""The keyboard during a run: single keys, lines, and terminal modes that are always restored."""

from __future__ import annotations

import asyncio
import os
import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

QUIET_S = 0.04
"""Keys closer together than this are delivered as one string: a paste may arrive in pieces, and an arrow key is several bytes."""
ESCAPE = "\x1b"


class Keyboard:
    """Between `open` and `close` keys are not echoed and arrive one by one; Ctrl-C, Ctrl-Z and Ctrl-\\ still send signals.

    Keys typed while no `read_key` waits are kept in `typed`; a single Esc calls `on_escape` instead.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._fd = descriptor
        self._before: list[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: asyncio.Future[str] | None = None
        self._burst = bytearray()
        self._quiet: asyncio.TimerHandle | None = None
        self._is_lent = False
        self.on_escape: Callable[[], None] | None = None
        self.on_gone: Callable[[], None] | None = None
        """Called when the terminal is gone."""
        self.typed = ""

    # --- terminal modes

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self.typed = loop, ""
        self._before = termios.tcgetattr(self._fd)
        self.resume()
        loop.add_reader(self._fd, self._on_readable)

    def close(self) -> None:
        """Restore the terminal. May be called twice, and from a signal handler."""
        before, self._before = self._before, None
        if before is None:
            return
        self._set(before)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        if self._quiet is not None:
            self._quiet.cancel()
            self._quiet = None

    def resume(self) -> None:
        """Switch to single keys: in `open`, and when the stopped program continues."""
        if self._before is None or self._is_lent:
            return
        iflag, oflag, cflag, lflag, ispeed, ospeed, characters = self._before
        characters = list(characters)
        characters[termios.VMIN], characters[termios.VTIME] = 1, 0
        self._set([iflag, oflag, cflag, lflag & ~(termios.ICANON | termios.ECHO), ispeed, ospeed, characters])

    @contextmanager
    def lend(self) -> Generator[None]:
        """The terminal's mode from before `open`, for another program or for the terminal's own line editing."""
        if self._loop is None or self._before is None:
            raise RuntimeError("the keyboard is not open")
        self._loop.remove_reader(self._fd)
        self._is_lent = True
        self._set(self._before)
        try:
            yield
        finally:
            self._is_lent = False
            if self._before is not None:
                self.resume()
                self._loop.add_reader(self._fd, self._on_readable)

    def _set(self, mode: list[Any]) -> None:
        try:
            termios.tcsetattr(self._fd, termios.TCSANOW, mode)
        except termios.error:
            pass  # the terminal is gone

    # --- what is typed

    async def read_key(self) -> str:
        """The next key. Several at once (a paste, an arrow key) come as one string. Call `discard_typed` first to drop earlier keys."""
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            return await self._waiting
        finally:
            self._waiting = None

    async def read_line(self) -> str | None:
        """A line, edited by the terminal itself: only inside `lend`. None: the user pressed Ctrl-D."""
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[bytes] = loop.create_future()
        loop.add_reader(self._fd, self._on_line, arrived)
        try:
            data = await arrived
        finally:
            loop.remove_reader(self._fd)
        return data.decode("utf-8", "replace").rstrip("\r\n") if data else None

    def discard_typed(self) -> None:
        """Drop everything typed so far: it cannot be the answer to a question that was not asked yet."""
        self._burst.clear()
        self.typed = ""
        try:
            termios.tcflush(self._fd, termios.TCIFLUSH)
        except termios.error:
            pass

    def _on_readable(self) -> None:
        data = self._read()
        if data is None:
            return
        if not data:
            return self._close_gone()
        self._burst += data
        if self._quiet is not None:
            self._quiet.cancel()
        if self._loop is not None:
            self._quiet = self._loop.call_later(QUIET_S, self._deliver)

    def _deliver(self) -> None:
        self._quiet = None
        keys = self._burst.decode("utf-8", "replace")
        self._burst.clear()
        if self._waiting is not None:
            if keys and not self._waiting.done():
                self._waiting.set_result(keys)
        elif keys == ESCAPE:
            if self.on_escape is not None:
                self.on_escape()
        elif ESCAPE not in keys:
            self.typed += keys

    def _on_line(self, arrived: asyncio.Future[bytes]) -> None:
        if not arrived.done() and (data := self._read()) is not None:
            arrived.set_result(data)

    def _read(self) -> bytes | None:
        """Empty bytes mean end of file; None: nothing to read."""
        try:
            return os.read(self._fd, 1 << 16)
        except BlockingIOError:  # another reader took it
            return None
        except OSError:
            return b""

    def _close_gone(self) -> None:
        """In this mode end of file means that the terminal is gone."""
        if self._loop is not None:
            self._loop.remove_reader(self._fd)
        if self.on_gone is not None:
            self.on_gone()
