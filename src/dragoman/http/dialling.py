"""Opening a connection: a name's addresses tried side by side, then TCP, a proxy's tunnel and TLS. Given up half-way, it leaves no socket.

asyncio can try addresses side by side as well, but loses a socket that connects in the moment of a cancel, and fails under an eager task
factory in some releases of Python (docs/decisions/003).
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from dragoman.http.connection import HttpConnection

if TYPE_CHECKING:
    import ssl

    from dragoman.http.route import Route

HEAD_START_S = 0.25
"""How long one address is tried before the next is tried beside it (RFC 8305)."""
KEEPALIVE_S = 60
"""A model may think for minutes without a word: probes keep the way open, and find out when the other end is gone."""

Address = tuple[int, Any]
"""A family, and where in it."""


async def dial(route: Route, context: asyncio.Future[ssl.SSLContext] | None) -> HttpConnection:
    """Connect to a route's server, through its proxy and with TLS where it says so. The context is needed only once TCP stands."""
    hop = route.hop
    try:
        sock = await connect_socket(await find_addresses(hop.name, hop.port))
    except OSError:
        if context is not None:
            await context  # certificates that cannot be read are the first thing to tell
        raise
    # From here on the transport owns the socket, and closes it where this is cancelled.
    _, connection = await asyncio.get_running_loop().create_connection(HttpConnection, sock=sock)
    try:
        if hop.tls and context is not None:
            await connection.encrypt(await context, hop.name)
        if route.tunnelled:
            await connection.tunnel(f"{route.shown_name}:{route.port}", route.proxy_fields)
        if route.tls and context is not None:
            await connection.encrypt(await context, route.name)
    except BaseException:
        await connection.aclose()
        raise
    return connection


async def find_addresses(host: str, port: int) -> list[Address]:
    """Where a host is to be found, families in turn. A numeric host is looked up nowhere: that would take a thread."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, UnicodeError):
            continue
        return [(family, (host, port))]
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [(family, address) for family, _, _, _, address in found]
    if not addresses:
        raise socket.gaierror(socket.EAI_NONAME, "no address")
    first = [each for each in addresses if each[0] == addresses[0][0]]
    rest = [each for each in addresses if each[0] != addresses[0][0]]
    return [each for each in chain.from_iterable(zip_longest(first, rest)) if each is not None]


async def connect_socket(addresses: Sequence[Address]) -> socket.socket:
    """A socket that is connected to the first of these that answers. Raises the most telling OSError where none does."""
    if len(addresses) == 1:
        return await _connect(addresses[0])
    loop, attempts, winner = asyncio.get_running_loop(), list[asyncio.Task[socket.socket]](), None
    try:
        for number, address in enumerate(addresses, 1):
            attempts.append(loop.create_task(_connect(address)))
            winner = await _winner(attempts, HEAD_START_S if number < len(addresses) else None)
            if winner is not None:
                return winner.result()
        raise _most_telling([error for task in attempts if isinstance(error := task.exception(), OSError)])
    finally:
        for task in attempts:
            if task is not winner:
                task.cancel()
                task.add_done_callback(_close_loser)


async def _winner(attempts: list[asyncio.Task[socket.socket]], timeout_s: float | None) -> asyncio.Task[socket.socket] | None:
    """The first attempt that succeeds; None where the time is up, or one has failed and there is another to begin, or all have failed."""
    pending = {task for task in attempts if not task.done()}
    while pending:
        done, pending = await asyncio.wait(pending, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if not task.cancelled() and task.exception() is None:
                return task
        if timeout_s is not None:
            return None
    return None


async def _connect(address: Address) -> socket.socket:
    family, where = address
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        _probe(sock)
        await asyncio.get_running_loop().sock_connect(sock, where)
    except BaseException:
        sock.close()
        raise
    return sock


def _close_loser(task: asyncio.Task[socket.socket]) -> None:
    """An attempt that succeeded though another was taken, or nobody waits any more."""
    if not task.cancelled() and task.exception() is None:
        task.result().close()


def _most_telling(errors: Sequence[OSError]) -> OSError:
    return next((error for error in errors if error.errno == errno.ECONNREFUSED), errors[-1])


def _probe(sock: socket.socket) -> None:
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_S)
    except OSError:
        pass  # a nicety
