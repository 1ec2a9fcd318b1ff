"""The database of a store in SQLite: opening it, its schema, and one commit for all who save at the same time.

It is in WAL mode with synchronous=FULL: a commit has returned when its pages are synced to disk, and readers never wait for a writer. One
process writes at a time, the others wait. Within a process all stores and journals of a file share one connection to write with: whoever
gets it commits what everybody has waiting, in one transaction and one sync.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote
from weakref import WeakValueDictionary

from dragoman.base.lock import hold
from dragoman.base.private import create_file, make_directory, sync_directory
from dragoman.base.words import say
from dragoman.sessions.search_table import make_texts
from dragoman.values.errors import InputError

if TYPE_CHECKING:
    from sqlite3 import Connection

_T = TypeVar("_T")
_BUSY_S = 10.0
"""How long others may keep the database from us before that is a fault."""
_APPLICATION_ID = 0x44524147
_BUSY, _READONLY, _CORRUPT, _FULL, _CANTOPEN, _NOTADB = 5, 8, 11, 13, 14, 26
MAX_LINES = 1 << 32
"""The lines of the session in row `id` are at the places from `id * MAX_LINES`: side by side, whoever else writes meanwhile."""


def _make_first(connection: Connection) -> None:
    """AUTOINCREMENT: the number of a deleted session is never given to another, which a writer that did not notice would write into."""
    connection.execute(
        "CREATE TABLE sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL UNIQUE, project TEXT NOT NULL,"
        " key TEXT NOT NULL, lines INTEGER NOT NULL, bytes INTEGER NOT NULL, summary BLOB, summed INTEGER NOT NULL DEFAULT 0,"
        " searched INTEGER NOT NULL DEFAULT 0)"
    )
    connection.execute("CREATE UNIQUE INDEX sessions_by_key ON sessions (key) WHERE key != ''")
    connection.execute("CREATE TABLE entries (place INTEGER PRIMARY KEY, line BLOB NOT NULL)")
    connection.execute("CREATE TABLE blobs (sha256 TEXT PRIMARY KEY, data BLOB NOT NULL)")
    connection.execute("CREATE TABLE uses (sha256 TEXT NOT NULL, session_id TEXT NOT NULL, PRIMARY KEY (sha256, session_id)) WITHOUT ROWID")
    connection.execute("CREATE INDEX uses_by_session ON uses (session_id)")
    make_texts(connection)


STEPS: tuple[Callable[[Connection], None], ...] = (_make_first,)
"""Step n brings a database from version n to n + 1; a new file begins at 0. A step that was released is never changed."""


class Removed(OSError):
    """The file was deleted or replaced while it was open."""


class Job(Generic[_T]):
    """Something that waits for a commit."""

    result: _T

    def __init__(self, work: Callable[[Connection], _T]) -> None:
        self.work = work
        self.is_done = False
        self.error: BaseException | None = None


_open_databases: WeakValueDictionary[tuple[int, str], Database] = WeakValueDictionary()
_inherited: list[Connection] = []
"""Connections of the process that this one was forked from. SQLite forbids to use or close them here."""


def files_of(path: str) -> str:
    return f"{path}-files"


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
        self._jobs: deque[Job[Any]] = deque()
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

    def submit(self, work: Callable[[Connection], _T]) -> Job[_T]:
        """Let it be done with the next commit, whoever makes that. Does not wait; follow it with `settle`."""
        job = Job(work)
        self._jobs.append(job)
        return job

    def settle(self, job: Job[_T]) -> _T:
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
            with closing(_open_to_read(self.path)) as connection:
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
        jobs: list[Job[Any]] = []
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

    def _run(self, jobs: list[Job[Any]]) -> None:
        import sqlite3

        connection = self._connection or self._connect()
        self._require_in_place()
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                _run_apart(connection, job)
            connection.execute("COMMIT")
        except BaseException as error:
            _roll_back(connection)
            if isinstance(error, sqlite3.Error) and code_of(error) not in (_BUSY, _FULL):
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


def _run_apart(connection: Connection, job: Job[Any]) -> None:
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


def _roll_back(connection: Connection) -> None:
    import sqlite3

    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        pass  # the error that led here is the one to tell


# --- opening --------------------------------------------------------------------------------------------------------------


def open_to_write(path: str) -> Connection:
    """The database, made or brought up to date where needed, for the user alone. Raises sqlite3.Error, OSError and InputError."""
    _make_file(path)
    return _prepared(_connected(path), path)


def _open_to_read(path: str) -> Connection:
    """Where it cannot be written, as it is."""
    if _is_own(path) and os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK):
        _require_own(path)
        return _prepared(_connected(path), path)
    import sqlite3

    address = f"file:{quote(path)}?mode=ro"
    try:
        connection = _connected(address, is_address=True)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        if os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal"):
            raise  # some of it is in there, and cannot be seen without writing
        connection = _connected(f"{address}&immutable=1", is_address=True)
    try:
        version = _version_of(connection, path)
        if version < len(STEPS):
            raise InputError(say("sessions.database_older", path=path, version=version))
    except BaseException:
        connection.close()
        raise
    return connection


def _connected(address: str, *, is_address: bool = False) -> Connection:
    import sqlite3

    return sqlite3.connect(address, timeout=_BUSY_S, isolation_level=None, check_same_thread=False, uri=is_address)


def _make_file(path: str) -> None:
    """Made here so that only the user can read it: what SQLite puts beside it gets the same mode.

    Never opened otherwise than by SQLite once it is there: closing any descriptor of it would drop the locks of this process.
    """
    changed = make_directory(os.path.dirname(path))
    try:
        os.close(create_file(path))
    except FileExistsError:
        _require_own(path)
        return
    for directory in changed:
        sync_directory(directory)


def _require_own(path: str) -> None:
    """Raises InputError if it is not a regular file, or another user's. Others lose their access to it."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise InputError(say("sessions.not_a_file", path=path))
    if not _is_own(path):
        raise InputError(say("sessions.belongs_to_other", path=path, owner=found.st_uid))
    if os.name != "nt" and found.st_mode & 0o077:
        try:
            os.chmod(path, 0o600)
        except OSError:
            pass  # a file system without modes


def _is_own(path: str) -> bool:
    return not hasattr(os, "geteuid") or os.stat(path).st_uid == os.geteuid()


def _prepared(connection: Connection, path: str) -> Connection:
    try:
        if _version_of(connection, path) < len(STEPS):
            make_directory(files_of(path))
            with hold(os.path.join(files_of(path), "schema")):  # one at a time: switching to WAL does not wait for others by itself
                _bring_up_to_date(connection, path)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA fullfsync=ON")  # macOS, where fsync does not flush the drive's own cache
        connection.execute("PRAGMA checkpoint_fullfsync=ON")
        connection.execute("PRAGMA secure_delete=ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _version_of(connection: Connection, path: str) -> int:
    """Raises InputError where it is not a store of ours, or one of a later version."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    is_empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != _APPLICATION_ID and not is_empty:
        raise InputError(say("sessions.database_foreign", path=path))
    if version > len(STEPS):
        raise InputError(say("sessions.database_newer", path=path, version=version, known=len(STEPS)))
    return 0 if is_empty else version


def _bring_up_to_date(connection: Connection, path: str) -> None:
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # heeded only before there is a table
    connection.execute("PRAGMA journal_mode=WAL")  # where that cannot be, it stays a rollback journal, which is as safe and slower
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in STEPS[_version_of(connection, path) :]:
            step(connection)
        connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={len(STEPS)}")
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


# --- errors ---------------------------------------------------------------------------------------------------------------


def code_of(error: BaseException) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_not_writable(error: BaseException) -> bool:
    """Whether reading works all the same."""
    return code_of(error) in (_BUSY, _READONLY, _FULL, _CANTOPEN) or isinstance(error, OSError)


def reason_of(error: BaseException) -> str:
    """What is wrong, in a few words."""
    match error:
        case Removed():
            return str(error)
        case OSError():
            return error.strerror or str(error) or type(error).__name__
        case _ if code_of(error) == _BUSY:
            return say("sessions.database_busy", seconds=f"{_BUSY_S:g}")
        case _:
            return str(error)


def refusal(error: BaseException, path: str, otherwise: str = "sessions.not_saved") -> InputError:
    if code_of(error) in (_CORRUPT, _NOTADB):
        return InputError(say("sessions.database_damaged", path=path, reason=error))
    return InputError(say(otherwise, path=path, reason=reason_of(error)))
