"""What every action of `dragoman context` needs: the session that was named, and what to look things up in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dragoman.app.options import Options
from dragoman.app.settings import context_of
from dragoman.app.setup import Setup
from dragoman.conversation.pages.sessions_command import print_notices
from dragoman.loop.history import History
from dragoman.loop.model import Model
from dragoman.loop.session import Session
from dragoman.loop.upkeep import Upkeep
from dragoman.providers.catalog import Catalog, profile_for
from dragoman.providers.offline import OfflineProvider
from dragoman.values.errors import ConfigError, InputError
from dragoman.values.profile import Deployment, Profile
from dragoman.values.record import Entry
from dragoman.values.usage import Prices
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.sessions.store import FileStore
    from dragoman.sessions.summary import Summary


class ContextCommand(NamedTuple):
    """What every action needs: the session it is about, the store it is in, and the catalog of models."""

    setup: Setup
    store: FileStore
    summary: Summary
    """Of the session named on the command line."""
    catalog: Catalog
    entry: int = 0
    """The number of the entry that `keep`, `drop` and `undo` are about."""

    @property
    def options(self) -> Options:
        return self.setup.options

    @property
    def as_json(self) -> bool:
        return self.options.output_format == "json"

    @property
    def short_id(self) -> str:
        return self.store.short_id(self.summary.session_id)

    def entries(self) -> tuple[Entry, ...]:
        """The session's entries, up to `--at` if given. Problems with its file are told; the readable entries are returned."""
        loaded = self.store.read(self.summary.path)
        print_notices(loaded.notices())
        entries, at = loaded.entries, self.options.at
        if at is None:
            return entries
        if not any(entry.seq == at for entry in entries):
            first, last = (entries[0].seq, entries[-1].seq) if entries else (0, 0)
            raise InputError(say("context_no_seq", seq=at, first=first, last=last, id=self.short_id))
        return tuple(entry for entry in entries if entry.seq <= at)

    def find_model(self, deployment: str, model: str) -> tuple[Deployment | None, Profile]:
        return find_model(self.catalog, deployment, model)

    def prices(self, deployment: str, model: str) -> Prices | None:
        return self.find_model(deployment, model)[1].prices


def find_model(catalog: Catalog, deployment: str, model: str) -> tuple[Deployment | None, Profile]:
    """A model's deployment and profile, as far as the catalog knows them."""
    if deployment in catalog.deployments:
        row = catalog[deployment]
        return row, profile_for(row, model)
    try:
        row, name = catalog.find(model) if model else (None, "")
    except ConfigError:
        row, name = None, ""
    return (row, profile_for(row, name)) if row else (None, Profile(known=False))


def upkeep_of(command: ContextCommand, history: History) -> Upkeep:
    """The upkeep an agent would have for this session, without a key or a connection."""
    view, session = history.view, Session(history)
    session.model = Model(OfflineProvider(*command.find_model(view.deployment, view.model)), view.model)
    return Upkeep(session, context_of(command.setup.config))
