"""The beginning and the end of a text that may be long, in bounded memory. Endless lines are folded: their middle is left out."""

from __future__ import annotations

from collections import deque

import msgspec

LINE_CHARS = 2_000
"""Of a longer line in a text that is cut, the middle is left out."""
LINE_HEAD_CHARS, LINE_TAIL_CHARS = 1_200, 600


class Ends(msgspec.Struct, frozen=True):
    """What is left of a text that was cut."""

    head: str
    tail: str
    dropped_lines: int
    """How many whole lines are missing between the two."""
    dropped_chars: int
    """How many characters are missing there, parts of lines included; 0: both are the whole text, folded."""


class TextEnds:
    """Takes a text in pieces. How it was split into them makes no difference."""

    def __init__(self, whole_chars: int, head_chars: int, tail_chars: int) -> None:
        """A text of up to `whole_chars` is kept whole; of a longer one a head and a tail of at most so many."""
        self._most = whole_chars, head_chars, tail_chars
        self.begin()

    def begin(self) -> None:
        """Forget everything: what comes next is another text."""
        self.chars = 0
        self._breaks = 0
        self._whole: list[str] | None = []
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._head_chars = self._tail_chars = 0
        self._is_cut = False
        self._line_chars = 0
        self._rest = ""
        """The end of the line that is coming, behind what was given out of it."""

    def add(self, text: str) -> None:
        if not text:
            return
        self.chars += len(text)
        self._breaks += text.count("\n")
        if self._whole is None:
            return self._take(text)
        self._whole.append(text)
        if self.chars > self._most[0]:
            text, self._whole = "".join(self._whole), None
            self._take(text)
        elif len(self._whole) > 1000:
            self._whole = ["".join(self._whole)]

    @property
    def whole(self) -> str | None:
        """The text, as long as it is kept whole."""
        return None if self._whole is None else "".join(self._whole)

    def cut(self, head_chars: int, tail_chars: int) -> Ends:
        """At most so many characters of both ends, whole lines where there are any."""
        if (whole := self.whole) is not None:
            if len(whole) <= head_chars + tail_chars:
                return Ends(whole, "", 0, 0)
            ends = TextEnds(-1, head_chars, tail_chars)  # it was to be whole, and there is less room than that
            ends.add(whole)
            return ends.cut(head_chars, tail_chars)
        head, tail = "".join(self._head), "".join(self._tail) + self._end_of_line()
        if not self._is_cut and len(head) + len(tail) <= head_chars + tail_chars:
            return Ends(head + tail, "", 0, 0)
        if not self._is_cut:
            head = tail = head + tail
        head, tail = _head_of(head, head_chars), _tail_of(tail, tail_chars)
        lines = self._breaks - head.count("\n") - tail.count("\n") - (0 if head.endswith("\n") or not head else 1)
        return Ends(head, tail, max(lines, 0), max(self.chars - len(head) - len(tail), 1))

    # --- folding

    def _take(self, text: str) -> None:
        first = text.find("\n")
        is_short = self._line_chars + (len(text) if first < 0 else first) <= LINE_HEAD_CHARS
        if is_short and not _may_have_long_line(text):
            last = len(text) - (text.rfind("\n") + 1)
            if last <= LINE_HEAD_CHARS:
                self._line_chars = last + (self._line_chars if first < 0 else 0)
                return self._keep(text)
        *lines, rest = text.split("\n")
        for line in lines:
            self._add_to_line(line)
            self._keep(self._end_of_line() + "\n")
            self._line_chars, self._rest = 0, ""
        self._add_to_line(rest)

    def _add_to_line(self, text: str) -> None:
        room = max(0, LINE_HEAD_CHARS - self._line_chars)
        self._keep(text[:room])
        self._line_chars += len(text)
        self._rest = (self._rest + text[room:])[-(LINE_CHARS - LINE_HEAD_CHARS) :]

    def _end_of_line(self) -> str:
        if self._line_chars <= LINE_CHARS:
            return self._rest
        left_out = self._line_chars - LINE_HEAD_CHARS - LINE_TAIL_CHARS
        return f" …[{left_out:,} characters of this line left out]… {self._rest[-LINE_TAIL_CHARS:]}"

    def _keep(self, text: str) -> None:
        if not text:
            return
        _, most_head, most_tail = self._most
        if self._head_chars < most_head:
            fitting = text[: most_head - self._head_chars]
            self._head.append(fitting)
            self._head_chars += len(fitting)
            text = text[len(fitting) :]
        if not text:
            return
        if len(text) >= most_tail:
            self._is_cut = self._is_cut or len(text) > most_tail or bool(self._tail)
            self._tail.clear()
            text, self._tail_chars = text[len(text) - most_tail :], 0
        self._tail.append(text)
        self._tail_chars += len(text)
        while (excess := self._tail_chars - most_tail) > 0:
            self._is_cut = True
            first = self._tail.popleft()
            if len(first) > excess:
                self._tail.appendleft(first[excess:])
            self._tail_chars -= min(len(first), excess)


def _may_have_long_line(text: str) -> bool:
    """A line of more than `LINE_CHARS` covers a block of half as many that begins at a multiple of that."""
    block = LINE_CHARS // 2
    return any(text.find("\n", start, start + block) < 0 for start in range(0, len(text) - block, block))


def _head_of(text: str, chars: int) -> str:
    """Whole lines, unless they are so long that much would be missing."""
    if len(text) <= chars:
        return text
    end = text.rfind("\n", chars // 2, chars) + 1
    return text[: end or chars]


def _tail_of(text: str, chars: int) -> str:
    if len(text) <= chars:
        return text
    start = len(text) - chars
    first = text.find("\n", max(start - 1, 0), start + chars // 2) + 1
    return text[first or start :] if chars else ""
