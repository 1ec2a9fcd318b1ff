"""Our side of the launcher: starts it with the first command, gives it orders, and has it make holders of sessions."""

from __future__ import annotations

import atexit
import errno
import os
import signal
import socket
import sys
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress

from dragoman.policy.sandbox.launcher.order import Order
from dragoman.policy.sandbox.running import ENDING_S, MOST_BYTES, Running

_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from dragoman.policy.sandbox.launcher.program import main; main()"
_ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
_SOCKET_FD = 3
_PR_SET_DUMPABLE = 4
_MORE_TRIES = 3
_HOLDING_S = 15.0
_VISIT_S = 5.0


class OrderTaker(ABC):
    """A process that starts commands, made when it is first needed and again when somebody has killed it. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: socket.socket | None = None
        self._owner = 0
        _everybody.add(self)

    async def start(self, order: Order, streams: tuple[int, int, int]) -> Running:
        """Start a command with these descriptors as its standard streams. Raises OSError if it cannot be started."""

        async def made() -> Order:
            return order

        return await self.start_early(order.kind, made, streams)

    async def start_early(self, kind: str, make: Callable[[], Awaitable[Order]], streams: tuple[int, int, int]) -> Running:
        """The same for an order that is made while a process for it is woken. Raises what `make` raises."""
        order: Order | None = None
        for _ in range(1 + _MORE_TRIES):
            ours = self._call(kind, streams)
            try:
                order = order or await make()
                _hand_over(order, ours)
                running = Running(ours)
            except BaseException:
                ours.close()
                raise
            try:
                await running.wait_started()
            except BaseException:
                running.close()
                raise
            if running.was_heard:
                break
            running.close()  # the process was killed before anything of the command has run
        if running.fault is not None:
            running.close()
            raise running.fault
        return running

    def try_out(self, order: Order, timeout_s: float = 5.0) -> str:
        """Run a command that says nothing, and return why it failed; empty if it did not. Blocks."""
        failure, heard = self._try(order, timeout_s)
        return failure if heard else self._try(order, timeout_s)[0]  # as in `start`: what nobody took is given again

    def _try(self, order: Order, timeout_s: float) -> tuple[str, list[bytes]]:
        """Why it failed, and all that was heard of it. Raises OSError if there is nobody to take it."""
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            ours = self._call(order.kind, (nothing, nothing, nothing))
        finally:
            os.close(nothing)
        with ours:
            _hand_over(order, ours)
            ours.settimeout(timeout_s)
            heard: list[bytes] = []
            try:
                while message := ours.recv(MOST_BYTES):
                    heard.append(message)
                    if message == b"exited 0":
                        return "", heard
            except OSError as error:
                return str(error), heard
            said = heard[-1].decode("utf-8", "replace") if heard and heard[-1] != b"taken" else ""
            word, _, rest = said.partition(" ")
            return rest.partition(" ")[2] if word == "failed" else said or "no answer", heard

    def close(self) -> None:
        """It ends, and everything it has started."""
        with self._lock:
            self._forget()

    def leave(self) -> None:
        """Like `close`, but without waiting until it has ended: for the end of the program."""
        with self._lock:
            self._drop()

    def abandon(self) -> None:
        """Drop it without ending it: it belongs to another process."""
        self._lock = threading.Lock()
        self._drop()

    # --- the process

    @abstractmethod
    def _open(self) -> socket.socket:
        """Make the process: the socket on which it takes orders. Raises OSError."""

    @abstractmethod
    def _forget(self) -> None:
        """End the process, if it is ours."""

    def _drop(self) -> None:
        if self._orders is not None:
            self._orders.close()
            self._orders = None

    def _call(self, kind: str, streams: tuple[int, int, int]) -> socket.socket:
        """Have somebody wait for an order of this kind: the call's own socket."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self._send_packet(kind.encode(), [theirs.fileno(), *streams])
        except BaseException:
            ours.close()
            raise
        return ours

    def _send_packet(self, words: bytes, descriptors: list[int]) -> None:
        with self._lock:  # so that nobody ends a process to which another is just sending
            try:
                socket.send_fds(self._opened(), [words], descriptors)
            except (BrokenPipeError, ConnectionResetError):  # somebody killed it: one more is started
                self._forget()
                socket.send_fds(self._opened(), [words], descriptors)

    def _opened(self) -> socket.socket:
        if self._orders is None or self._owner != os.getpid():
            self._forget()
            self._orders = self._open()
            self._owner = os.getpid()
        return self._orders


class Launcher(OrderTaker):
    """The process that starts commands; as root it takes on another user (uid, gid) for good."""

    def __init__(self, user: tuple[int, int]) -> None:
        super().__init__()
        self._user = user
        self._pid = 0

    def hold(self, bubblewrap: str, orders: socket.socket) -> None:
        """Have it make the holder of a session, which takes its orders from this end of a socket."""
        self._send_packet(b"hold " + os.fsencode(bubblewrap), [orders.fileno()])

    def _open(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
            python = os.path.realpath(sys.executable)  # that of a virtual environment is a link, which may lie where commands write
            self._pid = os.posix_spawn(
                python,
                [python, "-I", "-S", "-c", _START, _ROOT, str(_SOCKET_FD), *map(str, self._user)],
                {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
                file_actions=[*nothing, (os.POSIX_SPAWN_DUP2, theirs.fileno(), _SOCKET_FD)],
                setsid=True,  # Ctrl-C in the terminal is not meant for it
            )
        return ours

    def _forget(self) -> None:
        if self._orders is not None:
            self._drop()
            if self._owner == os.getpid():
                _reap(self._pid)


class Holder(OrderTaker):
    """The process that holds a session's network, and starts the commands that share it."""

    def __init__(self, launcher: Launcher, bubblewrap: str = "") -> None:
        """`bubblewrap`: the program that makes the network where we may not; empty: we do."""
        super().__init__()
        self._launcher = launcher
        self._bubblewrap = bubblewrap

    def visit(self) -> dict[str, int]:
        """Descriptors made in the session's network, which are the caller's to close: sockets that are not connected, `inet` and `inet6`,
        and the lists `tcp` and `tcp6` of what is open there. Blocks for a moment. Raises OSError, also where there is no network yet."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs, self._lock:
                if self._orders is None or self._owner != os.getpid():
                    raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
                socket.send_fds(self._orders, [b"visit"], [theirs.fileno()])
            ours.settimeout(_VISIT_S)
            words, descriptors, _, _ = socket.recv_fds(ours, MOST_BYTES, 4, socket.MSG_CMSG_CLOEXEC)
        if not words:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return dict(zip(words.decode().split(), descriptors, strict=True))

    def _open(self) -> socket.socket:
        """Blocks for some milliseconds."""
        answer = b""
        for _ in range(_MORE_TRIES):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                with theirs:
                    self._launcher.hold(self._bubblewrap, theirs)
                ours.settimeout(_HOLDING_S)
                answer = ours.recv(MOST_BYTES)
                if answer == b"ready":
                    ours.settimeout(None)
                    return ours
            except BaseException:
                ours.close()
                raise
            ours.close()
            if answer:  # else the launcher was killed before it read this
                break
        _, number, text = (*answer.decode("utf-8", "replace").split(" ", 2), "", "", "")[:3]
        raise OSError(int(number or errno.EPIPE), text or "the holder of the network ended")

    def _forget(self) -> None:
        if self._orders is not None and self._owner == os.getpid():
            try:
                self._orders.shutdown(socket.SHUT_WR)
                self._orders.settimeout(ENDING_S)
                while self._orders.recv(MOST_BYTES):
                    pass
            except OSError:  # it has ended before, or does not within this time
                pass
        self._drop()


def _hand_over(order: Order, control: socket.socket) -> None:
    data = order.to_bytes()
    paper = os.memfd_create("order", os.MFD_CLOEXEC)
    try:
        while data:
            data = data[os.write(paper, data) :]
        with suppress(BrokenPipeError, ConnectionResetError):  # then nothing is heard of it, and it is given again
            socket.send_fds(control, [b"order"], [paper])
    finally:
        os.close(paper)


_everybody: weakref.WeakSet[OrderTaker] = weakref.WeakSet()
_shared: dict[tuple[int, int], Launcher] = {}
_shared_lock = threading.Lock()


def shared_launcher(user: tuple[int, int] | None = None) -> Launcher:
    """The program's own: one for each user that commands run as. It ends with the program."""
    user = user or (os.getuid(), os.getgid())
    with _shared_lock:
        if user not in _shared:
            _shared[user] = Launcher(user)
        return _shared[user]


def _leave_to_parent() -> None:
    """In a child made by fork: its parent's launchers and holders must notice when the parent dies."""
    global _shared_lock
    _shared_lock = threading.Lock()
    for each in list(_everybody):
        each.abandon()
    _shared.clear()


os.register_at_fork(after_in_child=_leave_to_parent)


@atexit.register
def _leave_all() -> None:
    """At the end of the program. They would notice anyway, but Python tells of sockets that were not closed."""
    for each in list(_everybody):
        each.leave()


def _reap(pid: int) -> None:
    """Wait for a launcher that has been told to end; if it does not, kill it."""
    deadline = time.monotonic() + ENDING_S
    try:
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)
    except (ChildProcessError, ProcessLookupError):
        pass


def hide_this_process() -> None:
    """Nobody but root with the right to trace reads our memory and environment: the keys of models are in them."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
