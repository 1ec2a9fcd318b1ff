"""Text folded for searching, so that what a person would call the same word matches, in any script."""

from __future__ import annotations

import unicodedata
from itertools import islice

from dragoman.base.graphemes import clusters, fit
from dragoman.base.text import one_line

_EXCERPT_BEFORE = 30
_EXCERPT_COLUMNS = 100
_UNHEARD = dict.fromkeys(
    (
        *range(0x0300, 0x0370),  # accents of Latin, Greek and Cyrillic letters
        *range(0x0591, 0x05C8),  # Hebrew points
        *range(0x0610, 0x061B),
        0x0640,  # Arabic tatweel, the stroke that lengthens a word
        *range(0x064B, 0x0660),  # Arabic vowels
        0x0670,
        *range(0xFE00, 0xFE10),  # variation selectors: text or emoji style
    )
)
"""Marks that people leave out. Those of Indic scripts and of Kana make a different letter and stay."""


def fold(text: str) -> str:
    """Ignores case, accents, vowel points and width forms. Text found in `fold(text)` was in the text."""
    if text.isascii():
        return text.lower().replace("\0", " ")
    bare = unicodedata.normalize("NFKD", text).translate(_UNHEARD)
    return unicodedata.normalize("NFC", bare.casefold()).replace("\0", " ")


def words_of(query: str) -> list[str]:
    """The words that must all be found, folded. Text in scripts without spaces is one word."""
    return list(dict.fromkeys(fold(query).split()))


def trigrams(words: list[str], at_most: int = 24) -> list[str]:
    """Trigrams that any text with these words contains. Empty if every word is shorter."""
    return list(islice(dict.fromkeys(word[start : start + 3] for word in words for start in range(len(word) - 2)), at_most))


def excerpt(text: str, words: list[str]) -> str:
    """One line of the text around the first of the words that it contains."""
    found = _position(text, words)
    begin = max(found - _EXCERPT_BEFORE * 8, 0)
    lead = list(clusters(text[begin:found]))
    kept = lead[-_EXCERPT_BEFORE:]
    left_out = begin > 0 or len(lead) > len(kept)
    line = one_line("".join(kept) + text[found : found + _EXCERPT_COLUMNS * 4])
    return fit(f"…{line}" if left_out else line, _EXCERPT_COLUMNS)


def _position(text: str, words: list[str]) -> int:
    """Where the first word begins in the text itself, not in its folded form."""
    folded = fold(text)
    places = [place for word in words if (place := folded.find(word)) >= 0]
    if not places:
        return 0
    place = min(places)
    if text.isascii():
        return place
    position = passed = 0
    for cluster in clusters(text):
        passed += len(fold(cluster))
        if passed > place:
            return position
        position += len(cluster)
    return 0
