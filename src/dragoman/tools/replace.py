"""Exact text replacement that preserves line endings, and explains why if it fails."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import msgspec

from dragoman.base.text import clip
from dragoman.tools.textfile import to_lf
from dragoman.tools.workspace import ToolRefusal

MAX_OCCURRENCES = 100_000
"""Beyond this many, sed is the better tool."""
MAX_LINES_NAMED = 10
MAX_LINES_COMPARED = 5_000
MAX_LINE_CHARS = 300
MAX_COMPARED = 1_000_000
"""Characters of a passage times those of what replaces it, up to which they are compared."""
SAME_CHARS = 3
"""Shorter than this, characters that stay the same are taken for chance."""
_ALIKE = str.maketrans("\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00a0\u2007\u202f", "''''\"\"\"\"   ")
"""Curly quotes and non-breaking spaces as the characters that models write for them."""


class Replacement(msgspec.Struct, frozen=True):
    """A replacement as written to the file, and as shown: with LF only."""

    text: str
    shown_old: str
    shown_new: str
    spans: tuple[tuple[int, int], ...]
    """The spans of shown_old that were replaced, …"""
    by: str
    """… and the text that replaced them."""
    is_about_line_ends: bool = False
    """Then the shown texts have the line endings of the file."""
    is_alike: bool = False
    """`old` was found with other quotes or spaces, which stay where the text stays."""


def replace_text(text: str, old: str, new: str, *, replace_all: bool, shown: str) -> Replacement:
    """`text` with `old` replaced: its single occurrence, or with `replace_all` every one. Raises ToolRefusal.

    Line endings: LF in `old` also matches CRLF, and `new` adopts the line ending of the place it replaces, so that a file keeps its
    style. Line endings are taken literally only if `old` and `new` differ in nothing else.

    Curly quotes and non-breaking spaces match the plain ones if `old` occurs nowhere exactly, and in one place so.
    """
    if old == new:
        raise ToolRefusal("old_string and new_string are the same: nothing would change", "no_change")
    is_about_line_ends = to_lf(old) == to_lf(new)
    haystack, needle, by = (text, old, new) if is_about_line_ends else (to_lf(text), to_lf(old), to_lf(new))
    starts = _starts(haystack, needle, overlapping=not replace_all)
    if is_about_line_ends:
        starts = [start for start in starts if not _splits_a_line_end(haystack, start, start + len(needle))]
    is_alike = False
    if not starts and not is_about_line_ends and (found := _find_alike(haystack, needle)) is not None:
        starts, is_alike = [found], True
        by = _keep_alike(haystack[found : found + len(needle)], needle, by)
    if not starts:
        raise ToolRefusal(f"old_string was not found in {shown}{_hint(to_lf(text), to_lf(old))}", "not_found")
    if len(starts) > MAX_OCCURRENCES:
        raise ToolRefusal(f"old_string occurs more than {MAX_OCCURRENCES} times in {shown}: use run_shell (sed)", "too_many")
    if len(starts) > 1 and not replace_all:
        raise ToolRefusal(
            f"old_string {_describe_places(haystack, starts)} in {shown}: add lines around it, or set replace_all", "ambiguous"
        )
    spans = tuple((start, start + len(needle)) for start in starts)
    shown_new = _splice(haystack, spans, by)
    if is_about_line_ends:
        return Replacement(shown_new, haystack, shown_new, spans, by, is_about_line_ends=True)
    in_style = _splice_in_style(text, haystack, spans, by if is_alike else new)
    return Replacement(in_style, haystack, shown_new, spans, by, is_alike=is_alike)


def _starts(text: str, needle: str, *, overlapping: bool) -> list[int]:
    """Where it occurs. Overlapping occurrences count too if one must be identified: they make it ambiguous."""
    starts: list[int] = []
    position = text.find(needle)
    while position >= 0 and len(starts) <= MAX_OCCURRENCES:
        starts.append(position)
        position = text.find(needle, position + (1 if overlapping else len(needle)))
    return starts


def _find_alike(text: str, needle: str) -> int | None:
    """Where the needle occurs with other quotes or spaces; None unless that is one place."""
    alike, wanted = text.translate(_ALIKE), needle.translate(_ALIKE)
    if alike == text and wanted == needle:
        return None
    starts = _starts(alike, wanted, overlapping=True)
    return starts[0] if len(starts) == 1 else None


def _keep_alike(found: str, needle: str, by: str) -> str:
    """`by`, with the file's own quotes and spaces wherever it has the same text as the needle, which was `found` so."""
    first = 0
    while first < min(len(needle), len(by)) and needle[first] == by[first]:
        first += 1
    last = 0
    while last < min(len(needle), len(by)) - first and needle[-1 - last] == by[-1 - last]:
        last += 1
    end, by_end = len(needle) - last, len(by) - last
    middle = by[first:by_end]
    if (end - first) * len(middle) <= MAX_COMPARED:
        from difflib import SequenceMatcher

        same = SequenceMatcher(None, needle[first:end], middle, autojunk=False).get_matching_blocks()
        for start, by_start, length in same:
            if length >= SAME_CHARS:
                middle = middle[:by_start] + found[first + start : first + start + length] + middle[by_start + length :]
    return found[:first] + middle + found[end:]


def _splits_a_line_end(text: str, start: int, end: int) -> bool:
    return text[start - 1 : start + 1] == "\r\n" or text[end - 1 : end + 1] == "\r\n"


def _splice(text: str, spans: Sequence[tuple[int, int]], by: str) -> str:
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        pieces += (text[position:start], by)
        position = end
    return "".join([*pieces, text[position:]])


# --- line endings --------------------------------------------------------------------------------------------------------


def _splice_in_style(text: str, shown: str, spans: Sequence[tuple[int, int]], new: str) -> str:
    """Replace in `text` the spans that were found in `shown`, the same text with LF for CRLF."""
    if text == shown:
        return _splice(text, spans, to_lf(new) if "\n" in text else new)
    with_lf = to_lf(new)
    with_crlf = with_lf.replace("\n", "\r\n")
    line_ends = list(_line_ends(text))
    crlfs = [position - index for index, position in enumerate(position for position, is_crlf in line_ends if is_crlf)]
    pieces: list[str] = []
    position = at_line_end = 0
    for start, end in spans:
        # An offset in the text is its offset in the shown text plus one for each CRLF before it.
        real_start, real_end = start + bisect_left(crlfs, start), end + bisect_left(crlfs, end)
        while at_line_end < len(line_ends) - 1 and line_ends[at_line_end][0] < real_start:
            at_line_end += 1
        # The style of the line end in the span or the next one after it; after the last, that of the last.
        pieces += (text[position:real_start], with_crlf if line_ends[at_line_end][1] else with_lf)
        position = real_end
    return "".join([*pieces, text[position:]])


def _line_ends(text: str) -> Iterator[tuple[int, bool]]:
    """Where lines end (at the CR, if there is one), and whether in CRLF."""
    position = text.find("\n")
    while position >= 0:
        is_crlf = text[position - 1 : position] == "\r"
        yield position - is_crlf, is_crlf
        position = text.find("\n", position + 1)


# --- explaining failure --------------------------------------------------------------------------------------------------


def _describe_places(text: str, starts: Sequence[int]) -> str:
    lines: list[int] = []
    line, position = 1, 0
    for start in starts[:MAX_LINES_NAMED]:
        line += text.count("\n", position, start)
        position = start
        lines.append(line)
    more = ", …" if len(starts) > MAX_LINES_NAMED else ""
    return f"occurs {len(starts)} times (lines {', '.join(map(str, lines))}{more})"


def _hint(text: str, old: str) -> str:
    """A hint for the model: the same words with other whitespace, or the most similar lines."""
    lines = text.split("\n")
    words = [" ".join(line.split()) for line in lines]
    wanted = [" ".join(line.split()) for line in old.split("\n")]
    while wanted and not wanted[0]:
        wanted.pop(0)
    while wanted and not wanted[-1]:
        wanted.pop()
    if not wanted:
        return ": it is whitespace alone; add text around it"
    found = _find_ignoring_whitespace(words, wanted)
    if found is not None:
        end = found + len(wanted)
        place = f"line {end}" if len(wanted) == 1 else f"lines {found + 1}-{end}"
        return f": only whitespace differs from {place}; copy it exactly:\n" + "\n".join(
            map(_truncate_line, lines[found : min(end, found + 20)])
        )
    near = _nearest_lines(words, max(wanted, key=len))
    if not near:
        return ", nor a line close to it; read the file again"
    return "; the nearest lines are:\n" + "\n".join(f"line {number + 1}: {_truncate_line(lines[number])}" for number in near)


def _find_ignoring_whitespace(words: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The first line at which the wanted lines occur; the first and the last of them may be parts of lines."""
    if len(wanted) == 1:
        return next((number for number, line in enumerate(words) if wanted[0] in line), None)
    for number in range(len(words) - len(wanted) + 1):
        if not words[number].endswith(wanted[0]) or not words[number + len(wanted) - 1].startswith(wanted[-1]):
            continue
        if list(words[number + 1 : number + len(wanted) - 1]) == list(wanted[1:-1]):
            return number
    return None


def _nearest_lines(words: Sequence[str], wanted: str) -> list[int]:
    """Lines that are like it, or, if there are none, lines that begin like it: it may be a part of one."""
    return _closest_to(wanted, words) or _closest_to(wanted, [line[: len(wanted)] for line in words])


def _closest_to(wanted: str, words: Sequence[str]) -> list[int]:
    from difflib import get_close_matches

    first: dict[str, int] = {}
    for number, line in enumerate(words):
        if line and len(line) <= MAX_LINE_CHARS:
            first.setdefault(line, number)
        if len(first) >= MAX_LINES_COMPARED:
            break
    return [first[line] for line in get_close_matches(wanted[:MAX_LINE_CHARS], first, n=3, cutoff=0.6)]


def _truncate_line(line: str) -> str:
    return clip(line, MAX_LINE_CHARS)
