"""The leaf blocks of streamed Markdown: paragraph, code, table. Each keeps what is not on the screen yet."""

from __future__ import annotations

import unicodedata

from dragoman.tui.blocks import split_cells
from dragoman.tui.inline import parse, split_breaks
from dragoman.tui.line import EMPTY, Line, Span, plain
from dragoman.tui.table import Cell, Side, cell, column_widths, lay_out, lay_out_row
from dragoman.tui.wrap import flow, wrap

MOST_ROWS = 200
"""A longer table is laid out by its first rows, so that it need not be kept until its end."""


class Paragraph:
    """Its rows are given as soon as nothing that follows can change them."""

    def __init__(self) -> None:
        self._source = ""
        self._before = " "
        self._spans: Line = EMPTY
        self._waiting = 0
        """About how much of it is parsed and in no row yet."""
        self._tried = 0
        """How much there was when it was last looked at: it is looked at again when that has grown by a quarter, so that a text without an
        end to be seen does not take more than linear time."""
        self.first_line: str | None = ""
        """As it came, as long as it can still become the head of a table or a heading; None: no longer."""
        self.is_started = False
        """Whether a row was given."""

    def copy(self) -> Paragraph:
        twin = Paragraph()
        twin.__dict__.update(self.__dict__)
        return twin

    @property
    def source(self) -> str:
        return self._source

    def start_line(self, text: str) -> None:
        text = text.lstrip(" ")
        if self._source or self._spans or self.is_started:
            self.first_line = None
        if self._source.endswith(" ") and _is_wide(text[:1]) and _is_wide(self._source[-2:-1] or self._before):
            self._source = self._source[:-1]  # Chinese has no blanks between its words, and none between its lines
        self.add(text)

    def add(self, text: str) -> None:
        text = text.replace("\t", " ")
        self._source += text
        if self.first_line is not None and not self.is_started:
            self.first_line += text

    def end_line(self) -> None:
        body = self._source.rstrip(" ")
        blanks = len(self._source) - len(body)
        if blanks > 1:
            self._source = f"{body} \n" if body.endswith("\\") else f"{body}\n"
        else:
            is_escaped = not blanks and (len(body) - len(body.rstrip("\\"))) % 2 == 1
            self._source = f"{body}\n" if is_escaped else f"{body} "

    def take_rows(self, columns: int, first: Line, rest: Line, *, at_line_end: bool = False) -> list[Line]:
        """The rows that cannot change any more."""
        if not at_line_end and len(self._source) + self._waiting < self._tried * 5 // 4:
            return []
        parsed = parse(self._source, before=self._before, is_whole=False)
        if parsed.used:
            self._before = self._source[parsed.used - 1]
            self._source = self._source[parsed.used :]
        self._waiting += parsed.used
        self._tried = len(self._source) + self._waiting
        if not parsed.used:
            return []
        *ended, last = split_breaks((*self._spans, *parsed.spans))
        rows: list[Line] = []
        for text in ended:
            rows += wrap(text, columns, rest if rows or self.is_started else first, rest)
        flown, self._spans = flow(last, columns, rest if rows or self.is_started else first, rest)
        rows += flown
        if rows:
            self._waiting = len(plain(self._spans))
            self._tried = len(self._source) + self._waiting
        self.is_started = self.is_started or bool(rows)
        return rows

    def finish(self, columns: int, first: Line, rest: Line, style: str = "") -> list[Line]:
        """The rows that are left."""
        parsed = parse(self._source.rstrip(" \n"), before=self._before)
        lines = list(split_breaks((*self._spans, *parsed.spans)))
        while lines and not lines[-1]:
            lines.pop()
        rows: list[Line] = []
        for text in lines:
            if style:
                text = tuple(Span(span.text, f"{style} {span.style}".strip()) for span in text)
            rows += wrap(text, columns, rest if rows or self.is_started else first, rest)
        return rows


class Fence:
    """Code between fences, or indented."""

    def __init__(self, sign: str, indent: int, language: str) -> None:
        self.sign = sign
        """Empty: it is indented code, and ends with its indent."""
        self.indent = indent
        self.language = language
        self.inside = ""
        """What the last line ended in: a string or a comment over lines."""
        self.blanks = 0
        """Empty lines that belong to it only if more comes."""

    def copy(self) -> Fence:
        twin = Fence(self.sign, self.indent, self.language)
        twin.inside, twin.blanks = self.inside, self.blanks
        return twin


class Html:
    """Lines that are shown as they are."""

    def __init__(self, end: str) -> None:
        self.end = end
        """Where it ends: empty for an empty line."""

    def copy(self) -> Html:
        return self


class Table:
    """A table: kept whole until it is over, because a later row may widen a column."""

    def __init__(self, head: str, delimiter: str) -> None:
        self._sides = [_side(each) for each in split_cells(delimiter)]
        self._head = self._cells(head)
        self._rows: list[list[Cell]] = []
        self._widths: list[int] | None = None

    def copy(self) -> Table:
        twin = Table.__new__(Table)
        twin.__dict__.update(self.__dict__)
        twin._rows = list(self._rows)
        return twin

    def add(self, row: str, columns: int) -> list[Line]:
        cells = self._cells(row)
        if self._widths is not None:
            return self._row(cells, columns)
        self._rows.append(cells)
        return self._all(columns) if len(self._rows) >= MOST_ROWS else []

    def finish(self, columns: int) -> list[Line]:
        return [] if self._widths is not None else self._all(columns)

    def _all(self, columns: int) -> list[Line]:
        rows = [self._head, *self._rows]
        self._widths = column_widths(rows, columns)
        self._rows = []
        return lay_out(rows, self._sides, self._widths, columns)

    def _row(self, cells: list[Cell], columns: int) -> list[Line]:
        if not self._widths:
            return [EMPTY, *lay_out([self._head, cells], self._sides, [], columns)]
        return lay_out_row(cells, self._sides, self._widths)

    def _cells(self, row: str) -> list[Cell]:
        """As many as the table has columns. What is too much stays in the last one: nothing is lost."""
        texts = split_cells(row.replace("\t", " "))
        count = len(self._sides)
        if len(texts) > count:
            texts[count - 1 :] = [" | ".join(texts[count - 1 :])]
        return [cell(parse(text).spans) for text in texts + [""] * (count - len(texts))]


Leaf = Paragraph | Fence | Html | Table


def _side(delimiter: str) -> Side:
    if delimiter.endswith(":"):
        return "center" if delimiter.startswith(":") else "right"
    return "left"


def _is_wide(char: str) -> bool:
    return bool(char) and char >= "\u2e80" and unicodedata.east_asian_width(char) in "WF" and not "\uac00" <= char <= "\ud7a3"
