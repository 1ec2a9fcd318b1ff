"""A session to be killed while it is written, in a file or in a database: opened or made, read back, and where a blow is aimed at."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from dragoman.sessions import journal as journal_room
from dragoman.sessions.journal import OnFault, SharedSync
from dragoman.sessions.log import LoadedLog, read_log
from dragoman.sessions.opening import create, open_for_writing
from dragoman.sessions.sqlite import opening as sqlite_opening
from dragoman.sessions.sqlite.database import database_at
from dragoman.sessions.sqlite.journal import SqliteJournal
from dragoman.sessions.sqlite.lock import SessionLock
from dragoman.sessions.sqlite.store import SqliteStore
from dragoman.values.errors import NoSession
from sessions.entries import SESSION, started

WRITING, SYNCING = 2, 3
Within = Callable[[int, int], AbstractContextManager[None]]
"""What is done now, and with how many bytes."""


class Log(Protocol):
    path: Path
    """The file that holds it."""

    def open_or_create(self, on_fault: OnFault | None = None) -> tuple[SharedSync, LoadedLog]: ...

    def read(self) -> LoadedLog | None:
        """None: it is not there."""
        ...

    def watch(self, within: Within) -> None:
        """In the process that will be killed: say when it writes and when it syncs."""
        ...

    def remove(self) -> None: ...


class FileLog:
    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{SESSION}.jsonl"

    def open_or_create(self, on_fault: OnFault | None = None) -> tuple[SharedSync, LoadedLog]:
        if self.path.exists() and read_log(self.path).entries:
            return open_for_writing(self.path, on_fault)
        # Killed before its head was written, so nothing was ever acknowledged: it is made anew.
        self.path.unlink(missing_ok=True)
        return create(self.path, started(), on_fault), LoadedLog((started(),))

    def read(self) -> LoadedLog | None:
        return read_log(self.path) if self.path.exists() else None

    def watch(self, within: Within) -> None:
        write, sync = journal_room.write_whole, journal_room.sync_file

        def watched_write(descriptor: int, data: bytes) -> None:
            with within(WRITING, len(data)):
                write(descriptor, data)

        def watched_sync(descriptor: int) -> None:
            with within(SYNCING, 0):
                sync(descriptor)

        journal_room.write_whole, journal_room.sync_file = watched_write, watched_sync

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


class SqliteLog:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "chats.db"
        self._store = SqliteStore(self.path)

    def open_or_create(self, on_fault: OnFault | None = None) -> tuple[SharedSync, LoadedLog]:
        try:
            opened = self._store.open(SESSION, on_fault)
        except NoSession:
            database = database_at(self._store.path)
            database.hold()
            journal = SqliteJournal(
                database, SessionLock(database.files, SESSION), SESSION, "project", path=self._store.path, on_fault=on_fault
            )
            journal.append(started())
            return journal, LoadedLog((started(),))
        assert isinstance(opened.journal, SqliteJournal)
        return opened.journal, opened.loaded

    def read(self) -> LoadedLog | None:
        try:
            return self._store.read(SESSION)
        except NoSession:
            return None

    def watch(self, within: Within) -> None:
        """SQLite writes and syncs by itself: within a COMMIT, pages go to its log first and are synced last."""
        connected = sqlite_opening._open_connection

        class Watched:
            """The connection, with its statements told of."""

            def __init__(self, connection: object) -> None:
                self._connection = connection

            def __getattr__(self, name: str) -> object:
                return getattr(self._connection, name)

            def execute(self, statement: str, *values: object) -> object:
                run = self._connection.execute  # type: ignore[attr-defined]
                what = {"COMMIT": SYNCING, "BEGIN IMMEDIATE": WRITING}.get(statement)
                if what is None:
                    return run(statement, *values)
                with within(what, 1 << 30):
                    return run(statement, *values)

        def watched(address: str, *, is_address: bool = False) -> object:
            return Watched(connected(address, is_address=is_address))

        sqlite_opening._open_connection = watched  # type: ignore[assignment]

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


LOGS: dict[str, Callable[[Path], Log]] = {"files": FileLog, "sqlite": SqliteLog}
