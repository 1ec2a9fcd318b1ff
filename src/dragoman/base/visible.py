"""Invisible characters: escaped for a person who approves a call, stripped for a model.

They move the cursor, reorder the text around them or have no width. A command with such characters makes a person approve something
else than what runs; a page with them tells a model what a human reader never sees. For lines in a terminal see `text.one_line`.
"""

from __future__ import annotations

import re
from functools import cache

SHAPING = frozenset("\u200c\u200d\ufe0e\ufe0f")
"""They change the shape of the letter or emoji before them. A single one after such a character hides nothing."""

# Controls, and what Unicode calls default ignorable: direction marks, zero-width spaces, fillers, variation selectors, tags.
_RANGES = (
    (0x00, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
_BLANK = frozenset("\u2800\ufffc\U00016fe4\U0001d159")
"""A Braille cell without dots, an object that is not there, a filler, a note without a head: printable to Python, a space to the eye."""
_STRIKING = re.compile("[\u0334-\u0338\u20d0-\u20f0]|(?<=[\u0300-\u036f]{3})[\u0300-\u036f]")
"""Strokes and rings that lie over a letter, and marks that are heaped up: what runs would look crossed out, or not be read at all."""
_WITHOUT_BREAKS = {ord("\n"): None, ord("\t"): None}


@cache
def _hidden() -> frozenset[int]:
    return frozenset(code for first, last in _RANGES for code in range(first, last + 1))


@cache
def _without_hidden() -> dict[int, None]:
    return dict.fromkeys(_hidden().difference(map(ord, SHAPING), map(ord, "\t\n\r")))


@cache
def _hidden_pattern() -> re.Pattern[str]:
    return re.compile(f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in _RANGES)}]")


def holds_hidden(text: str) -> bool:
    """Whether any of its characters is hidden. Much quicker than a look at each."""
    return _hidden_pattern().search(text) is not None


def is_hidden(char: str) -> bool:
    """Whether a character is invisible to a reader, or acts on a terminal."""
    return ord(char) in _hidden()


def escape_hidden(text: str, *, one_line: bool = False) -> str:
    """For a person who approves the text: every control, bidirectional, zero-width and blank character is escaped as `<U+202E>`.

    Line breaks and tabs stay, unless `one_line` is set.
    """
    kept = "" if one_line else "\n\t"
    if text.isascii() and text.translate(_WITHOUT_BREAKS if kept else {}).isprintable():
        return text
    text = "".join(char if _can_be_seen(char) or char in kept else _escape(char) for char in text)
    return _STRIKING.sub(lambda found: _escape(found[0]), text)


def _escape(char: str) -> str:
    return f"<U+{ord(char):04X}>"


def strip_hidden(text: str) -> str:
    """For a model: what a human reader would see of untrusted text, without characters that can hide a message."""
    return text if text.isascii() and text.isprintable() else text.translate(_without_hidden())


def hidden_note(text: str, first_line: int = 1) -> str:
    """What to tell a model of characters in a text that a person does not see; empty where there are none: see hidden_text.py."""
    if text.isascii():
        return ""
    from dragoman.base.hidden_text import describe_hidden

    return describe_hidden(text, first_line)


def _can_be_seen(char: str) -> bool:
    # isprintable() is false for controls, format characters, surrogates, unassigned ones and every space but the plain one.
    return char.isprintable() and not is_hidden(char) and char not in _BLANK
