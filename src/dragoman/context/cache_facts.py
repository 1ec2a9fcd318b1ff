"""What an answer shows about the service's prompt cache, from the cache reads it reports. Loaded with the second answer of a session."""

from __future__ import annotations

_SHORTEST = 4_096
"""A prefix shorter than this may not be cached at all, with any service."""
_MIN_LIFE_MS = 60_000
"""A miss within a minute means another machine, not age."""
_LIFE_MS = 300_000
"""A miss after a longer time says nothing about whether there is a cache."""


def life_of(
    known: tuple[int, int | None, int], read: int, expected: int, gap_ms: int, *, warm: bool, is_whole: bool
) -> dict[str, int | None]:
    """Return what is known now of how long a prefix lives: `alive_ms`, `dead_ms` and `misses`, of which `known` has the values before.

    So many of the expected tokens were read after this time, though nothing had changed. `is_whole`: more was expected than what never
    changes.
    """
    alive_ms, dead_ms, misses = known
    if expected >= _SHORTEST and warm:
        alive_ms = max(alive_ms, gap_ms) if is_whole else alive_ms
        dead_ms = None if dead_ms is not None and dead_ms <= gap_ms else dead_ms
    elif expected >= _SHORTEST and 2 * read < expected:
        misses += gap_ms <= _LIFE_MS
        if gap_ms >= _MIN_LIFE_MS:
            dead_ms = gap_ms if dead_ms is None else min(dead_ms, gap_ms)
            alive_ms = min(alive_ms, gap_ms - 1)
    return {"alive_ms": alive_ms, "dead_ms": dead_ms, "misses": misses}


def fallback_of(read: int, kept: int, static: int, apart: int) -> dict[str, bool]:
    """After a change in the middle: was the prefix read up to there (`kept` tokens), or only its static part? Lengths that are no more
    than `apart` from each other cannot be told apart; then the answer is empty."""
    if not read or kept < static + 2 * apart:
        return {}
    if 2 * read >= static + kept:
        return {"falls_back": False}
    return {"falls_back": True} if read <= static else {}
