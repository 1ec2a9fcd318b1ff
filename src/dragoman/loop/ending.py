"""The end of an agent or chat, and waiting that no cancellation cuts short.

A scope of anyio, which Starlette and FastAPI cancel when a client leaves, cancels again at every await: without this the session would
stay locked until its agent is collected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any

from dragoman.loop.harness import Harness


async def end(harness: Harness, first: Sequence[Callable[[], Awaitable[Any]]] = ()) -> None:
    """End what is going on, take the steps in `first`, and close the session and the connections that were opened. All of it is done,
    whatever one of the steps raises, and also where the caller is cancelled: then CancelledError is raised at the end."""
    await to_the_end(_end(harness, first))


async def _end(harness: Harness, first: Sequence[Callable[[], Awaitable[Any]]]) -> None:
    async with AsyncExitStack() as steps:  # the last one first
        steps.push_async_callback(harness.models.aclose)
        if harness.commands is not None:
            steps.callback(harness.commands.close)
        steps.push_async_callback(harness.session.aclose)
        steps.push_async_callback(harness.stop_connecting)
        for step in reversed(first):
            steps.push_async_callback(step)
        if (worker := harness.session.work.current) is not None:
            worker.cancel()
            await worker.finished()


async def to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Carry it out to its end, however often the caller is cancelled meanwhile: then CancelledError is raised at the end."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        await wait_through(task)
    finally:
        if task.done() and not task.cancelled():
            error = task.exception()
            if error is not None:
                raise error


async def wait_through(task: asyncio.Task[Any], most_s: float | None = None) -> None:
    """Wait until a task is done, or for so long, however often the caller is cancelled meanwhile: then CancelledError is raised at the
    end."""
    loop, cancelled = asyncio.get_running_loop(), None
    until = None if most_s is None else loop.time() + most_s
    while not task.done() and (until is None or loop.time() < until):
        try:
            await asyncio.wait([task], timeout=None if until is None else until - loop.time())
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
