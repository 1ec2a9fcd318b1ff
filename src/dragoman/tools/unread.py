"""What a background command has printed since it was last read: head and tail of it in memory, the whole in a file."""

from __future__ import annotations

from collections import deque

from dragoman.tools.output import CappedText, Measure, Outputs
from dragoman.tools.terminal_text import TerminalText


class UnreadOutput:
    """Of what is not read for long, the middle is left out. Within that bound, no character is lost between two reads, and none is read
    twice; only lines of a terminal that were changed meanwhile come again."""

    def __init__(self, outputs: Outputs, terminal: TerminalText | None = None) -> None:
        self._outputs = outputs
        self._spool = outputs.spool("background")
        self._terminal = terminal
        self._head_room = outputs.max_chars // 2
        self._tail_room = outputs.max_chars - self._head_room
        self._begin()

    def feed(self, data: bytes) -> None:
        if self._terminal is not None:
            data = self._terminal.feed(data).encode()
            self._has_drawn = not self._terminal.is_full_screen
        self._add(self._spool.feed(data))

    def end(self) -> None:
        """Note that no more output comes."""
        if self._terminal is not None:
            self._add(self._spool.feed((self._terminal.feed(b"", is_end=True) + self._terminal.take()).encode()))
            self._terminal = None
        self._add(self._spool.end())
        self._spool.close()

    @property
    def is_empty(self) -> bool:
        return not self._head_chars and not self._has_drawn

    @property
    def draws_full_screen(self) -> bool:
        return self._terminal is not None and self._terminal.is_full_screen

    def take(self, room: int, measure: Measure = len) -> CappedText:
        """What is new: whole, or of more than `room` the head and tail, with a note. It counts as read."""
        if self._terminal is not None:
            self._add(self._spool.feed(self._terminal.take().encode()))
        head, tail, dropped = "".join(self._head), "".join(self._tail), self._dropped
        self._begin()
        if not dropped:
            head = tail = head + tail
            if measure(head) <= room:
                return CappedText(head)
        chars = len(head) if not dropped else len(head) + len(tail) + dropped
        return self._spool.excerpt(head, tail, chars, room, measure)

    def _begin(self) -> None:
        self._head: list[str] = []
        self._head_chars = 0
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._dropped = 0
        self._has_drawn = False
        """Whether something on the screen of a terminal has changed."""

    def _add(self, text: str) -> None:
        fitting = text[: self._head_room - self._head_chars]
        if fitting:
            self._head.append(fitting)
            self._head_chars += len(fitting)
            text = text[len(fitting) :]
        if not text:
            return
        self._tail.append(text)
        self._tail_chars += len(text)
        while (excess := self._tail_chars - self._tail_room) > 0:
            first = self._tail.popleft()
            if len(first) > excess:
                self._tail.appendleft(first[excess:])
            self._dropped += min(len(first), excess)
            self._tail_chars -= min(len(first), excess)
