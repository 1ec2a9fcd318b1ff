"""Which user of this machine holds the other end of a connection on loopback, as the Linux kernel says.

The kernel is asked about the one socket (`sock_diag`), which costs the same however many there are. Where it does not answer, as in some
containers, its whole list is read.
"""

from __future__ import annotations

import os
import socket
import struct
import sys

import msgspec

_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_ERROR = 2
_REQUEST = 1
_HEADER = struct.Struct("=IHHII")
"""Of a netlink message: length, kind, flags, number, sender."""
_ASKED = struct.Struct("=BBBxI")
"""Family, protocol, extensions, states. Then comes what names a socket."""
_TOLD = struct.Struct("=BBBB")
"""Family, state, timer, retransmissions. Then comes what names a socket, and then this:"""
_HELD_BY = struct.Struct("=IIIII")
"""Expires, waiting to be read, to be sent, user, inode."""
_SOCKET = struct.Struct("=2s2s16s16sI8s")
"""Both ports and addresses, the interface, and a cookie."""
_ANY_COOKIE = b"\xff" * 8
_ANSWER_S = 1.0

Address = tuple[str, int]


class _Held(msgspec.Struct, frozen=True):
    user: int
    is_held: bool
    """Whether some process still has it open."""


def is_own_connection(peer: Address, own: Address) -> bool:
    """Whether a connection on loopback comes from a process of this user. True where the system does not say."""
    found = find_user(peer, own)
    return found is None or found == os.getuid()


def find_user(peer: Address, own: Address) -> int | None:
    """The user who holds the socket at the other end: -1 if the system knows its sockets and not this one, None if it tells of none.
    Addresses count as the ports do: another user may take the port of ours at another address of this machine."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
            kernel.settimeout(_ANSWER_S)
            if (found := _ask(kernel, peer, own)) is not None:
                return found.user if found.is_held else -1
            if _ask(kernel, own, peer) is not None:  # it knows our end, so it would know the other
                return -1
    except (OSError, AttributeError, struct.error):
        pass
    return read_user(peer, own)


def _ask(kernel: socket.socket, local: Address, remote: Address) -> _Held | None:
    """What the kernel says of one socket. None: it knows none of these addresses. Raises OSError."""
    family = socket.AF_INET6 if ":" in local[0] else socket.AF_INET
    ports = local[1].to_bytes(2, "big"), remote[1].to_bytes(2, "big")
    hosts = socket.inet_pton(family, local[0]), socket.inet_pton(family, remote[0])
    body = _ASKED.pack(family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + _SOCKET.pack(*ports, *hosts, 0, _ANY_COOKIE)
    kernel.send(_HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST, 1, 0) + body)
    told = kernel.recv(4096)
    kind = _HEADER.unpack_from(told)[1]
    if kind == _ERROR:
        return None
    at = _HEADER.size + _TOLD.size
    found = _SOCKET.unpack_from(told, at)
    if found[:2] != ports:  # where nothing is connected, a socket that listens at that port is told
        return None
    *_, user, inode = _HELD_BY.unpack_from(told, at + _SOCKET.size)
    return _Held(user, inode != 0)


def read_user(peer: Address, own: Address) -> int | None:
    """The same, from the list of all sockets."""
    wanted = (_as_listed(*peer), _as_listed(*own))
    listed = False
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:
                lines = file.readlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            listed = True
            if (fields[1], fields[2]) == wanted and fields[9] != "0":  # one that nobody holds any more is listed as root's
                return int(fields[7])
    return -1 if listed else None


def _as_listed(host: str, port: int) -> str:
    """An address as the kernel lists it: in words of four bytes, each in the order of this machine."""
    data = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    words = (int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data), 4))
    return f"{''.join(f'{word:08X}' for word in words)}:{port:04X}"
