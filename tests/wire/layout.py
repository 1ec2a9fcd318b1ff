"""JSON as lines that a person reads and git compares: a field or a message a line, and a longer value on indented lines beneath.

model, stream: as in single_prompt       what another case sends too, named and not repeated
max_tokens: 1000
messages:                                a list of objects: an item a line, without commas between
  {"role": "user", "content": "Hello."}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import groupby
from typing import Any

WIDTH = 140
BARE = r"[A-Za-z_][A-Za-z0-9_-]*"
STRING = r'"(?:[^"\\]|\\.)*"'
KEY = rf"{BARE}|{STRING}"
"""A field's name: as it is, or a JSON string where it is not a word."""

_LONGEST = 240
_FIELD = re.compile(rf"((?:{KEY})(?:, (?:{KEY}))*):(.*)", re.DOTALL)
_DECODER = json.JSONDecoder()

Json = dict[str, Any]


def one_line(value: object) -> str:
    """JSON in the order it is sent, with escapes for what cannot be seen."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else json.dumps(char)[1:-1]


def abbreviate(value: Any) -> Any:
    """The value with long strings as their beginning, length and digest."""
    match value:
        case str() if len(value) > _LONGEST:
            return f"{value[:60]}… ({len(value)} characters, sha256 {sha256(value.encode()).hexdigest()[:16]})"
        case dict():
            return {key: abbreviate(item) for key, item in value.items()}
        case list():
            return [abbreviate(item) for item in value]
        case _:
            return value


def write_key(key: str) -> str:
    return key if re.fullmatch(BARE, key) else one_line(key)


def read_key(text: str) -> str:
    return json.loads(text) if text.startswith('"') else text


def wrap(value: object, column: int, indent: int) -> str:
    """JSON that begins at a column: on one line where it fits, else on lines that are indented further."""
    flat = one_line(value)
    if column + len(flat) <= WIDTH or not value:
        return flat
    match value:
        case list():
            start = f"\n{' ' * (indent + 2)}"
            return "[" + ",".join(start + wrap(item, indent + 2, indent + 2) for item in value) + "]"
        case dict():
            return _wrap_object(value, column, indent)
        case _:
            return flat


def _wrap_object(value: Json, column: int, indent: int) -> str:
    """As many fields on a line as fit. An object or list that is longer than a line opens where it stands, and ends its line."""
    text, column, is_full = "{", column + 1, False
    for number, (key, item) in enumerate(value.items()):
        name = f"{one_line(key)}: "
        room = WIDTH - len(name) - len(one_line(item))
        comma = ", " if number else ""
        opens_here = number and room < indent + 1 and isinstance(item, dict | list) and column + len(comma + name) < WIDTH
        if column > indent + 1 and (is_full or (column + len(comma) > room and not opens_here)):
            text, column = f"{text}{comma.rstrip()}\n{' ' * (indent + 1)}", indent + 1
        else:
            text, column = text + comma, column + len(comma)
        written = name + wrap(item, column + len(name), indent + 1)
        text, column, is_full = text + written, column + len(written), "\n" in written
    return text + "}"


def write_field(key: str, value: object) -> str:
    name = f"{write_key(key)}:"
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return name + "".join(f"\n  {wrap(item, 2, 2)}" for item in value)
    return f"{name} {wrap(value, len(name) + 1, 2)}"


def write_fields(body: Json, like: Mapping[str, Json]) -> Iterator[str]:
    """The lines of a body. A field that one of the other cases (`like`, by name) has too is named with that case."""

    def find_case(key: str) -> str:
        return next((name for name, other in like.items() if key in other and one_line(other[key]) == one_line(body[key])), "")

    for name, keys in groupby(body, find_case):
        if name:
            yield f"{', '.join(map(write_key, keys))}: as in {name}"
        else:
            yield from (write_field(key, body[key]) for key in keys)


def read_fields(text: str, like: Mapping[str, Json]) -> Json:
    body: Json = {}
    for field in join_lines(text):
        found = _FIELD.fullmatch(field)
        assert found, f"not a field: {field}"
        keys, value = [read_key(each) for each in re.findall(KEY, found[1])], found[2]
        if value.startswith(" as in "):
            body |= {key: like[value.removeprefix(" as in ")][key] for key in keys}
        elif value.startswith("\n"):
            body[keys[0]] = list(_read_items(value))
        else:
            body[keys[0]] = json.loads(value)
    return body


def join_lines(text: str) -> list[str]:
    """Lines, each with the indented ones that continue it."""
    return re.split(r"\n(?! )", text) if text else []


def _read_items(text: str) -> Iterator[Any]:
    at = 0
    while at < len(text):
        at = next((place for place in range(at, len(text)) if not text[place].isspace()), len(text))
        item, at = _DECODER.raw_decode(text, at)
        yield item
