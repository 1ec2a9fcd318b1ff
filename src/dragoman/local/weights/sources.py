"""Where parts come from and where they are written. No source is trusted: only data with the right SHA-256 is kept."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import Executor, wait
from pathlib import Path
from typing import Protocol, Self

from dragoman.local.weights.faults import NotPulled, PullStopped
from dragoman.local.weights.models import LocalModel, Part
from dragoman.local.weights.progress import SpeedMeter
from dragoman.words import say

PIECE_BYTES = 1 << 20


class WeightSource(Protocol):
    """A source that may have a model's parts."""

    @property
    def title(self) -> str:
        """Shown to the user before the reason why this source failed."""
        ...

    @property
    def parallel(self) -> int:
        """How many parts may be fetched at once."""
        ...

    @property
    def copies(self) -> int:
        """How many extra copies of a part are on disk while it is fetched."""
        ...

    async def fetch(self, model: LocalModel, part: Part, sink: Sink) -> None:
        """Write the part into the sink, from its start. Raises NotPulled, and OSError only for disk errors. When cancelled, it ends at
        once and leaves no process behind."""
        ...


class Sink:
    """Writes one part at its offset in the file. `write` may be called in a thread, and raises PullStopped after a cancel."""

    def __init__(self, file: Path, part: Part, meter: SpeedMeter, stop: threading.Event, scratch: Path, executor: Executor) -> None:
        self.scratch = scratch
        """A folder for the source's temporary files, removed afterwards."""
        self._part = part
        self._meter = meter
        self._stop = stop
        self._executor = executor
        self._digest = hashlib.sha256()
        self._size = 0
        self._is_cancelled = False
        self._file = file.open("r+b", buffering=0)
        self._file.seek(part.offset)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        if self._is_cancelled or self._stop.is_set():
            raise PullStopped
        if self._size + len(data) > self._part.bytes:
            raise NotPulled(say("local.part_too_long", part=self._part.number), can_retry=True)
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self._digest.update(data)
        self._size += len(data)
        self._meter.update(self._part.number, self._size)

    @property
    def size(self) -> int:
        """Bytes written."""
        return self._size

    def report_progress(self, size: int) -> None:
        """Report bytes that have arrived but cannot be written yet: for the progress display only."""
        self._meter.update(self._part.number, min(size, self._part.bytes))

    def check(self) -> None:
        """Raises NotPulled unless what was written is the part."""
        if self._size < self._part.bytes:
            raise NotPulled(say("local.part_cut", part=self._part.number, size=self._size, all=self._part.bytes), can_retry=True)
        if self._digest.hexdigest() != self._part.sha256:
            raise NotPulled(say("local.part_damaged", part=self._part.number), can_retry=True)

    async def in_thread(self, work: Callable[[], None]) -> None:
        """For work that would block the loop. A cancel stops it at its next `write` and waits for its end: then the file is closed."""
        working = self._executor.submit(work)
        try:
            await asyncio.wrap_future(working)
        except asyncio.CancelledError:
            self._is_cancelled = True
            wait([working])
            raise


class OwnFile:
    """A file that the user already has. It is copied, never changed."""

    parallel = 1
    copies = 0

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def title(self) -> str:
        return str(self.path)

    async def fetch(self, model: LocalModel, part: Part, sink: Sink) -> None:
        def copy() -> None:
            try:
                with self.path.open("rb") as file:
                    file.seek(part.offset)
                    left = part.bytes
                    while left and (piece := file.read(min(left, PIECE_BYTES))):
                        sink.write(piece)
                        left -= len(piece)
            except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
                raise NotPulled(error.strerror or str(error)) from error

        await sink.in_thread(copy)
