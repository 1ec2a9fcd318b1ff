"""A session's name, made of its first prompt: one line that fits a list, in any script, never cut inside a character a person sees."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from dragoman.base import jsontext

MAX_COLUMNS = 60
_READ_CHARS = 4_000
"""More of a prompt than that never reaches a title."""
_MAX_CLUSTER = 16
"""Code points kept of one character: a family with skin tones has 11, marks piled up without end are cut."""
_JOINER, _NON_JOINER = "\u200d", "\u200c"
_EMOJI_STYLE = "\ufe0f"
_KEPT_FORMATS = frozenset((_JOINER, _NON_JOINER, "\ufe0e", _EMOJI_STYLE))
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


def fit(line: str, columns: int) -> str:
    """As much of a line as fits, ending in `…` where something was left out."""
    if line.isascii():
        return line if len(line) <= columns else line[: columns - 1].rstrip() + "…"
    kept: list[str] = []
    used = room_before_sign = 0
    for cluster in clusters(line):
        width = width_of(cluster)
        if used + width > columns:
            return "".join(kept[:room_before_sign]).rstrip() + "…"
        kept.append(cluster[:_MAX_CLUSTER])
        used += width
        if used < columns:
            room_before_sign = len(kept)
    return "".join(kept)


def clusters(text: str) -> Iterator[str]:
    """The characters as a person counts them: a letter with its marks, a joined emoji, a flag, a Hangul syllable, a conjunct."""
    start, flags = 0, 0
    for position, char in enumerate(text):
        flags = flags + 1 if _is_flag_half(char) else 0
        if position > start and not _belongs(text[position - 1], char, flags):
            yield text[start:position]
            start = position
    if text:
        yield text[start:]


def width_of(cluster: str) -> int:
    """Columns one such character takes in a terminal."""
    if len(cluster) > 1 and (_EMOJI_STYLE in cluster or _is_flag_half(cluster[0]) or (_JOINER in cluster and _is_wide(cluster[0]))):
        return 2
    if len(cluster) > 1 and _is_wide(cluster[0]):
        return 2 + sum(unicodedata.category(char) == "Mc" for char in cluster[1:])
    return sum(map(_width, cluster))


def _belongs(before: str, char: str, flags: int) -> bool:
    """Whether a character continues the one before it: Unicode's rules for grapheme clusters, as far as `unicodedata` can tell."""
    if char < "\u0300":
        return before == "\r" and char == "\n"
    category = unicodedata.category(char)
    if category in ("Mn", "Me", "Mc") or char in _KEPT_FORMATS or _is_skin_tone(char):
        return True
    if before == _JOINER:
        return category in ("So", "Cn") or "\u0900" <= char <= "\u0dff"  # emoji, and the letters of conjuncts
    if flags:
        return flags % 2 == 0
    if unicodedata.combining(before) == _VIRAMA:
        return category == "Lo"
    return _continues_syllable(before, char)


_VIRAMA = 9
"""The combining class of the sign that takes a letter's vowel away: in Indic scripts the next letter joins it."""


def _continues_syllable(before: str, char: str) -> bool:
    """Hangul written in parts: leading consonants, then vowels, then trailing ones."""
    kind, next_kind = _jamo(before), _jamo(char)
    return (kind, next_kind) in {("L", "L"), ("L", "V"), ("L", "S"), ("V", "V"), ("V", "T"), ("S", "V"), ("S", "T"), ("T", "T")}


def _jamo(char: str) -> str:
    if "\u1100" <= char <= "\u115f":
        return "L"
    if "\u1160" <= char <= "\u11a7":
        return "V"
    if "\u11a8" <= char <= "\u11ff":
        return "T"
    return "S" if "\uac00" <= char <= "\ud7a3" else ""


def _width(char: str) -> int:
    if char < "\u0300":
        return 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf") or _jamo(char) in ("V", "T"):
        return 0
    return 2 if _is_wide(char) else 1


def _is_wide(char: str) -> bool:
    # Emoji that are younger than this Python count as unassigned, and as narrow.
    return unicodedata.east_asian_width(char) in "WF" or ("\U0001f300" <= char <= "\U0001faff" and unicodedata.category(char) == "Cn")


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _is_skin_tone(char: str) -> bool:
    return "\U0001f3fb" <= char <= "\U0001f3ff"


def _can_be_shown(char: str) -> bool:
    return char in _KEPT_FORMATS or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co")
