"""Watches one command: reports how it ended, and ends everything it started when told to, or when whoever asked for it is gone."""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from _socket import socket
    from collections.abc import Collection
else:
    import _signal as signal

_POLL_S = 0.005


class Supervisor:
    """The parent of the command and the adoptive parent of everything it leaves behind: process 1 of its namespace, or a subreaper."""

    def __init__(self, control: socket, wake: int) -> None:
        """`wake`: what wake_on_child returned in this process."""
        self._control = control
        self._is_init = os.getpid() == 1
        self._wake = wake

    def watch(self, command: int) -> None:
        """Returns when nothing of the command is alive."""
        while True:
            self._reap(command)
            if not self._has_children():
                return
            ready = select.select([self._control, self._wake], [], [])[0]
            if self._wake in ready:
                drain(self._wake)
            if self._control in ready:
                grace_s = self._read_word()
                if grace_s is not None:
                    self._end(command, grace_s)
                    return

    def _reap(self, command: int) -> None:
        """Collect whoever has ended, and tell about the command."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == command:
                self._tell(b"exited %d" % os.waitstatus_to_exitcode(status))

    def _has_children(self) -> bool:
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return True

    def _read_word(self) -> float | None:
        """How long processes have to end, if they are to end now; None if nothing is to be done."""
        try:
            word = self._control.recv(64)
        except BlockingIOError:
            return None
        except OSError:  # the agent died: ECONNRESET where something was still to be read
            return 0.0
        return float(word.partition(b" ")[2]) if word.startswith(b"end ") else 0.0

    def _tell(self, message: bytes) -> None:
        try:
            self._control.send(message)
        except OSError:  # nobody listens any more
            pass

    def _end(self, command: int, grace_s: float) -> None:
        if grace_s > 0:
            self._signal_all(signal.SIGTERM)
            deadline = time.monotonic() + grace_s
            while time.monotonic() < deadline:
                self._reap(command)
                if not self._has_children():
                    return
                self._wait_a_moment()
        while True:
            self._signal_all(signal.SIGKILL)
            self._reap(command)
            if not self._has_children():
                return
            self._wait_a_moment()

    def _wait_a_moment(self) -> None:
        """Wait until a child has ended, or a moment has passed."""
        select.select([self._wake], (), (), _POLL_S)
        drain(self._wake)

    def _signal_all(self, number: int) -> None:
        if self._is_init:
            send(-1, number)
            return
        for pid in descendants():
            send(pid, number)


def wake_on_child() -> int:
    """A pipe that can be read whenever a child has ended: for select."""
    wake, waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    return wake


def descendants(without: Collection[int] = ()) -> list[int]:
    """All living processes below this one, whatever session or group they moved to, but not these children of ours and what is below them.
    Zombies are not among them."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                # pid (name) state parent …: the name may contain anything, even a bracket
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:  # it has ended
            continue
        parents.setdefault(int(parent), []).append(int(name) if state not in b"ZX" else -int(name))
    found: list[int] = []
    waiting = [os.getpid()]
    without = {*without, *(-pid for pid in without)}
    while waiting:
        children = [pid for pid in parents.get(waiting.pop(), ()) if pid not in without]
        found += [pid for pid in children if pid > 0]
        waiting += [abs(pid) for pid in children]
    return found


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def drain(pipe: int) -> None:
    try:
        while os.read(pipe, 512):
            pass
    except BlockingIOError:
        pass
