"""The database of a store in SQLite: its connection, and one commit for all who save at the same time.

It is in WAL mode with synchronous=FULL: a commit has returned when its pages are synced to disk, and readers never wait for a writer. One
process writes at a time, the others wait. Within a process all stores and journals of a file share one connection to write with: whoever
gets it commits what everybody has waiting, in one transaction and one sync.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakValueDictionary

from dragoman.sessions.sqlite.opening import BUSY, FULL, Removed, code_of, files_of, open_to_read, open_to_write, refusal, roll_back
from dragoman.words import say

if TYPE_CHECKING:
    from sqlite3 import Connection

_T = TypeVar("_T")


class Submission(Generic[_T]):
    """Something that waits for a commit."""

    result: _T

    def __init__(self, work: Callable[[Connection], _T]) -> None:
        self.work = work
        self.is_done = False
        self.error: BaseException | None = None


_open_databases: WeakValueDictionary[tuple[int, str], Database] = WeakValueDictionary()
_inherited: list[Connection] = []
"""Connections of the process that this one was forked from. SQLite forbids to use or close them here."""


def database_at(path: str) -> Database:
    """The one of this process for this file. Two threads that ask at once may get two: then they do not share commits, and that is all."""
    key = (os.getpid(), path)
    database = _open_databases.get(key)
    if database is None:
        database = _open_databases[key] = Database(path)
    return database


class Database:
    """One file, and for as long as a session in it is open, one connection to it. All methods may be called from any thread."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._turn = threading.Lock()
        """Whoever has it uses the connection, and may keep it for as long as other processes write."""
        self._count = threading.Lock()
        """Around the holders, and whether there is a connection: never kept for long."""
        self._jobs: deque[Submission[Any]] = deque()
        self._connection: Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._holders = 0
        self._pid = os.getpid()

    def __del__(self) -> None:
        connection = getattr(self, "_connection", None)
        if connection is None or sys.is_finalizing():
            return
        if self._pid != os.getpid():
            _inherited.append(connection)
        else:
            connection.close()

    @property
    def files(self) -> str:
        """The folder beside it for what has to be a file: locks, tool output for the model to read, notes."""
        return files_of(self.path)

    @property
    def own_paths(self) -> tuple[str, ...]:
        return (self.path, f"{self.path}-wal", f"{self.path}-shm", f"{self.path}-journal", self.files)

    @property
    def exists(self) -> bool:
        return os.path.lexists(self.path)

    def hold(self) -> None:
        """Keep a connection open until `release`. Makes the file where there is none. Raises InputError.

        Where somebody holds it already, this does not wait for those who commit.
        """
        with self._count:
            self._holders += 1
            if self._connection is not None:
                return
        try:
            with self._turn:
                if self._connection is None:
                    self._connect()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        with self._count:
            self._holders -= 1
            if self._holders:
                return
        with self._turn:
            self._disconnect_unheld()

    def commit(self, work: Callable[[Connection], _T]) -> _T:
        """Do something in a transaction, together with what others have waiting; it is on disk when this returns.

        Raises what `work` raises, InputError, sqlite3.Error or OSError: then nothing of it has been done.
        """
        return self.settle(self.submit(work))

    def submit(self, work: Callable[[Connection], _T]) -> Submission[_T]:
        """Let it be done with the next commit, whoever makes that. Does not wait; follow it with `settle`."""
        job = Submission(work)
        self._jobs.append(job)
        return job

    def settle(self, job: Submission[_T]) -> _T:
        """The rest of `commit`."""
        with self._turn:
            if not job.is_done:
                self._commit_all()
        if job.error is not None:
            raise job.error
        return job.result

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read with. Raises InputError if the database cannot be read, also for errors within."""
        import sqlite3

        try:
            with closing(open_to_read(self.path)) as connection:
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise refusal(error, self.path, "sessions.database_unreadable") from error

    def give_back_space(self) -> None:
        """After something was deleted: shrink the file, and leave nothing of it in the log of SQLite. May do less where others read."""
        import sqlite3

        with self._turn, closing(open_to_write(self.path)) as connection:
            try:
                connection.execute("PRAGMA incremental_vacuum").fetchall()
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.OperationalError:
                pass  # busy: the next deletion does it

    # --- below: with the turn

    def _commit_all(self) -> None:
        jobs: list[Submission[Any]] = []
        while self._jobs:
            jobs.append(self._jobs.popleft())
        try:
            self._run(jobs)
        except BaseException as error:
            for job in jobs:
                job.error = job.error or error
            if not isinstance(error, Exception):
                raise
        finally:
            for job in jobs:
                job.is_done = True
            self._disconnect_unheld()

    def _run(self, jobs: list[Submission[Any]]) -> None:
        import sqlite3

        connection = self._connection or self._connect()
        self._require_in_place()
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                _run_apart(connection, job)
            connection.execute("COMMIT")
        except BaseException as error:
            roll_back(connection)
            if isinstance(error, sqlite3.Error) and code_of(error) not in (BUSY, FULL):
                self._disconnect()  # what it has cached may be wrong now
            raise
        self._require_in_place()

    def _connect(self) -> Connection:
        import sqlite3

        try:
            self._connection = open_to_write(self.path)
            found = os.stat(self.path)
        except (sqlite3.Error, OSError) as error:
            raise refusal(error, self.path) from error
        self._identity = (found.st_dev, found.st_ino)
        return self._connection

    def _disconnect_unheld(self) -> None:
        with self._count:
            if self._holders:
                return
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _disconnect(self) -> None:
        with self._count:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _require_in_place(self) -> None:
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._identity:
            raise Removed(say("sessions.file_removed"))


def _run_apart(connection: Connection, job: Submission[Any]) -> None:
    """One job of a transaction: if it fails, the others are done all the same. Raises where SQLite has given up the transaction."""
    connection.execute("SAVEPOINT job")
    try:
        job.result = job.work(connection)
    except Exception as error:
        job.error = error
        if not connection.in_transaction:
            raise
        connection.execute("ROLLBACK TO job")
    connection.execute("RELEASE job")
