"""Reports characters in a text that a person does not see and that can smuggle words to a model: which, how many, on which lines.

The text itself stays as it is: a model may have to edit it. What belongs to ordinary writing is not reported: joiners in emoji and in
words of scripts that join their letters, flags, one variation selector after its sign, direction marks in lines written from right to
left, and the mark at the beginning of a file.
"""

from __future__ import annotations

import re
from bisect import bisect_right

_MOST_KINDS, _MOST_LINES = 5, 5
_SUSPECT = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f")
"""A black flag with the name of a country's part: England's."""
_JOINED = (
    (0x0600, 0x08FF), (0x0900, 0x0DFF), (0x0E00, 0x109F), (0x1780, 0x18AF), (0x1900, 0x1CFF), (0xA800, 0xABFF), (0xFB50, 0xFDFF),
    (0xFE70, 0xFEFC), (0x10A00, 0x10FFF), (0x11000, 0x11FFF), (0x1E900, 0x1E95F),
)  # fmt: skip
"""Scripts in whose words joiners stand: Arabic, those of India, Mongolian and others."""
_PICTURES = ((0xA9, 0xAE), (0x2190, 0x2BFF), (0x3030, 0x303D), (0x3297, 0x3299), (0x1F000, 0x1FAFF))
_IDEOGRAPHS = ((0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
_FROM_RIGHT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
_KINDS = (
    ("tag characters", "\U000e0000", "\U000e007f"),
    ("variation selectors", "\U000e0100", "\U000e01ef"),
    ("variation selectors", "\ufe00", "\ufe0f"),
    ("bidirectional controls", "\u202a", "\u202e"),
    ("bidirectional controls", "\u2066", "\u2069"),
    ("direction marks", "\u200e", "\u200f"),
    ("direction marks", "\u061c", "\u061c"),
    ("zero-width joiners", "\u200c", "\u200d"),
    ("zero-width spaces", "\u200b", "\u200b"),
    ("zero-width spaces", "\u2060", "\u2060"),
    ("zero-width spaces", "\ufeff", "\ufeff"),
)


def describe_hidden(text: str, first_line: int = 1) -> str:
    """One line that names them; empty where there are none. `first_line` is the number of the text's first line."""
    if text.isascii() or _SUSPECT.search(text) is None:
        return ""
    flags = [found.span() for found in _FLAG.finditer(text)]
    places = [at for found in _SUSPECT.finditer(text) if not _is_ordinary(text, at := found.start(), flags, is_file_start=first_line == 1)]
    if not places:
        return ""
    breaks = [found.start() for found in re.finditer("\n", text)]
    kinds: dict[str, tuple[int, dict[int, None]]] = {}
    for at in places:
        count, lines = kinds.setdefault(_kind_of(text[at]), (0, {}))
        lines[first_line + bisect_right(breaks, at)] = None
        kinds[_kind_of(text[at])] = (count + 1, lines)
    told = [f"{count:,} {kind} ({_lines(list(lines))})" for kind, (count, lines) in list(kinds.items())[:_MOST_KINDS]]
    more = f", and {len(kinds) - _MOST_KINDS} more kinds" if len(kinds) > _MOST_KINDS else ""
    return f"holds characters that are not seen: {', '.join(told)}{more}; what they say was hidden from readers: tell the user"


def _lines(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:_MOST_LINES]))
    return f"line{'s' if len(numbers) > 1 else ''} {shown}{', …' if len(numbers) > _MOST_LINES else ''}"


def _kind_of(char: str) -> str:
    return next((name for name, first, last in _KINDS if first <= char <= last), f"U+{ord(char):04X}")


def _is_ordinary(text: str, at: int, flags: list[tuple[int, int]], *, is_file_start: bool) -> bool:
    char, before, after = text[at], text[at - 1] if at else "", text[at + 1] if at + 1 < len(text) else ""
    match _kind_of(char):
        case "tag characters":
            return any(start <= at < end for start, end in flags)
        case "variation selectors" if char < "\U000e0000":
            return before in "#*0123456789" if before.isascii() else _SUSPECT.match(before) is None
        case "variation selectors":
            return _is_in(before, _IDEOGRAPHS)
        case "direction marks":
            return _FROM_RIGHT.search(_line_of(text, at)) is not None and _SUSPECT.match(after) is None
        case "zero-width joiners":
            return _joins(text, at)
        case _:
            is_hyphen = char == "\u00ad" and before.isalpha() and after.isalpha()
            is_mongolian = "\u180b" <= char <= "\u180f" and _is_in(before, ((0x1820, 0x18AA),))
            return is_hyphen or is_mongolian or (char == "\ufeff" and at == 0 and is_file_start)


def _joins(text: str, at: int) -> bool:
    """Whether a joiner stands where one belongs: inside an emoji, or after a letter of a script that joins its letters."""
    before, after = text[at - 1] if at else "", text[at + 1] if at + 1 < len(text) else ""
    if _is_in(before, _JOINED):
        return _SUSPECT.match(after) is None
    is_picture = _is_in(before, _PICTURES) or (before == "\ufe0f" and at > 1 and _is_in(text[at - 2], _PICTURES))
    return text[at] == "\u200d" and is_picture and _is_in(after, _PICTURES)


def _is_in(char: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return bool(char) and any(first <= ord(char) <= last for first, last in ranges)


def _line_of(text: str, at: int) -> str:
    """The line around a place, as far as a direction mark in it can reach."""
    start, end = text.rfind("\n", max(0, at - 200), at) + 1 or max(0, at - 200), text.find("\n", at, at + 200)
    return text[start : end if end >= 0 else at + 200]
