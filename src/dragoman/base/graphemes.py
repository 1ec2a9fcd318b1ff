"""Grapheme clusters: where a text may be split without cutting what a reader sees as one character, and the width of such a character.

Unicode's rules for grapheme clusters (UAX #29), based on `unicodedata` and a few ranges. If Unicode's versions differ, the wider
cluster is used: nothing that any of them calls one character is cut.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache

_MAX_CLUSTER = 16
"""Most code points kept of one character: a family emoji with skin tones has 11, endless combining marks are cut."""
_ZWJ = "\u200d"
_EMOJI_STYLE = "\ufe0f"
_PREPENDED = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd\U000111c2\U000111c3\U000113d1"
    "\U0001193f\U00011941\U00011a84\U00011a85\U00011a86\U00011a87\U00011a88\U00011a89\U00011d46\U00011f02"
)
"""Characters that belong to the one after them."""
_ATTACHED = frozenset("\u200c\u200d\u0e33\u0eb3\uff9e\uff9f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
"""Characters that belong to the one before them without being marks by category: joiners, vowels, voicing signs, skin tones."""
_PICTURES = (
    (0xA9, 0xA9), (0xAE, 0xAE), (0x203C, 0x203C), (0x2049, 0x2049), (0x2122, 0x2122), (0x2139, 0x2139), (0x2194, 0x21AA), (0x231A, 0x23FF),
    (0x24C2, 0x24C2), (0x25AA, 0x27BF), (0x2934, 0x2935), (0x2B05, 0x2B55), (0x3030, 0x3030), (0x303D, 0x303D), (0x3297, 0x3297),
    (0x3299, 0x3299), (0x1F000, 0x1F1E5), (0x1F200, 0x1F3FA), (0x1F400, 0x1FAFF), (0x1FC00, 0x1FFFD),
)  # fmt: skip
"""Pictographs, which a zero-width joiner combines."""
_CLOSING = frozenset("、。，．！？：；）」』】〉》〕］｝…‥・ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ,.!?:;)]}%\"'”’")
"""What no line begins with."""
_OPENING = frozenset("（「『【〈《〔［｛([{“‘$")
"""What no line ends with."""
_CONJOINED = ((0x0900, 0x09FF), (0x0A80, 0x0B7F), (0x0C00, 0x0C7F), (0x0D00, 0x0D7F))
"""Indic scripts whose consonants a virama combines."""


_WIDE = "\u3000-\u3029\u3041-\u3096\u309b-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff01-\uff60"
# Letters and signs that are one character each, whatever stands beside them in such a text.
_SIMPLE = (
    "[ -~\xa0-\xac\xae-\u02ff\u0391-\u03a1\u03a3-\u03c9\u0400-\u0481\u048a-\u052f"
    "\u2010-\u2027\u2030-\u205e\u2190-\u2193\u21e5\u21e7\u22ee\u2303\u23ce\u2500-\u25a0\u25b8\u25cf\u2713\u2717\u2800-\u28ff"
)


def next_boundary(text: str, index: int, floor: int = 0) -> int:
    """The first boundary at or after `index`. `floor` is a boundary at or before it: the search never looks further back.

    For ascending indexes, with each result as the floor of the next, all calls together take one pass over the text.
    """
    while 0 < index < len(text) and not _is_boundary(text, index, floor):
        index += 1
    return index


def clusters(text: str) -> Iterator[str]:
    """The characters as a person counts them: a letter with its marks, a combined emoji, a flag, a Hangul syllable, a conjunct."""
    start = 0
    while start < len(text):
        end = next_boundary(text, start + 1, start)
        yield text[start:end]
        start = end


def width_of(cluster: str) -> int:
    """Columns of one cluster in a terminal."""
    if len(cluster) > 1 and (_EMOJI_STYLE in cluster or _is_flag_letter(cluster[0]) or (_ZWJ in cluster and _is_wide(cluster[0]))):
        return 2
    if len(cluster) > 1 and _is_wide(cluster[0]):
        return 2 + sum(unicodedata.category(char) == "Mc" for char in cluster[1:])
    return sum(map(_width, cluster))


def width(line: str) -> int:
    """Columns of a line in a terminal."""
    if line.isascii():
        return len(line)
    if _is_simple(line):
        return len(line) + sum(map(len, _wide_ones()(line)))
    return sum(map(width_of, clusters(line)))


def fit(line: str, columns: int) -> str:
    """A line truncated to so many columns, ending in `…` if something was left out. A word that would fit is left out whole."""
    if line.isascii() and len(line) <= columns:
        return line
    kept: list[str] = []
    used = end = before_sign = 0
    for cluster in clusters(line):
        width = width_of(cluster)
        if used + width > columns:
            at = _start_of_cut_word(line, before_sign, columns)
            return "".join(each[:_MAX_CLUSTER] for each in clusters(line[:at])).rstrip() + "…"
        kept.append(cluster[:_MAX_CLUSTER])
        used += width
        end += len(cluster)
        if used < columns:
            before_sign = end
    return "".join(kept)


def _start_of_cut_word(line: str, end: int, columns: int) -> int:
    """Where to cut so that no word is broken; `end` itself if it breaks none, or one that is too wide anyway."""
    at = line.rfind(" ", 0, end) + 1
    for part in unbroken_parts(line[at : end + columns].partition(" ")[0]):
        if at + len(part) > end:
            return at if at < end and line[:at].strip() and width(part) < columns else end
        at += len(part)
    return end


def unbroken_parts(word: str) -> Iterator[str]:
    """The parts between which a line may be broken: as a rule the word is one; in Chinese and Japanese, which have no blanks between
    words, a character is, with the punctuation that no line may begin or end with."""
    if word.isascii():
        yield word
        return
    if _is_simple(word):
        yield from _simple_parts(word)
        return
    part, before = "", ""
    for cluster in clusters(word):
        is_break = _stands_alone(before) or _stands_alone(cluster)
        if part and is_break and cluster not in _CLOSING and before not in _OPENING:
            yield part
            part = ""
        part += cluster
        before = cluster
    if part:
        yield part


def _is_simple(text: str) -> bool:
    return _simple().fullmatch(text) is not None


@cache
def _simple() -> re.Pattern[str]:
    return re.compile(f"{_SIMPLE}{_WIDE}]*")


@cache
def _wide_ones() -> Callable[[str], list[str]]:
    return re.compile(f"[{_WIDE}]+").findall


def _simple_parts(word: str) -> Iterator[str]:
    """The same where each letter is a character."""
    start, before, was_alone = 0, "", False
    for at, char in enumerate(word):
        is_alone = char >= "\u3000"
        if at and (is_alone or was_alone) and char not in _CLOSING and before not in _OPENING:
            yield word[start:at]
            start = at
        before, was_alone = char, is_alone
    yield word[start:]


def _stands_alone(cluster: str) -> bool:
    return width_of(cluster) == 2 and not _hangul(cluster[0])


def _is_boundary(text: str, index: int, floor: int) -> bool:
    before, after = text[index - 1], text[index]
    if before < "\x80" and after < "\x80":
        return not (before == "\r" and after == "\n")
    if _is_control(before) or _is_control(after):
        return True
    if _is_attached(after) or before in _PREPENDED or _is_one_syllable(before, after):
        return False
    if _is_flag_letter(before) and _is_flag_letter(after):
        return _flag_letters(text, index, floor) % 2 == 0
    if before == _ZWJ and _in(_PICTURES, after):
        return not _follows_picture(text, index - 1, floor)
    return not (_in(_CONJOINED, after) and _follows_virama(text, index, floor))


def _is_control(char: str) -> bool:
    category = unicodedata.category(char)
    if category == "Cf":
        return not (char in _ATTACHED or char in _PREPENDED or _is_tag(char))
    return category in ("Cc", "Zl", "Zp", "Cs")


def _is_attached(char: str) -> bool:
    return unicodedata.category(char)[0] == "M" or char in _ATTACHED or _is_tag(char)


def _is_tag(char: str) -> bool:
    return "\U000e0020" <= char <= "\U000e007f"


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flag_letters(text: str, index: int, floor: int) -> int:
    """How many flag letters are right before `index`: two make a flag."""
    start = index
    while start > floor and _is_flag_letter(text[start - 1]):
        start -= 1
    return index - start


def _follows_picture(text: str, index: int, floor: int) -> bool:
    while index > floor and _is_attached(text[index - 1]):
        index -= 1
    return index > floor and _in(_PICTURES, text[index - 1])


def _follows_virama(text: str, index: int, floor: int) -> bool:
    if unicodedata.category(text[index])[0] != "L":
        return False
    joined = False
    while index > floor and _is_attached(text[index - 1]):
        index -= 1
        joined = joined or unicodedata.combining(text[index]) == 9
    return joined and index > floor and _in(_CONJOINED, text[index - 1])


def _is_one_syllable(before: str, after: str) -> bool:
    """Whether two Korean letters belong to one syllable."""
    match _hangul(before):
        case "L":
            return _hangul(after) in ("L", "V", "LV", "LVT")
        case "LV" | "V":
            return _hangul(after) in ("V", "T")
        case "LVT" | "T":
            return _hangul(after) == "T"
        case _:
            return False


def _hangul(char: str) -> str:
    """The position in a Hangul syllable: leading, vowel, trailing; empty for other characters."""
    code = ord(char)
    if 0xAC00 <= code <= 0xD7A3:
        return "LVT" if (code - 0xAC00) % 28 else "LV"
    if 0x1100 <= code <= 0x115F or 0xA960 <= code <= 0xA97C:
        return "L"
    if 0x1160 <= code <= 0x11A7 or 0xD7B0 <= code <= 0xD7C6:
        return "V"
    return "T" if 0x11A8 <= code <= 0x11FF or 0xD7CB <= code <= 0xD7FB else ""


def _in(ranges: tuple[tuple[int, int], ...], char: str) -> bool:
    code = ord(char)
    return any(first <= code <= last for first, last in ranges)


def _width(char: str) -> int:
    if char < "\u0300":
        return 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf") or _hangul(char) in ("V", "T"):
        return 0
    return 2 if _is_wide(char) else 1


def _is_wide(char: str) -> bool:
    # Python reports emoji newer than its Unicode data as unassigned and narrow.
    return unicodedata.east_asian_width(char) in "WF" or ("\U0001f300" <= char <= "\U0001faff" and unicodedata.category(char) == "Cn")
