"""JSON as text and bytes: compact, UTF-8, valid Unicode, and kept as it came where it must go back unchanged."""

from __future__ import annotations

import re
from typing import Any

import msgspec

MAX_DEPTH = 64
"""Deepest nesting we pass on. Services refuse at about 100, and parsers of every kind recurse."""

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


class NotJSON(ValueError):
    """The bytes are not JSON."""


def valid_unicode(text: str) -> str:
    """Join surrogate pairs, replace lone halves by U+FFFD. Valid text comes back as the same object."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def encode(value: object) -> bytes:
    """Compact UTF-8. Lone surrogates never get out, whoever made the value."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_cleaned(msgspec.to_builtins(value)))


def dumps(value: object) -> str:
    return encode(value).decode()


def decode(data: bytes | str) -> Any:
    """Parse JSON as services write it. Half a surrogate pair is grammatical JSON and is let through as such."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        text = data if isinstance(data, str) else _utf8(data)
        if not _SURROGATE_ESCAPE.search(text):
            raise NotJSON(str(error)) from error
    import json  # only for text that msgspec will not take

    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise NotJSON(str(error)) from error


def decode_object(text: str) -> dict[str, Any] | None:
    """The object a JSON text stands for, or None where it is not JSON or not an object."""
    try:
        value = decode(text)
        return _cleaned(value) if isinstance(value, dict) else None
    except (NotJSON, RecursionError):
        return None


def clean(text: str) -> str:
    """The same JSON text with lone surrogate escapes replaced. Anything else comes back untouched, valid or not."""
    text = valid_unicode(text)
    if not _SURROGATE_ESCAPE.search(text):
        return text
    try:
        return dumps(_cleaned(decode(text)))
    except (NotJSON, RecursionError):
        return text


def is_too_deep(data: bytes) -> bool:
    """Whether JSON is nested beyond MAX_DEPTH, without parsing and so without recursing."""
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return False
    return depth(data) > MAX_DEPTH


def depth(data: bytes) -> int:
    """Nesting depth, without parsing and so without recursing."""
    deepest = level = 0
    for match in _STRUCTURE.finditer(data):
        first = data[match.start()]
        if first in b"[{":
            level += 1
            deepest = max(deepest, level)
        elif first in b"]}":
            level -= 1
    return deepest


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return valid_unicode(value)
        case dict():
            return {valid_unicode(str(key)): _cleaned(item) for key, item in value.items()}
        case list() | tuple():
            return [_cleaned(item) for item in value]
        case _:
            return value


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotJSON(str(error)) from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
