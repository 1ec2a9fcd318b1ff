"""Blocking work in a thread, with cancellation that really ends it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

Stop = Callable[[], None]
"""Raises Stopped after a cancel. Long work calls it between its steps, and once more before the step it cannot undo."""

PATIENCE_S = 0.8
"""How long a cancel waits for the thread. After that the thread is stuck in the system (a dead network disk) and is abandoned."""


class Stopped(Exception):
    """The work was cancelled; its result is no longer needed."""


async def in_thread(work: Callable[[Stop], T]) -> T:
    """Run `work` in a thread. When cancelled, the work is asked to stop and ends before CancelledError propagates."""
    cancelled = threading.Event()

    def stop() -> None:
        if cancelled.is_set():
            raise Stopped

    def job_of_thread() -> T:
        stop()  # it may have been cancelled while waiting for a free thread
        return work(stop)

    job = asyncio.get_running_loop().run_in_executor(None, job_of_thread)
    try:
        await asyncio.wait([job])  # unlike awaiting the job itself, this does not cancel it
    except asyncio.CancelledError:
        cancelled.set()
        job.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait([job], timeout=PATIENCE_S)
        raise
    return job.result()


def never_stop() -> None:
    """A Stop for work that cannot be cancelled."""
