"""The launcher itself. One for a program: it waits for orders, forks, restricts the child, and execs.

An order is a packet on its socket with five descriptors: the order as a file, the call's own socket, and the command's standard streams.
Everything about the command goes over the call's own socket: `taken` before anything is done, `failed`, `started`, `exited`, and the end of
the socket when nothing of the command is alive. When the launcher's own socket closes, whoever started it is gone: then it ends all it has
started.

Everything is loaded before the first order: as another user we might not be allowed to read it. A fork costs as much as there is memory to
copy, so little is loaded: `_socket` and `_signal` instead of the large modules around them.
"""

from __future__ import annotations

import fcntl
import gc
import os
import pwd
import select
import sys
from _socket import AF_UNIX, CMSG_SPACE, MSG_CMSG_CLOEXEC, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socket, socketpair
from array import array

from dragoman.policy.sandbox.launcher import calls, landlock, namespaces, seccomp, terminals
from dragoman.policy.sandbox.launcher.mending import Repairs, mend
from dragoman.policy.sandbox.launcher.order import BLOCK_FD, FILTER_FD, INFO_FD, Boundary, Order, read_order
from dragoman.policy.sandbox.launcher.supervise import Supervisor, descendants, drain, send, wake_on_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

DESCRIPTORS = 5
_IDLE_S = 0.01
_DEFAULT_AGAIN = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT)
"""What Python ignores or handles and a command should not inherit so."""
_REHEARSED = Order(("/bin/true",), {"PATH": "/bin"}, "/", boundary=Boundary(writable=("/",), private=(("/", "/"),)))
"""Read by each supervisor while it waits: what a forked process uses for the first time has to be copied, and that takes longest."""


def main() -> None:
    """`program SOCKET UID GID`; as root a uid other than 0 is taken on at once."""
    orders = socket(fileno=int(sys.argv[1]))
    os.set_inheritable(orders.fileno(), False)
    os.closerange(orders.fileno() + 1, os.sysconf("SC_OPEN_MAX"))  # whatever the program that started us left open
    os.chdir("/")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _switch_user(int(sys.argv[2]), int(sys.argv[3]))
    calls.prctl(calls.PR_SET_DUMPABLE, 0)
    calls.prctl(calls.PR_SET_CHILD_SUBREAPER, 1)
    _prepare()
    gc.disable()  # a collection would write to every page that the forks share
    wake = wake_on_child()
    supervisors: set[int] = set()
    spares: dict[str, _Spare] = {}
    used: set[str] = set()
    while True:
        ready = select.select([orders, wake], (), (), _IDLE_S if used else None)[0]
        if not ready:
            _make_spares(used, spares, supervisors, orders)
            used.clear()
        if wake in ready:
            drain(wake)
            _collect(supervisors)
        if orders not in ready:
            continue
        received = _receive(orders)
        if received is None:
            break
        kind, descriptors = received
        _serve(kind, descriptors, spares, supervisors, orders)
        used.add(kind)
    for spare in spares.values():
        spare.channel.close()
    # Supervisors last: should we be killed meanwhile, they end what is left.
    while _end([pid for pid in descendants() if pid not in supervisors]):
        _collect(supervisors)
    while _end(descendants()):
        _collect(set())


class _Spare:
    """A supervisor made before its command is known: most of what a start costs is done by then. It waits for the order."""

    def __init__(self, kind: str, strangers: list[socket]) -> None:
        """`strangers`: the launcher's own sockets, which are not for its children. Raises OSError."""
        self.channel, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        uid, gid = os.getuid(), os.getgid()  # in a new namespace they are unknown until they are mapped
        self.pid = calls.clone(namespaces.NEW) if kind == "namespaces" else os.fork()
        if self.pid == 0:
            for each in (*strangers, self.channel):
                each.close()
            _wait_for_order(kind, theirs, uid, gid)
        theirs.close()

    def give(self, descriptors: list[int]) -> bool:
        """Returns False if it has ended meanwhile."""
        try:
            self.channel.sendmsg([b"order"], [(SOL_SOCKET, SCM_RIGHTS, array("i", descriptors))])
        except OSError:
            return False
        finally:
            self.channel.close()
        return True


def _serve(kind: str, descriptors: list[int], spares: dict[str, _Spare], supervisors: set[int], orders: socket) -> None:
    """Give an order to the spare of its kind, or to a new one."""
    spare = spares.pop(kind, None)
    is_whole = len(descriptors) == DESCRIPTORS  # else too many files are open here: the call's socket closes, which tells it
    try:
        if is_whole and (spare is None or not spare.give(descriptors)):
            spare = _Spare(kind, [orders, *(other.channel for other in spares.values())])
            supervisors.add(spare.pid)
            spare.give(descriptors)
    except OSError as error:
        _tell_failure(descriptors[1], error)
    for each in descriptors:
        os.close(each)


def _make_spares(kinds: set[str], spares: dict[str, _Spare], supervisors: set[int], orders: socket) -> None:
    """For the next order of each kind. Done when there is nothing else to do, so that no command waits for it."""
    for kind in kinds - set(spares):
        try:
            spares[kind] = _Spare(kind, [orders, *(other.channel for other in spares.values())])
        except OSError:  # then it is tried again when it is needed
            continue
        supervisors.add(spares[kind].pid)


def _prepare() -> None:
    """Find out and build once what all commands share."""
    landlock.version()
    for internet in (True, False):
        for unix_sockets in (True, False):
            seccomp.describe_filter(seccomp.build_filter(internet=internet, unix_sockets=unix_sockets))


def _switch_user(uid: int, gid: int) -> None:
    if os.getuid() != 0 or uid == 0:
        return
    try:
        os.initgroups(pwd.getpwuid(uid).pw_name, gid)
    except KeyError:
        os.setgroups([gid])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def _receive(orders: socket) -> tuple[str, list[int]] | None:
    """The kind of the next order, and its descriptors; None when there are no more."""
    try:
        data, ancillary, _, _ = orders.recvmsg(64, CMSG_SPACE(4 * DESCRIPTORS), MSG_CMSG_CLOEXEC)
    except OSError:  # ECONNRESET: the other side died with something unread
        return None
    received = array("i")
    for _, _, bytes_of in ancillary:
        received.frombytes(bytes_of[: len(bytes_of) // 4 * 4])
    return (data.decode(), received.tolist()) if data else None


def _read_all(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _collect(supervisors: set[int]) -> None:
    """Reap supervisors that have ended, and end what a supervisor that was killed has left behind."""
    was_killed = False
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            was_killed = was_killed or ended[1] != 0
            supervisors.discard(ended[0])
    except ChildProcessError:
        return
    while was_killed and _end(descendants(supervisors)):
        _collect(supervisors)


def _end(processes: list[int]) -> bool:
    for pid in processes:
        send(pid, signal.SIGKILL)
    return bool(processes)


# --- in the child ---------------------------------------------------------------------------------------------------------


def _wait_for_order(kind: str, channel: socket, uid: int, gid: int) -> None:
    """The supervisor of one call. Never returns."""
    try:
        readiness: _Readiness | OSError
        try:
            readiness = _Readiness(kind, uid, gid)
        except OSError as error:
            readiness = error
        received = _receive(channel)  # None: the launcher has ended
        channel.close()
        if received is not None:
            _run_call(received[1], readiness)
    finally:
        os._exit(0)  # process 1: the kernel ends whatever is left in its namespace


class _Readiness:
    """What a supervisor does before its order is known, because the command then need not wait for it."""

    def __init__(self, kind: str, uid: int, gid: int) -> None:
        """Raises OSError."""
        self.wake = wake_on_child()
        self.rules: landlock.Ruleset | None = None
        if kind == "namespaces":
            namespaces.enter(uid, gid)
            # Landlock is older than some kernels with namespaces: there the mounts are the boundary.
            if landlock.version():
                self.rules = landlock.Ruleset(without_tcp=False)
                self.rules.let_read(("/",))
                self.rules.let_write(("/dev", "/proc"))
            namespaces.rehearse()
        else:
            calls.prctl(calls.PR_SET_CHILD_SUBREAPER, 1)
        if kind == "bubblewrap":
            os.close(_write_filter(_REHEARSED))
        read_order(_REHEARSED.to_bytes())


def _run_call(descriptors: list[int], readiness: _Readiness | OSError) -> None:
    control = socket(fileno=descriptors[1])
    try:
        control.send(b"taken")  # an order of which nothing was heard is given again
        if isinstance(readiness, OSError):
            raise readiness
        order = read_order(_read_all(descriptors[0]))
        if order.kind == "namespaces":
            _set_up_inside(order, control)
        if order.repairs is not None:
            _mend(order, order.repairs, control, readiness.rules)
            return
        terminal = terminals.make(order.terminal, control) if order.terminal is not None else ""
        command = _start(order, descriptors, control, terminal, readiness.rules)
        for each in descriptors[2:]:
            os.close(each)
        control.send(b"started %d" % command)
        Supervisor(control, readiness.wake).watch(command)
    except OSError as error:
        _tell_failure(control.fileno(), error)


def _mend(order: Order, repairs: Repairs, control: socket, rules: landlock.Ruleset | None) -> None:
    """Restrict ourselves as for a command, and mend what one has left behind."""
    _restrict(order, rules)
    control.send(b"started 0")
    failures = mend(repairs, lambda: bool(select.select([control], (), (), 0)[0]))
    control.send(b"exited %d" % min(failures, 255))


def _set_up_inside(order: Order, control: socket) -> None:
    namespaces.mount_all(order.boundary)
    if order.gate_port:
        _pass_gate(order.gate_port, control)
    calls.drop_capabilities()


def _pass_gate(port: int, control: socket) -> None:
    gate = namespaces.open_gate(port)
    control.sendmsg([b"gate"], [(SOL_SOCKET, SCM_RIGHTS, array("i", [gate.fileno()]))])
    gate.close()


def _start(order: Order, descriptors: list[int], control: socket, terminal: str, rules: landlock.Ruleset | None) -> int:
    """Restrict ourselves, and start the command within the same restrictions. Raises OSError if it cannot be started.

    A supervisor needs no more than its command has, and starting without another fork saves as much as everything else costs.
    """
    os.chdir(order.directory)
    if terminal:  # the first terminal that a new session opens is its own
        actions = [(os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0), (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
    else:
        actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(descriptors[2:])]
    if order.kind == "bubblewrap":
        actions.append((os.POSIX_SPAWN_DUP2, _write_filter(order), FILTER_FD))
    door = _WrappedDoor(order.gate_port, control) if order.kind == "bubblewrap" and order.gate_port else None
    if door is not None:
        actions += door.actions
    _restrict(order, rules)
    command = os.posix_spawn(
        order.argv[0], order.argv, order.env, file_actions=actions, setsid=True, setsigdef=_DEFAULT_AGAIN, setsigmask=()
    )
    if door is not None:
        door.open()
    return command


class _WrappedDoor:
    """Makes the gate in a network that bubblewrap has made: it tells its child's id and waits, a child of ours goes in and comes back with
    the listener, and then bubblewrap starts the command."""

    def __init__(self, port: int, control: socket) -> None:
        self._port = port
        self._control = control
        self._info, info = _pipe()
        block, self._block = _pipe()
        self._theirs = (info, block)
        self.actions = [(os.POSIX_SPAWN_DUP2, info, INFO_FD), (os.POSIX_SPAWN_DUP2, block, BLOCK_FD)]

    def open(self) -> None:
        for each in self._theirs:
            os.close(each)
        told = b""
        while b"}" not in told and (more := os.read(self._info, 4096)):
            told += more
        _, found, rest = told.partition(b'"child-pid":')
        if found:
            self._visit(int(rest.split(b"}")[0].split(b",")[0]))
        os.write(self._block, b"go")
        os.close(self._info)
        os.close(self._block)

    def _visit(self, pid: int) -> None:
        visitor = os.fork()
        if visitor:
            os.waitpid(visitor, 0)
            return
        try:
            namespaces.join_network_of(pid)
            _pass_gate(self._port, self._control)
        except OSError:  # then there is no gate, and no network
            pass
        finally:
            os._exit(0)


def _pipe() -> tuple[int, int]:
    """Out of the way of the numbers that bubblewrap's descriptors get."""
    ends = os.pipe2(os.O_CLOEXEC)
    moved = tuple(fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 2 * BLOCK_FD) for each in ends)
    for each in ends:
        os.close(each)
    return moved[0], moved[1]


def _restrict(order: Order, rules: landlock.Ruleset | None) -> None:
    """`rules`: what was prepared of them before the order was known."""
    if order.kind == "plain":
        if order.drop_spying and os.getuid() == 0:
            calls.drop_spying()
        return
    if order.kind == "bubblewrap":  # it makes its own namespaces, which Landlock would forbid, and loads the filter itself
        return
    has_network = order.kind == "namespaces"
    if not has_network:
        calls.drop_capabilities()
        rules = landlock.Ruleset(without_tcp=True)
        rules.let_read(order.boundary.readable)
        rules.let_write(("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/shm"))
    if rules is not None:
        rules.let_write((*(path for path, _ in order.boundary.private), *order.boundary.writable))
        rules.restrict()
    seccomp.load_filter(seccomp.build_filter(internet=has_network, unix_sockets=order.unix_sockets))


def _write_filter(order: Order) -> int:
    paper = os.memfd_create("filter", os.MFD_CLOEXEC)
    os.write(paper, seccomp.build_filter(internet=True, unix_sockets=order.unix_sockets))
    os.lseek(paper, 0, os.SEEK_SET)
    return paper


def _tell_failure(control: int, error: OSError) -> None:
    speaker = socket(fileno=os.dup(control))
    try:
        speaker.send(f"failed {error.errno or 1} {error.strerror or error}".encode())
    except OSError:
        pass
    speaker.close()
