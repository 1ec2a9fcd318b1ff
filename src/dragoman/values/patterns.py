"""Matches regular expressions of schemas against model output, within a bound."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import Any

MAX_PATTERN_CHARS = 1_000
MAX_PATTERN_STEPS = 1_000_000
MAX_SLOW_STEPS = 300_000
"""Those that are made one by one, by our own matcher."""
_QUICKER = 50
"""So much faster than ours is `re`."""


class PatternWork:
    """The steps that are left for the patterns of one check."""

    def __init__(self, steps: int = MAX_PATTERN_STEPS) -> None:
        self.steps = steps


def is_match(pattern: Any, text: str, work: PatternWork | None = None) -> bool | None:
    """Whether the pattern is found in the text; None if that could take long, or Python cannot compile the pattern.

    `re` backtracks: the cost of a pattern without repeated groups is bounded by text length ^ choices. Where that is too much, it is
    matched step by step, for as many steps as are left.
    """
    if not isinstance(pattern, str):
        return None
    work = work or PatternWork()
    compiled, choices = _compile(pattern)
    cost = (len(text) + 2) ** min(choices, 64)
    if compiled is not None and cost <= work.steps:
        work.steps -= cost // _QUICKER
        return compiled.search(text) is not None
    from dragoman.values.pattern_steps import search_in_steps  # few patterns need it

    found, steps = search_in_steps(pattern, text, min(work.steps, MAX_SLOW_STEPS)) if len(pattern) <= MAX_PATTERN_CHARS else (None, 0)
    work.steps -= steps
    return found


@lru_cache(maxsize=512)
def _compile(pattern: str) -> tuple[re.Pattern[str] | None, int]:
    """The compiled pattern, and how many choices matching has; none for one with repeated groups, back-references or look-around."""
    if len(pattern) > MAX_PATTERN_CHARS or re.search(r"\\[1-9kg]|\(\?(?!:)", pattern):
        return None, 0
    skeleton = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "x", pattern, flags=re.DOTALL)
    if re.search(r"\)[*+{]", skeleton):
        return None, 0
    unanchored = not skeleton.startswith("^") or "|" in skeleton
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern), len(re.findall(r"[*+?{|]", skeleton)) + unanchored
    except (re.error, OverflowError, RecursionError):
        return None, 0
