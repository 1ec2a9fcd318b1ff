"""Blocking work in a thread, that a cancel really ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

Stop = Callable[[], None]
"""Raises Stopped once the work is no longer wanted. Long work calls it between its steps, and last before the step it cannot undo."""

PATIENCE_S = 0.8
"""How long a cancel waits for the thread. Beyond it the thread hangs in the system, as on a dead network disk, and is abandoned."""


class Stopped(Exception):
    """The work was cancelled. Nobody waits for its result any more."""


async def in_thread(work: Callable[[Stop], T]) -> T:
    """Run `work` in a thread. When cancelled, the work is told to stop, and is over before CancelledError goes on its way."""
    import asyncio
    import threading

    cancelled = threading.Event()

    def stop() -> None:
        if cancelled.is_set():
            raise Stopped

    def job_of_thread() -> T:
        stop()  # it may have waited for a free thread longer than anyone waited for it
        return work(stop)

    job = asyncio.get_running_loop().run_in_executor(None, job_of_thread)
    try:
        await asyncio.wait([job])  # unlike awaiting the job itself, this leaves it alone when cancelled
    except asyncio.CancelledError:
        cancelled.set()
        job.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait([job], timeout=PATIENCE_S)
        raise
    return job.result()


def never_stop() -> None:
    """A Stop for work that nobody can cancel."""
