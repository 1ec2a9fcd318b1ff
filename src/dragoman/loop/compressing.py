"""A compression that is asked for, between two runs."""

from __future__ import annotations

import asyncio

from dragoman.loop.compression import Compression
from dragoman.loop.configuring import configure
from dragoman.loop.harness import Harness
from dragoman.loop.watching import call_in
from dragoman.values.events import TurnEvent


async def compress_now(harness: Harness, focus: str) -> Compression:
    """Have the older part of the conversation summed up, however long it is."""
    session, history = harness.session, harness.session.history
    harness.require_none_pending()  # a cut behind them would answer them
    compressing = _Compressing()
    await session.work.begin_after(compressing)
    try:
        if history.view.messages:
            history.close_interrupted()
        if not history.view.model:
            configure(harness)
        done = await harness.upkeep.compress(focus)
        await history.sync()
        return done
    finally:
        session.work.end(compressing)
        compressing.end()


class _Compressing:
    """A compression under way: nobody listens, but it can be cancelled."""

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self.is_unwanted = False

    def tell(self, event: TurnEvent) -> None:
        pass

    def cancel(self) -> None:
        if not self.is_unwanted and self._task is not None:
            self.is_unwanted = True
            call_in(self._loop, self._task.cancel)

    def end(self) -> None:
        self._over.set()

    async def finished(self) -> None:
        await self._over.wait()
