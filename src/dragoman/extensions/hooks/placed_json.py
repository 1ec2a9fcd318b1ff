"""JSON as people write it in settings, with the line of each object: comments and trailing commas are allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dragoman.base import jsontext
from dragoman.base.words import say

MAX_DEPTH = 50
_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)|(?P<value>"(?:[^"\\\x00-\x1f]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)|(?P<sign>[{}\[\]:,])""",
    re.DOTALL,
)


class BadJson(Exception):
    """The text is not JSON; says in which line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


class Placed(dict[str, Any]):
    """An object of JSON that knows its line."""

    line: int = 0


def read_placed(text: str) -> Any:
    """The value, with every object as a Placed. Raises BadJson."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._line = 1
        self._next()

    def read(self) -> Any:
        value = self._value(0)
        if self._token:
            raise self._unexpected()
        return value

    def _split(self) -> Iterator[tuple[str, str]]:
        at = 0
        while at < len(self._text):
            found = _TOKEN.match(self._text, at)
            if found is None:
                yield "odd", self._text[at : at + 20]
                return
            if found.lastgroup == "blank":
                self._line += found.group().count("\n")
            else:
                yield found.lastgroup or "", found.group()
            at = found.end()

    def _next(self) -> None:
        self._kind, self._token = next(self._tokens, ("", ""))

    def _value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise BadJson(self._line, str(say("hooks.json_deep")))
        if self._token == "{":
            return self._object(depth)
        if self._token == "[":
            return self._array(depth)
        if self._kind != "value":
            raise self._unexpected()
        try:
            value = jsontext.decode(self._token)
        except jsontext.NotJSON as error:
            raise self._unexpected() from error
        self._next()
        return value

    def _object(self, depth: int) -> Placed:
        made = Placed()
        made.line = self._line
        self._next()
        while self._token != "}":
            if self._kind != "value" or not self._token.startswith('"'):
                raise self._unexpected()
            name = self._value(depth)
            self._take(":")
            made[name] = self._value(depth + 1)
            if self._token != "}":
                self._take(",")
        self._next()
        return made

    def _array(self, depth: int) -> list[Any]:
        made: list[Any] = []
        self._next()
        while self._token != "]":
            made.append(self._value(depth + 1))
            if self._token != "]":
                self._take(",")
        self._next()
        return made

    def _take(self, sign: str) -> None:
        if self._token != sign:
            raise self._unexpected()
        self._next()

    def _unexpected(self) -> BadJson:
        token = self._token.splitlines()[0] if self._token.strip() else ""
        return BadJson(self._line, str(say("hooks.json_unexpected", token=token[:30]) if token else say("hooks.json_cut")))
