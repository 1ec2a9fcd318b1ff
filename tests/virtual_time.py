"""An event loop whose clock is moved by waiting: a timeout of a minute passes at once, and always in the same order."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlock(AssertionError):
    """Everything waits, and no timer is set: this would hang for ever."""


class _Impatient(selectors.SelectSelector):
    """Never sleeps: it moves the loop's clock instead."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise Deadlock("everything waits, and no timer is set")
        self.loop.now_s += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """For code that neither starts threads nor speaks to the outside."""

    def __init__(self) -> None:
        selector = _Impatient()
        selector.loop = self
        self.now_s = 0.0
        super().__init__(selector)
        self.complaints: list[dict[str, Any]] = []
        self.set_exception_handler(lambda loop, context: self.complaints.append(context))

    def time(self) -> float:
        return self.now_s


def run_in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """asyncio.run on a VirtualLoop. What the loop would only have logged, as an exception nobody retrieved, is a failure."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        result = runner.run(main)
        loop = runner.get_loop()
    assert isinstance(loop, VirtualLoop)
    assert loop.complaints == []
    return result
