"""All sessions of a user in files: create, find, list, search, fork and delete them. The logs are the source of truth; the index only adds
speed. What it has in common with other stores is in `stores.py`."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from dragoman.base import late_types
from dragoman.base.clock import now_ms
from dragoman.base.ids import is_session_id, new_session_id
from dragoman.sessions.blobs import FileBlobs, SavedBlobs
from dragoman.sessions.journal import OnFault, SavedJournal
from dragoman.sessions.log import LoadedLog, encode_line
from dragoman.sessions.opening import create, open_for_writing, open_read_only
from dragoman.sessions.projects import (
    BLOBS,
    OUTPUTS,
    WRITING,
    check_key,
    check_path,
    is_log_name,
    log_name,
    log_paths,
    project_hash,
    project_name,
    quote_typed,
    session_id_of,
)
from dragoman.values.errors import InputError, NoSession
from dragoman.values.record import Entry, Started
from dragoman.words import say

if TYPE_CHECKING:  # starting a session needs none of these
    from dragoman.sessions.index import Index
    from dragoman.sessions.removal import Removal
    from dragoman.sessions.search_table import Hit
    from dragoman.sessions.summary import Summary
else:
    (Removal,) = late_types("dragoman.sessions.removal", "Removal")
    (Hit,) = late_types("dragoman.sessions.search_table", "Hit")
    (Summary,) = late_types("dragoman.sessions.summary", "Summary")

Folder = str | os.PathLike[str]


class StoredSession(msgspec.Struct, frozen=True):
    """A session open for writing: no other process can write it until its journal is closed."""

    session_id: str
    path: str
    """Where it is kept, for people to read; the methods of its store take it as well as the id."""
    journal: SavedJournal
    blobs: SavedBlobs
    loaded: LoadedLog
    """What was in it, its head included; show `loaded.notices()` to the user."""
    outputs: str
    """The folder for tool output that was too long for the model. It is deleted with the session."""
    note: str
    """The file in which it notes where it makes temporary files: see `leftovers.py`."""


class NamesSessions(ABC):
    """A store that names its sessions as ours do."""

    @abstractmethod
    def ids(self) -> Sequence[str]:
        """The id of every session, of all workspaces."""

    def new_id(self) -> str:
        """For a session to be made. The short ids of the others stay as they are."""
        return new_session_id(self.ids())

    def short_ids(self, session_ids: Iterable[str]) -> Mapping[str, str]:
        """What these sessions are called on the screen: each by a beginning of its random part that no other session has."""
        from dragoman.sessions.finding import short_ids_of

        return short_ids_of(session_ids, self.ids())

    def short_id(self, session_id: str) -> str:
        return self.short_ids([session_id])[session_id]


class FileStore(NamesSessions):
    """Sessions under one folder, which need not exist yet. Methods that take a session accept its id, or its path in this folder."""

    def __init__(self, root: Folder) -> None:
        self.root = os.path.abspath(check_path(root))

    @cached_property
    def _index(self) -> Index:
        from dragoman.sessions.index import Index

        return Index(self.root)

    @property
    def own_paths(self) -> tuple[str, ...]:
        return (self.root,)

    # --- paths

    def directory_of(self, workspace: Folder) -> str:
        """The folder that holds the sessions of a workspace."""
        return os.path.join(self.root, project_name(workspace))

    def path_of(self, session_id: str, workspace: Folder) -> str:
        """The path a session has, or would have. Raises InputError if the id is not valid."""
        return os.path.join(self.directory_of(workspace), log_name(session_id))

    def blobs_beside(self, path: Folder, on_fault: OnFault | None = None) -> FileBlobs:
        """The blobs of a session, which it shares with the other sessions of its workspace."""
        return FileBlobs(os.path.join(os.path.dirname(self._require_own(path)), BLOBS), on_fault)

    def outputs_beside(self, path: Folder) -> str:
        """Where a session stores tool output that was too long for the model. It is deleted with the session."""
        path = self._require_own(path)
        return os.path.join(os.path.dirname(path), OUTPUTS, session_id_of(path))

    # --- ids

    def ids(self) -> list[str]:
        """The id of every session, of all workspaces. No log is read."""
        return list(map(session_id_of, log_paths(self.root)))

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
        """Create a session and write its head. Raises InputError if that is not possible. For a key of one's own see `open_or_create`.

        `parent` is the session, and the call in it, that the session was made for.
        """
        check_key(key)
        session_id = session_id or self.new_id()
        path = self.path_of(session_id, workspace)
        _sweep_leftovers(os.path.dirname(path))
        folders = tuple(directories) or (os.path.realpath(workspace),)
        head = (1, now_ms(), session_id, project_hash(workspace), folders, tuple(versions))
        started = Started(*head, key=key, parent=parent[0], parent_call=parent[1])
        journal = create(path, started, on_fault)
        return self._stored(path, journal, LoadedLog((started,)), on_fault)

    def open_or_create(
        self, key: str, workspace: Folder, *, versions: Sequence[str] = (), on_fault: OnFault | None = None
    ) -> StoredSession:
        """Resume the session with this key, of whatever workspace, or create it. Raises InUse if another process writes it.

        Of several that ask for a new key at once, one creates the session and the others get InUse.
        """
        from dragoman.sessions.keyed import open_or_create

        check_key(key)
        return open_or_create(
            self.root, lambda: self._open_keyed(key, on_fault), lambda: self._create_keyed(key, workspace, versions, on_fault)
        )

    def open(self, path: Folder, on_fault: OnFault | None = None) -> StoredSession:
        """Resume a session. Raises InUse if another process writes it, NoSession if there is none."""
        path = self._require_own(path)
        _sweep_leftovers(os.path.dirname(path))
        journal, loaded = open_for_writing(path, on_fault)
        return self._stored(path, journal, loaded, on_fault)

    def read(self, path: Folder) -> LoadedLog:
        """Read a session, even while another process writes it."""
        path = self._require_own(path)
        try:
            return open_read_only(path)
        except FileNotFoundError as error:
            raise NoSession(say("sessions.not_found", session=session_id_of(path))) from error
        except OSError as error:
            reason = error.strerror or error
            raise InputError(say("sessions.unreadable", session=session_id_of(path), reason=reason, path=path)) from error

    def add(self, workspace: Folder, entries: Iterable[Entry]) -> str:
        """Add a session made elsewhere, whole or not at all: entries that begin with Started. Returns its path.

        What it says about files is never undone: it may be forged.
        """
        from dragoman.sessions.copies import added_entries, write_log

        head, added = added_entries(entries, project_hash(workspace))
        path = self.path_of(head.session_id, workspace)
        write_log(path, map(encode_line, added))
        return path

    def fork(self, path: Folder, upto: int | None = None, session_id: str = "") -> str:
        """Copy a session under a new id, up to and including the entry `upto`; the blobs are shared. Returns its path.

        The entries keep their numbers, so references to them stay valid. An open session can be forked; damaged lines and a torn tail are
        not copied.
        """
        from dragoman.sessions.copies import fork_log

        path = self._require_own(path)
        target = os.path.join(os.path.dirname(path), log_name(session_id or self.new_id()))
        fork_log(path, target, upto)
        return target

    # --- all of them

    def list(self, workspace: Folder | None = None) -> Sequence[Summary]:
        """The sessions of a workspace, or of all, most recently used first."""
        return self._index.summaries(None if workspace is None else project_name(workspace))

    def search(self, query: str, workspace: Folder | None = None, limit: int = 50) -> Sequence[Hit]:
        """Sessions with a prompt, an answer or a title that contains every word of the query, in any script."""
        return self._index.search(query, None if workspace is None else project_name(workspace), limit)

    def find(self, which: str, workspace: Folder) -> Summary:
        """The session named by `latest`, or by the beginning of its id: of the random part that lists show, or of the whole.

        `latest` is the one of this workspace; an id may be in another one. Raises NoSession if none matches, InputError if more
        than one does.
        """
        from dragoman.sessions.finding import find_session

        return find_session(which, lambda: self.list(workspace), self._paths_by_id, self._list_named)

    def delete(self, path: Folder) -> Removal:
        """Delete a session and everything that belongs to it alone. Raises InUse if it is open."""
        path = self._require_own(path)
        try:
            return self._remove(os.path.dirname(path), [session_id_of(path)])
        except FileNotFoundError as error:
            raise NoSession(say("sessions.not_found", session=session_id_of(path))) from error

    def delete_expired(self, workspace: Folder | None = None, *, age_days: float | None = None, count: int | None = None) -> Removal:
        """Delete sessions not used for `age_days`, and those beyond the newest `count`: of a workspace, or of each one.

        Without either limit, nothing. Sessions that are open, damaged, or from a later version are never deleted, and where the clock
        seems to have jumped, none is for its age: see `believe_clock`.
        """
        from dragoman.sessions.removal import Removal, side_files
        from dragoman.sessions.retention import believe_clock, choose_expired, doubt_of, is_whole

        if age_days is None and count is None:
            return Removal()
        by_directory: dict[str, list[Summary]] = {}
        for summary in self.list(workspace):
            by_directory.setdefault(os.path.dirname(summary.path), []).append(summary)
        removed = Removal()
        # By all sessions there are: that one folder was not used for long says nothing about the clock.
        believed = believe_clock((each.updated_ms for each in self.list()), now_ms(), age_days or 1)
        for directory, summaries in by_directory.items():
            expired = choose_expired(summaries, believed.now_ms, age_days=age_days, count=count)
            ids = [each.session_id for each in expired if is_whole(each.path) and not side_files(directory, each.session_id)]
            gone = self._remove(directory, ids, skip_open=True)
            removed = Removal(removed.session_ids + gone.session_ids, removed.blobs + gone.blobs, removed.freed_bytes + gone.freed_bytes)
        return msgspec.structs.replace(removed, notice=doubt_of(believed, age_days)) if age_days is not None else removed

    # --- below

    def _require_own(self, path: Folder) -> str:
        """The path, if it is that of a session in this store: nothing else is ever opened, copied or deleted. An id is looked up."""
        if is_session_id(os.fspath(path)):
            session_id = os.fspath(path)
            path = self._paths_by_id().get(session_id, "")
            if not path:
                raise NoSession(say("sessions.not_found", session=session_id))
        path = os.path.abspath(path)
        directory = os.path.dirname(path)
        if os.path.dirname(directory) != self.root or not is_log_name(os.path.basename(path)) or os.path.islink(directory):
            raise InputError(say("sessions.not_a_session", name=quote_typed(path)))
        return path

    def _open_keyed(self, key: str, on_fault: OnFault | None) -> StoredSession | None:
        """The session with this key; the one used last, if copied files have made it several."""
        for summary in self.list():
            if summary.key == key:
                try:
                    return self.open(summary.path, on_fault)
                except NoSession:
                    continue  # deleted just now
        return None

    def _create_keyed(self, key: str, workspace: Folder, versions: Sequence[str], on_fault: OnFault | None) -> StoredSession:
        stored = self.create(workspace, versions=versions, on_fault=on_fault, key=key)
        if fault := stored.journal.fault:  # without its head nobody would find it, and the next would make another
            stored.journal.close()
            raise InputError(say("sessions.not_saved", path=stored.path, reason=fault))
        return stored

    def _paths_by_id(self) -> dict[str, str]:
        return {session_id_of(path): path for path in log_paths(self.root)}

    def _list_named(self, session_ids: Sequence[str]) -> Sequence[Summary]:
        named = set(session_ids)
        projects = {os.path.basename(os.path.dirname(path)): None for path in log_paths(self.root) if session_id_of(path) in named}
        return [summary for project in projects for summary in self._index.summaries(project) if summary.session_id in named]

    def _stored(self, path: str, journal: SavedJournal, loaded: LoadedLog, on_fault: OnFault | None) -> StoredSession:
        session_id = session_id_of(path)
        note = os.path.join(os.path.dirname(path), WRITING, session_id)
        return StoredSession(session_id, path, journal, self.blobs_beside(path, on_fault), loaded, self.outputs_beside(path), note)

    def _remove(self, directory: str, session_ids: Sequence[str], *, skip_open: bool = False) -> Removal:
        from dragoman.sessions.removal import remove

        removed = remove(directory, session_ids, skip_open=skip_open)
        self._index.forget(os.path.join(directory, log_name(session_id)) for session_id in removed.session_ids)
        return removed


def _sweep_leftovers(directory: str) -> None:
    """What a killed process left in the folders of this workspace. Where none was, this is one look at a folder that is not there."""
    if os.path.isdir(os.path.join(directory, WRITING)):
        from dragoman.sessions.leftovers import sweep_leftovers

        sweep_leftovers(directory)
