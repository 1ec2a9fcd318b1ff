"""Sessions of many users in one SQLite file: the same store as the one in files, for a service that keeps everything in one place.

The lines are those that a log in a file has, checksums included: a row each. Summaries and texts to search in are folded from them when
somebody lists or searches, as the index of the store in files is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.base import late_types
from dragoman.base.clock import now_ms
from dragoman.base.ids import is_session_id
from dragoman.sessions.log import LoadedLog, encode_line, read_rows
from dragoman.sessions.projects import OUTPUTS, WRITING, check_key, check_path, log_name, project_hash, project_name, quote_typed
from dragoman.sessions.sqlite.blobs import SqliteBlobs
from dragoman.sessions.sqlite.database import database_at
from dragoman.sessions.sqlite.journal import SqliteJournal, add_lines, add_session, find_row, read_lines_of
from dragoman.sessions.sqlite.lock import SessionLock, sweep
from dragoman.sessions.sqlite.opening import refusal
from dragoman.sessions.store import NamesSessions, StoredSession
from dragoman.values.errors import InputError, NoSession
from dragoman.values.record import Entry, Started
from dragoman.words import say

if TYPE_CHECKING:
    from sqlite3 import Connection

    from dragoman.sessions.journal import OnFault
    from dragoman.sessions.removal import Removal
    from dragoman.sessions.search_table import Hit
    from dragoman.sessions.summary import Summary
else:
    (OnFault,) = late_types("dragoman.sessions.journal", "OnFault")
    (Removal,) = late_types("dragoman.sessions.removal", "Removal")
    (Hit,) = late_types("dragoman.sessions.search_table", "Hit")
    (Summary,) = late_types("dragoman.sessions.summary", "Summary")

Folder = str | os.PathLike[str]


class SqliteStore(NamesSessions):
    """Sessions in one file, which need not exist yet, nor its folder. Methods that take a session accept its id, or its path here.

    Beside the file are those of SQLite (`-wal`, `-shm`), and a folder `-files` for what has to be files: long tool output, and locks.
    """

    def __init__(self, path: Folder) -> None:
        if os.fspath(path) in ("", ":memory:"):
            raise InputError(say("sessions.database_in_memory"))
        self.path = os.path.realpath(check_path(path))

    @property
    def own_paths(self) -> tuple[str, ...]:
        return database_at(self.path).own_paths

    # --- paths and ids

    def path_of(self, session_id: str, workspace: Folder) -> str:
        """The path a session has, or would have: that of the database, and its id. Raises InputError if the id is not valid."""
        log_name(session_id)
        return self._path_of(session_id)

    def blobs_beside(self, path: Folder, on_fault: OnFault | None = None) -> SqliteBlobs:
        """The blobs of a session. They are in the database, and found from every session of it."""
        return SqliteBlobs(database_at(self.path), self._require_own(path), on_fault)

    def outputs_beside(self, path: Folder) -> str:
        """Where a session stores tool output that was too long for the model. It is deleted with the session."""
        return os.path.join(database_at(self.path).files, OUTPUTS, self._require_own(path))

    def ids(self) -> Sequence[str]:
        """The id of every session, of all workspaces."""
        database = database_at(self.path)
        if not database.exists:
            return []
        with database.reading() as connection:
            return [session_id for (session_id,) in connection.execute("SELECT session_id FROM sessions")]

    # --- one session

    def create(
        self,
        workspace: Folder,
        session_id: str = "",
        *,
        directories: Sequence[str] = (),
        versions: Sequence[str] = (),
        on_fault: OnFault | None = None,
        key: str = "",
        parent: tuple[str, str] = ("", ""),
    ) -> StoredSession:
        """Create a session. Its head is saved by the first `sync`. Raises InputError if that is not possible."""
        check_key(key)
        check_path(workspace)
        session_id = session_id or self.new_id()
        path = self.path_of(session_id, workspace)
        database = database_at(self.path)
        database.hold()
        try:
            sweep(database.files)
            lock = SessionLock(database.files, session_id)
            try:
                if self._row_of(session_id) is not None:
                    raise InputError(say("sessions.exists", path=path))
            except BaseException:
                lock.release()
                raise
        except BaseException:
            database.release()
            raise
        journal = SqliteJournal(database, lock, session_id, project_name(workspace), key=key, path=path, on_fault=on_fault)
        folders = tuple(directories) or (os.path.realpath(workspace),)
        head = (1, now_ms(), session_id, project_hash(workspace), folders, tuple(versions))
        started = Started(*head, key=key, parent=parent[0], parent_call=parent[1])
        journal.append(started)
        return self._stored(session_id, journal, LoadedLog((started,)), on_fault)

    def open_or_create(
        self, key: str, workspace: Folder, *, versions: Sequence[str] = (), on_fault: OnFault | None = None
    ) -> StoredSession:
        """Resume the session with this key, of whatever workspace, or create it. Raises InUse if another process writes it.

        Of several that ask for a new key at once, one creates the session and the others get InUse.
        """
        check_key(key)
        is_made = False

        def tell(message: str) -> None:
            if is_made and on_fault is not None:  # before that, what is wrong is raised
                on_fault(message)

        while True:
            if (session_id := self._with_key(key)) is not None:
                try:
                    return self.open(session_id, on_fault)
                except NoSession:
                    continue  # deleted just now
            stored = self.create(workspace, versions=versions, on_fault=tell, key=key)
            assert isinstance(stored.journal, SqliteJournal)
            stored.journal.save_now()
            if not stored.journal.fault:
                is_made = True
                return stored
            fault = stored.journal.fault
            stored.journal.abandon()
            if self._with_key(key) is None:  # otherwise somebody else was first
                raise InputError(say("sessions.not_saved", path=self.path, reason=fault))

    def open(self, path: Folder, on_fault: OnFault | None = None) -> StoredSession:
        """Resume a session. Raises InUse if another process writes it, NoSession if there is none."""
        session_id = self._require_own(path)
        self._require_row(session_id)
        database = database_at(self.path)
        database.hold()
        try:
            sweep(database.files)
            lock = SessionLock(database.files, session_id)
            try:
                with database.reading() as connection:
                    row, project, lines = _session_of(connection, session_id)
                    loaded = read_rows(read_lines_of(connection, row))
                if not loaded.entries:
                    raise InputError(say("sessions.nothing_to_resume", path=self._path_of(session_id)))
            except BaseException:
                lock.release()
                raise
        except BaseException:
            database.release()
            raise
        at = self._path_of(session_id)
        journal = SqliteJournal(database, lock, session_id, project, row=row, lines=lines, path=at, on_fault=on_fault)
        return self._stored(session_id, journal, loaded, on_fault)

    def read(self, path: Folder) -> LoadedLog:
        """Read a session, even while another process writes it."""
        session_id = self._require_own(path)
        self._require_row(session_id)
        with database_at(self.path).reading() as connection:
            return read_rows(read_lines_of(connection, _session_of(connection, session_id)[0]))

    def add(self, workspace: Folder, entries: Iterable[Entry]) -> str:
        """Add a session made elsewhere, whole or not at all: entries that begin with Started. Returns its path.

        What it says about files is never undone: it may be forged.
        """
        from dragoman.sessions.copies import added_entries

        head, added = added_entries(entries, project_hash(workspace))
        log_name(head.session_id)
        return self._insert(head.session_id, project_name(workspace), [encode_line(entry) for entry in added])

    def fork(self, path: Folder, upto: int | None = None, session_id: str = "") -> str:
        """Copy a session under a new id, up to and including the entry `upto`; the blobs are shared. Returns its path.

        The entries keep their numbers, so references to them stay valid. An open session can be forked; damaged lines are not copied.
        """
        from dragoman.sessions.copies import fork_lines

        source_id = self._require_own(path)
        self._require_row(source_id)
        session_id = session_id or self.new_id()
        log_name(session_id)
        with database_at(self.path).reading() as connection:
            row, project, _ = _session_of(connection, source_id)
            lines = list(fork_lines(read_lines_of(connection, row), source_id, session_id, upto))
        return self._insert(session_id, project, lines)

    # --- all of them

    def list(self, workspace: Folder | None = None) -> Sequence[Summary]:
        """The sessions of a workspace, or of all, most recently used first."""
        from dragoman.sessions.sqlite.listing import list_sessions

        return list_sessions(database_at(self.path), None if workspace is None else project_name(workspace))

    def search(self, query: str, workspace: Folder | None = None, limit: int = 50) -> Sequence[Hit]:
        """Sessions with a prompt, an answer or a title that contains every word of the query, in any script."""
        from dragoman.sessions.sqlite.listing import search_sessions

        return search_sessions(database_at(self.path), query, None if workspace is None else project_name(workspace), limit)

    def find(self, which: str, workspace: Folder) -> Summary:
        """The session named by `latest`, or by the beginning of its id: of the random part that lists show, or of the whole.

        `latest` is the one of this workspace; an id may be in another one. Raises NoSession if none matches, InputError if more
        than one does.
        """
        from dragoman.sessions.finding import find_session
        from dragoman.sessions.sqlite.listing import list_sessions

        return find_session(
            which,
            lambda: self.list(workspace),
            lambda: {each: self._path_of(each) for each in self.ids()},
            lambda named: list_sessions(database_at(self.path), None, named),
        )

    def delete(self, path: Folder) -> Removal:
        """Delete a session and everything that belongs to it alone. Raises InUse if it is open."""
        from dragoman.sessions.sqlite.removal import remove

        session_id = self._require_own(path)
        self._require_row(session_id)
        return remove(database_at(self.path), [session_id])

    def delete_expired(self, workspace: Folder | None = None, *, age_days: float | None = None, count: int | None = None) -> Removal:
        """Delete sessions not used for `age_days`, and those beyond the newest `count`: of a workspace, or of each one.

        Without either limit, nothing. Sessions that are open, damaged, or from a later version are never deleted, and where the clock
        seems to have jumped, none is for its age: see `believe_clock`.
        """
        from dragoman.sessions.removal import Removal
        from dragoman.sessions.retention import believe_clock, choose_expired, doubt_of, is_understood
        from dragoman.sessions.sqlite.removal import remove

        if age_days is None and count is None:
            return Removal()
        by_workspace: dict[str, list[Summary]] = {}
        for summary in self.list(workspace):
            by_workspace.setdefault(summary.workspace, []).append(summary)
        believed = believe_clock((each.updated_ms for each in self.list()), now_ms(), age_days or 1)
        expired = [
            each
            for summaries in by_workspace.values()
            for each in choose_expired(summaries, believed.now_ms, age_days=age_days, count=count)
        ]
        whole = [each.session_id for each in expired if is_understood(self.read(each.session_id))]
        removed = remove(database_at(self.path), whole, skip_open=True) if whole else Removal()
        return msgspec.structs.replace(removed, notice=doubt_of(believed, age_days)) if age_days is not None else removed

    # --- below

    def _path_of(self, session_id: str) -> str:
        return os.path.join(self.path, session_id)

    def _require_own(self, path: Folder) -> str:
        """The id of a session in this store: nothing else is ever opened, copied or deleted."""
        given = os.fspath(path)
        folder, session_id = os.path.split(given)
        if not is_session_id(session_id) or (folder and os.path.realpath(folder) != self.path):
            raise InputError(say("sessions.not_a_session", name=quote_typed(given)))
        return session_id

    def _row_of(self, session_id: str) -> int | None:
        database = database_at(self.path)
        if not database.exists:
            return None
        with database.reading() as connection:
            return find_row(connection, session_id)

    def _require_row(self, session_id: str) -> None:
        if self._row_of(session_id) is None:
            raise NoSession(say("sessions.not_found", session=session_id))

    def _with_key(self, key: str) -> str | None:
        database = database_at(self.path)
        if not database.exists:
            return None
        with database.reading() as connection:
            found = connection.execute("SELECT session_id FROM sessions WHERE key = ? AND key != ''", (key,)).fetchone()
        return found[0] if found is not None else None

    def _stored(self, session_id: str, journal: SqliteJournal, loaded: LoadedLog, on_fault: OnFault | None) -> StoredSession:
        blobs = self.blobs_beside(session_id, on_fault)
        note = os.path.join(database_at(self.path).files, WRITING, session_id)
        return StoredSession(session_id, self._path_of(session_id), journal, blobs, loaded, self.outputs_beside(session_id), note)

    def _insert(self, session_id: str, project: str, lines: Sequence[bytes]) -> str:
        """A session, whole or not at all."""
        import sqlite3

        def insert(connection: Connection) -> None:
            if find_row(connection, session_id) is not None:
                raise InputError(say("sessions.id_taken", session=session_id))
            add_lines(connection, add_session(connection, session_id, project), session_id, 0, lines)

        try:
            database_at(self.path).commit(insert)
        except (sqlite3.Error, OSError) as error:
            raise refusal(error, self.path) from error
        return self._path_of(session_id)


def _session_of(connection: Connection, session_id: str) -> tuple[int, str, int]:
    """The session's number, project and count of lines. Raises NoSession if it was deleted just now."""
    found = connection.execute("SELECT id, project, lines FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
    if found is None:
        raise NoSession(say("sessions.not_found", session=session_id))
    return found
