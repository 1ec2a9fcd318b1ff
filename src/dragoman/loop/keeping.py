"""A conversation that is kept on disk: begun with its first prompt, taken up again by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dragoman.loop.history import History
from dragoman.values.contracts import BlobStore, Journal
from dragoman.values.errors import InputError
from dragoman.values.events import SavingChanged

if TYPE_CHECKING:
    from dragoman.sessions.store import Session, Store


class Keeping:
    """Joins a history to a session in a store. Nothing is written before there is something to say.

    `tell` hears when saving stops and when it goes on. Raises InputError where the session to resume is not to be had.
    """

    def __init__(self, store: Store, workspace: str, session_id: str, resume: str, tell: Callable[[SavingChanged], None]) -> None:
        self._store = store
        self._workspace = workspace
        self._tell = tell
        self._session: Session | None = None
        self.session_id = session_id
        self.history = History()
        self.notices: tuple[str, ...] = ()
        """What the user should know of the session that was taken up: what was damaged, what was set aside."""
        if resume:
            self._session = store.open(store.find(resume, workspace).path, self._changed)
            self.session_id = self._session.session_id
            self.history = History(self._session.journal, entries=self._session.loaded.entries)
            self.notices = self._session.loaded.notices()
            self.blobs: BlobStore = self._session.blobs
        else:
            self.blobs = store.blobs_beside(store.path_of(session_id, workspace), self._changed)

    @property
    def outputs(self) -> str:
        """Where tool output lies that was too long for the model: a resumed session finds it again."""
        return self._store.outputs_beside(self.path or self._store.path_of(self.session_id, self._workspace))

    @property
    def path(self) -> str:
        """Where it lies; empty as long as nothing was said."""
        return self._session.path if self._session is not None else ""

    @property
    def journal(self) -> Journal | None:
        return self._session.journal if self._session is not None else None

    def begin(self, directories: Sequence[str], versions: Sequence[str]) -> None:
        """Make the file, unless it is there. A conversation that cannot be kept is held all the same, and the user is told."""
        if self._session is not None or self.history.entries:
            return
        try:
            self._session = self._store.create(
                self._workspace, self.session_id, directories=directories, versions=versions, on_fault=self._changed
            )
        except InputError as error:
            self._tell(SavingChanged(False, f"This session is NOT being saved: {error}"))
            return
        self.history.keep_in(self._session.journal, self._session.loaded.entries)

    def close(self) -> None:
        """Write what is left, and let others have it."""
        if self._session is not None:
            self._session.journal.close()

    def _changed(self, message: str) -> None:
        journal = self._session.journal if self._session is not None else None
        self._tell(SavingChanged(journal is not None and not journal.fault, message))
