"""All sessions of a user: made, found, listed, searched, forked and deleted. The logs are the truth; the index only makes it quick."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from dragoman.base.clock import now_ms
from dragoman.base.ids import new_session_id
from dragoman.sessions.blobs import FileBlobs
from dragoman.sessions.journal import OnFault, SessionJournal
from dragoman.sessions.log import Loaded, encode_line
from dragoman.sessions.opening import create, open_for_writing, open_read_only
from dragoman.sessions.projects import (
    BLOBS,
    LISTED,
    OUTPUTS,
    is_log_name,
    log_name,
    project_hash,
    project_name,
    session_id_of,
    shown,
)
from dragoman.values.errors import InputError
from dragoman.values.record import Entry, Started

if TYPE_CHECKING:  # a session that begins needs none of these
    from dragoman.sessions.index import Hit, Index
    from dragoman.sessions.removal import Removed
    from dragoman.sessions.summary import Summary

Folder = str | os.PathLike[str]
MIN_PREFIX_CHARS = 4
"""Less of an id could be a number that is not listed, and mean a session nobody thought of."""


class Session(msgspec.Struct, frozen=True):
    """A session that is open for writing: nobody else can write it until its journal is closed."""

    session_id: str
    path: str
    journal: SessionJournal
    blobs: FileBlobs
    loaded: Loaded
    """What was in it, its head included; `loaded.notices()` is what to tell the user."""


class Store:
    """Sessions under one folder, which need not exist yet. Methods that take a path take only one of a session in it."""

    def __init__(self, root: Folder) -> None:
        self.root = os.path.abspath(root)

    @cached_property
    def _index(self) -> Index:
        from dragoman.sessions.index import Index

        return Index(self.root)

    # --- places

    def directory_of(self, workspace: Folder) -> str:
        """Where the sessions of a folder lie."""
        return os.path.join(self.root, project_name(workspace))

    def path_of(self, session_id: str, workspace: Folder) -> str:
        """Where a session lies, or would. Raises InputError for what is no session id."""
        return os.path.join(self.directory_of(workspace), log_name(session_id))

    def blobs_beside(self, path: Folder, on_fault: OnFault | None = None) -> FileBlobs:
        """The blobs of a session, which it shares with the others of its folder."""
        return FileBlobs(os.path.join(os.path.dirname(self._own(path)), BLOBS), on_fault)

    def outputs_beside(self, path: Folder) -> str:
        """Where a session keeps tool output that was too long for the model. It goes when the session goes."""
        path = self._own(path)
        return os.path.join(os.path.dirname(path), OUTPUTS, session_id_of(path))

    # --- one session

    def create(
        self,
        workspace: Folder,
        session_id: str = "",
        *,
        directories: Sequence[str] = (),
        versions: Sequence[str] = (),
        on_fault: OnFault | None = None,
    ) -> Session:
        """A new session with its head written. Raises InputError where it cannot be made."""
        session_id = session_id or new_session_id()
        path = self.path_of(session_id, workspace)
        folders = tuple(directories) or (os.path.realpath(workspace),)
        started = Started(1, now_ms(), session_id, project_hash(workspace), folders, tuple(versions))
        journal = create(path, started, on_fault)
        return Session(session_id, path, journal, self.blobs_beside(path, on_fault), Loaded((started,)))

    def open(self, path: Folder, on_fault: OnFault | None = None) -> Session:
        """Go on with a session. Raises InUse where another process writes it."""
        path = self._own(path)
        journal, loaded = open_for_writing(path, on_fault)
        return Session(session_id_of(path), path, journal, self.blobs_beside(path, on_fault), loaded)

    def read(self, path: Folder) -> Loaded:
        """Look at a session, whoever writes it."""
        path = self._own(path)
        try:
            return open_read_only(path)
        except FileNotFoundError as error:
            raise InputError(f"there is no session {session_id_of(path)}: {LISTED}") from error
        except OSError as error:
            raise InputError(f"session {session_id_of(path)} cannot be read: {error.strerror or error} ({path})") from error

    def keep(self, workspace: Folder, entries: Iterable[Entry]) -> str:
        """A session made elsewhere, whole or not at all: entries that begin with Started. Returns its path."""
        from dragoman.sessions.copies import write_log

        head, *rest = entries
        if not isinstance(head, Started):
            raise InputError("a session begins with its head, a Started entry")
        path = self.path_of(head.session_id, workspace)
        head = msgspec.structs.replace(head, project=project_hash(workspace))
        write_log(path, map(encode_line, (head, *rest)))
        return path

    def fork(self, path: Folder, upto: int | None = None, session_id: str = "") -> str:
        """A copy under a new id, up to and including the entry `upto`; the blobs are shared. Returns its path.

        The entries keep their numbers, so what refers to them still does. A session that is open can be forked; damaged lines and a
        torn tail are not copied.
        """
        from dragoman.sessions.copies import fork_log

        path = self._own(path)
        target = os.path.join(os.path.dirname(path), log_name(session_id or new_session_id()))
        fork_log(path, target, upto)
        return target

    # --- all of them

    def list(self, workspace: Folder | None = None) -> Sequence[Summary]:
        """The sessions of a folder, or of all folders: the one used last comes first."""
        return self._index.summaries(None if workspace is None else project_name(workspace))

    def search(self, query: str, workspace: Folder | None = None, limit: int = 50) -> Sequence[Hit]:
        """Sessions with a prompt, an answer or a title that holds every word of the query, in any script."""
        return self._index.search(query, None if workspace is None else project_name(workspace), limit)

    def find(self, which: str, workspace: Folder) -> Summary:
        """The session meant by `latest`, a number as listed, an id, or the beginning of an id or of its last eight digits.

        The first two are of this folder; an id may be one of another folder, where this one has none like it.
        Raises InputError where there is none, or more than one.
        """
        which = which.strip()
        listed = self.list(workspace)
        if which in ("", "latest"):
            if not listed:
                raise InputError(f"this folder has no session to go on with yet: start one without --resume ({LISTED})")
            return listed[0]
        if which.isascii() and which.isdecimal() and len(which) < 8 and 0 < int(which) <= len(listed):
            return listed[int(which) - 1]
        if not which.isascii() or which.strip("0123456789abcdef-") or len(which) < MIN_PREFIX_CHARS:
            raise InputError(f"{shown(which)} is not a session: give `latest`, a number as listed, or the beginning of an id; {LISTED}")
        return self._by_id(which, listed)

    def delete(self, path: Folder) -> Removed:
        """Delete a session with everything that is its own. Raises InUse where it is open."""
        path = self._own(path)
        try:
            return self._remove(os.path.dirname(path), [session_id_of(path)])
        except FileNotFoundError as error:
            raise InputError(f"there is no session {session_id_of(path)}: {LISTED}") from error

    def retain(self, workspace: Folder | None = None, *, age_days: float | None = None, count: int | None = None) -> Removed:
        """Delete what was not used for `age_days`, and what is beyond the newest `count`: of a folder, or of each.

        Without either, nothing. What is open, damaged, or from a later version is never deleted.
        """
        from dragoman.sessions.removal import Removed, side_files
        from dragoman.sessions.retention import choose_expired, is_whole

        if age_days is None and count is None:
            return Removed()
        by_directory: dict[str, list[Summary]] = {}
        for summary in self.list(workspace):
            by_directory.setdefault(os.path.dirname(summary.path), []).append(summary)
        removed = Removed()
        for directory, summaries in by_directory.items():
            expired = choose_expired(summaries, now_ms(), age_days=age_days, count=count)
            ids = [each.session_id for each in expired if is_whole(each.path) and not side_files(directory, each.session_id)]
            gone = self._remove(directory, ids, skip_open=True)
            removed = Removed(removed.session_ids + gone.session_ids, removed.blobs + gone.blobs, removed.freed_bytes + gone.freed_bytes)
        return removed

    # --- below

    def _own(self, path: Folder) -> str:
        """The path, if it is one of a session in this store: nothing else is ever opened, copied or deleted."""
        path = os.path.abspath(path)
        directory = os.path.dirname(path)
        if os.path.dirname(directory) != self.root or not is_log_name(os.path.basename(path)) or os.path.islink(directory):
            raise InputError(f"{shown(path)} is not a session: {LISTED}")
        return path

    def _by_id(self, which: str, listed: Sequence[Summary]) -> Summary:
        found = [summary for summary in listed if _is_meant(which, summary.session_id)]
        if not found:
            found = [summary for summary in self.list() if _is_meant(which, summary.session_id)]
        if not found:
            raise InputError(f"there is no session {shown(which)}: {LISTED}")
        if len(found) > 1:
            some = ", ".join(summary.session_id for summary in found[:4]) + (" …" if len(found) > 4 else "")
            raise InputError(f"{shown(which)} means {len(found)} sessions: {some}; give more of the id")
        return found[0]

    def _remove(self, directory: str, session_ids: Sequence[str], *, skip_open: bool = False) -> Removed:
        from dragoman.sessions.removal import remove

        removed = remove(directory, session_ids, skip_open=skip_open)
        self._index.forget(os.path.join(directory, log_name(session_id)) for session_id in removed.session_ids)
        return removed


def _is_meant(which: str, session_id: str) -> bool:
    return session_id.startswith(which) or session_id[-8:].startswith(which)
