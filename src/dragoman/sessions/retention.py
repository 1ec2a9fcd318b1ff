"""Retention: which sessions are old enough to delete. Only logs that were read and understood to the last byte are ever chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dragoman.sessions.export_words import time_of
from dragoman.sessions.log import LoadedLog, read_log
from dragoman.sessions.summary import KNOWN_FORMAT, Summary
from dragoman.values.errors import InputError
from dragoman.values.record import Started, Unknown
from dragoman.words import say

DAY_MS = 24 * 60 * 60 * 1000
SETTLED_MS = 7 * DAY_MS
"""How long sessions must have been used after a long pause before that pause is believed."""
_MAX_DEPTH = 100
"""Deeper than agents call one another: a damaged head may name a session as its own parent."""


class Believed(msgspec.Struct, frozen=True):
    """The time that sessions are aged by. Where it is not the clock's, `after_ms` is the first use that the clock claims after it."""

    now_ms: int
    after_ms: int = 0


def believe_clock(used_ms: Iterable[int], now_ms: int, age_days: float) -> Believed:
    """The time to age sessions by: the clock's, unless that skips more than `age_days` at once.

    One start with the clock years ahead would make every session an old one. A pause that long is believed after a week of use (or after
    `age_days`, if that is less); until then, the last use before it counts as now. Uses after `now_ms` are the clock's errors too.
    """
    pause_ms, settled_ms = age_days * DAY_MS, min(SETTLED_MS, age_days * DAY_MS)
    believed = Believed(now_ms)
    first_ms = now_ms
    for at_ms in sorted((each for each in used_ms if 0 < each <= now_ms), reverse=True):
        if first_ms - at_ms > pause_ms and believed.now_ms - first_ms < settled_ms:
            believed = Believed(at_ms, first_ms)
        first_ms = at_ms
    return believed


def choose_expired(
    newest_first: Sequence[Summary], now_ms: int, *, age_days: float | None = None, count: int | None = None
) -> list[Summary]:
    """Sessions not used for `age_days`, and those beyond the newest `count`. Without either limit: none.

    The conversations of agents that were called in a session are not counted: they go with it.
    """
    if (age_days is not None and age_days <= 0) or (count is not None and count < 0):
        raise InputError(say("sessions.wrong_retention"))
    before_ms = now_ms - age_days * DAY_MS if age_days is not None else 0
    beyond = {each.session_id for each in [each for each in newest_first if not each.parent][count:]} if count is not None else set[str]()
    parents = {each.session_id: each.parent for each in newest_first}
    return [
        summary
        for summary in newest_first
        if _caller_of(summary.session_id, parents) in beyond or 0 < summary.updated_ms < before_ms
        if summary.is_understood
    ]


def _caller_of(session_id: str, parents: Mapping[str, str]) -> str:
    """The session in which it was called, over all the agents between; itself where it was not called."""
    for _ in range(_MAX_DEPTH):
        if not parents.get(session_id):
            break
        session_id = parents[session_id]
    return session_id


def is_whole(path: str) -> bool:
    """Whether nothing in a log is damaged, torn, or from a later version."""
    try:
        return is_understood(read_log(path))
    except (OSError, InputError):
        return False


def is_understood(loaded: LoadedLog) -> bool:
    """The same of one that was read."""
    if not loaded.entries or loaded.damage or loaded.torn or loaded.crlf:
        return False
    head = loaded.entries[0]
    return isinstance(head, Started) and head.format <= KNOWN_FORMAT and not any(isinstance(entry, Unknown) for entry in loaded.entries)


def doubt_of(believed: Believed, age_days: float) -> str:
    """What to tell the user where the clock is not believed; empty where it is."""
    if not believed.after_ms:
        return ""
    before, after = (time_of(at_ms) for at_ms in (believed.now_ms, believed.after_ms))
    return say("sessions.clock_doubted", days=f"{age_days:g}", before=before, after=after)
