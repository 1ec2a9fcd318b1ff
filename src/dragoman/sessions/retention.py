"""Retention: which sessions are old enough to delete. Only logs that were read and understood to the last byte are ever chosen."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.base.words import say
from dragoman.sessions.log import read_log
from dragoman.sessions.summary import KNOWN_FORMAT, Summary
from dragoman.values.errors import InputError
from dragoman.values.record import Started, Unknown

DAY_MS = 24 * 60 * 60 * 1000


def choose_expired(
    newest_first: Sequence[Summary], now_ms: int, *, age_days: float | None = None, count: int | None = None
) -> list[Summary]:
    """Sessions not used for `age_days`, and those beyond the newest `count`. Without either limit: none."""
    if (age_days is not None and age_days <= 0) or (count is not None and count < 0):
        raise InputError(say("sessions.wrong_retention"))
    before_ms = now_ms - age_days * DAY_MS if age_days is not None else 0
    return [
        summary
        for place, summary in enumerate(newest_first)
        if (count is not None and place >= count) or 0 < summary.updated_ms < before_ms
        if summary.is_understood
    ]


def is_whole(path: str) -> bool:
    """Whether nothing in a log is damaged, torn, or from a later version."""
    try:
        loaded = read_log(path)
    except (OSError, InputError):
        return False
    if not loaded.entries or loaded.damage or loaded.torn:
        return False
    head = loaded.entries[0]
    return isinstance(head, Started) and head.format <= KNOWN_FORMAT and not any(isinstance(entry, Unknown) for entry in loaded.entries)
