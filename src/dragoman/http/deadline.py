"""A timeout that is moved far more often than it is reached: one timer for a whole stream instead of one per read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator


class Deadline:
    """Limits how long `next` waits. Moving it (`.at`, in the loop's time) costs one assignment.

    The timer is not moved; if it fires too early, it is set again. It does nothing between two reads: a slow reader does not time out.
    """

    def __init__(self, at: float) -> None:
        self.at = at
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._expired = False

    async def next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """The next chunk, or None at the end. Raises TimeoutError when the deadline passes first."""
        task = self._task = asyncio.current_task()
        assert task is not None
        cancels = task.cancelling()
        if self._timer is not None and self._timer.when() > self.at:
            self.close()  # moved closer: the timer would fire too late
        if self._timer is None:
            self._timer = self._loop.call_at(self.at, self._on_timer)
        try:
            return await anext(chunks, None)
        except asyncio.CancelledError:
            # As in asyncio.timeout: undo our own cancellation, let any other through.
            if self._expired and task.uncancel() <= cancels:
                raise TimeoutError from None
            raise
        finally:
            self._task = None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        if self._task is None:
            return
        if self._loop.time() < self.at:
            self._timer = self._loop.call_at(self.at, self._on_timer)
        else:
            self._expired = True
            self._task.cancel()
