"""Markdown as lines of the screen, while it comes. Finished lines are given once and never change; the rest is shown as it stands so far.

A line of text belongs to the screen as soon as nothing that can follow changes it: a row of a paragraph when the next one has begun, a line
of code at its end, a table when it is over. So little of an answer is drawn twice, and a long paragraph does not wait for its end.
The same text gives the same lines, in whatever pieces it comes.
"""

from __future__ import annotations

from dragoman.tui.blocks import (
    Container,
    ListItem,
    Quote,
    Start,
    closes_fence,
    expand_leading,
    is_text,
    is_undecided,
    read_fence,
    read_heading,
    read_start,
    split_cells,
    strip_containers,
)
from dragoman.tui.highlight import highlight, language_of
from dragoman.tui.inline import parse, split_breaks
from dragoman.tui.leaves import Fence, Html, Leaf, Paragraph, Table
from dragoman.tui.line import EMPTY, Line, Span, columns_of, line, restyle, visible_after
from dragoman.tui.wrap import CODE_MARK, wrap, wrap_code

CODE_INDENT = "  "
RULE_COLUMNS = 24
MOST_TAIL_CHARS = 4_000
"""Of a line that has not ended as much is shown."""
MOST_LOOKS = 40
"""As often it is tried to tell from its beginning what a line is."""
_TASKS = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}


def render(text: str, columns: int) -> list[Line]:
    """A whole text."""
    markdown = MarkdownStream(columns)
    return [*markdown.feed(text), *markdown.finish()]


class MarkdownStream:
    """Feed it text as it comes. `columns` may be changed at any time and holds for what is laid out from then on."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._rows: list[Line] = []
        """Finished, not yet given."""
        self._held: list[str] = []
        """What has come of a line before it is known what it is."""
        self._is_in_text = False
        """Whether the line is text, and goes on in the paragraph."""
        self._containers: tuple[Container, ...] = ()
        self._shown = 0
        """How many of them have their mark on the screen."""
        self._leaf: Leaf | None = None
        self._pipe: str | None = None
        """A line that is the head of a table if the next one says so."""
        self._is_apart = False
        """Whether there was an empty line since the last block."""
        self._last = ""
        """What the last block was."""
        self._gap: Line | None = None
        """An empty row, to be shown before the next one."""
        self._char = ""
        """The last character that came, and whether it was a carriage return."""
        self._after_return = False
        self._tail: tuple[int, list[Line]] | None = None
        """What was last shown of the unfinished part, and how wide."""

    def feed(self, text: str) -> list[Line]:
        """The lines that are finished by this piece of text."""
        self._tail = None
        *whole, rest = self._clean(text).split("\n")
        for part in whole:
            self._take(part)
            self._end_line()
        if rest:
            self._take(rest)
            self._look_ahead()
        return self._give()

    def finish(self) -> list[Line]:
        """The lines that are left, when no more text comes."""
        if self._held or self._is_in_text:
            self._end_line()
        self._flush_pipe()
        self._close(0)
        return self._give()

    def tail(self) -> list[Line]:
        """What would be left if no more text came: how the unfinished part looks now. Signs at the start of a line are not shown before
        it is known what they are: nothing is a heading for a moment because a list follows it."""
        if self._tail is not None and self._tail[0] == self.columns:
            return self._tail[1]
        twin = MarkdownStream.__new__(MarkdownStream)
        twin.__dict__.update(self.__dict__)
        twin._rows = []
        held = "".join(self._held)
        twin._held = [] if is_undecided(held) else [held[-MOST_TAIL_CHARS:]]
        twin._leaf = self._leaf and self._leaf.copy()
        self._tail = (self.columns, twin.finish())
        return self._tail[1]

    # --- characters into lines

    def _clean(self, text: str) -> str:
        if not text:
            return text
        if self._after_return and text[0] == "\n":
            text = text[1:]
        self._after_return = text.endswith("\r") if text else False
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        cleaned = visible_after(self._char, text)
        self._char = text[-1:]
        return cleaned

    def _take(self, part: str) -> None:
        if self._is_in_text and isinstance(self._leaf, Paragraph):
            self._leaf.add(part)
        elif part:
            self._held.append(part)

    def _look_ahead(self) -> None:
        """Begins with a line before it has ended, if it can be nothing but text."""
        if not self._is_in_text:
            self._begin_early()
        if self._is_in_text:
            self._emit(self._paragraph().take_rows(self.columns, *self._prefixes()))

    def _begin_early(self) -> None:
        if not isinstance(self._leaf, Paragraph | None) or len(self._held) > MOST_LOOKS:
            return
        begun = expand_leading("".join(self._held))
        if not is_text(begun) or self._read(begun).kind != "text":
            return
        self._held.clear()
        self._flush_pipe()
        self._begin(self._read(begun))
        self._is_in_text = True

    def _end_line(self) -> None:
        if self._is_in_text:
            self._is_in_text = False
        else:
            text = expand_leading("".join(self._held))
            self._held.clear()
            if self._goes_on_as_code(text):
                return
            if self._pipe is not None and self._read(text).kind != "delimiter":
                self._flush_pipe()
            self._begin(self._read(text))
        if isinstance(self._leaf, Paragraph) and self._pipe is None:
            self._leaf.end_line()
            self._emit(self._leaf.take_rows(self.columns, *self._prefixes(), at_line_end=True))

    def _read(self, text: str) -> Start:
        leaf = self._leaf
        is_paragraph = isinstance(leaf, Paragraph)
        head = self._pipe if self._pipe is not None else leaf.first_line if is_paragraph and not leaf.is_started else None
        start = read_start(
            text,
            self._containers,
            in_paragraph=is_paragraph or self._pipe is not None,
            is_heading_possible=is_paragraph and not leaf.is_started and self._pipe is None,
            may_delimit=head is not None and "|" in head,
        )
        if start.kind == "delimiter" and head is not None and len(split_cells(head)) != len(split_cells(start.rest)):
            return start._replace(kind="text")
        return start

    # --- lines into blocks

    def _goes_on_as_code(self, text: str) -> bool:
        """Whether the line belongs to code or HTML that is open."""
        leaf = self._leaf
        if not isinstance(leaf, Fence | Html):
            return False
        rest, matched = strip_containers(text, self._containers)
        if matched < len(self._containers):
            return False
        if isinstance(leaf, Html):
            if not rest.strip() and not leaf.end:
                return False
            self._emit(wrap(line(rest.replace("\t", " "), "dim"), self.columns, *self._prefixes()))
            if leaf.end and leaf.end in rest:
                self._close_leaf()
            return True
        if leaf.sign:
            if closes_fence(rest, leaf.sign):
                self._close_leaf()
            else:
                indent = min(len(rest) - len(rest.lstrip(" ")), leaf.indent)
                self._show_code(leaf, rest[indent:])
            return True
        if not rest.strip():
            leaf.blanks += 1
            self._is_apart = True
            return True
        if not rest.startswith("    "):
            return False
        for _ in range(leaf.blanks):
            self._show_code(leaf, "")
        leaf.blanks = 0
        self._is_apart = False
        self._show_code(leaf, rest[4:])
        return True

    def _begin(self, start: Start) -> None:
        """Takes a line by what it is."""
        leaf = self._leaf
        is_lazy = isinstance(leaf, Paragraph) and start.kind == "text" and not start.opened
        if start.kind == "blank" and not start.opened:
            self._close(start.matched) if start.matched < len(self._containers) else self._close_leaf()
            self._is_apart = True
            return
        if is_lazy and isinstance(leaf, Paragraph):
            leaf.start_line(start.rest)
            return
        if isinstance(leaf, Table) and start.kind in ("text", "pipe") and start.matched == len(self._containers) and not start.opened:
            self._emit(leaf.add(start.rest, self._inner_columns()))
            return
        if start.matched < len(self._containers) or start.opened:
            self._enter(start)
        self._begin_block(start)

    def _begin_block(self, start: Start) -> None:
        rest = start.rest
        match start.kind:
            case "blank":  # an item that has no text yet
                return
            case "text":
                self._open(Paragraph(), "text")
                if start.opened and isinstance(start.opened[-1], ListItem) and rest[:4] in _TASKS:
                    rest = _TASKS[rest[:4]] + rest[4:]
                self._paragraph().start_line(rest)
            case "pipe":
                if not isinstance(self._leaf, Paragraph):
                    self._close_leaf()
                self._pipe = rest
            case "delimiter":
                self._begin_table(rest)
            case "heading":
                level, text = read_heading(rest)
                self._open(None, "heading")
                self._show_heading(level, text)
            case "underline":
                self._finish_paragraph("heading underline" if rest.strip().startswith("=") else "heading")
            case "rule":
                self._open(None, "rule")
                self._emit(wrap(line("─" * min(RULE_COLUMNS, self._inner_columns()), "rule"), self.columns, *self._prefixes()))
            case "fence":
                indent, sign, name = read_fence(rest)
                self._open(Fence(sign, indent, language_of(name)), "code")
            case "indented":
                self._open(Fence("", 4, ""), "code")
                self._show_code(self._leaf, rest[4:])
            case "html":
                end = "-->" if rest.lstrip().startswith("<!--") else ""
                self._open(Html(end), "html")
                self._emit(wrap(line(rest.replace("\t", " "), "dim"), self.columns, *self._prefixes()))
                if end and end in rest:
                    self._close_leaf()

    def _begin_table(self, delimiter: str) -> None:
        head = self._pipe
        if head is None:
            head = self._paragraph().first_line or ""
            self._leaf = None
        elif isinstance(self._leaf, Paragraph):
            self._close_leaf()
        self._pipe = None
        self._open(Table(head, delimiter), "table", is_apart=self._gap is not None)

    def _flush_pipe(self) -> None:
        """The line was no head of a table: it is text."""
        if self._pipe is None:
            return
        text, self._pipe = self._pipe, None
        if not isinstance(self._leaf, Paragraph):
            self._open(Paragraph(), "text")
        paragraph = self._paragraph()
        paragraph.start_line(text)
        paragraph.end_line()
        self._emit(paragraph.take_rows(self.columns, *self._prefixes(), at_line_end=True))

    def _paragraph(self) -> Paragraph:
        assert isinstance(self._leaf, Paragraph)
        return self._leaf

    # --- opening and closing

    def _enter(self, start: Start) -> None:
        """Leaves the containers that the line is not in, and enters those it opens."""
        old = self._containers
        self._close(start.matched)
        opened = list(start.opened)
        if opened and start.matched < len(old):
            before, first = old[start.matched], opened[0]
            if isinstance(before, ListItem) and isinstance(first, ListItem) and before.sign == first.sign and first.number >= 0:
                opened[0] = first._replace(number=before.number + 1)
        self._set_gap(self._is_apart)
        self._containers = (*self._containers, *opened)

    def _open(self, leaf: Leaf | None, kind: str, *, is_apart: bool = False) -> None:
        self._close_leaf()
        self._set_gap(self._is_apart or is_apart or kind == "heading")
        self._leaf = leaf
        self._last = kind

    def _set_gap(self, is_apart: bool) -> None:
        """An empty row between two blocks, if the text has one there; not under a heading, which belongs to what follows."""
        if is_apart and self._last not in ("", "heading") and self._gap is None:
            quotes = [each for each in self._containers[: self._shown] if isinstance(each, Quote)]
            self._gap = line(" ".join("│" for _ in quotes), "quote")
        self._is_apart = False

    def _close(self, count: int) -> None:
        """Leaves all containers but so many."""
        self._close_leaf()
        if self._shown < len(self._containers) and count < len(self._containers):  # an item without text
            self._emit(wrap(EMPTY, self.columns, *self._prefixes()))
            self._last = "text"
        self._containers = self._containers[:count]
        self._shown = min(self._shown, count)

    def _close_leaf(self) -> None:
        leaf, self._leaf = self._leaf, None
        if isinstance(leaf, Paragraph):
            self._emit(leaf.finish(self.columns, *self._prefixes()))
        elif isinstance(leaf, Table):
            self._emit(leaf.finish(self._inner_columns()), is_bare=True)

    def _finish_paragraph(self, style: str) -> None:
        paragraph, self._leaf = self._paragraph(), None
        self._emit(paragraph.finish(self.columns, *self._prefixes(), style))
        self._last = "heading"

    # --- blocks onto the screen

    def _show_heading(self, level: int, text: str) -> None:
        style = "heading underline" if level == 1 else "heading" if level == 2 else "strong"
        for part in split_breaks(parse(text.replace("\t", " ")).spans):
            self._emit(wrap(restyle(part, style), self.columns, *self._prefixes()))

    def _show_code(self, leaf: Leaf | None, text: str) -> None:
        assert isinstance(leaf, Fence)
        spans, leaf.inside = highlight(text.expandtabs(4), leaf.language, leaf.inside)
        first, rest = self._prefixes()
        if not spans:
            self._emit(wrap(EMPTY, self.columns, first, rest))
            return
        base = restyle(spans, "code") if not leaf.language else spans
        self._emit(wrap_code(base, self.columns, (*first, Span(CODE_INDENT)), (*rest, Span(CODE_MARK, "dim"))))

    def _emit(self, rows: list[Line], *, is_bare: bool = False) -> None:
        """Puts rows onto the screen. Bare ones have nothing before them yet."""
        if not rows:
            return
        if is_bare or isinstance(self._leaf, Table):
            first, rest = self._prefixes()
            if columns_of(first) > self.columns - self._inner_columns():
                first = rest = EMPTY
            rows = [(*(rest if number else first), *row) for number, row in enumerate(rows)]
        if self._gap is not None:
            self._rows.append(self._gap)
            self._gap = None
        self._rows += rows
        self._shown = len(self._containers)

    def _prefixes(self) -> tuple[Line, Line]:
        """What stands before the first row of a block, and before the others."""
        first: list[Span] = []
        rest: list[Span] = []
        for number, container in enumerate(self._containers):
            if isinstance(container, Quote):
                first.append(Span("│ ", "quote"))
                rest.append(Span("│ ", "quote"))
                continue
            blanks = Span(" " * len(container.marker))
            first.append(Span(container.marker, "dim") if number >= self._shown else blanks)
            rest.append(blanks)
        return tuple(first), tuple(rest)

    def _inner_columns(self) -> int:
        taken = columns_of(self._prefixes()[0])
        return self.columns - taken if self.columns - taken >= 8 else self.columns

    def _give(self) -> list[Line]:
        rows = self._rows
        self._rows = []
        return rows
