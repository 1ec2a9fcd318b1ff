"""How many may do something at once in this process, whichever event loops and threads they come from.

asyncio's own locks and semaphores belong to one event loop, and those of `threading` would block it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable

UNASKED = 32
"""Where the size is a function, so many are let in before it is asked."""
LOOK_S = 1.0
"""How often a waiter looks whether an event loop was closed with places in it: such a loop wakes nobody."""


class Place:
    """A place inside, or in the queue. It belongs to the event loop that asked for it."""

    __slots__ = ("is_held", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.is_held = False


class Turnstile:
    """Lets `size` in at once; the others wait, and the first to come is the first to be let in.

        async with turnstile.place():
            ...

    A waiter may be cancelled at any moment, also after it was let in and before it woke up: its place goes to the next. Places of an event
    loop that was closed meanwhile are taken back when they are needed. With `patience_s`, waiting longer than that raises TimeoutError.

    `size` may be a function, which must be quick and must not raise. It is asked when there are 32 inside and one more comes, and again
    whenever there are as many inside as it last said.
    """

    def __init__(self, size: int | Callable[[], int], *, patience_s: float | None = None) -> None:
        if isinstance(size, int) and size < 1:
            raise ValueError(f"a turnstile must let at least one in, not {size}")
        self._ask_size = None if isinstance(size, int) else size
        self._size = size if isinstance(size, int) else UNASKED
        self._patience_s = patience_s
        self._inside = 0
        self._held: dict[asyncio.AbstractEventLoop, int] = {}
        self._queue: OrderedDict[Place, asyncio.Future[None]] = OrderedDict()
        # Nobody blocks on the lock: whoever finds it taken leaves a wish, and its holder grants it. So it cannot deadlock when the garbage
        # collector ends an abandoned coroutine, which calls `leave`, in the middle of the lines that hold it.
        self._lock = threading.Lock()
        self._wishes: deque[tuple[Place, asyncio.Future[None] | None]] = deque()

    @property
    def inside(self) -> int:
        return self._inside

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def place(self) -> _Visit:
        """A place for as long as an `async with` lasts."""
        return _Visit(self)

    async def enter(self) -> Place:
        """A place, to be given back with `leave`. Raises TimeoutError where none was free within `patience_s`."""
        place = Place(asyncio.get_running_loop())
        if not self._enter_at_once(place):
            await self._wait(place)
        return place

    def leave(self, place: Place) -> None:
        """Give a place back, from whichever thread. Doing it twice does no harm."""
        self._wishes.append((place, None))
        self._grant_wishes()

    def _enter_at_once(self, place: Place) -> bool:
        if self._queue or self._wishes or not self._lock.acquire(blocking=False):
            return False
        try:
            if not self._queue and self._has_room():
                self._take(place)
        finally:
            self._lock.release()
            if self._wishes:
                self._grant_wishes()
        return place.is_held

    async def _wait(self, place: Place) -> None:
        loop = place.loop
        patient_until = None if self._patience_s is None else loop.time() + self._patience_s
        try:
            while True:
                awaited = loop.create_future()
                self._wishes.append((place, awaited))
                self._grant_wishes()
                if place.is_held:
                    return
                left_s = LOOK_S if patient_until is None else patient_until - loop.time()
                if left_s <= 0:
                    raise TimeoutError(f"no place within {self._patience_s:g} s: {self.inside} are inside, {self.waiting} wait")
                timer = loop.call_later(min(left_s, LOOK_S), _wake, awaited)
                try:
                    await awaited
                finally:
                    timer.cancel()
        except BaseException:
            self.leave(place)
            raise

    # --- who is inside: only the holder of the lock changes it

    def _grant_wishes(self) -> None:
        """Do what was asked for, by us or by those who found the lock taken. If it is taken now, its holder does it."""
        while self._wishes and self._lock.acquire(blocking=False):
            try:
                while self._wishes:
                    place, awaited = self._wishes.popleft()
                    if awaited is None:
                        self._give_back(place)
                    elif not place.is_held:
                        self._queue[place] = awaited  # who looks again keeps their turn
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

    def _take(self, place: Place) -> None:
        place.is_held = True
        self._held[place.loop] = self._held.get(place.loop, 0) + 1
        self._inside += 1

    def _give_back(self, place: Place) -> None:
        self._queue.pop(place, None)
        held = self._held.get(place.loop, 0) if place.is_held else 0
        place.is_held = False
        if held:  # else it was given back before, or taken back from a closed loop
            self._inside -= 1
            self._held[place.loop] = held - 1
            if held == 1:
                del self._held[place.loop]  # keeps no loop alive

    def _admit(self, place: Place, awaited: asyncio.Future[None]) -> None:
        self._take(place)
        try:
            if place.loop is _running_loop():
                _wake(awaited)
            else:
                place.loop.call_soon_threadsafe(_wake, awaited)
        except RuntimeError:  # its loop is closed
            self._give_back(place)


class _Visit:
    __slots__ = ("_place", "_turnstile")

    def __init__(self, turnstile: Turnstile) -> None:
        self._turnstile = turnstile
        self._place: Place | None = None

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
