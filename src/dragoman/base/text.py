"""Text for display: single lines without control characters, sizes, bars, the closest name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman.base.jsontext import valid_unicode
from dragoman.base.visible import SHAPING, holds_hidden, is_hidden
from dragoman.words import say

_MAX_NAME_CHARS = 255
"""Longer names are not compared: no file or tool has them, and comparing takes time."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"
# What a terminal would act on. Line ends and tabs stay; a carriage return would allow overwriting a line. Then what reorders a line or
# hides in it: line and paragraph separators, bidirectional embeddings, overrides and isolates, blanks without width, tags.
_CONTROLS = dict.fromkeys((
    *range(32), *range(127, 160), 0x200B, *range(0x2028, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xFEFF, *range(0xE0000, 0xE0080),
))  # fmt: skip
_CONTROLS.pop(ord("\n"))
_CONTROLS.pop(ord("\t"))


def strip_controls(text: str) -> str:
    """For a terminal: the text without control characters. An answer must not be able to move the cursor, set a title, fill the
    clipboard, or show a line in another order than its own."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def one_line(text: str, limit: int = 2_000) -> str:
    """For a line in a terminal or a list, from untrusted text: white space collapsed, valid Unicode, truncated, and without characters
    that are invisible, reorder the line or act on the terminal."""
    line = " ".join(valid_unicode(text).split())
    if not (line.isascii() and line.isprintable()) and holds_hidden(line):
        seen = "".join(char for char in line if char in SHAPING or not is_hidden(char))
        line = " ".join(seen.split()).lstrip(" " + "".join(SHAPING))  # they have no effect without a letter before them
    return clip(line, limit)


def clip(text: str, limit: int) -> str:
    """Truncate to at most so many characters, the last of them `…` if something was left out. To truncate to columns: `graphemes.fit`."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def printable_input(text: str, limit: int = 60) -> str:
    """For a message that quotes what the user typed: truncated, with `�` for unprintable characters."""
    kept = "".join(char if char.isprintable() else "�" for char in text[:limit])
    return f"{kept}…" if len(text) > limit else kept


def either(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`, in the chosen language."""
    return say("values.or").join(filter(None, [", ".join(names[:-1]), names[-1]]))


def size(count: int) -> str:
    """`812 B`, `4.1 kB`, `60 MB`."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 999.5:
            return f"{amount:.1f} {unit}" if unit != "B" and amount < 9.95 else f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def bar(share: float, columns: int) -> str:
    """A bar of at most so many columns, to an eighth of a column. A share above 0 is never empty."""
    eighths = round(max(min(share, 1.0), 0.0) * columns * 8)
    eighths = max(eighths, 1) if share > 0 else eighths
    return _EIGHTHS[8] * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def closest(word: str, names: Iterable[str], count: int = 1) -> list[str]:
    """The names that `word` may have been meant for: first those that differ only in case and punctuation."""
    if len(word) > _MAX_NAME_CHARS:
        return []
    known = [name for name in names if len(name) <= _MAX_NAME_CHARS]
    same = [name for name in known if _letters(name) == _letters(word)]
    if len(same) >= count:
        return same[:count]
    from difflib import get_close_matches  # only needed after an error

    by_lower = {name.casefold(): name for name in reversed(known)}
    near = [by_lower[found] for found in get_close_matches(word.casefold(), by_lower, count + len(same))]
    return list(dict.fromkeys([*same, *near]))[:count]


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """The end of a sentence that asks whether the nearest name was meant; empty if none is near."""
    close = closest(word, names)
    return say("did_you_mean", name=close[0]) if close else ""


def _letters(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


def set_of(words: str) -> frozenset[str]:
    """The words of a text: for long lists that read better as one."""
    return frozenset(words.split())
