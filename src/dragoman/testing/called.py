"""Which tools a model called, for assertions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from dragoman.values.record import AnswerRejected, Entry, Said, ToolFinished, ToolOutcome


class _Recorded(Protocol):
    @property
    def entries(self) -> Sequence[Entry]: ...


class _HasHistory(Protocol):
    @property
    def history(self) -> _Recorded: ...


class Called(msgspec.Struct, frozen=True):
    """One call of a tool, and what became of it."""

    name: str
    args: dict[str, Any]
    """Decoded; empty where they are not a JSON object."""
    outcome: ToolOutcome | None = None
    """None: it has no result yet."""
    text: str = ""
    """The result that the model was given."""


def calls(agent: _HasHistory) -> list[Called]:
    """Every call of an agent's conversation so far, in the order in which the model made them. Those of rejected answers are left out."""
    entries = agent.history.entries
    rejected = {entry.said_seq for entry in entries if isinstance(entry, AnswerRejected)}
    finished = {entry.result.call_id: entry for entry in entries if isinstance(entry, ToolFinished)}
    made = [call for entry in entries if isinstance(entry, Said) and entry.seq not in rejected for call in entry.message.calls]
    return [
        Called(call.name, call.args or {}, finished[call.id].outcome, finished[call.id].result.text)
        if call.id in finished
        else Called(call.name, call.args or {})
        for call in made
    ]
