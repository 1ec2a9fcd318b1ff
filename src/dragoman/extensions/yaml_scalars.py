"""Texts in quotes, lists in brackets and folded lines, as YAML writes them. Every value is text, a list or a mapping."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

Value: TypeAlias = "str | list[Value] | dict[str, Value]"

_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_HEX = {"x": 2, "u": 4, "U": 8}
_COMMENT = re.compile(r"\s+#.*|\s*", re.DOTALL)


class NotFlow(ValueError):
    """The text begins like a list or mapping in brackets, but is neither."""


def fold(lines: Sequence[str], *, literal: bool = False) -> str:
    """Lines joined by blanks; an empty line is a line break. `literal`: in a `>` block, where deeper lines keep their breaks."""
    text, breaks, previous_deep = "", 0, False
    for number, line in enumerate(lines):
        if not line:
            breaks += 1
            continue
        deep = literal and line[0] in " \t"
        if number and text == "" and breaks == number:
            text = "\n" * breaks  # empty lines before the first
        elif number:
            kept = previous_deep or deep
            text += "\n" * (breaks + 1) if kept else "\n" * breaks or " "
        text += line
        breaks, previous_deep = 0, deep
    return text + "\n" * breaks


def read_quoted(lines: Sequence[str]) -> str | None:
    """A text in quotes that ends with its last line; None if it does not, or if something other than a comment follows it."""
    text = "\n".join(lines)
    found = quoted_at(text, 0)
    if found is None:
        return None
    value, end = found
    return value if _COMMENT.fullmatch(text, end) else None


def quoted_at(text: str, start: int) -> tuple[str, int] | None:
    """The value of the quoted text that begins there, and where it ends. None: it does not close, or has an escape nobody knows."""
    quote = text[start]
    parts, at = list[str](), start + 1
    while at < len(text):
        char = text[at]
        if char == quote == "'":
            if text[at + 1 : at + 2] != "'":
                return "".join(parts), at + 1
            parts.append("'")
            at += 2
        elif char == quote:
            return "".join(parts), at + 1
        elif char == "\\" and quote == '"':
            if (escaped := _escape_at(text, at)) is None:
                return None
            parts.append(escaped[0])
            at = escaped[1]
        elif char == "\n" or (char in " \t" and _blank_before_break(text, at)):
            joined, at = _break_at(text, at)
            parts.append(joined)
        else:
            parts.append(char)
            at += 1
    return None


def _blank_before_break(text: str, at: int) -> bool:
    while at < len(text) and text[at] in " \t":
        at += 1
    return at < len(text) and text[at] == "\n"


def _break_at(text: str, at: int) -> tuple[str, int]:
    """What a line break inside quotes is, with the blanks around it: a blank, or as many breaks as there are empty lines."""
    breaks = 0
    while at < len(text) and text[at] in " \t\n":
        breaks += text[at] == "\n"
        at += 1
    return "\n" * (breaks - 1) or " ", at


def _escape_at(text: str, at: int) -> tuple[str, int] | None:
    char = text[at + 1 : at + 2]
    if char == "\n":  # the line goes on
        at += 2
        breaks = 0
        while at < len(text) and text[at] in " \t\n":
            breaks += text[at] == "\n"
            at += 1
        return "\n" * breaks, at
    if char in _ESCAPES:
        return _ESCAPES[char], at + 2
    digits = text[at + 2 : at + 2 + _HEX.get(char, 0)]
    if char in _HEX and re.fullmatch(rf"[0-9a-fA-F]{{{_HEX[char]}}}", digits) and int(digits, 16) <= 0x10FFFF:
        return chr(int(digits, 16)), at + 2 + _HEX[char]
    return None


def read_flow(text: str, max_depth: int) -> Value:
    """A list or a mapping in brackets that is the whole text. Raises NotFlow."""
    value, end = _Flow(text).read(0, max_depth)
    if not _COMMENT.fullmatch(text, end):
        raise NotFlow
    return value


class _Flow:
    def __init__(self, text: str):
        self._text = text

    def read(self, at: int, depth: int) -> tuple[Value, int]:
        if depth == 0:
            raise NotFlow
        char = self._char(at)
        if char == "[":
            return self._read_list(at + 1, depth)
        if char == "{":
            return self._read_mapping(at + 1, depth)
        return self._read_text(at)

    def _char(self, at: int) -> str:
        return self._text[at : at + 1]

    def _skip(self, at: int) -> int:
        while True:
            while self._char(at).isspace():
                at += 1
            if self._char(at) != "#" or not self._text[at - 1].isspace():
                return at
            end = self._text.find("\n", at)
            at = len(self._text) if end < 0 else end

    def _read_list(self, at: int, depth: int) -> tuple[Value, int]:
        values: list[Value] = []
        while True:
            at = self._skip(at)
            if self._char(at) == "]":
                return values, at + 1
            value, at = self.read(at, depth - 1)
            at = self._skip(at)
            if self._char(at) == ":" and isinstance(value, str):  # `[a: b]` is a list of one mapping
                inner, at = self._read_after_colon(at, depth)
                value, at = {value: inner}, self._skip(at)
            values.append(value)
            at = self._next(at, "]")

    def _read_mapping(self, at: int, depth: int) -> tuple[Value, int]:
        values: dict[str, Value] = {}
        while True:
            at = self._skip(at)
            if self._char(at) == "}":
                return values, at + 1
            key, at = self._read_text(at)
            at = self._skip(at)
            value: Value = ""
            if self._char(at) == ":":
                value, at = self._read_after_colon(at, depth)
            values[key] = value
            at = self._next(self._skip(at), "}")

    def _read_after_colon(self, at: int, depth: int) -> tuple[Value, int]:
        at = self._skip(at + 1)
        return ("", at) if self._char(at) in (",", "]", "}", "") else self.read(at, depth - 1)

    def _next(self, at: int, closing: str) -> int:
        if self._char(at) == ",":
            return at + 1
        if self._char(at) != closing:
            raise NotFlow
        return at

    def _read_text(self, at: int) -> tuple[str, int]:
        if self._char(at) in ("'", '"') and self._char(at):
            if (found := quoted_at(self._text, at)) is None:
                raise NotFlow
            return found
        start = at
        while char := self._char(at):
            if char in ",[]{}" or (char == ":" and self._char(at + 1) in (" ", "\n", "\t", ",", "[", "]", "{", "}", "")):
                break
            if char == "#" and self._text[at - 1].isspace():
                break
            at += 1
        text = self._text[start:at].strip()
        if not text:
            raise NotFlow
        return fold([line.strip() for line in text.split("\n")]), at
