"""Ctrl-C, SIGTERM and SIGHUP: the first cancels cleanly, the second exits at once, and no cancel takes longer than a second."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import asyncio

GRACE_S = 0.95
"""How long cancelling may take before the process exits anyway."""
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupted(KeyboardInterrupt):
    """A signal arrived while there was no run to cancel: during start-up, or while the last output was written."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


class Interrupts:
    """A context manager that handles the process's signals. After a signal, `code` is the exit code: 128 + its number.

    Between `attach` and `detach` a signal calls `cancel` in the loop. Otherwise it raises Interrupted, or with `raises` False exits the
    process at once, because an exception in the middle of an import can do harm. A signal that was ignored when the program started
    (`nohup`, a background job) stays ignored. `before_exit` is called with the exit code just before the process exits, from a signal
    handler or another thread; if it returns True, the process is already finishing by itself and is not killed.
    """

    def __init__(self, before_exit: Callable[[int], bool | None], *, raises: bool = True) -> None:
        self.code = 0
        self._before_exit = before_exit
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
                self._before[number] = signal.signal(number, self._on_signal)
            except ValueError:  # not the main thread: the embedding program handles signals
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
        if self._before and os.name == "posix":  # the loop on Windows has a descriptor of its own for signals
            self._wake_up = _WakeUp(loop)

    @contextmanager
    def cancelling(self, task: asyncio.Task[Any] | None) -> Generator[None]:
        """While it is open, a signal cancels this task: the one at work, `asyncio.current_task()`."""
        assert task is not None

        def cancel() -> None:
            task.cancel()

        self.attach(task.get_loop(), cancel)
        try:
            yield
        finally:
            self.detach()

    def detach(self) -> None:
        self._loop = self._cancel = None
        if self._wake_up is not None:
            self._wake_up.close()
            self._wake_up = None

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.code:
            return self._exit()
        self.code = 128 + number
        if self._loop is None or self._cancel is None:
            if self._raises:
                raise Interrupted(self.code)
            return self._exit()
        self._start_watchdog()
        self._loop.call_soon_threadsafe(self._cancel)

    def _start_watchdog(self) -> None:
        """Exit even if something hangs, such as a DNS lookup or a paused terminal."""
        self._watchdog = threading.Timer(GRACE_S, self._exit)
        self._watchdog.daemon = True
        self._watchdog.start()

    def _exit(self) -> None:
        is_ending = False
        try:
            is_ending = self._before_exit(self.code) is True
        finally:
            if not is_ending:
                os._exit(self.code)


class _WakeUp:
    """Wakes the loop for a signal that arrives just before it starts to wait: Python would handle it only at the next event.

    Does nothing if a wakeup descriptor is already set.
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
