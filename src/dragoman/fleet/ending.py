"""Ends an attempt: whatever was started below a worker ends with it, also what left its group, and when its time is up.

A worker adopts what its processes leave behind (Linux), so that it finds all of them. A thread of its own watches the deadline: it ends
the worker where its event loop hangs.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from dragoman.fleet import files

GRACE_S = 5.0
"""Between TERM and KILL."""
HANGING_S = 2.0
"""After the grace, a worker that is still not done ends itself."""
DEADLINE_FILE = "deadline"
"""When a worker has to have ended at the latest, for whoever started it on this machine: a worker that was stopped ends nothing. On the
monotonic clock, which is the same for all processes: the other one jumps, and goes on while a machine sleeps."""
_WAITS = b"waits"
EXIT_OVERDUE = 124
_LAUNCHER = b"dragoman.policy.sandbox.launcher"


def adopt_orphans() -> None:
    """From now on, processes whose parent ends become children of this one."""
    if sys.platform != "linux":
        return
    from dragoman.policy.sandbox.launcher.calls import PR_SET_CHILD_SUBREAPER, prctl

    prctl(PR_SET_CHILD_SUBREAPER, 1, ignore=True)


def commands_below() -> list[int]:
    """Living processes below this one, but those that look after commands for us."""
    return [pid for pid in _below() if _LAUNCHER not in _command_line(pid)]


def signal_below(number: int) -> bool:
    """Send a signal to every command below this process. Returns whether there is one."""
    found = commands_below()
    for pid in found:
        _send(pid, number)
    return bool(found)


def end_below(within_s: float = 2.0) -> bool:
    """Kill everything below this process, until nothing is left. Returns whether that was so in time."""
    until = time.monotonic() + within_s
    while left := _below():
        for pid in left:
            _send(pid, signal.SIGKILL)
        _collect()
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


class Watchdog:
    """Ends the worker from a thread of its own, if it still runs at a certain time."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, DEADLINE_FILE)
        self._until_s: float | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def set(self, left_s: float | None, *, is_waiting: bool = False) -> None:
        """So much time from now on; None: any. `is_waiting`: for the service's limits, which no time is counted for."""
        with self._lock:
            self._until_s = None if left_s is None else time.monotonic() + left_s
            files.rewrite(self._path, _WAITS if is_waiting else b"" if self._until_s is None else b"%.3f" % self._until_s)
            if self._thread is None and left_s is not None:
                self._thread = threading.Thread(target=self._watch, daemon=True)
                self._thread.start()

    def _watch(self) -> None:
        while True:
            with self._lock:
                left_s = 1.0 if self._until_s is None else self._until_s - time.monotonic()
            if left_s <= 0:
                end_below()
                os._exit(EXIT_OVERDUE)
            time.sleep(min(left_s, 1.0))


def is_overdue(folder: str) -> bool:
    """Whether the worker of this folder should have ended by now."""
    try:
        return time.monotonic() > float(_told(folder) or b"inf")
    except ValueError:
        return False


def is_waiting(folder: str) -> bool:
    """Whether all that the worker of this folder does is to wait for the service's limits."""
    return _told(folder) == _WAITS


def _told(folder: str) -> bytes:
    try:
        return files.read_file(os.path.join(folder, DEADLINE_FILE), 64)
    except OSError:
        return b""


def _below() -> list[int]:
    from dragoman.policy.sandbox.launcher.supervise import descendants

    try:
        return descendants()
    except OSError:  # no /proc
        return []


def _command_line(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
            return file.read(4096)
    except OSError:
        return b""


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def _collect() -> None:
    """Collect whoever has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
