"""JSON as people write it in configuration files: with comments and trailing commas, and the line of each key and item."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from dragoman.base import jsontext

Path = tuple[str, ...]
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"?|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING = re.compile(r'"(?:[^"\\]|\\.)*"?|,(?=\s*[}\]])', re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\],:\n]', re.DOTALL)
_PLACE = re.compile(r" \(byte (\d+)\)")


class WrongJson(ValueError):
    """The text is not JSON, and since which line."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def decode(text: str) -> Any:
    """The value, comments and trailing commas left out. Raises WrongJson."""
    try:
        return jsontext.decode(text)
    except jsontext.NotJSON:
        pass
    plain = _TRAILING.sub(lambda each: " " if each[0] == "," else each[0], _COMMENT.sub(_blank, text))
    try:
        return jsontext.decode(plain)
    except jsontext.NotJSON as error:
        said = str(error)
        place = _PLACE.search(said)
        at = len(plain.encode()[: int(place[1])].decode("utf-8", "ignore")) if place else len(plain.rstrip())
        raise WrongJson(_PLACE.sub("", said), plain.count("\n", 0, at) + 1) from error


def lines_of(text: str, paths: Collection[Path]) -> dict[Path, int]:
    """The line of each of these, counted from 1; what is not there is missing. A key is found by the keys that lead to it; an object or a
    list inside a list by its number, as text."""
    wanted = set(paths)
    # Of two with the same name the last one holds, as it does for every reader.
    return {path: line for path, line in _places(_COMMENT.sub(_blank, text)) if path in wanted} if wanted else {}


def _places(text: str) -> Iterator[tuple[Path, int]]:
    """Every key of an object, and every object and list in a list, with its line."""
    line, path = 1, list[str]()
    is_object: list[bool] = []
    last: tuple[str, int] | None = None
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "\n":
                line += 1
            case "{" | "[" as opened:
                if is_object and not is_object[-1]:
                    yield tuple(path), line
                is_object.append(opened == "{")
                path.append("" if opened == "{" else "0")
            case "}" | "]":
                if is_object:
                    is_object.pop()
                    path.pop()
                last = None
            case ",":
                if is_object and not is_object[-1]:
                    path[-1] = str(int(path[-1]) + 1)
                last = None
            case ":":
                if last is not None and is_object and is_object[-1]:
                    path[-1] = last[0]
                    yield tuple(path), last[1]
                last = None
            case string:
                last = _name(string), line
                line += string.count("\n")


def _name(string: str) -> str:
    try:
        name = jsontext.decode(string)
    except jsontext.NotJSON:
        return string.strip('"')
    return name if isinstance(name, str) else ""


def _blank(each: re.Match[str]) -> str:
    """A comment as blanks, so that lines stay where they are."""
    return each[0] if each[0].startswith('"') else re.sub(r"[^\n]", " ", each[0])
