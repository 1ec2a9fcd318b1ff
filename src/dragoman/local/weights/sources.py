"""Where parts come from, and where they go. No source is trusted: what is kept is what has the right SHA-256."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Protocol, Self

from dragoman.local.weights.faults import NotPulled, Stopped
from dragoman.local.weights.models import Model, Part
from dragoman.local.weights.progress import Meter

PIECE_BYTES = 1 << 20


class Source(Protocol):
    """Somebody who may have a model's parts."""

    @property
    def title(self) -> str:
        """For a person: it heads the reason why this source failed."""
        ...

    @property
    def parallel(self) -> int:
        """How many parts may be fetched at once."""
        ...

    @property
    def copies(self) -> int:
        """How often a part lies on disk, beside its place in the file, while it is fetched."""
        ...

    async def fetch(self, model: Model, part: Part, sink: Sink) -> None:
        """Write the part into the sink, from its beginning. Raises NotPulled, and OSError only for what the disk says. Ends at once
        when it is cancelled, and leaves no process behind."""
        ...


class Sink:
    """Puts one part in its place in the file. `write` may be called in a thread, and raises Stopped once nobody wants it."""

    def __init__(self, file: Path, part: Part, meter: Meter, stop: threading.Event, scratch: Path, executor: Executor) -> None:
        import hashlib

        self.scratch = scratch
        """A folder of the source's own, emptied afterwards."""
        self._part = part
        self._meter = meter
        self._stop = stop
        self._executor = executor
        self._digest = hashlib.sha256()
        self._size = 0
        self._unwanted = False
        self._file = file.open("r+b", buffering=0)
        self._file.seek(part.offset)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        if self._unwanted or self._stop.is_set():
            raise Stopped
        if self._size + len(data) > self._part.bytes:
            raise NotPulled(f"part {self._part.number} is longer than it should be", again=True)
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self._digest.update(data)
        self._size += len(data)
        self._meter.arriving(self._part.number, self._size)

    @property
    def size(self) -> int:
        """How much was written."""
        return self._size

    def expect(self, size: int) -> None:
        """So much has come that cannot be written yet: for the eye alone."""
        self._meter.arriving(self._part.number, min(size, self._part.bytes))

    def check(self) -> None:
        """Raises NotPulled where this is not the part."""
        if self._size < self._part.bytes:
            raise NotPulled(f"part {self._part.number} ended after {self._size:,} of {self._part.bytes:,} bytes", again=True)
        if self._digest.hexdigest() != self._part.sha256:
            raise NotPulled(f"part {self._part.number} is damaged, or not what it should be (its SHA-256 is another)", again=True)

    async def in_thread(self, work: Callable[[], None]) -> None:
        """For what would keep the loop. A cancel ends it with its next `write`, and not before it has ended: the file is closed then."""
        import asyncio
        from concurrent.futures import wait

        working = self._executor.submit(work)
        try:
            await asyncio.wrap_future(working)
        except asyncio.CancelledError:
            self._unwanted = True
            wait([working])
            raise


class OwnFile:
    """A copy of the file that the user has already. It stays as it is."""

    parallel = 1
    copies = 0

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def title(self) -> str:
        return str(self.path)

    async def fetch(self, model: Model, part: Part, sink: Sink) -> None:
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
