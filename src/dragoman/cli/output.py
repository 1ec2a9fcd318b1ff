"""Standard output and standard error, as a program that streams needs them.

Text is gathered and written about fifty times a second: a write per chunk would cost more than everything else done to it. A reader that
is slow does not hold up the run, and one that has gone is noticed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.app.console import descriptor_of

if TYPE_CHECKING:
    import asyncio

FLUSH_EVERY_S = 0.02
PIECE_BYTES = 4_096
"""PIPE_BUF on Linux: what a pipe that is ready for writing takes without blocking."""


class Output:
    """Standard output. `write` never blocks; `finish` writes what is left and may wait for the reader."""

    def __init__(self, encoding: str = "") -> None:
        self._fd = descriptor_of(sys.stdout)
        self._encoding = encoding or getattr(sys.stdout, "encoding", None) or "utf-8"
        self.is_terminal = self._fd >= 0 and os.isatty(self._fd)
        self.gone = self._fd < 0
        """True once nobody reads any more."""
        self.problem: OSError | None = None
        """Why writing failed, where it was not for want of a reader: a full disk."""
        self.on_gone: Callable[[], None] | None = None
        self.hurry = False
        """Set by a signal while `finish` is at work: what the reader does not take at once is left."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._texts: list[str] = []
        self._backlog = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._waiting = False
        self._written_s = 0.0

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on a loop runs, and text is written by and by."""
        self._loop = loop

    def detach(self) -> None:
        """The loop is about to end: what is left is for `finish`."""
        self._stop()
        self._loop = None

    def write(self, text: str) -> None:
        self._texts.append(text)
        if self._loop is None or self._timer is not None or self._waiting:
            return
        late_s = self._written_s + FLUSH_EVERY_S - time.monotonic()
        if late_s <= 0:
            self._flush()
        else:
            self._timer = self._loop.call_later(late_s, self._flush)

    def flush(self) -> None:
        """Write now what can be written without waiting."""
        if self._texts or self._backlog:
            self._flush()

    def finish(self) -> None:
        """Write everything, and wait for the reader where it is slow. No loop need be running."""
        self._stop()
        self._gather()
        while self._backlog and not self.gone:
            if _is_writable(self._fd, 0 if self.hurry else 0.2):
                self._put()
            elif self.hurry:
                return

    @property
    def is_cut_short(self) -> bool:
        """Whether something was left because there was no time for it."""
        return self.hurry and bool(self._backlog)

    def abandon(self) -> None:
        """Write what the reader takes at once and forget the rest: the program must end now."""
        self._gather()
        while self._backlog and not self.gone and _is_writable(self._fd, 0):
            self._put()

    def _flush(self) -> None:
        self._timer = None
        self._written_s = time.monotonic()
        self._gather()
        while self._backlog and not self.gone:
            if not _is_writable(self._fd, 0):
                self._wait()
                return
            self._put()
        self._stop()

    def _gather(self) -> None:
        if self._texts:
            self._backlog += "".join(self._texts).encode(self._encoding, "replace")
            self._texts.clear()

    def _put(self) -> None:
        try:
            written = os.write(self._fd, memoryview(self._backlog)[:PIECE_BYTES].tobytes())
        except BlockingIOError:  # somebody made it non-blocking
            time.sleep(0.001)
            return
        except OSError as error:
            self.gone = True
            if not _reader_left(error):
                self.problem = error
            self._backlog.clear()
            self._stop()
            if self.on_gone is not None:
                self.on_gone()
            return
        del self._backlog[:written]

    def _wait(self) -> None:
        if self._loop is None or self._waiting:
            return
        try:
            self._loop.add_writer(self._fd, self._flush)
            self._waiting = True
        except (NotImplementedError, OSError):  # nothing that can be waited for: look again later
            self._timer = self._loop.call_later(FLUSH_EVERY_S, self._flush)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting and self._loop is not None:
            self._loop.remove_writer(self._fd)
        self._waiting = False


def _reader_left(error: OSError) -> bool:
    import errno

    if sys.platform == "win32" and error.errno == errno.EINVAL:  # how Windows tells of a closed pipe
        return True
    return error.errno in (errno.EPIPE, errno.EIO)  # EIO: the terminal is gone


if sys.platform == "win32":

    def _is_writable(fd: int, timeout_s: float) -> bool:
        return True

else:

    def _is_writable(fd: int, timeout_s: float) -> bool:
        """Also True where writing will fail: then the fault is told."""
        import select

        poll = select.poll()
        poll.register(fd, select.POLLOUT)
        return bool(poll.poll(timeout_s * 1000))
