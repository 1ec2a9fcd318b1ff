"""Opening the database of a store: its file, its schema, and what its errors mean. Nobody but SQLite reads or writes it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

from dragoman.base.lock import hold
from dragoman.base.private import create_file, make_directory, sync_directory
from dragoman.sessions.search_table import make_texts
from dragoman.values.errors import InputError
from dragoman.words import say

if TYPE_CHECKING:
    from sqlite3 import Connection

_BUSY_S = 10.0
"""How long others may keep the database from us before that is a fault."""
_APPLICATION_ID = 0x44524147
BUSY, _READONLY, _CORRUPT, FULL, _CANTOPEN, _NOTADB = 5, 8, 11, 13, 14, 26
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


def files_of(path: str) -> str:
    return f"{path}-files"


def open_to_write(path: str) -> Connection:
    """The database, made or brought up to date where needed, for the user alone. Raises sqlite3.Error, OSError and InputError."""
    _make_file(path)
    return _prepared(_open_connection(path), path)


def open_to_read(path: str) -> Connection:
    """Where it cannot be written, as it is."""
    if _is_own(path) and os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK):
        _require_own(path)
        return _prepared(_open_connection(path), path)
    import sqlite3

    address = f"file:{quote(path)}?mode=ro"
    connection = _open_connection(address, is_address=True)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        if os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal"):
            raise  # some of it is in there, and cannot be seen without writing
        connection = _open_connection(f"{address}&immutable=1", is_address=True)
    try:
        version = _version_of(connection, path)
        if version < len(STEPS):
            raise InputError(say("sessions.database_older", path=path, version=version))
    except BaseException:
        connection.close()
        raise
    return connection


def roll_back(connection: Connection) -> None:
    import sqlite3

    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        pass  # the error that led here is the one to tell


def _open_connection(address: str, *, is_address: bool = False) -> Connection:
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
        if not os.access(path, os.W_OK):  # SQLite would open it all the same, to read
            raise InputError(say("sessions.not_saved", path=path, reason=os.strerror(errno.EACCES))) from PermissionError(
                errno.EACCES, path
            )
        return
    for directory in changed:
        sync_directory(directory)


def _require_own(path: str) -> None:
    """Raises InputError if it is not a regular file, or another user's. Others lose their access to it."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise InputError(say("sessions.not_a_file", path=path))
    if not _is_own(path):
        raise InputError(say("sessions.database_of_other", path=path, owner=found.st_uid)) from PermissionError(errno.EACCES, path)
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
    # In one statement, so of one moment: another process may be making it just now.
    facts = "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version, pragma_application_id"
    version, application, tables = connection.execute(facts).fetchone()
    is_empty = not tables
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
        roll_back(connection)
        raise


# --- errors ---------------------------------------------------------------------------------------------------------------


def code_of(error: BaseException) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_not_writable(error: BaseException) -> bool:
    """Whether reading works all the same."""
    return code_of(error) in (BUSY, _READONLY, FULL, _CANTOPEN) or isinstance(error, OSError)


def reason_of(error: BaseException) -> str:
    """What is wrong, in a few words."""
    match error:
        case Removed():
            return str(error)
        case OSError():
            return error.strerror or str(error) or type(error).__name__
        case _ if code_of(error) == BUSY:
            return say("sessions.database_busy", seconds=f"{_BUSY_S:g}")
        case _:
            return str(error)


def refusal(error: BaseException, path: str, otherwise: str = "sessions.not_saved") -> InputError:
    if code_of(error) in (_CORRUPT, _NOTADB):
        return InputError(say("sessions.database_damaged", path=path, reason=error))
    return InputError(say(otherwise, path=path, reason=reason_of(error)))
