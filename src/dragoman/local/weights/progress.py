"""Progress of a pull: bytes, rate, time left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Literal

import msgspec

Stage = Literal["waiting", "checking", "fetching", "verifying"]


class Progress(msgspec.Struct, frozen=True):
    """waiting: for another process that pulls the same model. checking: what an earlier pull left. verifying: the whole file's SHA-256."""

    stage: Stage
    name: str
    done_bytes: int
    total_bytes: int
    source: str = ""
    bytes_per_s: float = 0.0
    left_s: float | None = None
    """None while unknown."""


class SpeedMeter:
    """Counts in any thread; reports in the one that calls `show`.

    A part in progress counts with its size so far, and starts again from zero if it fails.
    """

    EVERY_S = 0.2
    WINDOW_S = 5.0

    def __init__(
        self, name: str, total_bytes: int, report: Callable[[Progress], None] | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._total_bytes = total_bytes
        self._report = report
        self._clock = clock
        self._verified_bytes = 0
        self._under_way: dict[int, int] = {}
        self._stage: Stage = "checking"
        self._source = ""
        self._points: deque[tuple[float, int]] = deque()

    @property
    def done_bytes(self) -> int:
        return min(self._verified_bytes + sum(list(self._under_way.values())), self._total_bytes)

    def enter(self, stage: Stage, source: str = "", *, verified_bytes: int = 0) -> None:
        self._stage, self._source, self._verified_bytes = stage, source, verified_bytes
        self._under_way.clear()
        self._points.clear()
        self.show()

    def update(self, number: int, size: int) -> None:
        """Set how much of a part has arrived, not yet verified. It never decreases, so unpacking after a download does not set it back."""
        self._under_way[number] = max(size, self._under_way.get(number, 0))

    def drop(self, number: int) -> None:
        self._under_way.pop(number, None)

    def complete(self, number: int, size: int) -> None:
        self._under_way.pop(number, None)
        self._verified_bytes += size

    def show(self) -> None:
        if self._report is None:
            return
        now_s, done = self._clock(), self.done_bytes
        self._points.append((now_s, done))
        while len(self._points) > 2 and self._points[1][0] < now_s - self.WINDOW_S:
            self._points.popleft()
        since_s, before = self._points[0]
        rate = max(done - before, 0) / (now_s - since_s) if now_s > since_s else 0.0
        left_s = (self._total_bytes - done) / rate if rate else None
        self._report(Progress(self._stage, self._name, done, self._total_bytes, self._source, rate, left_s))
