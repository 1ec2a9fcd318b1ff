"""Opens a connection: happy eyeballs over a name's addresses, then a proxy tunnel and TLS. Cancelled halfway, it leaks no socket.

asyncio has happy eyeballs as well, but leaks a socket that connects at the moment of a cancellation, and fails under an eager task
factory in some releases of Python (docs/inside/decisions/003).
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
"""How long one address is tried before the next is tried in parallel (RFC 8305)."""
KEEPALIVE_S = 60
"""A model may think for minutes without sending anything: TCP keepalive keeps the connection open and detects a dead peer."""

Address = tuple[int, Any]
"""An address family and an address in it."""


async def dial(route: Route, context: asyncio.Future[ssl.SSLContext] | None) -> HttpConnection:
    """Connect to a route's server, through its proxy and with TLS if the route says so. The context is needed only after TCP connects."""
    hop = route.hop
    try:
        sock = await connect_socket(await find_addresses(hop.name, hop.port))
    except OSError:
        if context is not None:
            await context  # unreadable certificates are reported first
        raise
    # From here on the transport owns the socket, and closes it if this is cancelled.
    _, connection = await asyncio.get_running_loop().create_connection(HttpConnection, sock=sock)
    try:
        if hop.tls and context is not None:
            await connection.encrypt(await context, hop.name)
        if route.is_tunnelled:
            await connection.tunnel(f"{route.bracketed_name}:{route.port}", route.proxy_fields)
        if route.tls and context is not None:
            await connection.encrypt(await context, route.name)
    except BaseException:
        await connection.aclose()
        raise
    return connection


async def find_addresses(host: str, port: int) -> list[Address]:
    """The addresses of a host, alternating between families. A numeric host is not looked up, because that would take a thread."""
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
    """A socket connected to the first of these addresses that accepts. Raises the most informative OSError if none does."""
    if len(addresses) == 1:
        return await _connect(addresses[0])
    loop, attempts, winner = asyncio.get_running_loop(), list[asyncio.Task[socket.socket]](), None
    try:
        for number, address in enumerate(addresses, 1):
            attempts.append(loop.create_task(_connect(address)))
            winner = await _wait_for_winner(attempts, HEAD_START_S if number < len(addresses) else None)
            if winner is not None:
                return winner.result()
        raise _most_informative([error for task in attempts if isinstance(error := task.exception(), OSError)])
    finally:
        for task in attempts:
            if task is not winner:
                task.cancel()
                task.add_done_callback(_close_loser)


async def _wait_for_winner(attempts: list[asyncio.Task[socket.socket]], timeout_s: float | None) -> asyncio.Task[socket.socket] | None:
    """The first attempt that succeeds; None if the time is up, if one has failed and another can begin, or if all have failed."""
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
        _set_options(sock)
        await asyncio.get_running_loop().sock_connect(sock, where)
    except BaseException:
        sock.close()
        raise
    return sock


def _close_loser(task: asyncio.Task[socket.socket]) -> None:
    """Close the socket of an attempt that succeeded too late, or after a cancellation."""
    if not task.cancelled() and task.exception() is None:
        task.result().close()


def _most_informative(errors: Sequence[OSError]) -> OSError:
    return next((error for error in errors if error.errno == errno.ECONNREFUSED), errors[-1])


def _set_options(sock: socket.socket) -> None:
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_S)
    except OSError:
        pass  # optional
