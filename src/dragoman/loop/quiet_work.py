"""Work between two runs that nobody listens to: a compression or a search that was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dragoman.loop.session import Session
from dragoman.loop.watching import call_in
from dragoman.values.events import TurnEvent


@asynccontextmanager
async def quiet_work(session: Session) -> AsyncGenerator[None]:
    """Do something in a session where nothing else is under way. Raises InputError where something is."""
    work = _QuietWork()
    await session.work.begin_after(work)
    try:
        yield
    finally:
        session.work.end(work)
        work.end()


class _QuietWork:
    """Can be cancelled, as a run can."""

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
