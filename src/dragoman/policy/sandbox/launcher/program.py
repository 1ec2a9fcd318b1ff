"""The launcher's own program. There is one for each Dragoman process: it waits for orders, forks, restricts the child, and execs.

A call is a packet on its socket with four descriptors: the call's own socket, and the command's standard streams.
Everything else goes over the call's own socket. The order comes in as a file, a moment later: what is to be in it is still being found out
while somebody is already there to take it. Out go `taken` before the command is started, `failed`, `started`, `exited`, and the end of
the socket when nothing of the command is alive. When the launcher's own socket closes, whoever started it is gone: then it ends all it has
started.

`hold` makes another that does the same over a socket of its own, inside a network of its own: the holder of a session. It outlives the
launcher, and ends with its socket.

Everything is loaded before the first order: as another user we might not be allowed to read it. A fork costs as much as there is memory to
copy, so little is loaded: `_socket` and `_signal` instead of the large modules around them.
"""

from __future__ import annotations

import gc
import os
import select
import sys
from _socket import AF_UNIX, SOCK_SEQPACKET, socket, socketpair

from dragoman.policy.sandbox.launcher import calls, landlock, namespaces, networks, seccomp
from dragoman.policy.sandbox.launcher.call import wait_for_order
from dragoman.policy.sandbox.launcher.packets import DESCRIPTORS, pass_on, receive, tell_failure
from dragoman.policy.sandbox.launcher.supervise import descendants, drain, send, wake_on_child

try:
    import pwd
except ImportError:  # Windows, where no launcher runs
    pass

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

_IDLE_S = 0.01


def main() -> None:
    """`program SOCKET UID GID`; as root a uid other than 0 is taken on at once."""
    orders = socket(fileno=int(sys.argv[1]))
    os.set_inheritable(orders.fileno(), False)
    os.closerange(orders.fileno() + 1, os.sysconf("SC_OPEN_MAX"))  # whatever the program that started us left open
    os.chdir("/")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _switch_user(int(sys.argv[2]), int(sys.argv[3]))
    calls.prctl(calls.PR_SET_DUMPABLE, 0)
    _prepare()
    gc.disable()  # a collection would write to every page that the forks share
    Starter(orders, in_session=False).serve()


class Starter:
    """Takes orders from a socket, and ends all it has started when that closes. `in_session`: as the holder of a session's network."""

    def __init__(self, orders: socket, *, in_session: bool) -> None:
        self._orders = orders
        self._in_session = in_session
        self._is_init = os.getpid() == 1
        self._children: set[int] = set()
        """Supervisors of calls, spares, and holders of sessions: each ends what is its own."""
        self._spares: dict[str, _Spare] = {}

    def serve(self) -> None:
        """Returns when the socket has closed and nothing is left."""
        calls.prctl(calls.PR_SET_CHILD_SUBREAPER, 1)
        wake = wake_on_child()
        used: set[str] = set()
        while True:
            ready = select.select([self._orders, wake], (), (), _IDLE_S if used else None)[0]
            if not ready:
                self._make_spares(used)
                used.clear()
            if wake in ready:
                drain(wake)
                self._collect()
            if self._orders not in ready:
                continue
            received = receive(self._orders)
            if received is None:
                break
            word, _, rest = received[0].partition(" ")
            if word in ("hold", "visit"):
                self._hold(rest, received[1]) if word == "hold" else networks.show(received[1])
            else:
                self._start(word, received[1])
                used.add(word)
        for spare in self._spares.values():
            spare.channel.close()
        self._end_all()

    def _start(self, kind: str, descriptors: list[int]) -> None:
        """Give a call to the spare of its kind, or to a new one."""
        spare = self._spares.pop(kind, None)
        is_whole = len(descriptors) == DESCRIPTORS  # else too many files are open here: the call's socket closes, which tells it
        try:
            if is_whole and (spare is None or not spare.give(descriptors)):
                self._make_spare(kind).give(descriptors)
        except OSError as error:
            tell_failure(descriptors[0], error)
        for each in descriptors:
            os.close(each)

    def _make_spares(self, kinds: set[str]) -> None:
        """For the next order of each kind. Done when there is nothing else to do, so that no command waits for it."""
        for kind in kinds - set(self._spares):
            try:
                self._spares[kind] = self._make_spare(kind)
            except OSError:  # then it is tried again when it is needed
                continue

    def _make_spare(self, kind: str) -> _Spare:
        """Raises OSError."""
        spare = _Spare(kind, self._sockets(), in_session=self._in_session)
        self._children.add(spare.pid)
        return spare

    def _hold(self, bubblewrap: str, descriptors: list[int]) -> None:
        """Make the holder of a session, which takes its orders from the descriptor. `bubblewrap`: the program that makes its network;
        empty: we do, and the holder is process 1 of a namespace too, so that the kernel ends with it whatever is inside."""
        if len(descriptors) != 1:
            return
        ids = os.getuid(), os.getgid()  # in a new namespace they are unknown until they are mapped
        try:
            pid = os.fork() if bubblewrap else calls.clone(namespaces.OF_SESSION)
            if pid == 0:
                for each in self._sockets():
                    each.close()
                _be_holder(socket(fileno=descriptors[0]), bubblewrap, *ids)
            self._children.add(pid)
        except OSError as error:
            tell_failure(descriptors[0], error)
        os.close(descriptors[0])

    def _sockets(self) -> list[socket]:
        """Our own, which are not for our children."""
        return [self._orders, *(spare.channel for spare in self._spares.values())]

    def _collect(self) -> None:
        """Reap whoever has ended, and end what one that was killed has left behind."""
        was_killed = False
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                was_killed = was_killed or ended[1] != 0
                self._children.discard(ended[0])
        except ChildProcessError:
            return
        if self._is_init:  # then each was process 1 of its own, and the kernel has ended the rest
            return
        while was_killed and _kill(descendants(self._children)):
            self._collect()

    def _end_all(self) -> None:
        if self._is_init:
            send(-1, signal.SIGKILL)
            try:
                while os.wait():
                    pass
            except ChildProcessError:
                return
        # Supervisors last: should we be killed meanwhile, they end what is left.
        while _kill([pid for pid in descendants() if pid not in self._children]):
            self._collect()
        self._children.clear()
        while _kill(descendants()):
            self._collect()


class _Spare:
    """A supervisor made before its command is known: most of what a start costs is done by then. It waits for the order."""

    def __init__(self, kind: str, strangers: list[socket], *, in_session: bool) -> None:
        """`strangers`: sockets that are not for it. Raises OSError."""
        self.channel, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        ids = None if in_session else (os.getuid(), os.getgid())
        own = namespaces.OF_CALL if in_session else namespaces.OF_CALL | namespaces.OF_SESSION
        self.pid = calls.clone(own) if kind == "namespaces" else os.fork()
        if self.pid == 0:
            for each in (*strangers, self.channel):
                each.close()
            wait_for_order(kind, theirs, ids)
        theirs.close()

    def give(self, descriptors: list[int]) -> bool:
        """Returns False if it has ended meanwhile."""
        try:
            pass_on(self.channel, b"call", descriptors)
        except OSError:
            return False
        finally:
            self.channel.close()
        return True


def _be_holder(orders: socket, bubblewrap: str, uid: int, gid: int) -> None:
    """Never returns."""
    try:
        try:
            networks.join_wrapped(bubblewrap) if bubblewrap else namespaces.enter_network(uid, gid)
        except OSError as error:
            tell_failure(orders.fileno(), error)
            return
        orders.send(b"ready")
        Starter(orders, in_session=True).serve()
    finally:
        os._exit(0)


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


def _kill(processes: list[int]) -> bool:
    for pid in processes:
        send(pid, signal.SIGKILL)
    return bool(processes)
