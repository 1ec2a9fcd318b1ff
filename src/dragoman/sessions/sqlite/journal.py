"""The journal of a session in SQLite: entries wait in memory, and one transaction saves all that wait when somebody syncs.

What nobody syncs (a rewind between two runs) is saved a moment later. So a process that is killed may lose the last entries it had not
synced, where a log in a file would have them; nothing that anybody was told of rests on that. Nothing is written on the event loop: other
processes may be writing, and then one waits.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING
from weakref import ref

from dragoman.sessions.journal import OnFault, SharedSync
from dragoman.sessions.sqlite.database import Database, Submission
from dragoman.sessions.sqlite.lock import SessionLock
from dragoman.sessions.sqlite.opening import MAX_LINES, reason_of
from dragoman.words import say

if TYPE_CHECKING:
    from sqlite3 import Connection

_LATE_S = 0.05
"""How long an entry waits for somebody to sync it."""
_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


class Displaced(ValueError):
    """The session is not as this writer left it. Its message is the reason, in a few words."""


class SqliteJournal(SharedSync):
    """A contracts.Journal over a held database. It owns the session's lock.

    `row` is the session's number in the database, None where it is yet to be made; `lines` is how many entries it has.
    """

    def __init__(
        self,
        database: Database,
        lock: SessionLock,
        session_id: str,
        project: str,
        *,
        key: str = "",
        row: int | None = None,
        lines: int = 0,
        path: str = "",
        on_fault: OnFault | None = None,
    ) -> None:
        super().__init__(on_fault, path)
        self._database: Database | None = database
        self._lock = lock
        self._session_id = session_id
        self._project = project
        self._key = key
        self._row = row
        self._saved_lines = lines
        self._waiting: list[bytes] = []
        self._guard = threading.Lock()
        """Around the row, the lines saved and those that wait: late entries are saved by another thread."""
        self._soon_s = 0.0
        """Until then, somebody will come for what waits."""
        self._ending = threading.Lock()
        """Late entries are saved before the journal is closed, or not at all: nothing opens the file afterwards."""

    @property
    def is_saved(self) -> bool:
        """Entries that wait for the next sync count as saved while nothing is wrong: `close` saves them too."""
        return not self.fault and not self.lost

    @property
    def is_closed(self) -> bool:
        return self._database is None

    def close(self) -> None:
        self._leave_to_parent()
        if self._database is not None:
            with self._ending:
                self.save_now()
                self.abandon()

    def abandon(self) -> None:
        """Close without saving what waits."""
        if self._database is None:
            return
        database, self._database = self._database, None
        self._lock.release()
        database.release()

    def save_now(self) -> None:
        """Sync, and block meanwhile. May be called from any thread."""
        self._begin_to_save()()

    def _begin_to_save(self) -> Callable[[], None]:
        """Hand in what waits, so that whoever commits next takes it along; returns what waits for that and may be called in a thread."""
        database = self._database
        if database is None or not self._has_work:
            return lambda: None
        with self._guard:
            row, first, lines = self._row, self._saved_lines, tuple(self._waiting)
        job = database.submit(lambda connection: self._write(connection, row, first, lines))
        return lambda: self._finish_saving(database, job, first + len(lines))

    def _finish_saving(self, database: Database, job: Submission[int], upto: int) -> None:
        try:
            row = database.settle(job)
        except Exception as error:  # of SQLite, of the system, or because the session is gone
            self._stop_saving(reason_of(error))
            return
        with self._guard:
            self._row = row
            # Another thread may have saved the same lines meanwhile, or more of them.
            more = max(0, upto - self._saved_lines)
            self._saved_lines += more
            del self._waiting[:more]
            has_all = not self._waiting
        if self.fault and has_all:
            self._resume_saving()

    @property
    def _has_work(self) -> bool:
        return bool(self._waiting or self.fault)

    def _take(self, line: bytes, *, waits: bool) -> None:
        with self._guard:
            self._waiting.append(line)
        now_s = time.monotonic()
        if now_s < self._soon_s:
            return
        self._soon_s = now_s + _LATE_S
        late: ref[SqliteJournal] = ref(self)  # a timer must not keep a journal that is dropped
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            threading.Timer(_LATE_S, _save_late, (late,)).start()  # no daemon: a program that ends waits for it
        else:
            loop.call_later(_LATE_S, _save_late_off, loop, late)

    async def _save(self) -> None:
        await asyncio.to_thread(self._begin_to_save())

    def _write(self, connection: Connection, row: int | None, first: int, lines: Sequence[bytes]) -> int:
        """Returns the session's row. Raises Displaced."""
        if row is None:
            row = find_row(connection, self._session_id)
        if row is None:
            if first:
                raise Displaced(say("sessions.row_removed"))
            row = add_session(connection, self._session_id, self._project, self._key)
        there = _lines_after(connection, row, first)
        if there is None:
            raise Displaced(say("sessions.row_removed"))
        if there[: len(lines)] != list(lines[: len(there)]):
            raise Displaced(say("sessions.row_taken"))
        # What is there already was saved by another thread, or by a commit that failed only in telling so.
        add_lines(connection, row, self._session_id, first + len(there), lines[len(there) :])
        return row

    def _leave_to_parent(self) -> None:
        """In a forked child: the parent keeps the lock and the connection, and saves what was waiting."""
        if self.is_closed or self._pid == os.getpid():
            return
        self._lock.leave_to_parent()
        self._database = None
        self._waiting.clear()


def _save_late_off(loop: asyncio.AbstractEventLoop, journal: ref[SqliteJournal]) -> None:
    """Off the loop, unless somebody has synced meanwhile."""
    late = journal()
    if late is not None and late._waiting and not late.is_closed:
        loop.run_in_executor(None, _save_late, journal)


def _save_late(journal: ref[SqliteJournal]) -> None:
    late = journal()
    if late is None:
        return
    with late._ending:
        if late._waiting:
            late.save_now()


# --- rows -----------------------------------------------------------------------------------------------------------------


def find_row(connection: Connection, session_id: str) -> int | None:
    found = connection.execute("SELECT id FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
    return found[0] if found is not None else None


def add_session(connection: Connection, session_id: str, project: str, key: str = "") -> int:
    """Raises sqlite3.IntegrityError if there is one with this id or key."""
    made = connection.execute(
        "INSERT INTO sessions (session_id, project, key, lines, bytes) VALUES (?, ?, ?, 0, 0)", (session_id, project, key)
    )
    assert made.lastrowid is not None
    return made.lastrowid


def read_lines_of(connection: Connection, row: int, first: int = 0) -> Iterable[bytes]:
    places = (row * MAX_LINES + first, (row + 1) * MAX_LINES)
    asked = "SELECT CAST(line AS BLOB) FROM entries WHERE place >= ? AND place < ? ORDER BY place"  # as text, if somebody edited it
    return (line for (line,) in connection.execute(asked, places))


def add_lines(connection: Connection, row: int, session_id: str, first: int, lines: Sequence[bytes]) -> None:
    """Add these lines to a session that has `first` of them, and note which blobs they name."""
    if not lines:
        return
    start = row * MAX_LINES + first
    connection.executemany("INSERT INTO entries (place, line) VALUES (?, ?)", enumerate(lines, start))
    size = sum(map(len, lines))
    connection.execute("UPDATE sessions SET lines = lines + ?, bytes = bytes + ? WHERE id = ?", (len(lines), size, row))
    digests = {digest.decode() for line in lines for digest in _DIGEST.findall(line)}
    connection.executemany(
        "INSERT OR IGNORE INTO uses (sha256, session_id) SELECT sha256, ? FROM blobs WHERE sha256 = ?",
        ((session_id, digest) for digest in digests),
    )


def _lines_after(connection: Connection, row: int, first: int) -> list[bytes] | None:
    """What a session has after its first lines; None if it has fewer, or there is no such session."""
    found = connection.execute("SELECT lines FROM sessions WHERE id = ?", (row,)).fetchone()
    if found is None or found[0] < first:
        return None
    return list(read_lines_of(connection, row, first)) if found[0] > first else []
