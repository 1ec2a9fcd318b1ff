"""A session's name, made of its first prompt: one line that fits a list, in any script, never cut inside a character a person sees."""

from __future__ import annotations

import unicodedata

from dragoman.base import jsontext
from dragoman.base.graphemes import fit

MAX_COLUMNS = 60
_READ_CHARS = 4_000
"""More of a prompt than that never reaches a title."""
_KEPT_FORMATS = frozenset("\u200c\u200d\ufe0e\ufe0f")
"""They shape the letters beside them. Other format characters (marks of direction, soft hyphens) only hide or reorder what is there."""


def title_of(prompt: str, columns: int = MAX_COLUMNS) -> str:
    """One line of at most so many columns; empty where there is nothing to show."""
    return fit(one_line(prompt[: len(prompt) - len(prompt.lstrip()) + _READ_CHARS]), columns)


def one_line(text: str) -> str:
    """The text with its white space folded to single spaces and everything gone that cannot be seen or would act on a terminal."""
    text = jsontext.valid_unicode(text)
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    seen = "".join(" " if char.isspace() else char for char in text if char.isspace() or _can_be_shown(char))
    return " ".join(seen.split()).lstrip(" " + "".join(_KEPT_FORMATS))  # with no letter before them they shape nothing


def _can_be_shown(char: str) -> bool:
    return char in _KEPT_FORMATS or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co")
