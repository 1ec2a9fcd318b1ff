"""What a background command has printed since it was last read: head and tail of it in memory, the whole in a file."""

from __future__ import annotations

import codecs

from dragoman.tools.command_text import HEAD_SHARE, join_ends, new_ends
from dragoman.tools.output import CappedText, Outputs
from dragoman.tools.printed_text import PrintedText
from dragoman.tools.terminal_text import TerminalText


class UnreadOutput:
    """Of what is not read for long, the middle is left out. Within that bound, no character is lost between two reads, and none is read
    twice; only lines that were drawn over meanwhile come again."""

    def __init__(self, outputs: Outputs, terminal: TerminalText | None = None) -> None:
        self._spool = outputs.spool("background")
        self._terminal = terminal
        self._printed = PrintedText()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unread = new_ends(outputs)
        self._is_new = False
        """Whether something was printed since it was last read."""

    def feed(self, data: bytes) -> None:
        if self._terminal is not None:
            self._add(self._terminal.feed(data))
            self._is_new = self._is_new or not self._terminal.is_full_screen
        else:
            self._add(self._printed.feed(self._decoder.decode(data)))
            self._is_new = True

    def end(self) -> None:
        """Note that no more output comes."""
        if self._terminal is not None:
            self._add(self._terminal.feed(b"", is_end=True) + self._terminal.take())
            self._terminal = None
        self._add(self._printed.feed(self._decoder.decode(b"", final=True), is_end=True) + self._printed.take())
        self._unread.add(self._spool.end())

    @property
    def is_empty(self) -> bool:
        return not self._is_new

    @property
    def draws_full_screen(self) -> bool:
        return self._printed.is_full_screen if self._terminal is None else self._terminal.is_full_screen

    def take(self, whole_room: int, cut_room: int) -> CappedText:
        """What is new: whole, or of more than `whole_room` both ends, `cut_room` characters of them, with a note. It counts as read."""
        self._add(self._terminal.take() if self._terminal is not None else self._printed.take())
        self._is_new = False
        try:
            whole = self._unread.whole
            if whole is not None and len(whole) <= whole_room:
                return CappedText(whole)
            ends = self._unread.cut(cut_room // HEAD_SHARE, cut_room - cut_room // HEAD_SHARE)
            return join_ends(ends, self._unread.chars, self._spool.save())
        finally:
            self._unread.begin()

    def _add(self, text: str) -> None:
        self._unread.add(self._spool.feed(text.encode()))
