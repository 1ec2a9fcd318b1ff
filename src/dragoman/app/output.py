"""Buffered, non-blocking standard output for streaming.

Text is buffered and written about fifty times a second: a write per chunk would cost more than everything else done to it. A slow reader
does not block the run, and a closed pipe is noticed.
"""

from __future__ import annotations

import errno
import os
import select
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.app.console import descriptor_of

if TYPE_CHECKING:
    import asyncio

FLUSH_EVERY_S = 0.02
PIECE_BYTES = 4_096
"""PIPE_BUF on Linux: a pipe that is ready for writing takes this much without blocking."""


class Output:
    """Standard output. `write` never blocks; `finish` writes the rest and may wait for the reader."""

    def __init__(self, encoding: str = "") -> None:
        self._fd = descriptor_of(sys.stdout)
        self._encoding = encoding or getattr(sys.stdout, "encoding", None) or "utf-8"
        self.is_terminal = self._fd >= 0 and os.isatty(self._fd)
        self.gone = self._fd < 0
        """True once the reader is gone."""
        self.problem: OSError | None = None
        """Why writing failed, other than a closed pipe: a full disk, for example."""
        self.on_gone: Callable[[], None] | None = None
        self.hurry = False
        """Set by a signal during `finish`: what the reader does not take at once is dropped."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._texts: list[str] = []
        self._backlog = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._is_waiting = False
        self._written_s = 0.0
        self._after_drop = b"\n"

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on text is written in the background, by this loop."""
        self._loop = loop

    def detach(self) -> None:
        """Call before the loop ends; `finish` writes the rest."""
        self._stop()
        self._loop = None

    def write(self, text: str) -> None:
        self._texts.append(text)
        if self._loop is None or self._timer is not None or self._is_waiting:
            return
        late_s = self._written_s + FLUSH_EVERY_S - time.monotonic()
        if late_s <= 0:
            self._flush()
        else:
            self._timer = self._loop.call_later(late_s, self._flush)

    def flush(self) -> None:
        """Write what can be written without blocking."""
        if self._texts or self._backlog:
            self._flush()

    def finish(self) -> None:
        """Write everything, waiting for a slow reader. Needs no running loop."""
        self._stop()
        self._encode_texts()
        while self._backlog and not self.gone:
            if _is_writable(self._fd, 0 if self.hurry else 0.2):
                self._write_piece()
            elif self.hurry:
                return

    @property
    def is_cut_short(self) -> bool:
        """Whether output was dropped for lack of time."""
        return self.hurry and bool(self._backlog)

    def abandon(self) -> None:
        """Write what the reader takes at once and drop the rest: the program must end now."""
        self._encode_texts()
        while self._backlog and not self.gone and _is_writable(self._fd, 0):
            self._write_piece()

    def drop_queued(self) -> bool:
        """Drop what a slow terminal has not shown yet, and begin a new line: after Ctrl-C nobody wants to wait for it. A pipe's reader
        gets everything. Returns whether anything was dropped."""
        self._encode_texts()
        is_slow = len(self._backlog) > PIECE_BYTES or (self._backlog and not _is_writable(self._fd, 0))
        if not self.is_terminal or self.gone or not is_slow:
            return False
        self._backlog.clear()
        _drop_sent(self._fd)
        self._backlog += self._after_drop
        return True

    def _flush(self) -> None:
        self._timer = None
        self._written_s = time.monotonic()
        self._encode_texts()
        while self._backlog and not self.gone:
            if not _is_writable(self._fd, 0):
                self._wait_for_reader()
                return
            self._write_piece()
        self._stop()

    def _encode_texts(self) -> None:
        if self._texts:
            self._backlog += "".join(self._texts).encode(self._encoding, "replace")
            self._texts.clear()

    def _write_piece(self) -> None:
        try:
            written = os.write(self._fd, memoryview(self._backlog)[:PIECE_BYTES].tobytes())
        except BlockingIOError:  # another process made it non-blocking
            time.sleep(0.001)
            return
        except OSError as error:
            self.gone = True
            if not _is_closed_pipe(error):
                self.problem = error
            self._backlog.clear()
            self._stop()
            if self.on_gone is not None:
                self.on_gone()
            return
        del self._backlog[:written]

    def _wait_for_reader(self) -> None:
        if self._loop is None or self._is_waiting:
            return
        try:
            self._loop.add_writer(self._fd, self._flush)
            self._is_waiting = True
        except (NotImplementedError, OSError):  # this kind of file cannot be waited for: try again later
            self._timer = self._loop.call_later(FLUSH_EVERY_S, self._flush)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._is_waiting and self._loop is not None:
            self._loop.remove_writer(self._fd)
        self._is_waiting = False


def _is_closed_pipe(error: OSError) -> bool:
    if sys.platform == "win32" and error.errno == errno.EINVAL:  # how Windows reports a closed pipe
        return True
    return error.errno in (errno.EPIPE, errno.EIO)  # EIO: the terminal is gone


if sys.platform == "win32":

    def _is_writable(fd: int, timeout_s: float) -> bool:
        return True

    def _drop_sent(fd: int) -> None:
        pass

else:

    def _is_writable(fd: int, timeout_s: float) -> bool:
        """Also True if writing will fail: the write then reports the error."""
        poll = select.poll()
        poll.register(fd, select.POLLOUT)
        return bool(poll.poll(timeout_s * 1000))

    def _drop_sent(fd: int) -> None:
        """What was written to a terminal and waits in the system's queue."""
        import termios

        try:
            termios.tcflush(fd, termios.TCOFLUSH)
        except termios.error:
            pass
