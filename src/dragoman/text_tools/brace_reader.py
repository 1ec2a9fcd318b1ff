"""Gemma's format: `call:name{key:value,…}`, with unquoted keys and special tokens around strings."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

import msgspec

from dragoman.text_tools import json_text
from dragoman.text_tools.lexer import LexerSource, NotACall, match_literal

MAX_DEPTH = 60
MISSING_CLOSERS = json_text.MISSING_CLOSERS
DELIMITERS = ('<|"|>', "<escape>")

_PLAIN = re.compile(r'[^{}\[\]"<]*')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BARE = re.compile(r"[^,{}\[\]]*")
_KEY = re.compile(r"[^:{}\[\],<\"]*")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")


class Braces(msgspec.Struct, frozen=True):
    args: dict[str, Any]
    is_open: bool
    repairs: tuple[str, ...] = ()


def read_braces(source: LexerSource, stops: tuple[str, ...]) -> Generator[None, None, Braces]:
    """Take a braced list of arguments, up to its last brace or to what ends the call."""
    parts: list[str] = []
    depth, delimiter = 0, ""
    while True:
        text, at = source.buffer, source.position
        if at >= len(text):
            if source.closed:
                return _decode("".join(parts), is_open=True)
            yield
            continue
        if delimiter:
            end = text.find(delimiter, at)
            if end >= 0:
                parts.append(source.take(end + len(delimiter)))
                delimiter = ""
            else:
                safe = max(at, len(text) - len(delimiter) + 1) if not source.closed else len(text)
                if safe > at:
                    parts.append(source.take(safe))
                if source.closed:
                    raise NotACall("it breaks off")
                yield
            continue
        match = _PLAIN.match(text, at)
        if match is not None and match.end() > at:
            parts.append(source.take(match.end()))
            continue
        mark = text[at]
        if mark == "<":
            found = yield from match_literal(source, (*DELIMITERS, *stops))
            if found in DELIMITERS:
                delimiter = found
                parts.append(source.take(source.position + len(found)))
            elif found:
                return _decode("".join(parts), is_open=True)
            else:
                parts.append(source.take(source.position + 1))
            continue
        if mark == '"':
            yield from _json_string(source, parts)
            continue
        depth += 1 if mark in "{[" else -1
        if depth > MAX_DEPTH:
            raise NotACall("it is nested too deeply")
        parts.append(source.take(at + 1))
        if depth <= 0:
            return _decode("".join(parts), is_open=False)


_IN_JSON_STRING = re.compile(r'[^"\\]*')


def _json_string(source: LexerSource, parts: list[str]) -> Generator[None, None, None]:
    parts.append(source.take(source.position + 1))
    while True:
        match = _IN_JSON_STRING.match(source.buffer, source.position)
        if match is not None and match.end() > source.position:
            parts.append(source.take(match.end()))
        rest = source.buffer[source.position : source.position + 2]
        if rest[:1] == '"':
            parts.append(source.take(source.position + 1))
            return
        if len(rest) == 2:
            parts.append(source.take(source.position + 2))
        elif source.closed:
            raise NotACall("it breaks off")
        else:
            yield


def _decode(text: str, *, is_open: bool) -> Braces:
    reader = _Decoder(text)
    value = reader.value(0)
    if not isinstance(value, dict):
        raise NotACall("its arguments are no object")
    return Braces(value, is_open, (MISSING_CLOSERS,) if reader.is_short else ())


class _Decoder:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.is_short = False

    def value(self, depth: int) -> Any:
        self._space()
        text, at = self._text, self._at
        for delimiter in DELIMITERS:
            if text.startswith(delimiter, at):
                return self._delimited(delimiter)
        match text[at : at + 1]:
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"' if string := _STRING.match(text, at):
                self._at = string.end()
                return _json_or(string.group())
            case _:
                bare = _BARE.match(text, at)
                self._at = bare.end() if bare else at
                return _scalar(text[at : self._at].strip())

    def _space(self) -> None:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1

    def _delimited(self, delimiter: str) -> str:
        start = self._at + len(delimiter)
        end = self._text.find(delimiter, start)
        if end < 0:
            raise NotACall("it breaks off")
        self._at = end + len(delimiter)
        return self._text[start:end]

    def _next_item(self, closer: str) -> bool:
        while True:
            self._space()
            character = self._text[self._at : self._at + 1]
            if character == ",":
                self._at += 1
                continue
            if character == closer:
                self._at += 1
                return False
            if not character:
                self.is_short = True
                return False
            return True

    def _object(self, depth: int) -> dict[str, Any]:
        self._at += 1
        members: dict[str, Any] = {}
        while self._next_item("}"):
            key = self._key()
            if self._text[self._at : self._at + 1] != ":":
                raise NotACall("a key without a value")
            self._at += 1
            members[key] = self.value(depth + 1)
        return members

    def _key(self) -> str:
        text = self._text
        for delimiter in DELIMITERS:
            if text.startswith(delimiter, self._at):
                key = self._delimited(delimiter)
                self._space()
                return key
        if string := _STRING.match(text, self._at):
            self._at = string.end()
            self._space()
            return str(_json_or(string.group()))
        match = _KEY.match(text, self._at)
        start = self._at
        self._at = match.end() if match else start
        return text[start : self._at].strip()

    def _array(self, depth: int) -> list[Any]:
        self._at += 1
        items: list[Any] = []
        while self._next_item("]"):
            before = self._at
            items.append(self.value(depth + 1))
            if self._at == before:
                raise NotACall("its arguments are no values")
        return items


def _json_or(text: str) -> Any:
    try:
        return json_text.loads(text)[0]
    except json_text.NotReadable:
        return text[1:-1]


def _scalar(text: str) -> Any:
    match text:
        case "true" | "True":
            return True
        case "false" | "False":
            return False
        case "null" | "None":
            return None
        case _ if (number := _NUMBER.fullmatch(text)) and len(text) < 400:
            return float(text) if number[1] or number[2] else int(text)
        case _:
            return text
