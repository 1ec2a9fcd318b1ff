"""How far a pull is: bytes, rate, time left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Literal

import msgspec

Stage = Literal["waiting", "checking", "fetching", "verifying"]


class Progress(msgspec.Struct, frozen=True):
    """waiting: for another process that pulls the same. checking: what an earlier pull left. verifying: the whole file's SHA-256."""

    stage: Stage
    name: str
    done_bytes: int
    total_bytes: int
    source: str = ""
    bytes_per_s: float = 0.0
    left_s: float | None = None
    """None while nothing can be said."""


class Meter:
    """Counts, in any thread; tells, in the one that calls `show`.

    What is being unpacked or sent counts by its size so far, and again from zero where it fails.
    """

    EVERY_S = 0.2
    WINDOW_S = 5.0

    def __init__(
        self, name: str, total_bytes: int, tell: Callable[[Progress], None] | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._total_bytes = total_bytes
        self._tell = tell
        self._clock = clock
        self._kept = 0
        self._under_way: dict[int, int] = {}
        self._stage: Stage = "checking"
        self._source = ""
        self._points: deque[tuple[float, int]] = deque()

    @property
    def done_bytes(self) -> int:
        return min(self._kept + sum(list(self._under_way.values())), self._total_bytes)

    def enter(self, stage: Stage, source: str = "", *, kept: int = 0) -> None:
        self._stage, self._source, self._kept = stage, source, kept
        self._under_way.clear()
        self._points.clear()
        self.show()

    def arriving(self, number: int, size: int) -> None:
        """So much of a part is here, not yet verified. Unpacking what was fetched takes nothing back."""
        self._under_way[number] = max(size, self._under_way.get(number, 0))

    def lost(self, number: int) -> None:
        self._under_way.pop(number, None)

    def arrived(self, number: int, size: int) -> None:
        self._under_way.pop(number, None)
        self._kept += size

    def show(self) -> None:
        if self._tell is None:
            return
        now_s, done = self._clock(), self.done_bytes
        self._points.append((now_s, done))
        while len(self._points) > 2 and self._points[1][0] < now_s - self.WINDOW_S:
            self._points.popleft()
        since_s, before = self._points[0]
        rate = max(done - before, 0) / (now_s - since_s) if now_s > since_s else 0.0
        left_s = (self._total_bytes - done) / rate if rate else None
        self._tell(Progress(self._stage, self._name, done, self._total_bytes, self._source, rate, left_s))
