"""How the last run of a session ended, from its record: entries in, one after the other, and the sentence that every page shows.

A run begins with its prompt and ends with a RunEnded. Where that is missing the record says what can be known: the last answer of an
earlier version stands for the end of its run, and anything else was broken off, unless a process still holds the session.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, Literal

import msgspec

from dragoman.base.lock import Locked, lock_with_others
from dragoman.base.private import open_file
from dragoman.base.text import one_line
from dragoman.values.errors import InputError
from dragoman.values.messages import Message
from dragoman.values.notes import is_note, is_setup
from dragoman.values.record import (
    AnswerRejected,
    Entry,
    Rewound,
    RunEnded,
    RunOutcome,
    RunStarted,
    Said,
    Started,
    ToolPostponed,
    ToolStarted,
    fold,
)
from dragoman.words import say

_BETWEEN_RUNS = frozenset({"search", "background"})
"""Notes to the model that may be written while no run is under way."""


class LastRun(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How the last run stands, by the record alone."""

    state: Literal["", "open"] | RunOutcome = ""
    """Empty: there was no run, or the conversation went back to before it. `open`: it has begun and not ended."""
    error: str = ""
    words: str = ""
    """The error, as the person was told."""
    exit_code: int = 0
    turns: int = 0
    requests: int = 0
    cost_usd: float | None = None
    is_cost_least: bool = False
    ended_seq: int = 0
    """The entry that says how it ended; 0 where none does."""
    copied_ms: int = 0
    copied_seq: int = 0
    """Entries up to this time or this one were copied from another session: whose run they began is not this session's."""


@fold("runs")
def next_run(run: LastRun, entry: Entry) -> LastRun:
    """How the last run stands after one more entry."""
    match entry:
        case Started(forked_from=forked_from, imported_through=imported_through):
            return LastRun(copied_ms=entry.timestamp_ms if forked_from else 0, copied_seq=imported_through)
        case RunStarted():
            return _become(run, "open")
        case RunEnded():
            return LastRun(
                entry.outcome,
                entry.error,
                entry.words,
                entry.exit_code,
                entry.turns,
                entry.requests,
                entry.cost_usd,
                entry.is_cost_least,
                entry.seq,
                run.copied_ms,
                run.copied_seq,
            )
        case Rewound():
            return _become(run, "")
        case Said():
            return _after_message(run, entry)
        case AnswerRejected() if run.state == "answered" and not run.ended_seq:
            return _become(run, "open")
        case ToolStarted() if run.state == "pending" and not run.ended_seq:
            return _become(run, "open")
        case ToolPostponed() if run.state == "open":
            return _become(run, "pending")
        case _:
            return run


def _after_message(run: LastRun, entry: Said) -> LastRun:
    if entry.timestamp_ms <= run.copied_ms or entry.seq <= run.copied_seq:
        return _become(run, "") if run.state else run
    match entry.message:
        case Message(role="user") if is_setup(entry.about):
            return run
        case Message(role="user") if is_note(entry.about):  # after an answer it makes the run go on
            goes_on = run.state == "answered" and not run.ended_seq and entry.about not in _BETWEEN_RUNS
            return _become(run, "open") if goes_on else run
        case Message(role="user"):
            return _become(run, "open")
        case message if run.state == "open" and entry.raw_finish != "broken off":
            return _become(run, "cancelled" if entry.raw_finish == "cancelled" else "open" if message.calls else "answered")
        case _:
            return run


def _become(run: LastRun, state: Literal["", "open", "answered", "pending", "cancelled"]) -> LastRun:
    return LastRun(state, copied_ms=run.copied_ms, copied_seq=run.copied_seq)


def read_last_run(entries: Iterable[Entry]) -> LastRun:
    """How the last run of a whole record stands."""
    return reduce(next_run, entries, LastRun())


def broken_end(entries: Sequence[Entry]) -> RunEnded | None:
    """The end of a run that was broken off, for the record of a session that is opened to write: the process that held it is gone."""
    if read_last_run(entries).state != "open":
        return None
    last = entries[-1]  # the last sign of life
    return RunEnded(last.seq + 1, last.timestamp_ms, "broken_off")


def is_held(path: str | os.PathLike[str]) -> bool:
    """Whether a process has a session open to write. False where its file system has no locks, or the log is gone.

    The lock is tried and let go of at once. Whoever opens the session at that moment tries more than once.
    """
    try:
        descriptor = open_file(os.fspath(path), refuse=InputError)
    except (OSError, InputError):
        return False
    try:
        lock_with_others(descriptor, ())
    except Locked:
        return True
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return False


def current_state(run: LastRun, *, is_held: bool | None) -> Literal["", "running"] | RunOutcome:
    """How the last run stands now. `is_held`: whether a process has the session open. Without it, nothing is said of a run that is open."""
    if run.state == "open":
        return "" if is_held is None else "running" if is_held else "broken_off"
    return run.state


def run_words(run: LastRun, *, is_held: bool | None = None) -> str:
    """How the last run stands now, in a sentence on one line. Empty where there was none."""
    state = current_state(run, is_held=is_held)
    return say(f"sessions.run_{state}", words=one_line(run.words)) if state else ""


def trouble_words(run: LastRun, *, is_held: bool | None = None) -> str:
    """The same sentence where the last run did not end with its answer; empty where it did."""
    return "" if run.state == "answered" else run_words(run, is_held=is_held)


def words_for_file(run: LastRun, *, is_held: bool | None) -> str:
    """The same for a file that is read later: a run that is under way now need not be then."""
    if current_state(run, is_held=is_held) == "running":
        return say("sessions.run_was_running")
    return trouble_words(run, is_held=is_held)


def run_facts(run: LastRun, *, is_held: bool | None = None) -> dict[str, Any] | None:
    """The same for programs, as JSON data. None where there was no run."""
    state = current_state(run, is_held=is_held)
    if not state:
        return None
    facts = {"state": state, "sentence": str(run_words(run, is_held=is_held)), "error": run.error, "words": run.words}
    facts |= {"exit_code": run.exit_code, "turns": run.turns, "requests": run.requests}
    return facts | {"cost_usd": run.cost_usd, "cost_is_least": run.is_cost_least}
