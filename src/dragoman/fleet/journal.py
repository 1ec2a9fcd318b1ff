"""What a fleet has started and what has ended, on disk before anything else is done about it. Replaying it gives the state again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.base.beneath import open_directory
from dragoman.base.lock import Locked, lock, lock_with_others
from dragoman.base.private import sync_file, write_whole
from dragoman.fleet import files
from dragoman.values.errors import InputError
from dragoman.words import say

JOURNAL_FILE = "journal.jsonl"
MOST_LINE_BYTES = 100_000
MOST_EPOCHS = 60_000

Number = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Epoch = Annotated[int, Meta(ge=1, le=MOST_EPOCHS)]
Dollars = Annotated[float, Meta(ge=0, le=1e12)]


class EpochStarted(msgspec.Struct, frozen=True, tag="start", tag_field="e"):
    """Written before a worker is started."""

    task: Number
    """The number of the task in the fleet, from 0."""
    attempt: Number
    epoch: Epoch
    at_ms: int = 0


class EpochEnded(msgspec.Struct, frozen=True, tag="end", tag_field="e", omit_defaults=True):
    """Written after a worker's end, and after its result was accepted, if it was."""

    task: Number
    attempt: Number
    epoch: Epoch
    outcome: str
    is_accepted: bool = False
    failure: str = ""
    """Class of the error and hash of the request, where it counts as a failure: three equal ones are enough."""
    usd: Dollars | None = 0.0


class Reopened(msgspec.Struct, frozen=True, tag="again", tag_field="e"):
    """Written when an accepted result is set aside, because the user wants the attempt again."""

    task: Number
    attempt: Number


class BudgetSet(msgspec.Struct, frozen=True, tag="budget", tag_field="e"):
    """Written when the user names what the fleet may cost: that holds until another one is named, also after a crash."""

    usd: Dollars


Line = EpochStarted | EpochEnded | Reopened | BudgetSet


def replay(folder: str) -> Iterator[Line]:
    """Every whole line. A last one that was cut off was never acted upon. Raises InputError where the journal cannot be one."""
    path = os.path.join(folder, JOURNAL_FILE)
    try:
        with files.open_file(path) as file:
            for line in files.lines_of(file, MOST_LINE_BYTES):
                if line.endswith(b"\n"):
                    try:
                        yield files.decode(line, Line)
                    except msgspec.MsgspecError:
                        continue  # cut off by a crash, and gone on behind
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(say("fleet.lock_unreadable", path=path, reason=error.strerror or error)) from error


def last_budget(folder: str) -> float | None:
    """What the fleet may cost, in dollars; None: anything."""
    named = [line.usd for line in replay(folder) if isinstance(line, BudgetSet)]
    return named[-1] if named else None


def has_supervisor(folder: str) -> bool:
    """Whether some process carries out the fleet at this moment."""
    try:
        with open_directory(folder) as directory:
            journal = directory.open_for_reading(JOURNAL_FILE)
    except OSError:
        return False
    try:
        lock_with_others(journal, ())  # given back at once: a supervisor that starts meanwhile tries again
    except Locked:
        return True
    except OSError:
        return False
    finally:
        os.close(journal)
    return False


class FleetJournal:
    """The journal of a fleet, held by one supervisor at a time. Lines that come together are synced together."""

    def __init__(self, folder: str) -> None:
        """Raises InputError where another supervisor holds it, or where it is no file."""
        path = os.path.join(folder, JOURNAL_FILE)
        try:
            self._file = files.open_to_append(path)
        except OSError as error:
            raise InputError(say("fleet.lock_unreadable", path=path, reason=error.strerror or error)) from error
        try:
            lock(self._file)
        except Locked as error:
            os.close(self._file)
            raise InputError(say("fleet.in_use", path=folder)) from error
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            write_whole(self._file, b"\n")
        self._is_torn = False
        """Whether the last write was cut off: what comes next must not become part of its line."""
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, line: Line) -> None:
        """Returns when it is on disk. Raises OSError, also for lines that were to be written with it."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((msgspec.json.encode(line) + b"\n", done))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_waiting())
        await done

    def write_now(self, lines: list[Line]) -> None:
        """The same for several lines, at once and blocking."""
        self._put(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))

    def close(self) -> None:
        os.close(self._file)

    async def _write_waiting(self) -> None:
        while self._waiting:
            batch = self._waiting
            self._waiting = []
            try:
                await asyncio.to_thread(self._put, b"".join(data for data, _ in batch))
            except OSError as error:
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
                continue
            for _, done in batch:
                if not done.done():
                    done.set_result(None)
        self._writing = None

    def _put(self, data: bytes) -> None:
        data, self._is_torn = b"\n" + data if self._is_torn else data, True
        write_whole(self._file, data)
        self._is_torn = False
        sync_file(self._file)
