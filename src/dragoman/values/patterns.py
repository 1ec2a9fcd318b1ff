"""Matches regular expressions of schemas against model output, but only those that cannot take long."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import Any

MAX_PATTERN_CHARS = 200
MAX_PATTERN_STEPS = 1_000_000


def is_match(pattern: Any, text: str) -> bool | None:
    """Whether the pattern is found in the text; None if that could take long, or Python cannot compile the pattern.

    `re` backtracks: the cost of a pattern is bounded by text length ^ choices, which must stay below MAX_PATTERN_STEPS.
    """
    compiled, choices = _compile(pattern) if isinstance(pattern, str) else (None, 0)
    if compiled is None or (choices and (len(text) + 2) ** min(choices, 64) > MAX_PATTERN_STEPS):
        return None
    return compiled.search(text) is not None


@lru_cache(maxsize=512)
def _compile(pattern: str) -> tuple[re.Pattern[str] | None, int]:
    """The compiled pattern, and how many choices matching has. Repeated groups, back-references and look-around are not supported."""
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
