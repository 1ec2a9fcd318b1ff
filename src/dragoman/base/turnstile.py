"""A semaphore for the whole process, across event loops and threads.

asyncio's own locks and semaphores belong to one event loop, and those of `threading` would block it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable

INITIAL_SIZE = 32
"""If the size is a function, this many are let in before it is called."""
CHECK_S = 1.0
"""How often a waiter checks whether an event loop was closed while it held places: such a loop wakes no waiter."""


class Slot:
    """A place inside, or in the queue. It belongs to the event loop that requested it."""

    __slots__ = ("is_held", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.is_held = False


class Turnstile:
    """Lets `size` in at once; the others wait in a queue, first in, first out.

        async with turnstile.place():
            ...

    A waiter may be cancelled at any moment, even after it was let in and before it woke up: its place goes to the next. Places of a
    closed event loop are taken back when they are needed. With `patience_s`, waiting longer than that raises TimeoutError.

    `size` may be a function, which must be quick and must not raise. It is called when there are 32 inside and one more comes, and again
    whenever there are as many inside as it last returned.
    """

    def __init__(self, size: int | Callable[[], int], *, patience_s: float | None = None) -> None:
        if isinstance(size, int) and size < 1:
            raise ValueError(f"a turnstile must let at least one in, not {size}")
        self._ask_size = None if isinstance(size, int) else size
        self._size = size if isinstance(size, int) else INITIAL_SIZE
        self._patience_s = patience_s
        self._inside = 0
        self._held: dict[asyncio.AbstractEventLoop, int] = {}
        self._queue: OrderedDict[Slot, asyncio.Future[None]] = OrderedDict()
        # The lock never blocks: if it is taken, the caller queues its operation, and the holder executes it. So it cannot deadlock when
        # the garbage collector ends an abandoned coroutine, which calls `leave`, while the same thread holds the lock.
        self._lock = threading.Lock()
        self._pending: deque[tuple[Slot, asyncio.Future[None] | None]] = deque()

    @property
    def inside(self) -> int:
        return self._inside

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def place(self) -> _PlaceContext:
        """A place for the duration of an `async with`."""
        return _PlaceContext(self)

    async def enter(self) -> Slot:
        """Wait for a place, to be given back with `leave`. Raises TimeoutError if none was free within `patience_s`."""
        place = Slot(asyncio.get_running_loop())
        if not self._enter_at_once(place):
            await self._wait(place)
        return place

    def leave(self, place: Slot) -> None:
        """Give a place back, from any thread. Doing it twice is harmless."""
        self._pending.append((place, None))
        self._process_pending()

    def _enter_at_once(self, place: Slot) -> bool:
        if self._queue or self._pending or not self._lock.acquire(blocking=False):
            return False
        try:
            if not self._queue and self._has_room():
                self._take(place)
        finally:
            self._lock.release()
            if self._pending:
                self._process_pending()
        return place.is_held

    async def _wait(self, place: Slot) -> None:
        loop = place.loop
        patient_until = None if self._patience_s is None else loop.time() + self._patience_s
        try:
            while True:
                awaited = loop.create_future()
                self._pending.append((place, awaited))
                self._process_pending()
                if place.is_held:
                    return
                left_s = CHECK_S if patient_until is None else patient_until - loop.time()
                if left_s <= 0:
                    raise TimeoutError(f"no place within {self._patience_s:g} s: {self.inside} are inside, {self.waiting} wait")
                timer = loop.call_later(min(left_s, CHECK_S), _wake, awaited)
                try:
                    await awaited
                finally:
                    timer.cancel()
        except BaseException:
            self.leave(place)
            raise

    # --- state that only the holder of the lock changes

    def _process_pending(self) -> None:
        """Execute the queued operations, ours and those of others. If the lock is taken, its holder executes them."""
        while self._pending and self._lock.acquire(blocking=False):
            try:
                while self._pending:
                    place, awaited = self._pending.popleft()
                    if awaited is None:
                        self._give_back(place)
                    elif not place.is_held:
                        self._queue[place] = awaited  # a waiter that checks again keeps its turn
                while self._queue and self._has_room():
                    self._admit(*self._queue.popitem(last=False))
            finally:
                self._lock.release()

    def _has_room(self) -> bool:
        if self._inside >= self._size and self._ask_size is not None:
            self._size = max(1, self._ask_size())
        if self._inside >= self._size:
            for loop in [loop for loop in self._held if loop.is_closed()]:
                self._inside -= self._held.pop(loop)
        return self._inside < self._size

    def _take(self, place: Slot) -> None:
        place.is_held = True
        self._held[place.loop] = self._held.get(place.loop, 0) + 1
        self._inside += 1

    def _give_back(self, place: Slot) -> None:
        self._queue.pop(place, None)
        held = self._held.get(place.loop, 0) if place.is_held else 0
        place.is_held = False
        if held:  # else it was already given back, or taken back from a closed loop
            self._inside -= 1
            self._held[place.loop] = held - 1
            if held == 1:
                del self._held[place.loop]  # do not keep the loop alive

    def _admit(self, place: Slot, awaited: asyncio.Future[None]) -> None:
        self._take(place)
        try:
            if place.loop is _running_loop():
                _wake(awaited)
            else:
                place.loop.call_soon_threadsafe(_wake, awaited)
        except RuntimeError:  # its loop is closed
            self._give_back(place)


class _PlaceContext:
    __slots__ = ("_place", "_turnstile")

    def __init__(self, turnstile: Turnstile) -> None:
        self._turnstile = turnstile
        self._place: Slot | None = None

    async def __aenter__(self) -> None:
        self._place = await self._turnstile.enter()

    async def __aexit__(self, *_: object) -> None:
        if self._place is not None:
            self._turnstile.leave(self._place)


def _wake(awaited: asyncio.Future[None]) -> None:
    if not awaited.done():
        awaited.set_result(None)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
