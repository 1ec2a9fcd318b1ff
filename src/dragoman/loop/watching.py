"""Watching a run: its events are stored once, as a chain, and every watcher goes along it at its own pace.

No watcher waits for another. What all have read, beyond the last KEPT_EVENTS, is freed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Protocol, Self

from dragoman.values.events import TurnEvent

KEPT_EVENTS = 10_000
"""How many events of a run that is watched are kept for those who join later."""


class Told:
    """One event with the time it was emitted at, how many entries the record had then, and the next once there is one. `event` is None at
    the end of the run."""

    __slots__ = ("at_s", "entries", "event", "next")

    def __init__(self, event: TurnEvent | None, at_s: float = 0.0, entries: int = 0) -> None:
        self.event = event
        self.at_s = at_s
        self.entries = entries
        self.next: Told | None = None


class EventChain:
    """The events of one run. `add` belongs to the run's own thread; watchers may wait in any event loop."""

    __slots__ = ("_before", "_count", "_is_watched", "_last", "_waiting")

    def __init__(self) -> None:
        self._before = self._last = Told(None)
        """What stands before the first event that is kept."""
        self._is_watched = False
        self._count = 0
        self._waiting: list[asyncio.Future[None]] = []

    def add(self, event: TurnEvent | None, entries: int = 0) -> None:
        told = Told(event, time.time(), entries)
        self._last.next = told
        self._last = told
        if self._count < KEPT_EVENTS or not self._is_watched:  # nothing is lost before somebody has begun to watch
            self._count += 1
        elif self._before.next is not None:
            self._before = self._before.next
        if self._waiting:
            self._wake()

    def begin(self) -> Told:
        """Where a watcher begins that joins now: before the first event, or the oldest that is kept."""
        self._is_watched = True
        return self._before

    async def wait(self, told: Told) -> Told:
        """What comes after `told`."""
        while (following := told.next) is None:
            woken = asyncio.get_running_loop().create_future()
            self._waiting.append(woken)
            if told.next is None:  # it may have come from another thread just now
                await woken
        return following

    def _wake(self) -> None:
        waiting = self._waiting
        self._waiting = []
        for woken in waiting:
            loop = woken.get_loop()
            if is_running_here(loop):
                _set(woken)
            else:
                call_in(loop, lambda woken=woken: _set(woken))


class Watched(Protocol):
    """What a watcher needs of its run."""

    @property
    def chain(self) -> EventChain: ...

    def join(self, token: object) -> None:
        """Begin to hold the run, which starts it."""
        ...

    def leave(self, token: object) -> None:
        """Hold it no longer. May be called from any thread."""
        ...

    async def abandoned(self) -> None:
        """If nobody holds it any more, end it: returns when it is over."""
        ...


class EventWatcher(AsyncIterator[TurnEvent]):
    """One `async for` over a run. Closing or dropping it, as `break` does, is leaving."""

    __slots__ = ("_at", "_run", "_token")

    def __init__(self, run: Watched) -> None:
        self._run: Watched | None = run
        self._at: Told | None = None
        self._token = object()
        """Stands for this watcher where the run counts who holds it: it must not hold the watcher itself."""

    @property
    def at_ms(self) -> int:
        """When the last event was emitted: milliseconds since 1970."""
        return int(self._at.at_s * 1000) if self._at is not None else 0

    @property
    def entries(self) -> int:
        """How many entries the record had when the last event was emitted: what a view shows of the record, it shows up to there."""
        return self._at.entries if self._at is not None else 0

    async def __anext__(self) -> TurnEvent:
        run, at = self._run, self._at
        if run is None:
            raise StopAsyncIteration
        if at is None:
            run.join(self._token)
            at = run.chain.begin()
        told = self._at = at.next or await run.chain.wait(at)
        if told.event is None:
            self._leave()
            raise StopAsyncIteration
        return told.event

    async def aclose(self) -> None:
        """Leave. If nobody else holds the run, it is over when this returns."""
        if (run := self._leave()) is not None:
            await run.abandoned()

    def _leave(self) -> Watched | None:
        run, self._run = self._run, None
        if run is not None:
            run.leave(self._token)
        return run

    def __del__(self) -> None:
        self._leave()


class TimedWatcher(AsyncIterator[tuple[int, TurnEvent]]):
    """The same events, each with the time it was emitted at."""

    def __init__(self, watcher: EventWatcher) -> None:
        self._watcher = watcher

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[int, TurnEvent]:
        event = await self._watcher.__anext__()
        return self._watcher.at_ms, event

    async def aclose(self) -> None:
        await self._watcher.aclose()


def is_running_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this code runs in that loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:  # a thread without a loop
        return False


def call_in(loop: asyncio.AbstractEventLoop, do: Callable[[], object]) -> None:
    """Have it done in a loop that may run in another thread. Where that loop has ended, nothing is left to do."""
    try:
        loop.call_soon_threadsafe(do)
    except RuntimeError:
        pass


def _set(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
