"""Where in the text we are: what a reader must know to tell a call from the mention of one."""

from __future__ import annotations

_SENTENCE_ENDS = frozenset(".:!?…。：！？")
_QUOTES = frozenset("\"'“”‘’«»「『")


class Place:
    """Follows text as it goes by."""

    __slots__ = ("before", "fence", "follows_call", "is_blank", "is_first", "line_head", "solid", "ticks")

    def __init__(self) -> None:
        self.is_first = True
        """Whether nothing but blanks, thinking and calls has been seen."""
        self.is_blank = True
        """Whether the line has nothing but white space so far."""
        self.line_head = ""
        """The line's first character that is no white space."""
        self.before = ""
        """Some text that ends with the last character."""
        self.solid = ""
        """Some text that ends, blanks aside, with the last character that is no white space."""
        self.ticks = 0
        """How many backticks opened the code within the line; 0 outside of it."""
        self.fence = 0
        """How many backticks opened the code fence; 0 outside of one."""
        self.follows_call = False
        """Whether only white space stands between the last call and here."""

    @property
    def is_plain(self) -> bool:
        """Whether text may go by without a closer look."""
        return not (self.is_first or self.follows_call or self.ticks or self.fence)

    @property
    def is_quoted(self) -> bool:
        """In a code fence, in backticks, in a quoted line, or right behind a quotation mark."""
        return bool(self.fence or self.ticks or self.line_head == ">" or self.before[-1:] in _QUOTES)

    @property
    def is_mentioned(self) -> bool:
        """Whether an end of thinking is only spoken of here."""
        if self.fence:
            return not self.is_blank
        return bool(self.ticks) or self.before[-1:] in _QUOTES

    @property
    def begins_line(self) -> bool:
        return self.is_blank or self.follows_call

    @property
    def begins_sentence(self) -> bool:
        """Whether what stands before is over, or announces something."""
        return self.solid.rstrip()[-1:] in _SENTENCE_ENDS

    def passed(self, text: str) -> None:
        """Text went by."""
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

    def passed_call(self) -> None:
        self.follows_call, self.is_blank = True, False
        self.line_head = self.before = self.solid = ""

    def begins_anew(self) -> None:
        """A new part of the answer begins, as on a new line."""
        self.is_blank, self.line_head, self.before, self.ticks, self.fence = True, "", "", 0, 0
