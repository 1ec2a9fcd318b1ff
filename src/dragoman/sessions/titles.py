"""A session's title, made from its first prompt: one line that fits a list, in any script, never cut inside a grapheme."""

from __future__ import annotations

from dragoman.base.graphemes import fit
from dragoman.base.text import one_line

MAX_COLUMNS = 60
_READ_CHARS = 4_000
"""Text beyond this never reaches a title."""


def title_of(prompt: str, columns: int = MAX_COLUMNS) -> str:
    """One line of at most `columns` columns; empty if there is nothing to show."""
    return fit(one_line(prompt[: len(prompt) - len(prompt.lstrip()) + _READ_CHARS], _READ_CHARS), columns)
