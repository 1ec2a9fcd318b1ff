"""A diff on the screen: numbered lines, the words that changed marked, in two columns where there is room."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from dragoman.tui.highlight import highlight, language_of
from dragoman.tui.line import EMPTY, INDENT, Line, Span, line, visible
from dragoman.tui.wrap import fit, pad, wrap_code
from dragoman.words import say

TWO_COLUMNS = 100
"""From so many columns on, old and new stand beside each other, where there are both."""
MINUS = "−"
_MOST_WORDS = 200
"""Of a line. In longer ones what changed is marked from its first word to its last."""
_LEAST_ALIKE = 0.3
"""Lines that have less in common are not compared word by word."""
_START = re.compile(r"^--- .*\n\+\+\+ ", re.MULTILINE)
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_STYLES = {"+": "add", "-": "del", " ": ""}

Sign = Literal["+", "-", " ", "⋮", "!"]


class DiffLine(NamedTuple):
    """One line of a diff."""

    sign: Sign
    """Added, removed, unchanged; lines left out between two places; or something said about the diff."""
    number: int
    """In the new file; of a removed line in the old one."""
    text: str
    old: int = 0
    """In the old file."""


class FileDiff(NamedTuple):
    """The diff of one file."""

    name: str
    lines: tuple[DiffLine, ...]
    added: int
    removed: int

    @property
    def size(self) -> str:
        return f"+{self.added} {MINUS}{self.removed}"


def find_diff(text: str) -> FileDiff | None:
    """The diff in what an edit shows: a line may stand before it."""
    found = _START.search(text)
    return read_diff(text[found.start() :]) if found else None


def read_diff(text: str) -> FileDiff:
    """A unified diff of one file. Lines that are not part of a diff are kept as remarks."""
    name, old, new = "", 0, 0
    lines: list[DiffLine] = []
    is_inside = False
    for row in text.removesuffix("\n").split("\n"):
        if found := _HUNK.match(row):
            old, new = int(found.group(1)), int(found.group(2))
            if is_inside:
                lines.append(DiffLine("⋮", 0, ""))
            is_inside = True
        elif not is_inside and row.startswith("+++ "):
            name = row[4:].removeprefix("b/")
        elif not is_inside and row.startswith(("--- ", "diff ", "index ")):
            continue
        elif is_inside and row[:1] in ("+", "-", " ", ""):
            sign: Sign = "+" if row[:1] == "+" else "-" if row[:1] == "-" else " "
            lines.append(DiffLine(sign, old if sign == "-" else new, row[1:], old))
            old += sign != "+"
            new += sign != "-"
        else:
            lines.append(DiffLine("!", 0, row))
    return FileDiff(name, tuple(lines), sum(each.sign == "+" for each in lines), sum(each.sign == "-" for each in lines))


def only_changes(diff: FileDiff) -> FileDiff:
    """Without the lines around what changed: for a call that is done."""
    return diff._replace(lines=tuple(each for each in diff.lines if each.sign in "+-"))


def lay_out(diff: FileDiff, columns: int, most_rows: int = 0) -> list[Line]:
    """The rows of a diff. `most_rows`: no more than these, the last of them saying how many are left out."""
    language = language_of(diff.name.rpartition(".")[2])
    digits = max((len(str(each.number)) for each in diff.lines), default=1)
    pairs = _pairs(diff.lines)
    is_wide = columns >= TWO_COLUMNS and diff.added and diff.removed  # beside lines that are all new nothing would stand
    rows = (_two_columns if is_wide else _one_column)(pairs, columns, digits, language)
    shown: list[Line] = []
    for row in rows:
        shown.append(row)
        if most_rows and len(shown) > most_rows:
            left = sum(1 for _ in rows) + 2
            return [*shown[: most_rows - 1], fit(line(f"  {say('tui.more_lines', count=left)}", "dim"), columns)]
    return shown


class _Pair(NamedTuple):
    """A line of the old file beside one of the new: a change, or the same line twice."""

    old: DiffLine | None
    new: DiffLine | None
    old_text: Line
    new_text: Line

    @property
    def is_same(self) -> bool:
        return self.old is not None and self.old.sign not in "+-"


def _pairs(lines: Sequence[DiffLine]) -> list[_Pair]:
    pairs: list[_Pair] = []
    at = 0
    while at < len(lines):
        each = lines[at]
        if each.sign not in "+-":
            text = line(visible(each.text))
            pairs.append(_Pair(each._replace(number=each.old), each, text, text))
            at += 1
            continue
        end = at
        while end < len(lines) and lines[end].sign in "+-":
            end += 1
        removed = [each for each in lines[at:end] if each.sign == "-"]
        added = [each for each in lines[at:end] if each.sign == "+"]
        for number in range(max(len(removed), len(added))):
            old = removed[number] if number < len(removed) else None
            new = added[number] if number < len(added) else None
            pairs.append(_Pair(old, new, *mark_words(visible(old.text) if old else "", visible(new.text) if new else "")))
        at = end
    return pairs


def _one_column(pairs: Sequence[_Pair], columns: int, digits: int, language: str) -> Iterator[Line]:
    waiting: list[_Pair] = []
    for pair in [*pairs, None]:
        if pair is not None and not pair.is_same:
            waiting.append(pair)
            continue
        for each in waiting:
            yield from _numbered(each.old, each.old_text, columns, digits, language)
        for each in waiting:
            yield from _numbered(each.new, each.new_text, columns, digits, language)
        waiting = []
        if pair is not None:
            yield from _numbered(pair.new, pair.new_text, columns, digits, language)


def _two_columns(pairs: Sequence[_Pair], columns: int, digits: int, language: str) -> Iterator[Line]:
    half = (columns - 3) // 2
    for pair in pairs:
        left = _numbered(pair.old, pair.old_text, half, digits, language)
        right = _numbered(pair.new, pair.new_text, half, digits, language)
        for number in range(max(len(left), len(right))):
            before = left[number] if number < len(left) else EMPTY
            after = right[number] if number < len(right) else EMPTY
            yield (*pad(before, half), Span(" │ " if after else " │", "border"), *after)


def _numbered(each: DiffLine | None, text: Line, columns: int, digits: int, language: str) -> list[Line]:
    if each is None:
        return []
    if each.sign == "⋮":
        return [line(f"  {'⋮':>{digits}}", "dim")]
    if each.sign == "!":
        return wrap_code(line(visible(each.text), "dim"), columns, INDENT)
    style = _STYLES[each.sign]
    if not style and language:
        text, _ = highlight("".join(span.text for span in text), language)
    sign = MINUS if each.sign == "-" else each.sign
    first = (Span(f"  {each.number:>{digits}} ", f"number {style}".strip()), Span(f"{sign} " if text else sign.strip(), style))
    rest = (Span(f"  {'':>{digits}} "), Span("↪ ", "dim"))
    return [_trimmed(row) for row in wrap_code(text, columns, first, rest)]


def _trimmed(row: Line) -> Line:
    if row and not row[-1].text.strip(" "):
        return _trimmed(row[:-1])
    return (*row[:-1], Span(row[-1].text.rstrip(" "), row[-1].style)) if row else row


def mark_words(old: str, new: str) -> tuple[Line, Line]:
    """Both lines, with the words marked that are in one of them alone."""
    if not old or not new:
        return line(old, "del"), line(new, "add")
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    same = _same_words(before, after)
    if sum(len(before[one].strip()) for one, _ in same) < _LEAST_ALIKE * max(len(old.strip()), len(new.strip())):
        return line(old, "del"), line(new, "add")
    return _marked(before, {one for one, _ in same}, "del"), _marked(after, {two for _, two in same}, "add")


def _same_words(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    if max(len(before), len(after)) > _MOST_WORDS:
        start = 0
        while start < min(len(before), len(after)) and before[start] == after[start]:
            start += 1
        end = 0
        while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
            end += 1
        return [(at, at) for at in range(start)] + [(len(before) - at, len(after) - at) for at in range(end, 0, -1)]
    from difflib import SequenceMatcher

    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    return [(block.a + at, block.b + at) for block in blocks for at in range(block.size)]


def _marked(words: Iterable[str], same: set[int], style: str) -> Line:
    spans: list[Span] = []
    for number, word in enumerate(words):
        kind = style if number in same else f"{style}_word"
        if spans and spans[-1].style == kind:
            spans[-1] = Span(spans[-1].text + word, kind)
        else:
            spans.append(Span(word, kind))
    return tuple(spans)
