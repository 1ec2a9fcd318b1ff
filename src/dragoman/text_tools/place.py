"""The context at the current position: what the parser needs to distinguish a call from the mention of one."""

from __future__ import annotations

_SENTENCE_ENDS = frozenset(".:!?…。：！？")
_QUOTES = frozenset("\"'“”‘’«»「『")


class Place:
    """Tracks the position in the text."""

    __slots__ = ("before", "fence", "follows_call", "is_blank", "is_first", "line_head", "solid", "ticks")

    def __init__(self) -> None:
        self.is_first = True
        """Whether only blanks, thinking and calls have been seen."""
        self.is_blank = True
        """Whether the line has only white space so far."""
        self.line_head = ""
        """The line's first character that is not white space."""
        self.before = ""
        """Some text that ends with the last character."""
        self.solid = ""
        """Some text that ends with the last character that is not white space (trailing blanks aside)."""
        self.ticks = 0
        """How many backticks opened the inline code; 0 outside of it."""
        self.fence = 0
        """How many backticks opened the code fence; 0 outside of one."""
        self.follows_call = False
        """Whether only white space separates this position from the last call."""

    @property
    def is_plain(self) -> bool:
        """Whether text may pass without closer inspection."""
        return not (self.is_first or self.follows_call or self.ticks or self.fence)

    @property
    def is_quoted(self) -> bool:
        """In a code fence, in backticks, in a quoted line, or right after a quotation mark."""
        return bool(self.fence or self.ticks or self.line_head == ">" or self.before[-1:] in _QUOTES)

    @property
    def is_mentioned(self) -> bool:
        """Whether an end-of-thinking tag is only mentioned here."""
        if self.fence:
            return not self.is_blank
        return bool(self.ticks) or self.before[-1:] in _QUOTES

    @property
    def begins_line(self) -> bool:
        return self.is_blank or self.follows_call

    @property
    def begins_sentence(self) -> bool:
        """Whether a sentence has just ended, or announces something."""
        return self.solid.rstrip()[-1:] in _SENTENCE_ENDS

    def advance(self, text: str) -> None:
        """Move past text."""
        self.before = text
        is_space = text.isspace()
        if not is_space:
            self.solid = text
        cut = text.rfind("\n")
        if cut >= 0:
            self.is_blank, self.line_head, self.ticks = True, "", 0
            line = text[cut + 1 :].lstrip()
        else:
            line = text.lstrip() if self.is_blank else ""
        if line:
            self.is_blank, self.line_head = False, line[0]
        if not is_space and (self.is_first or self.follows_call):
            self.follows_call = False
            self.is_first = self.is_first and not text.strip(" \t\r\n;,")

    def advance_past_call(self) -> None:
        self.follows_call, self.is_blank = True, False
        self.line_head = self.before = self.solid = ""

    def restart(self) -> None:
        """Start a new part of the answer, as on a new line."""
        self.is_blank, self.line_head, self.before, self.ticks, self.fence = True, "", "", 0, 0
