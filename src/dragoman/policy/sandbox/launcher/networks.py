"""The network of a session: entered where bubblewrap has made it, and shown to whoever asks from outside."""

from __future__ import annotations

import os
import select
from _socket import AF_INET, AF_INET6, SOCK_STREAM, socket

from dragoman.policy.sandbox.launcher.namespaces import join_network_of
from dragoman.policy.sandbox.launcher.order import INFO_FD
from dragoman.policy.sandbox.launcher.packets import pass_on

try:
    import fcntl
except ImportError:  # Windows, where no launcher runs
    pass

_LONGEST_S = 5.0
_FAMILIES = (("inet", AF_INET), ("inet6", AF_INET6))
_TABLES = (("tcp", "/proc/self/net/tcp"), ("tcp6", "/proc/self/net/tcp6"))


def join_wrapped(bubblewrap: str) -> None:
    """Have bubblewrap make a network, and enter it: from then on it lasts as long as we do. Raises OSError."""
    told, info = _pipe()
    heard, output = _pipe()
    waiting, held = _pipe()
    # It prints when the loopback interface is up, and ends when we let go.
    words = (bubblewrap, "--unshare-user", "--unshare-net", "--die-with-parent", "--ro-bind", "/", "/", "--info-fd", str(INFO_FD))
    pid = os.posix_spawn(
        bubblewrap,
        (*words, "--", "/bin/sh", "-c", "echo; read line"),
        {"PATH": "/usr/bin:/bin"},
        file_actions=[(os.POSIX_SPAWN_DUP2, source, target) for source, target in ((waiting, 0), (output, 1), (info, INFO_FD))],
    )
    for each in (info, output, waiting):
        os.close(each)
    try:
        _, found, rest = _read_until(told, b"}").partition(b'"child-pid":')
        if not found or not _read_until(heard, b"\n"):
            raise OSError(1, "bubblewrap made no network")
        join_network_of(int(rest.split(b"}")[0].split(b",")[0]))
    finally:
        for each in (told, heard, held):
            os.close(each)
        os.waitpid(pid, 0)


def show(descriptors: list[int]) -> None:
    """Pass out, over the socket that was sent along, sockets of the network we are in, not connected, and lists of what is open there."""
    made: list[socket] = []
    files: dict[str, int] = {}
    for name, family in _FAMILIES:
        try:
            made.append(socket(family, SOCK_STREAM))
            files[name] = made[-1].fileno()
        except OSError:  # there is no IPv6 here
            continue
    for name, path in _TABLES:
        try:
            files[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
    control = socket(fileno=descriptors[0])
    try:
        pass_on(control, " ".join(files).encode(), list(files.values()))
    except OSError:  # nobody waits for it any more
        pass
    control.close()
    for each in made:
        each.close()
    for name, _ in _TABLES:
        if name in files:
            os.close(files[name])


def _read_until(pipe: int, sign: bytes) -> bytes:
    """Empty if it does not come."""
    read = b""
    while sign not in read:
        more = os.read(pipe, 4096) if select.select([pipe], (), (), _LONGEST_S)[0] else b""
        if not more:
            return b""
        read += more
    return read


def _pipe() -> tuple[int, int]:
    """Out of the way of the numbers that bubblewrap's descriptors get."""
    ends = os.pipe2(os.O_CLOEXEC)
    moved = tuple(fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 2 * INFO_FD) for each in ends)
    for each in ends:
        os.close(each)
    return moved[0], moved[1]
