"""Holding a run: starting it, watching it, waiting for it, ending it. What it does is in run.py."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Generator
from typing import Any, Self

from dragoman.loop.result import Result
from dragoman.values import contracts
from dragoman.values.events import TurnEvent

_log = logging.getLogger("dragoman.runs")


class RunHandle(ABC):
    """One task and one queue of events. Iterate it for TurnEvents, await it for the Result, or both. It starts when first asked.

    Iterating does not raise for what goes wrong in the run: the last event tells it. Awaiting raises it.
    """

    def __init__(self) -> None:
        self._events: asyncio.Queue[TurnEvent | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._ended = False
        self._unwanted = False
        """Cancelled, perhaps before its task took a step."""
        self._underway = False

    @property
    @abstractmethod
    def result(self) -> Result:
        """How things stand; complete once the run has ended."""

    @abstractmethod
    def _prepare_start(self) -> None: ...

    @abstractmethod
    async def _drive(self) -> None:
        """The whole run. It emits None when it is over, however it went."""

    def cancel(self) -> None:
        """End it: within a second every open call is answered, and the next run can begin. Once is enough."""
        if not self._unwanted and self._underway and self._task is not None:
            self._task.cancel()
        self._unwanted = True

    def tell(self, event: TurnEvent) -> None:
        """Something happened that those who watch this run should hear of. May be called from any thread."""
        if self._task is None or self._task.done():
            return
        loop = self._task.get_loop()
        try:
            is_ours = asyncio.get_running_loop() is loop
        except RuntimeError:  # a thread without a loop
            is_ours = False
        if is_ours:
            self._emit(event)
        else:
            loop.call_soon_threadsafe(self._emit, event)

    async def finished(self) -> None:
        """Returns when it is over, however it went."""
        if self._task is None:
            return
        try:
            await asyncio.shield(self._task)
        except asyncio.CancelledError:
            self.cancel()  # whoever waited for it was cancelled: so is the run
            await asyncio.wait([self._task], timeout=2)
            raise

    async def __aenter__(self) -> Self:
        self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()
        await self.finished()

    def __await__(self) -> Generator[Any, None, Result]:
        return self._wait().__await__()

    async def __aiter__(self) -> AsyncIterator[TurnEvent]:
        self._start()
        while not self._ended:
            event = await self._events.get()
            if event is None:
                self._ended = True
                return
            yield event

    async def _wait(self) -> Result:
        self._start()
        await self.finished()
        if self._error is not None:
            raise self._error
        return self.result

    def _start(self) -> None:
        if self._task is None:
            self._prepare_start()
            drive = self._drive() if contracts.tracing is None else contracts.tracing.drive(self)
            if _log.isEnabledFor(logging.INFO):
                from dragoman.loop.run_log import log_run

                drive = log_run(self, drive)
            self._task = asyncio.get_running_loop().create_task(drive)

    def _emit(self, event: TurnEvent | None) -> None:
        self._events.put_nowait(event)
