"""Finds the end of a JSON value in a stream, without decoding it. Decoding is in `json_text`."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Literal

import msgspec

from dragoman.text_tools.lexer import LexerSource, NotACall, match_literal

MAX_DEPTH = 100
_APOSTROPHE_WINDOW = 64
"""How far to look after a single quote to decide whether it ends its string."""

_ITEMS = re.compile(r'(?:\s*+(?:"(?:[^"\\]++|\\.)*"|[\w.+\-]++)\s*+[,:;])+', re.DOTALL)
"""Whole strings and words with their separators, which `_Reader` would otherwise take one by one."""
_TOKEN = re.compile(r"\s+|[,:;]|[\w.+\-]+")
_IN_STRING = {
    '"': re.compile(r'(?:[^"\\]++|\\.)*', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]++|\\.|'(?=\s{0,32}[^\s,:\]}]))*", re.DOTALL),
}

_State = Literal["done", "more", "odd"]


class Value(msgspec.Struct, frozen=True):
    """The text of a value as written."""

    text: str
    is_open: bool
    """Whether brackets are missing at its end."""
    is_settled: bool
    """Whether it ends with a bracket or a closed string. A number might have had more digits."""


def read_value(source: LexerSource, stops: tuple[str, ...] = ()) -> Generator[None, None, Value]:
    """Take an object or array. It ends at its last bracket, or at one of the stops outside of strings."""
    reader = _Reader(source)
    while True:
        match reader.advance():
            case "done":
                return reader.value(is_open=False)
            case "more":
                if source.closed:
                    source.take(len(source.buffer))
                    return reader.value(is_open=True)
                yield
            case "odd":
                if (yield from match_literal(source, stops)):
                    return reader.value(is_open=True)
                raise NotACall("it is not JSON")


class _Reader:
    """Tracks only brackets and strings."""

    def __init__(self, source: LexerSource) -> None:
        self._source = source
        self._parts: list[str] = []
        self._depth = 0
        self._quote = ""
        self._last = ""
        """The last character that is not white space."""
        self._word: Literal["", "on", "over"] = ""
        """Whether a word, a string or a bracket precedes, so that another needs a comma first."""

    def value(self, *, is_open: bool) -> Value:
        return Value("".join(self._parts), is_open, not self._quote and self._last in ('"', "'", "}", "]"))

    def advance(self) -> _State:
        """Take as much as is available."""
        source = self._source
        text = source.buffer
        while source.position < len(text):
            if not (self._string(text) if self._quote else self._outside(text)):
                return "more" if self._quote else "odd"
            if self._depth == 0 and self._last in ("}", "]"):
                return "done"
        return "more"

    def _outside(self, text: str) -> bool:
        """Take text outside of strings and the character after it; False if that is not JSON."""
        source = self._source
        if not self._between(text):
            return False
        at = source.position
        if at >= len(text):
            return True
        mark = text[at]
        if mark in "{[":
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise NotACall("it is nested too deeply")
        elif mark in "}]":
            self._depth -= 1
        elif mark == '"' or (mark == "'" and self._last in ("{", "[", ",", ":")):
            self._quote = mark
        else:
            return False
        self._parts.append(source.take(at + 1))
        self._last, self._word = mark, "" if mark in "{[" else "over"
        return True

    def _between(self, text: str) -> bool:
        """Take words, numbers and separators; False if two words are side by side, as in prose."""
        source = self._source
        if not self._word and (items := _ITEMS.match(text, source.position)):
            self._parts.append(source.take(items.end()))
            self._last = self._parts[-1][-1]
        while token := _TOKEN.match(text, source.position):
            first = token.group()[0]
            if first in ",:;":
                self._word, self._last = "", first
            elif first.isspace():
                self._word = self._word and "over"
            elif self._word == "over":
                return False
            else:
                self._word, self._last = "on", first
            self._parts.append(source.take(token.end()))
        return True

    def _string(self, text: str) -> bool:
        """Take as much of a string as is available; False if more text is needed."""
        source = self._source
        match = _IN_STRING[self._quote].match(text, source.position)
        at = match.end() if match else source.position
        if at > source.position:
            self._parts.append(source.take(at))
        if at >= len(text):
            return True
        if text[at] == "\\":
            if at + 1 >= len(text):
                return False
            self._parts.append(source.take(at + 2))
            return True
        if self._quote == "'":
            behind = text[at + 1 : at + 1 + _APOSTROPHE_WINDOW]
            following = behind.lstrip()[:1]
            if not following and len(behind) < _APOSTROPHE_WINDOW and not source.closed:
                return False
            if following and following not in ",:]}":  # an apostrophe
                self._parts.append(source.take(at + 1))
                return True
        self._parts.append(source.take(at + 1))
        self._quote, self._last, self._word = "", self._quote, "over"
        return True
