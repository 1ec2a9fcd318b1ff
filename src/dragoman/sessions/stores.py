"""What a store of sessions promises: the one in files, the one in SQLite, and any that an embedder writes. Only types: nothing runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Protocol

from dragoman.sessions.blobs import SavedBlobs
from dragoman.sessions.journal import OnFault
from dragoman.sessions.log import LoadedLog
from dragoman.sessions.removal import Removal
from dragoman.sessions.search_table import Hit
from dragoman.sessions.store import StoredSession
from dragoman.sessions.summary import Summary
from dragoman.values.record import Entry

Folder = str | os.PathLike[str]


class Store(Protocol):
    """Sessions of many conversations. All methods may be called from any thread; a session is held by one process, once.

    A session is named by its id or by its `Summary.path`; nothing else is ever opened, copied or deleted. What cannot be done raises
    InputError: NoSession where there is no such session, InUse where somebody has it open. Once a session is open, nothing about saving
    it raises: faults are told to `on_fault`, and `journal.fault` says so.
    """

    @property
    def own_paths(self) -> tuple[str, ...]:
        """The store's files and folders, which no tool may write without asking."""
        ...

    def new_id(self) -> str:
        """For a session to be made."""
        ...

    def path_of(self, session_id: str, workspace: Folder) -> str:
        """Where a session is kept, or would be."""
        ...

    def blobs_beside(self, path: Folder, on_fault: OnFault | None = None) -> SavedBlobs:
        """The images, files and undo copies of a session, which may be about to be made."""
        ...

    def outputs_beside(self, path: Folder) -> str:
        """The folder for its tool output that was too long for the model."""
        ...

    def create(
        self,
        workspace: Folder,
        session_id: str = "",
        *,
        directories: Sequence[str] = (),
        versions: Sequence[str] = (),
        on_fault: OnFault | None = None,
        parent: tuple[str, str] = ("", ""),
    ) -> StoredSession:
        """Create a session, with its head. It is on disk after the first `sync`. Must not block an event loop for long.

        `parent` is the session, and the call in it, that the session was made for.
        """
        ...

    def open_or_create(
        self, key: str, workspace: Folder, *, versions: Sequence[str] = (), on_fault: OnFault | None = None
    ) -> StoredSession:
        """Resume the session with this key, or create it. Of several that ask at once, one gets it and the others InUse."""
        ...

    def open(self, path: Folder, on_fault: OnFault | None = None) -> StoredSession:
        """Resume a session."""
        ...

    def read(self, path: Folder) -> LoadedLog:
        """Read a session, even while another process writes it."""
        ...

    def add(self, workspace: Folder, entries: Iterable[Entry]) -> str:
        """Add a session made elsewhere, whole or not at all: entries that begin with Started. Returns its path."""
        ...

    def fork(self, path: Folder, upto: int | None = None, session_id: str = "") -> str:
        """Copy a session under a new id, up to and including the entry `upto`. Returns its path. The copy has no key."""
        ...

    def list(self, workspace: Folder | None = None) -> Sequence[Summary]:
        """The sessions of a workspace, or of all, most recently used first."""
        ...

    def search(self, query: str, workspace: Folder | None = None, limit: int = 50) -> Sequence[Hit]:
        """Sessions with a prompt, an answer or a title that contains every word of the query, in any script."""
        ...

    def find(self, which: str, workspace: Folder) -> Summary:
        """The session named by `latest` (of this workspace), or by the beginning of its id."""
        ...

    def delete(self, path: Folder) -> Removal:
        """Delete a session and everything that belongs to it alone."""
        ...

    def delete_expired(self, workspace: Folder | None = None, *, age_days: float | None = None, count: int | None = None) -> Removal:
        """Delete sessions not used for `age_days`, and those beyond the newest `count` of each workspace. Open and damaged ones stay."""
        ...
