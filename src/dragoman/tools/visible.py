"""Text whose every character can be seen, for people who approve what it says.

A command may hold characters that move the cursor, reorder what stands around them or take no room at all. Shown as they are,
they make a person approve something else than what runs.
"""

from __future__ import annotations

_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"  # fillers, joiners and blanks that count as letters
    + "".join(map(chr, range(0xFE00, 0xFE10)))  # variation selectors: they can carry a hidden message
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)
"""Characters that Python calls printable and nobody can see."""


def visible(text: str, *, one_line: bool = False) -> str:
    """The same text with every control, bidirectional, zero-width and blank character written as `<U+202E>`.

    Line breaks and tabs stay, unless it must be one line.
    """
    kept = "" if one_line else "\n\t"
    if text.isascii() and text.translate(_WITHOUT_BREAKS if kept else {}).isprintable():
        return text
    return "".join(char if _can_be_seen(char) or char in kept else f"<U+{ord(char):04X}>" for char in text)


_WITHOUT_BREAKS = {ord("\n"): None, ord("\t"): None}


def _can_be_seen(char: str) -> bool:
    # isprintable() is false for controls, format characters, surrogates, unassigned ones and every space but the plain one.
    return char.isprintable() and char not in _BLANK
