"""No network beyond this machine: for tests that must not reach a service by mistake."""

from __future__ import annotations

import functools
import ipaddress
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dragoman.words import say


class NetworkBlocked(RuntimeError):
    """A test tried to leave this machine. Not an OSError: code that handles connection faults must not swallow it."""

    def __init__(self, *message: object) -> None:  # as RuntimeError has it, which hides its signature
        super().__init__(*message)


@contextmanager
def no_network() -> Iterator[None]:
    """Let connecting, sending datagrams and resolving names fail with NetworkBlocked, except for loopback addresses and Unix sockets.

    It holds for the whole process, all threads included. Processes that are started meanwhile are not guarded.
    """
    guarded: list[tuple[Any, str, Any]] = []
    for name in ("connect", "connect_ex", "sendto"):
        guarded.append((socket.socket, name, socket.socket.__dict__.get(name)))
        setattr(socket.socket, name, _guard_socket(name))
    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
        guarded.append((socket, name, getattr(socket, name)))
        setattr(socket, name, _guard_lookup(getattr(socket, name)))
    try:
        yield
    finally:
        for owner, name, original in guarded:
            # What a socket inherits from the C class is not its own.
            delattr(owner, name) if original is None else setattr(owner, name, original)


def is_local(host: object) -> bool:
    """Whether a host, as the socket module takes it, stands for this machine."""
    if isinstance(host, (bytes, bytearray)):
        host = bytes(host).decode("ascii", "replace")
    if host is None:
        return True
    name = str(host).lower().rstrip(".")
    if name in {"", "localhost"} or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _guard_socket(name: str) -> Callable[..., Any]:
    original = getattr(socket.socket, name)

    @functools.wraps(original)
    def guarded(self: socket.socket, *args: Any) -> Any:
        # The address is the last argument: connect(address), sendto(data, [flags,] address).
        address = args[-1] if args else None
        if self.family == getattr(socket, "AF_UNIX", None):
            return original(self, *args)
        if self.family in {socket.AF_INET, socket.AF_INET6} and isinstance(address, tuple) and address and is_local(address[0]):
            return original(self, *args)
        raise NetworkBlocked(say("testing.network_blocked", what=name, target=address))

    return guarded


def _guard_lookup(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def guarded(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_local(host):
            raise NetworkBlocked(say("testing.network_blocked", what=original.__name__, target=host))
        return original(host, *args, **kwargs)

    return guarded
