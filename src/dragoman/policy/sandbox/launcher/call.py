"""One call, in the process that was forked for it: it waits for its order, restricts itself, and starts and watches the command."""

from __future__ import annotations

import os
import select
from _socket import socket

from dragoman.policy.sandbox.launcher import calls, landlock, namespaces, seccomp, terminals
from dragoman.policy.sandbox.launcher.mending import Repairs, mend
from dragoman.policy.sandbox.launcher.order import FILTER_FD, Boundary, Order, read_order
from dragoman.policy.sandbox.launcher.packets import pass_on, receive, tell_failure
from dragoman.policy.sandbox.launcher.supervise import Supervisor, wake_on_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

_DEFAULT_AGAIN = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT)
"""What Python ignores or handles and a command should not inherit so."""
_REHEARSED = Order(("/bin/true",), {"PATH": "/bin"}, "/", boundary=Boundary(writable=("/",), private=(("/", "/"),)))
"""Read by each supervisor while it waits: what a forked process uses for the first time has to be copied, and that takes longest."""


def wait_for_order(kind: str, channel: socket, ids: tuple[int, int] | None) -> None:
    """Be the supervisor of one call. `ids`: to be mapped, in a user namespace that is the call's own; None: it is in the session's, or in
    none. Never returns."""
    try:
        readiness: _Readiness | OSError
        try:
            readiness = _Readiness(kind, ids)
        except OSError as error:
            readiness = error
        received = receive(channel)  # None: the launcher has ended
        channel.close()
        if received is not None:
            _run_call(received[1], readiness)
    finally:
        os._exit(0)  # process 1: the kernel ends whatever is left in its namespace


class _Readiness:
    """What a supervisor does before its order is known, because the command then need not wait for it."""

    def __init__(self, kind: str, ids: tuple[int, int] | None) -> None:
        """Raises OSError."""
        self.wake = wake_on_child()
        self.rules: landlock.Ruleset | None = None
        if kind == "namespaces":
            if ids is not None:
                namespaces.enter_network(*ids)
            namespaces.enter()
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
    control, streams = socket(fileno=descriptors[0]), descriptors[1:]
    try:
        if isinstance(readiness, OSError):
            raise readiness
        received = receive(control)
        if received is None or not received[1]:  # whoever called has thought better of it
            return
        order = read_order(_read_all(received[1][0]))
        if order.kind == "namespaces":
            namespaces.mount_all(order.boundary)
            calls.drop_capabilities()
        if order.proxies:
            _pass_gate(order, control)
        if order.repairs is not None:
            _mend(order, order.repairs, control, readiness.rules)
            return
        terminal = terminals.make(order.terminal, control) if order.terminal is not None else ""
        command = _start(order, streams, control, terminal, readiness.rules)
        for each in (received[1][0], *streams):
            os.close(each)
        control.send(b"started %d" % command)
        Supervisor(control, readiness.wake).watch(command)
    except OSError as error:
        tell_failure(control.fileno(), error)


def _read_all(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _mend(order: Order, repairs: Repairs, control: socket, rules: landlock.Ruleset | None) -> None:
    """Restrict ourselves as for a command, and mend what one has left behind."""
    _restrict(order, rules)
    control.send(b"started 0")
    failures = mend(repairs, lambda: bool(select.select([control], (), (), 0)[0]))
    control.send(b"exited %d" % min(failures, 255))


def _pass_gate(order: Order, control: socket) -> None:
    """Make the call's gate in the network we are in, and tell the command where it is."""
    gate, port = namespaces.open_gate()
    pass_on(control, b"gate", [gate.fileno()])
    gate.close()
    order.env.update({name: f"{url}:{port}" for name, url in order.proxies.items()})


def _start(order: Order, streams: list[int], control: socket, terminal: str, rules: landlock.Ruleset | None) -> int:
    """Restrict ourselves, and start the command within the same restrictions. Raises OSError if it cannot be started.

    A supervisor needs no more than its command has, and starting without another fork saves as much as everything else costs.
    """
    os.chdir(order.directory)
    if terminal:  # the first terminal that a new session opens is its own
        actions = [(os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0), (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
    else:
        actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(streams)]
    if order.kind == "bubblewrap":
        actions.append((os.POSIX_SPAWN_DUP2, _write_filter(order), FILTER_FD))
    _restrict(order, rules)
    control.send(b"taken")  # an order of which nothing was heard is given again
    return os.posix_spawn(order.argv[0], order.argv, order.env, file_actions=actions, setsid=True, setsigdef=_DEFAULT_AGAIN, setsigmask=())


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
        rules.let_write((*(path for path, _ in order.boundary.private), *order.boundary.writable, *order.boundary.caches))
        rules.restrict()
    seccomp.load_filter(seccomp.build_filter(internet=has_network, unix_sockets=order.unix_sockets))


def _write_filter(order: Order) -> int:
    paper = os.memfd_create("filter", os.MFD_CLOEXEC)
    os.write(paper, seccomp.build_filter(internet=True, unix_sockets=order.unix_sockets))
    os.lseek(paper, 0, os.SEEK_SET)
    return paper
