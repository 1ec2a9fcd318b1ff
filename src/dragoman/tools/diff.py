"""Unified diffs, in time linear in the size of the files and not quadratic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

CONTEXT_LINES = 3
MAX_PRODUCT = 1_000_000
"""Lines removed times lines added. Up to this, blocks are compared line by line; beyond, they are shown as one block."""
MAX_CHARS = 100_000
"""Of a whole diff. A longer one is truncated, with a note."""
_NEVER = 1 << 62


class DiffBlock(msgspec.Struct, frozen=True):
    """Old lines start:end become new lines new_start:new_end, counted from 0."""

    start: int
    end: int
    new_start: int
    new_end: int


class Diff(msgspec.Struct, frozen=True):
    text: str
    added: int
    removed: int

    @property
    def summary(self) -> str:
        return f"+{self.added} -{self.removed}"


def diff_texts(old: str, new: str, name: str, *, is_new: bool = False, coarse: Sequence[DiffBlock] | None = None) -> Diff:
    """The diff from one text to another. `coarse`: the blocks that differ, if already known."""
    old_lines, new_lines = split_lines(old), split_lines(new)
    whole = (DiffBlock(0, len(old_lines), 0, len(new_lines)),)
    blocks = [fine for block in (whole if coarse is None else coarse) for fine in _refine(old_lines, new_lines, block)]
    added = sum(block.new_end - block.new_start for block in blocks)
    removed = sum(block.end - block.start for block in blocks)
    header = [f"--- {'/dev/null' if is_new else f'a/{name}'}\n", f"+++ b/{name}\n"]
    return Diff(_join_truncated([*header, *_hunks(old_lines, new_lines, blocks)] if blocks else []), added, removed)


def split_lines(text: str) -> list[str]:
    """Lines with their newlines. Only a newline ends a line, not a form feed or a line separator."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


class TracedText:
    """A text that is edited step by step. Remembers what of the original is still in it, so that a diff need not compare the whole."""

    def __init__(self, original: str) -> None:
        self._original = original
        self._pieces: list[tuple[int, int]] = [(0, len(original))]
        """Where in the original a piece begins, or -1 if it is new, and its length."""

    def replace(self, spans: Sequence[tuple[int, int]], new_chars: int) -> None:
        """Each span (start, end) of the text as it is now was replaced by `new_chars` characters. Spans are in order and do not overlap."""
        self._pieces = [piece for piece in _cut(self._pieces, spans, new_chars) if piece[1]]

    def blocks(self, new: str) -> list[DiffBlock]:
        """The lines that changed. `new`: the text as it is now."""
        blocks: list[DiffBlock] = []
        before, after = _LineCounter(self._original), _LineCounter(new)
        for start, end, new_start, new_end in self._changes():
            first, new_first = before.line_at(start), after.line_at(new_start)
            block = DiffBlock(first, before.line_at(end) + 1, new_first, after.line_at(new_end) + 1)
            # A change that starts on the line where the last one ended belongs to the same block.
            if blocks and (block.start < blocks[-1].end or block.new_start < blocks[-1].new_end):
                last = blocks.pop()
                block = DiffBlock(last.start, block.end, last.new_start, block.new_end)
            blocks.append(block)
        return blocks

    def _changes(self) -> Iterator[tuple[int, int, int, int]]:
        """Spans of the original and of what stands there now, in order."""
        position = new_position = new_start = 0
        for start, length in [*self._pieces, (len(self._original), 0)]:
            if start >= 0:
                if start > position or new_position > new_start:
                    yield position, start, new_start, new_position
                position, new_start = start + length, new_position + length
            new_position += length


class _LineCounter:
    """The line, from 0, that a position is in. Positions must not go back."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = self._position = 0

    def line_at(self, position: int) -> int:
        self._line += self._text.count("\n", self._position, position)
        self._position = position
        return self._line


def _cut(pieces: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]], new_chars: int) -> Iterator[tuple[int, int]]:
    """The pieces that are left when each span is replaced by a new piece."""
    left = iter((*spans, (_NEVER, _NEVER)))
    start, end = next(left)
    position = 0
    for origin, length in pieces:
        piece_end = position + length
        while position < piece_end:
            if position < start:  # before the next span
                upto = min(start, piece_end)
                yield origin, upto - position
            else:
                upto = min(end, piece_end)
            origin, position = origin + (upto - position) * (origin >= 0), upto
            if position == end:
                yield -1, new_chars
                start, end = next(left)


def _refine(old: Sequence[str], new: Sequence[str], block: DiffBlock) -> Iterator[DiffBlock]:
    """The parts of a block that actually differ."""
    start, end, new_start, new_end = block.start, min(block.end, len(old)), block.new_start, min(block.new_end, len(new))
    while start < end and new_start < new_end and old[start] == new[new_start]:
        start, new_start = start + 1, new_start + 1
    while start < end and new_start < new_end and old[end - 1] == new[new_end - 1]:
        end, new_end = end - 1, new_end - 1
    if start == end and new_start == new_end:
        return
    product = (end - start) * (new_end - new_start)
    if product <= 1 or product > MAX_PRODUCT:
        yield DiffBlock(start, end, new_start, new_end)
        return
    from difflib import SequenceMatcher

    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old[start:end], new[new_start:new_end]).get_opcodes():
        if tag != "equal":
            yield DiffBlock(start + i1, start + i2, new_start + j1, new_start + j2)


def _hunks(old: Sequence[str], new: Sequence[str], blocks: Sequence[DiffBlock]) -> Iterator[str]:
    hunk: list[DiffBlock] = []
    for block in blocks:
        if hunk and block.start - hunk[-1].end > 2 * CONTEXT_LINES:
            yield from _hunk(old, new, hunk)
            hunk = []
        hunk.append(block)
    if hunk:
        yield from _hunk(old, new, hunk)


def _hunk(old: Sequence[str], new: Sequence[str], blocks: Sequence[DiffBlock]) -> Iterator[str]:
    before = min(CONTEXT_LINES, blocks[0].start)
    after = min(CONTEXT_LINES, len(old) - blocks[-1].end)
    start, new_start = blocks[0].start - before, blocks[0].new_start - before
    count, new_count = blocks[-1].end + after - start, blocks[-1].new_end + after - new_start
    yield f"@@ -{_range(start, count)} +{_range(new_start, new_count)} @@\n"
    position = start
    for block in blocks:
        yield from (_line(" ", line) for line in old[position : block.start])
        yield from (_line("-", line) for line in old[block.start : block.end])
        yield from (_line("+", line) for line in new[block.new_start : block.new_end])
        position = block.end
    yield from (_line(" ", line) for line in old[position : position + after])


def _range(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"


def _line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _join_truncated(lines: Sequence[str]) -> str:
    room = MAX_CHARS
    for index, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            cut = line[: room + len(line)]
            return "".join([*lines[:index], cut, f"\n[the diff goes on for {len(lines) - index} more lines, which are not shown]\n"])
    return "".join(lines)
