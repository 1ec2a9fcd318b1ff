"""What every action of `dragoman sessions` needs: the store, the workspace and the options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from dragoman.app.options import Options
from dragoman.app.setup import Setup
from dragoman.app.surface import surface
from dragoman.base.text import one_line
from dragoman.values.errors import InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.sessions.log import LoadedLog
    from dragoman.sessions.store import FileStore, StoredSession
    from dragoman.sessions.summary import Summary


class SessionsCommand(NamedTuple):
    """What every action needs: what the user configured, and the stored sessions."""

    setup: Setup
    store: FileStore

    @property
    def options(self) -> Options:
        return self.setup.options

    @property
    def workspace(self) -> str:
        """The folder whose sessions are meant."""
        return self.setup.workspace

    @property
    def memory_file(self) -> str:
        """Where the memory tool writes."""
        return self.setup.places.memory_file

    @property
    def operand(self) -> str:
        """Where none is named: the latest session of the folder."""
        return self.options.words[1] if len(self.options.words) > 1 else "latest"

    @property
    def as_json(self) -> bool:
        return self.options.output_format == "json"

    def find(self) -> Summary:
        """The session named on the command line."""
        return self.store.find(self.operand, self.workspace)

    def name(self, summary: Summary) -> str:
        return name_of(self.store, summary)

    def read(self, path: str) -> LoadedLog:
        """Read a session without its lock. Problems with its file are told; the readable entries are returned."""
        loaded = self.store.read(path)
        print_notices(loaded.notices())
        return loaded


def name_of(store: FileStore, summary: Summary) -> str:
    """What a session is called wherever it is shown or changed: its short id and its title."""
    short, title = store.short_id(summary.session_id), one_line(summary.title, 60)
    return say("sessions.named", id=short, title=title) if title else f"{short} {say('sessions_untitled')}"


def print_notices(notices: tuple[str, ...]) -> None:
    messages = surface().messages
    for notice in notices:
        messages.line(say("notice", text=notice))


@contextmanager
def open_to_append(store: FileStore, path: str) -> Iterator[StoredSession]:
    """Hold a session's lock while entries are appended. On exit they are on disk, or InputError is raised."""
    session = store.open(path)
    try:
        print_notices(session.loaded.notices())
        yield session
    finally:
        session.journal.close()
    if not session.journal.is_saved:
        raise InputError(say("session_not_saved", path=session.path, reason=session.journal.fault))
