"""What was sent is what the record says: each request is, byte for byte, what `dragoman context --request --at N` shows, in the order of
the entries. What a service is asked beside the conversation, such as a summary, is counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from dragoman.app.arguments import parse
from dragoman.app.setup import catalog_of, set_up
from dragoman.app.surface import Notices, Surface, shown_on
from dragoman.context.view import View
from dragoman.conversation.pages.context_command import ContextCommand
from dragoman.conversation.pages.context_request import write_request
from dragoman.loop.agent import Agent
from dragoman.sessions.store import FileStore
from dragoman.testing.mock.server import ServedExchange
from dragoman.values.contracts import Provider
from dragoman.values.errors import DragomanError
from dragoman.values.record import Compressed, Entry, NotCompressed, Spent
from dragoman.words import choose_language, chosen_language


def check_sent(exchanges: Iterable[ServedExchange], workspace: Path, env: Mapping[str, str]) -> None:
    """By the sessions in this home, whichever conversation each request belongs to."""
    sent = [each for each in exchanges if each.action in ("generate", "stream")]
    language = chosen_language()
    try:
        sessions = [(entries, [*shown_requests(command, entries)]) for command, entries in saved_sessions(workspace, env)] if sent else []
    finally:
        choose_language(language)
    for _, shown in sessions:
        sent = not_among(sent, shown)
    beside = sum(isinstance(entry, Compressed | NotCompressed | Spent) for entries, _ in sessions for entry in entries)
    assert len(sent) <= beside, f"sent, and no entry leads to it: {sent[0].data.decode()}"


def check_agent(exchanges: Iterable[ServedExchange], agent: Agent, provider: Provider) -> None:
    """The same for an agent in this process, whose model is reached through this provider."""
    models, view, shown = agent._harness.models, View(), list[bytes]()
    for entry in agent.history.entries:
        view.feed(entry)
        if view.messages:
            used = models.use(provider)
            if view.dialect and not used.provider.dialect:
                used = models.in_text(used, view.dialect)
            shown.append(used.provider.prepare(view.request).body)
    left = not_among([*exchanges], shown)
    assert not left, f"sent, and no entry leads to it: {left[0].data.decode()}"


def saved_sessions(workspace: Path, env: Mapping[str, str]) -> Iterator[tuple[ContextCommand, tuple[Entry, ...]]]:
    setup = set_up(msgspec.structs.replace(parse(["context", "--request"]), directory=str(workspace)), env)
    store = FileStore(setup.places.sessions)
    for summary in store.list(None):
        yield ContextCommand(setup, store, summary, catalog_of(setup)), store.read(summary.path).entries


def shown_requests(command: ContextCommand, entries: Sequence[Entry]) -> Iterator[bytes]:
    """What the page shows as of each entry from which a request can be made."""
    for end in range(1, len(entries) + 1):
        with shown_on(Surface(0, False, "utf-8", Notices(), can_ask=False)):
            try:
                body = write_request(command, entries[:end])
            except DragomanError:
                continue  # nothing is said yet
        assert isinstance(body, bytes)
        yield body


def not_among(sent: Sequence[ServedExchange], shown: Sequence[bytes]) -> list[ServedExchange]:
    """Those of the requests that are not shown, or not behind the one before."""
    left: list[ServedExchange] = []
    at = 0
    for each in sent:
        found = next((place for place in range(at, len(shown)) if shown[place] == each.data), None)
        if found is None:
            left.append(each)
        else:
            at = found
    return left
