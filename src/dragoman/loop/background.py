"""A thread with its own event loop, for synchronous code. It drives the same Run as async code does."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from dragoman.loop.result import Result
from dragoman.loop.run import Run
from dragoman.loop.watching import call_in
from dragoman.values.events import TurnEvent

T = TypeVar("T")

ENDING_S = 2.0
"""How long to wait for an abandoned run: a cancel takes at most a second."""


IDLE_THREADS = 4
"""How many threads wait for more work, in all agents together. Beyond that the one that has waited longest ends: it would otherwise stay
for as long as its agent is neither closed nor dropped."""


class Background:
    """The thread of one agent. It starts with the first work; it may end between two, and starts again when it is needed."""

    def __init__(self) -> None:
        self._thread: _Thread | None = None
        self._end_thread: weakref.finalize[[], Background] | None = None
        self._lock = threading.Lock()

    @property
    def is_busy(self) -> bool:
        """Whether something is going on in its thread."""
        return self._thread is not None and self._thread.is_busy

    @contextmanager
    def _at_work(self) -> Iterator[_Thread]:
        """The thread, which does not end meanwhile."""
        with self._lock:  # two threads may ask first at the same time
            thread = self._thread
            if thread is None or not thread.begin():
                thread = self._thread = _Thread()
                thread.begin()
                if self._end_thread is not None:
                    self._end_thread.detach()
                # Dropped without `close`: the thread ends all the same, and holds nothing any more.
                self._end_thread = weakref.finalize(self, thread.end)
        try:
            yield thread
        finally:
            thread.rest()

    def result_of(self, make: Callable[[], Run[T]]) -> Result[T]:
        """Wait for the run's result. Ctrl-C while waiting ends the run before it propagates."""
        runs: list[Run[Any]] = []

        async def outcome() -> Result[T]:
            runs.append(run := make())
            return await run

        with self._at_work() as thread:
            waiting: Future[Result[T]] = Future()
            try:
                _begin(outcome, waiting, thread.loop)
                return waiting.result()
            finally:
                _end(runs, waiting)

    def value_of(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait for a coroutine's result. Ctrl-C while waiting ends it before it propagates."""
        with self._at_work() as thread:
            waiting: Future[T] = Future()
            try:
                _begin(make, waiting, thread.loop)
                return waiting.result()
            finally:
                _end([], waiting)

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

        with self._at_work() as thread:
            relaying: Future[None] = Future()
            try:
                _begin(relay, relaying, thread.loop)
                while (event := events.get()) is not None:
                    if isinstance(event, BaseException):
                        raise event
                    yield event
            finally:
                _end(runs, relaying)  # if the caller left the loop early, the run ends with it

    def close(self, last: Callable[[], Awaitable[None]]) -> None:
        """Run `last` in the thread, and end it with everything still running there: waiting callers get a cancellation."""
        with self._at_work() as thread:

            async def finish() -> None:
                try:
                    await last()
                finally:
                    await _wind_down()

            try:
                asyncio.run_coroutine_threadsafe(finish(), thread.loop).result(timeout=5)
            finally:
                thread.end(wait=True)


class _Thread:
    """A thread with an event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._busy = 0
        self._is_ended = False
        self._thread = threading.Thread(target=_run, args=(self.loop,), name="dragoman", daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        return self._busy > 0 and self._pid == os.getpid()

    def begin(self) -> bool:
        """Whether it can take work. It cannot where it has ended, or is another process's: a forked child would wait for it forever."""
        if self._pid != os.getpid():
            return False
        with _idle_lock:
            if self._is_ended:
                return False
            self._busy += 1
            if self in _idle:
                _idle.remove(self)
            return True

    def rest(self) -> None:
        """Wait for more work. If too many threads wait, the one that has waited longest ends."""
        if self._pid != os.getpid():
            return
        longest = None
        with _idle_lock:
            self._busy -= 1
            if self._busy or self._is_ended:
                return
            _idle.append(self)
            if len(_idle) > IDLE_THREADS:
                longest = _idle.pop(0)
                longest._is_ended = True
        if longest is not None:
            longest._stop()

    def end(self, *, wait: bool = False) -> None:
        if self._pid != os.getpid() or self._is_ended:
            return
        self._is_ended = True
        if self in _idle:  # without the lock: a finalizer may run while this very thread holds it
            with suppress(ValueError):
                _idle.remove(self)
        self._stop()
        if wait:
            self._thread.join(timeout=5)

    def _stop(self) -> None:
        async def stop() -> None:
            try:
                await _wind_down()
            finally:
                self.loop.stop()

        call_in(self.loop, lambda: self.loop.create_task(stop()))


_idle: list[_Thread] = []
_idle_lock = threading.Lock()


def _forget_idle() -> None:
    """In a forked child: it has none of the threads, and the lock may have been held."""
    global _idle_lock
    _idle.clear()
    _idle_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_idle)


async def _wind_down() -> None:
    """End everything that still runs in this loop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=ENDING_S)
    # Connections of a provider that was passed to the agent are held by an async generator of this loop: they end with it.
    await asyncio.get_running_loop().shutdown_asyncgens()


def _begin(make: Callable[[], Coroutine[Any, Any, T]], waiting: Future[T], loop: asyncio.AbstractEventLoop) -> None:
    """Run a coroutine in the thread, for the one who waits. The future is made by him before: wherever Ctrl-C finds him, he has it."""

    def begin() -> None:
        if waiting.cancelled():
            waiting.set_running_or_notify_cancel()
            return
        try:
            task = loop.create_task(make())
        except Exception as error:
            waiting.set_exception(error)
            return
        task.add_done_callback(tell)
        waiting.add_done_callback(lambda _: call_in(loop, task.cancel) if waiting.cancelled() else None)

    def tell(task: asyncio.Task[T]) -> None:
        if task.cancelled():
            waiting.cancel()
        if not waiting.set_running_or_notify_cancel():
            return
        error = task.exception()
        waiting.set_result(task.result()) if error is None else waiting.set_exception(error)

    loop.call_soon_threadsafe(begin)


def _end(runs: list[Run[Any]], waiting: Future[Any]) -> None:
    """End the run. When this returns it is over, so that the next can begin."""
    if waiting.done():
        return
    for run in runs:
        run.cancel()
    if not runs:
        waiting.cancel()
    wait([waiting], timeout=ENDING_S)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()
