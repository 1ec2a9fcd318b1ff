"""A session as a page reads it: its blocks, and what is new of them while another process writes the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dragoman.conversation.blocks import join_events
from dragoman.conversation.events import Renderer
from dragoman.conversation.session_page.costs import CostReader, PricesOf
from dragoman.conversation.types import ViewEvent
from dragoman.sessions.following import LogFollower
from dragoman.sessions.last_run import LastRun
from dragoman.values.record import Entry

LONG_TEXT = 16_000
"""Longer texts and outputs are shown cut; the page asks for the rest when somebody opens it."""


class SessionReading:
    """One log. Its events are counted from 1 over all that is read; another file under its name begins a new generation."""

    def __init__(self, path: str, prices_of: PricesOf) -> None:
        self._follower = LogFollower(path)
        self._prices_of = prices_of
        self.generation = 0
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.generation += 1
        self.entries = list[Entry]()
        self.events = list[ViewEvent]()
        self._renderer = Renderer()
        self._costs = CostReader(self._prices_of)

    def catch_up(self) -> Sequence[ViewEvent]:
        """Read what is new. Raises OSError where the log is gone."""
        entries, is_anew = self._follower.read_new()
        if is_anew:
            self._begin_anew()
        before = len(self.events)
        for event in show_entries(entries, self._renderer, self._costs):
            self.events.append(msgspec.structs.replace(event, seq=len(self.events) + 1))
        self.entries += entries
        return self.events[before:]

    @property
    def run(self) -> LastRun:
        """How the last run stands, by what was read."""
        return self._renderer.run

    @property
    def damaged(self) -> int:
        return self._follower.damaged

    def blocks(self) -> tuple[ViewEvent, ...]:
        """What stands, one event for each block."""
        return join_events(self.events)

    def block(self, id: str) -> ViewEvent | None:
        return next((each for each in self.blocks() if each.id == id), None)


def show_entries(entries: Iterable[Entry], renderer: Renderer, costs: CostReader) -> Iterable[ViewEvent]:
    for entry in entries:
        yield from renderer.read((entry,))
        if (event := costs.take(entry)) is not None:
            yield event


def shorten(event: ViewEvent, most: int = LONG_TEXT) -> ViewEvent:
    """The event with its long texts cut, and named in `cut` with their whole length."""
    cut: dict[str, int] = {}
    text = event.text
    if len(text) > most and event.kind != "text":
        cut["text"], text = len(text), text[:most]
    data = dict(event.data)
    for name in ("output", "display", "arguments"):
        value = data.get(name)
        if isinstance(value, str) and len(value) > most:
            cut[name], data[name] = len(value), value[:most]
    return msgspec.structs.replace(event, text=text, data=data | {"cut": cut}) if cut else event
