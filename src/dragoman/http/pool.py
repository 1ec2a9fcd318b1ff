"""The connection pool: idle connections between requests, how many are open, and which is closed to make room.

The rule that keeps answers apart: a connection has one owner at a time. It leaves the pool before its new owner awaits anything, and comes
back only after its last answer was read to the end. No code here reads the pool, awaits, and then acts on what it read before.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

IDLE_S = 55.0
"""How long an idle connection is kept: tools run between two requests, and most servers close idle connections after a minute."""
MOST_OPEN = 4096
FEWEST_OPEN = 16
UNKNOWN_LIMIT = 512
"""Used if the system does not say how many files a process may open."""

Key = tuple[str, ...]
"""Routes with the same key can share connections."""


class Poolable(Protocol):
    """What a pool requires of a connection."""

    @property
    def alive(self) -> bool: ...

    def start_idling(self, idle_s: float) -> None:
        """Wait for the next owner, and close after `idle_s` without one. Raises Busy while an exchange is under way."""
        ...

    def stop_idling(self) -> None:
        """A new owner has taken it."""
        ...

    def abort(self) -> None: ...


C = TypeVar("C", bound=Poolable)


class Pool(Generic[C]):
    """The idle connections of one transport in one event loop."""

    def __init__(self, idle_s: float | None = None) -> None:
        self._idle_s = IDLE_S if idle_s is None else idle_s
        self._idle: dict[Key, deque[C]] = {}
        self._opening: dict[Key, asyncio.Future[C | None]] = {}
        self._closed = False

    async def take(self, key: Key) -> C | None:
        """A connection that is still open as far as we know, owned by the caller from now on; or None."""
        connection = await self._await_opening(key)
        return connection if connection is not None else await self._take_idle(key)

    def put(self, key: Key, connection: C) -> None:
        """Give a connection back. The caller must not use it any more."""
        if self._closed or not connection.alive:
            connection.abort()
            return
        connection.start_idling(self._idle_s)
        waiting = self._idle.setdefault(key, deque())
        while waiting and not waiting[0].alive:  # the oldest first: servers and our own timer close them first
            waiting.popleft()
        waiting.append(connection)

    def has(self, key: Key) -> bool:
        """Whether there is an idle connection, or one is being preconnected."""
        return key in self._opening or any(each.alive for each in self._idle.get(key, ()))

    @contextmanager
    def opening(self, key: Key) -> Iterator[Callable[[C], None]]:
        """While a connection is being preconnected: the first request that comes meanwhile waits for it and gets it."""
        promised: asyncio.Future[C | None] = asyncio.get_running_loop().create_future()
        self._opening[key] = promised

        def hand_over(connection: C) -> None:
            if self._opening.get(key) is promised or promised.done():  # no request waits for it, or not any more
                self.put(key, connection)
            else:
                promised.set_result(connection)

        try:
            yield hand_over
        finally:
            if self._opening.get(key) is promised:
                del self._opening[key]
            if not promised.done():
                promised.set_result(None)

    def close(self) -> None:
        """Close the idle connections. Those in use are closed when they are given back."""
        self._closed = True
        idle = [connection for waiting in self._idle.values() for connection in waiting]
        self._idle.clear()
        for connection in idle:
            connection.abort()

    async def aclose(self) -> None:
        self.close()
        await asyncio.sleep(0)  # the turn in which the sockets are closed

    async def _await_opening(self, key: Key) -> C | None:
        promised = self._opening.pop(key, None)  # ours from here on: a second request opens its own
        if promised is None:
            return None
        try:
            return await promised
        except BaseException:
            # It may have been handed over just as we were cancelled: then nothing else refers to it.
            if promised.done() and not promised.cancelled() and (connection := promised.result()) is not None:
                self.put(key, connection)
            raise

    async def _take_idle(self, key: Key) -> C | None:
        connection = self._pop(key)
        if connection is None:
            return None
        try:
            # Give the event loop two turns to poll the socket, in case the server has hung up while the loop was busy.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        except BaseException:
            connection.abort()
            raise
        while connection is not None and not connection.alive:
            connection = self._pop(key)
        return connection

    def _pop(self, key: Key) -> C | None:
        """Take the most recently used connection out of the pool."""
        waiting = self._idle.get(key)
        if not waiting:
            return None
        connection = waiting.pop()
        connection.stop_idling()
        return connection


class Countable(Protocol):
    """What the count of open connections requires of each."""

    @property
    def loop(self) -> Any: ...

    @property
    def idle_since(self) -> float | None:
        """When it became idle; None while it is in use."""
        ...

    def close_if_idle(self) -> None: ...


class OpenConnections:
    """All open connections of this process, over all transports, event loops and threads, to keep them below the system's limit.

    Connections are held weakly: those of a discarded event loop no longer count once they are garbage collected.
    """

    def __init__(self, most: Callable[[], int]) -> None:
        self._lock = threading.Lock()
        self._open: weakref.WeakSet[Countable] = weakref.WeakSet()
        self._dialling = 0
        self._most = most

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Countable) -> None:
        with self._lock:
            self._open.add(connection)

    def remove(self, connection: Countable) -> None:
        with self._lock:
            self._open.discard(connection)

    @property
    def has_room(self) -> bool:
        """Whether another may be opened without closing one."""
        count = len(self._open) + self._dialling
        return count < FEWEST_OPEN or count < self._most()

    @contextmanager
    def opening_one(self) -> Iterator[None]:
        """While another is being opened. If there is no room for it, the one that has been idle longest is closed."""
        if not self.has_room:
            self.close_idle(1)
        with self._lock:
            self._dialling += 1
        try:
            yield
        finally:
            with self._lock:
                self._dialling -= 1

    def close_idle(self, count: int) -> None:
        with self._lock:
            idle = [each for each in self._open if each.idle_since is not None]
        idle.sort(key=lambda each: each.idle_since or 0.0)
        for connection in idle[:count]:
            try:
                connection.loop.call_soon_threadsafe(connection.close_if_idle)
            except RuntimeError:  # its event loop is closed
                self.remove(connection)


def most_connections() -> int:
    """Half of the files this process may open; logs, locks and commands need the other half."""
    try:
        import resource
    except ImportError:  # Windows
        return UNKNOWN_LIMIT
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return MOST_OPEN
    return max(FEWEST_OPEN, min(limit // 2, MOST_OPEN))


open_connections = OpenConnections(most_connections)
