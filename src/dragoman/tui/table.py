"""A table laid out to a width: cells are wrapped between words. Where it is too narrow for columns, each row becomes a small list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from dragoman.base import graphemes
from dragoman.tui.inline import split_breaks
from dragoman.tui.line import EMPTY, INDENT, Line, Span, columns_of, plain, restyle
from dragoman.tui.wrap import wrap

Side = Literal["left", "right", "center"]
GAP = 2
LEAST_COLUMN = 6
"""Narrower than this no column is made that would be wider."""
_USUAL_WORD = 14
"""Longer ones, as addresses, may be cut so that the other columns keep their share."""


class Cell(NamedTuple):
    """The content of a cell."""

    lines: tuple[Line, ...]
    columns: int
    """Of the widest of them."""


def cell(spans: Sequence[Span]) -> Cell:
    lines = split_breaks(spans)
    return Cell(lines, max(map(columns_of, lines)))


def column_widths(rows: Sequence[Sequence[Cell]], columns: int) -> list[int]:
    """How wide each column is; empty where they do not fit side by side. The widest give way first."""
    natural = [max((each.columns for each in column), default=0) for column in zip(*rows, strict=True)]
    room = columns - GAP * (len(natural) - 1)
    if sum(natural) <= room:
        return natural
    if sum(min(each, LEAST_COLUMN) for each in natural) > room:
        return []
    words = [max((_longest_word(each) for each in column), default=0) for column in zip(*rows, strict=True)]
    return _shrunk(natural, words, room)


def lay_out(rows: Sequence[Sequence[Cell]], sides: Sequence[Side], widths: Sequence[int], columns: int) -> list[Line]:
    """The table; its first row is the heading."""
    if not widths:
        return _as_lists(rows, columns)
    heading, *others = rows
    shown = lay_out_row([Cell(tuple(restyle(text, "strong") for text in each.lines), each.columns) for each in heading], sides, widths)
    shown.append((Span((" " * GAP).join("━" * max(width, 1) for width in widths), "rule"),))
    for row in others:
        shown += lay_out_row(row, sides, widths)
    return shown


def lay_out_row(row: Sequence[Cell], sides: Sequence[Side], widths: Sequence[int]) -> list[Line]:
    wrapped = [[part for text in each.lines for part in wrap(text, width)] for each, width in zip(row, widths, strict=True)]
    rows: list[Line] = []
    for number in range(max(map(len, wrapped))):
        spans: list[Span] = []
        for lines, side, width in zip(wrapped, sides, widths, strict=True):
            text = lines[number] if number < len(lines) else EMPTY
            spans += _aligned(text, width, side)
            spans.append(Span(" " * GAP))
        rows.append(_trimmed(spans))
    return rows


def _shrunk(natural: list[int], words: list[int], room: int) -> list[int]:
    """Cut down to a common limit, the highest with which all fit. What is left over goes where it saves a word from being cut, then from
    the left; a word of usual length is not cut at all where the other columns can give way."""
    usual = max(_limit(natural, [0] * len(natural), room), _USUAL_WORD)
    least = [min(word, usual) for word in words]
    floors = least if sum(least) <= room else [0] * len(natural)
    low = _limit(natural, floors, room)
    widths = [min(each, max(low, floor)) for each, floor in zip(natural, floors, strict=True)]
    spare = room - sum(widths)
    for missing, number in sorted((word - wide, number) for number, (word, wide) in enumerate(zip(words, widths, strict=True))):
        if 0 < missing <= spare:
            widths[number] += missing
            spare -= missing
    for number, each in enumerate(natural):
        if spare and each > widths[number]:
            widths[number] += 1
            spare -= 1
    return widths


def _limit(natural: list[int], floors: list[int], room: int) -> int:
    """The highest width to which all can be cut so that they fit, none below its floor."""
    low, high = 1, max(natural)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(each, max(middle, floor)) for each, floor in zip(natural, floors, strict=True)) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _longest_word(each: Cell) -> int:
    return max((graphemes.width(word) for text in each.lines for word in plain(text).split()), default=0)


def _aligned(text: Line, width: int, side: Side) -> Line:
    missing = width - columns_of(text)
    if missing <= 0:
        return text
    before = 0 if side == "left" else missing if side == "right" else missing // 2
    return (Span(" " * before), *text, Span(" " * (missing - before)))


def _trimmed(spans: list[Span]) -> Line:
    while spans and not spans[-1].text.strip(" ") and not spans[-1].style:
        spans.pop()
    return tuple(spans)


def _as_lists(rows: Sequence[Sequence[Cell]], columns: int) -> list[Line]:
    heading, *others = rows
    shown: list[Line] = []
    for number, row in enumerate(others):
        if number:
            shown.append(EMPTY)
        for name, each in zip(heading, row, strict=True):
            title = tuple(span for text in name.lines for span in restyle(text, "strong"))
            first, *rest = each.lines
            shown += wrap((*title, Span(": " if title else ""), *first), columns, rest=INDENT)
            shown += [part for more in rest for part in wrap(more, columns, INDENT)]
    if not others:
        shown += [part for name in heading for text in name.lines for part in wrap(restyle(text, "strong"), columns)]
    return shown
