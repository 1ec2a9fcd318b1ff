"""One thread with its own event loop, for synchronous code. It drives the same Run as async code does."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from dragoman.loop.result import Result
from dragoman.loop.run import Run
from dragoman.values.events import TurnEvent

T = TypeVar("T")

ENDING_S = 2.0
"""How long to wait for an abandoned run: a cancel takes at most a second."""


class Background:
    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_run, args=(self._loop,), name="dragoman", daemon=True)
        self._thread.start()
        # Dropped without `close`: the thread ends all the same, and holds nothing any more.
        self._end_thread = weakref.finalize(self, _stop, self._loop, self._pid)

    @property
    def is_here(self) -> bool:
        """Whether its thread runs in this process: a forked child has none, and would wait for it forever."""
        return self._pid == os.getpid()

    def result_of(self, make: Callable[[], Run[T]]) -> Result[T]:
        """Wait for the run's result. Ctrl-C while waiting ends the run before it propagates."""
        runs: list[Run[Any]] = []

        async def outcome() -> Result[T]:
            runs.append(run := make())
            return await run

        waiting = asyncio.run_coroutine_threadsafe(outcome(), self._loop)
        try:
            return waiting.result()
        finally:
            self._end(runs, waiting)

    def value_of(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait for a coroutine's result. Ctrl-C while waiting ends it before it propagates."""
        waiting = asyncio.run_coroutine_threadsafe(make(), self._loop)
        try:
            return waiting.result()
        finally:
            self._end([], waiting)

    def events_of(self, make: Callable[[], Run[Any]]) -> Iterator[TurnEvent]:
        events: queue.SimpleQueue[TurnEvent | BaseException | None] = queue.SimpleQueue()
        runs: list[Run[Any]] = []

        async def relay() -> None:
            try:
                async with make() as run:
                    runs.append(run)
                    async for event in run:
                        events.put(event)
            except (Exception, asyncio.CancelledError) as error:
                events.put(error)
            finally:
                events.put(None)

        relaying = asyncio.run_coroutine_threadsafe(relay(), self._loop)
        try:
            while (event := events.get()) is not None:
                if isinstance(event, BaseException):
                    raise event
                yield event
        finally:
            self._end(runs, relaying)  # if the caller left the loop early, the run ends with it

    def _end(self, runs: list[Run[Any]], waiting: Future[Any]) -> None:
        """End the run. When this returns it is over, so that the next can begin."""
        if waiting.done():
            return
        for run in runs:
            self._loop.call_soon_threadsafe(run.cancel)
        if not runs:
            waiting.cancel()
        wait([waiting], timeout=ENDING_S)

    def close(self, last: Callable[[], Awaitable[None]]) -> None:
        """Run `last` in the thread, and end it with everything still running there: waiting callers get a cancellation."""

        async def finish() -> None:
            try:
                await last()
            finally:
                others = asyncio.all_tasks() - {asyncio.current_task()}
                for task in others:
                    task.cancel()
                if others:
                    await asyncio.wait(others, timeout=ENDING_S)
                # Connections of a provider that was passed to the agent are held by an async generator of this loop: they end with it.
                await self._loop.shutdown_asyncgens()

        try:
            asyncio.run_coroutine_threadsafe(finish(), self._loop).result(timeout=5)
        finally:
            self._end_thread.detach()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=5)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop, pid: int) -> None:
    if pid == os.getpid() and not loop.is_closed():  # a forked child has the loop, and not the thread
        loop.call_soon_threadsafe(loop.stop)
