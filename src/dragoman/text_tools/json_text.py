"""A lenient JSON parser. Valid JSON is read as by `json.loads`; near-JSON is read too, and every repair is listed."""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 100

TRAILING_COMMA = "a comma too many"
MISSING_COMMA = "a comma missing"
PYTHON_LITERAL = "Python's True, False or None"
SINGLE_QUOTES = "single quotes"
NO_NUMBER = "a number that JSON does not have, read as text"
BARE_KEY = "a key without quotes"
RAW_CONTROL = "line breaks inside a string"
UNKNOWN_ESCAPE = "an escape JSON does not have"
MISSING_CLOSERS = "brackets missing at the end"
TOO_MANY_CLOSERS = "brackets too many at the end"
COMMENT = "a comment"

_WORDS: dict[str, tuple[Any, str]] = {
    "true": (True, ""),
    "false": (False, ""),
    "null": (None, ""),
    "True": (True, PYTHON_LITERAL),
    "False": (False, PYTHON_LITERAL),
    "None": (None, PYTHON_LITERAL),
    "NaN": ("NaN", NO_NUMBER),
    "Infinity": ("Infinity", NO_NUMBER),
}
_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_PLAIN = {'"': re.compile(r'[^"\\\x00-\x1f]*'), "'": re.compile(r"[^'\\\x00-\x1f]*")}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_HEX = re.compile(r"[0-9a-fA-F]{4}")


class NotReadable(ValueError):
    """Not even close to JSON."""


def loads(text: str) -> tuple[Any, tuple[str, ...]]:
    """The value and the repairs made. Raises NotReadable."""
    try:
        return json.loads(text, parse_constant=_no_constant), ()
    except (ValueError, RecursionError):
        pass
    reader = _Lenient(text)
    try:
        return reader.whole(), tuple(reader.repairs)
    except (RecursionError, ValueError, OverflowError) as error:
        raise NotReadable(str(error)) from error


def _no_constant(name: str) -> Any:
    raise NotReadable(f"{name} is not JSON")


class _Lenient:
    """One pass, no backtracking."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.repairs: dict[str, None] = {}

    def whole(self) -> Any:
        value = self._value(0)
        self._skip()
        rest = self._text[self._at :].strip()
        if rest and rest.strip("}] \n\t;,"):
            raise NotReadable("something stands behind the value")
        if rest:
            self._note(TOO_MANY_CLOSERS)
        return value

    def _note(self, repair: str) -> None:
        if repair:
            self.repairs[repair] = None

    def _skip(self) -> None:
        match = _SPACE.match(self._text, self._at)
        end = match.end() if match else self._at
        if end > self._at and "/" in self._text[self._at : end]:
            self._note(COMMENT)
        self._at = end

    def _next(self) -> str:
        """The next character that is not white space; empty at the end."""
        self._skip()
        return self._text[self._at : self._at + 1]

    def _value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise NotReadable("nested too deeply")
        character = self._next()
        match character:
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"' | "'":
                return self._string(character)
            case _:
                return self._scalar()

    def _object(self, depth: int) -> dict[str, Any]:
        self._at += 1
        members: dict[str, Any] = {}
        while self._next_item("}", bool(members)):
            key = self._key()
            if self._next() != ":":
                raise NotReadable("a key without a value")
            self._at += 1
            members[key] = self._value(depth + 1)
        return members

    def _array(self, depth: int) -> list[Any]:
        self._at += 1
        items: list[Any] = []
        while self._next_item("]", bool(items)):
            items.append(self._value(depth + 1))
        return items

    def _next_item(self, closer: str, has_any: bool) -> bool:
        """Move past the comma to the next item; False past the end of the list, even if its bracket is missing."""
        character = self._next()
        if has_any and character == ",":
            self._at += 1
            character = self._next()
            while character == ",":
                self._note(TRAILING_COMMA)
                self._at += 1
                character = self._next()
            if character in ("}", "]", ""):
                self._note(TRAILING_COMMA)
        elif has_any and character not in ("}", "]", ""):
            self._note(MISSING_COMMA)
        if character == closer:
            self._at += 1
            return False
        if character == "" or character in "}]":  # the other bracket closes the enclosing value
            self._note(MISSING_CLOSERS)
            return False
        return True

    def _key(self) -> str:
        character = self._next()
        if character in ('"', "'"):
            return self._string(character)
        match = _WORD.match(self._text, self._at)
        if match is None:
            raise NotReadable("a key is missing")
        self._note(BARE_KEY)
        self._at = match.end()
        return match.group()

    def _scalar(self) -> Any:
        if number := _NUMBER.match(self._text, self._at):
            self._at = number.end()
            return _number(number.group())
        if word := _WORD.match(self._text, self._at):
            value, repair = _WORDS.get(word.group(), (_WORDS, ""))
            if value is _WORDS:
                raise NotReadable(f"{word.group()[:40]} is no value")
            self._note(repair)
            self._at = word.end()
            return value
        raise NotReadable("a value is missing")

    def _string(self, quote: str) -> str:
        if quote == "'":
            self._note(SINGLE_QUOTES)
        self._at += 1
        parts: list[str] = []
        while True:
            match = _PLAIN[quote].match(self._text, self._at)
            end = match.end() if match else self._at
            parts.append(self._text[self._at : end])
            self._at = end
            if end >= len(self._text):
                raise NotReadable("a string without an end")
            character = self._text[end]
            self._at += 1
            if character == "\\":
                parts.append(self._escape())
            elif character == quote:
                if quote == '"' or self._ends_single():
                    return "".join(parts)
                parts.append(quote)
            else:
                self._note(RAW_CONTROL)
                parts.append(character)

    def _ends_single(self) -> bool:
        behind = self._text[self._at : self._at + 64].lstrip()[:1]
        return not behind or behind in ",:]}"

    def _escape(self) -> str:
        character = self._text[self._at : self._at + 1]
        self._at += 1
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character == "u" and (match := _HEX.match(self._text, self._at)):
            self._at = match.end()
            unit = int(match.group(), 16)
            if 0xD800 <= unit < 0xDC00 and self._text.startswith("\\u", self._at) and (low := _HEX.match(self._text, self._at + 2)):
                second = int(low.group(), 16)
                if 0xDC00 <= second < 0xE000:
                    self._at = low.end()
                    return chr(0x10000 + ((unit - 0xD800) << 10) + (second - 0xDC00))
            return chr(unit)
        if character == "'":
            self._note(SINGLE_QUOTES)
            return "'"
        self._note(UNKNOWN_ESCAPE)
        return "\\" + character


def _number(text: str) -> int | float:
    if any(mark in text for mark in ".eE"):
        return float(text)
    return int(text)
