"""Ctrl-C, SIGTERM and SIGHUP: the first cancels cleanly, the second leaves at once, and no cancel takes longer than a second."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import asyncio
    import threading

GRACE_S = 0.95
"""How long cancelling may take before the process is ended all the same."""
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupted(KeyboardInterrupt):
    """A signal came while no run could be cancelled: during start-up, or while the last of the output was written."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


class Interrupts:
    """As a context manager it receives the signals of the process. `code` is the exit code once one has come: 128 + its number.

    Between `attach` and `detach` a signal calls `cancel` in the loop; else it raises Interrupted, or, with `raises` False, ends the
    process at once: an exception in the middle of an import can do harm. A signal that was ignored when the program started (`nohup`,
    a job in the background) stays ignored. `last_words` is called with the exit code just before the process is ended, from a signal
    handler or from another thread; where it returns True, the process is ending by itself at this moment, and is left to it.
    """

    def __init__(self, last_words: Callable[[int], bool | None], *, raises: bool = True) -> None:
        self.code = 0
        self._last_words = last_words
        self._raises = raises
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cancel: Callable[[], None] | None = None
        self._watchdog: threading.Timer | None = None
        self._wake_up: _WakeUp | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for name in _SIGNALS:
            number = getattr(signal, name, None)
            if number is None or signal.getsignal(number) is signal.SIG_IGN:
                continue
            try:
                self._before[number] = signal.signal(number, self._received)
            except ValueError:  # not the main thread: whoever runs us there has signals of their own
                return self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.detach()
        if self._watchdog is not None:
            self._watchdog.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def attach(self, loop: asyncio.AbstractEventLoop, cancel: Callable[[], None]) -> None:
        self._loop, self._cancel = loop, cancel
        if self._before:
            self._wake_up = _WakeUp(loop)

    def detach(self) -> None:
        self._loop = self._cancel = None
        if self._wake_up is not None:
            self._wake_up.close()
            self._wake_up = None

    def _received(self, number: int, frame: FrameType | None) -> None:
        if self.code:
            return self._leave()
        self.code = 128 + number
        if self._loop is None or self._cancel is None:
            if self._raises:
                raise Interrupted(self.code)
            return self._leave()
        self._watch()
        self._loop.call_soon_threadsafe(self._cancel)

    def _watch(self) -> None:
        """Whatever hangs (a name being looked up, a terminal that takes no output) is not waited for."""
        import threading

        self._watchdog = threading.Timer(GRACE_S, self._leave)
        self._watchdog.daemon = True
        self._watchdog.start()

    def _leave(self) -> None:
        is_ending = False
        try:
            is_ending = self._last_words(self.code) is True
        finally:
            if not is_ending:
                os._exit(self.code)


class _WakeUp:
    """Wakes the loop for a signal that comes just before it begins to wait: Python would not look at it until something else happens.

    Where somebody sees to that already, it does nothing.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ends: tuple[int, int] | None = os.pipe()
        for end in self._ends:
            os.set_blocking(end, False)
        try:
            loop.add_reader(self._ends[0], self._drain, self._ends[0])
            before = signal.set_wakeup_fd(self._ends[1], warn_on_full_buffer=False)
        except (NotImplementedError, ValueError):  # a loop that cannot watch pipes; not the main thread
            before = -1
        if before != -1:
            self.close(before)

    def close(self, before: int = -1) -> None:
        if self._ends is None:
            return
        try:
            signal.set_wakeup_fd(before)
            self._loop.remove_reader(self._ends[0])
        except (NotImplementedError, ValueError):
            pass
        for end in self._ends:
            os.close(end)
        self._ends = None

    def _drain(self, end: int) -> None:
        try:
            os.read(end, 1024)
        except BlockingIOError:
            pass
