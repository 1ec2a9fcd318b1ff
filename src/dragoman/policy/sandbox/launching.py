"""Our side of the launcher: starts it with the first command, gives it orders, and follows each command over a socket of its own."""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import socket
import sys
import threading
import time

from dragoman.policy.sandbox.launcher.order import Order

_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from dragoman.policy.sandbox.launcher.program import main; main()"
_ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
_SOCKET_FD = 3
_PR_SET_DUMPABLE = 4
_MOST_BYTES = 4096
_MORE_TRIES = 3
ENDING_S = 2.0
"""How long we wait to hear that everything has ended."""


class Launcher:
    """One process that starts commands; as root it takes on another user (uid, gid) for good. Any thread may use it."""

    def __init__(self, user: tuple[int, int]) -> None:
        self._user = user
        self._lock = threading.Lock()
        self._orders: socket.socket | None = None
        self._pid = 0
        self._owner = 0

    async def start(self, order: Order, streams: tuple[int, int, int]) -> Running:
        """Start a command with these descriptors as its standard streams. Raises OSError if it cannot be started."""
        running = await self._give(order, streams)
        for _ in range(_MORE_TRIES):
            if running.was_heard:
                break
            running.close()  # the launcher was killed before anybody took the order, so nothing of it has run
            running = await self._give(order, streams)
        if running.fault is not None:
            running.close()
            raise running.fault
        return running

    async def _give(self, order: Order, streams: tuple[int, int, int]) -> Running:
        """Send the order, and wait until its command has started or failed to."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self._send(order, theirs, streams)
            running = Running(ours)
        except BaseException:
            ours.close()
            raise
        try:
            await running.wait_started()
        except BaseException:
            running.close()
            raise
        return running

    def try_out(self, order: Order, timeout_s: float = 5.0) -> str:
        """Run a command that says nothing, and return why it failed; empty if it did not. Blocks."""
        return self._try_once_or_again(order, timeout_s)[0]

    def try_gate(self, order: Order, timeout_s: float = 5.0) -> bool:
        """Run a command that says nothing, and return whether its gate came out. Blocks."""
        return b"gate" in self._try_once_or_again(order, timeout_s)[1]

    def _try_once_or_again(self, order: Order, timeout_s: float) -> tuple[str, list[bytes]]:
        """As in `start`: an order of which nothing was heard is given again."""
        failure, heard = self._try(order, timeout_s)
        return (failure, heard) if heard else self._try(order, timeout_s)

    def _try(self, order: Order, timeout_s: float) -> tuple[str, list[bytes]]:
        """Why it failed, and all that was heard of it."""
        nothing = os.open(os.devnull, os.O_RDWR)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            try:
                with theirs:
                    self._send(order, theirs, (nothing, nothing, nothing))
            finally:
                os.close(nothing)
            ours.settimeout(timeout_s)
            heard: list[bytes] = []
            try:
                while message := ours.recv(_MOST_BYTES):
                    heard.append(message)
                    if message == b"exited 0":
                        return "", heard
            except OSError as error:
                return str(error), heard
            said = heard[-1].decode("utf-8", "replace") if heard and heard[-1] != b"taken" else ""
            word, _, rest = said.partition(" ")
            return rest.partition(" ")[2] if word == "failed" else said or "no answer", heard

    def close(self) -> None:
        """The launcher ends, and everything it has started."""
        with self._lock:
            self._forget()

    def leave(self) -> None:
        """Like `close`, but without waiting until it has ended: for the end of the program."""
        with self._lock:
            if self._orders is not None:
                self._orders.close()
                self._orders = None

    def abandon(self) -> None:
        """Drop it without ending it: it belongs to another process."""
        self._lock = threading.Lock()
        if self._orders is not None:
            self._orders.close()
            self._orders = None

    # --- the process

    def _send(self, order: Order, control: socket.socket, streams: tuple[int, int, int]) -> None:
        data = order.to_bytes()
        paper = os.memfd_create("order", os.MFD_CLOEXEC)
        try:
            while data:
                data = data[os.write(paper, data) :]
            with self._lock:  # so that nobody ends a launcher to which another is just sending
                self._send_to_launcher(order.kind.encode(), [paper, control.fileno(), *streams])
        finally:
            os.close(paper)

    def _send_to_launcher(self, kind: bytes, descriptors: list[int]) -> None:
        try:
            socket.send_fds(self._running_launcher(), [kind], descriptors)
        except (BrokenPipeError, ConnectionResetError):  # somebody killed it: one more is started
            self._forget()
            socket.send_fds(self._running_launcher(), [kind], descriptors)

    def _running_launcher(self) -> socket.socket:
        if self._orders is None or self._owner != os.getpid():
            self._forget()
            self._orders = self._start_launcher()
            self._owner = os.getpid()
        return self._orders

    def _start_launcher(self) -> socket.socket:
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
            self._orders.close()
            self._orders = None
            if self._owner == os.getpid():
                _reap(self._pid)


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
    """In a child made by fork: its parent's launchers must notice when the parent dies."""
    global _shared_lock
    _shared_lock = threading.Lock()
    for launcher in _shared.values():
        launcher.abandon()
    _shared.clear()


os.register_at_fork(after_in_child=_leave_to_parent)


@atexit.register
def _leave_all() -> None:
    """At the end of the program. Launchers would notice anyway, but Python tells of sockets that were not closed."""
    for launcher in list(_shared.values()):
        launcher.leave()


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


class Running:
    """A command that was started, and everything it starts. Belongs to one event loop."""

    def __init__(self, control: socket.socket) -> None:
        self.pid = 0
        """In its own process namespace, where it has one."""
        self.returncode: int | None = None
        """As subprocess has it: negative if a signal ended it. None while it runs."""
        self.gate_fd: int | None = None
        """A listener inside its network namespace, where one was ordered. Whoever takes it closes it."""
        self.terminal_fd: int | None = None
        """The terminal's own end, where one was ordered. Whoever takes it closes it."""
        self.was_heard = False
        """Whether anybody took the order. If not and it has ended, nothing of it has run."""
        self.fault: OSError | None = None
        """Why it could not be started."""
        self._control = control
        self._has_started = asyncio.Event()
        self._exited = asyncio.Event()
        self._gone = asyncio.Event()
        control.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(control.fileno(), self._read)

    async def wait_started(self) -> None:
        """Wait until it has started, or has failed to: then there is a `fault`."""
        await self._has_started.wait()

    async def wait(self) -> int:
        """Wait until the command itself has ended; what it started may still run."""
        await self._exited.wait()
        assert self.returncode is not None
        return self.returncode

    async def end(self, grace_s: float) -> bool:
        """End whatever of it is alive: SIGTERM, then SIGKILL after `grace_s`. Returns whether it is known that nothing is left."""
        try:
            self._control.send(b"end %f" % grace_s)
        except OSError:  # it has ended by itself
            pass
        try:
            async with asyncio.timeout(grace_s + ENDING_S):
                await self._gone.wait()
        except TimeoutError:
            pass
        finally:
            self.close()
        return self._gone.is_set()

    def close(self) -> None:
        """Whatever of it is alive is killed, without our waiting for it."""
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control.fileno())
            self._control.close()
        for descriptor in (self.gate_fd, self.terminal_fd):
            if descriptor is not None:
                os.close(descriptor)
        self.gate_fd = self.terminal_fd = None

    def take_gate(self) -> int | None:
        """The gate's descriptor, which from now on is the caller's to close."""
        taken, self.gate_fd = self.gate_fd, None
        return taken

    def take_terminal(self) -> int | None:
        """The terminal's descriptor, which from now on is the caller's to close."""
        taken, self.terminal_fd = self.terminal_fd, None
        return taken

    def _read(self) -> None:
        while True:
            try:
                message, descriptors, _, _ = socket.recv_fds(self._control, _MOST_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return
            except OSError:  # ECONNRESET: it ended with something of ours unread
                message, descriptors = b"", list[int]()
            if not message:
                self._finish()
                return
            self._hear(message, descriptors)

    def _hear(self, message: bytes, descriptors: list[int]) -> None:
        self.was_heard = True
        word, _, rest = message.partition(b" ")
        match word:
            case b"gate":
                self.gate_fd = descriptors[0] if descriptors else None
            case b"terminal":
                self.terminal_fd = descriptors[0] if descriptors else None
            case b"started":
                self.pid = int(rest)
                self._has_started.set()
            case b"exited":
                self.returncode = int(rest)
                self._exited.set()
            case b"failed":
                number, _, text = rest.decode("utf-8", "replace").partition(" ")
                self.fault = OSError(int(number), text)
                self._has_started.set()
            case _:
                pass

    def _finish(self) -> None:
        """Note that nothing of it is alive any more, or that its supervisor was killed: then the launcher ends the rest."""
        self._loop.remove_reader(self._control.fileno())
        if not self._has_started.is_set():
            self.fault = OSError(32, "the launcher of commands ended")
        if self.returncode is None:
            self.returncode = -9
        self._has_started.set()
        self._exited.set()
        self._gone.set()


def hide_this_process() -> None:
    """Nobody but root with the right to trace reads our memory and environment: the keys of models are in them."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
