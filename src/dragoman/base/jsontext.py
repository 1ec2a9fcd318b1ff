"""JSON as text and bytes: compact, UTF-8, valid Unicode, and unchanged where it must be sent back unchanged."""

from __future__ import annotations

import re
from typing import Any

import msgspec

MAX_DEPTH = 64
"""Deepest nesting we send. Services reject about 100 levels, and all kinds of parsers recurse."""

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
    """Compact UTF-8. Lone surrogates are always replaced."""
    try:
        return msgspec.json.encode(value, enc_hook=_plain_text)
    except UnicodeEncodeError:
        return msgspec.json.encode(_clean_value(msgspec.to_builtins(value, enc_hook=_plain_text)))


def _plain_text(value: object) -> str:
    """A plain str: msgspec does not encode subclasses of str, such as Sentence."""
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


def dumps(value: object) -> str:
    return encode(value).decode()


def decode(data: bytes | str) -> Any:
    """Parse JSON as services write it. Half a surrogate pair is grammatical JSON and is allowed."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        text = data if isinstance(data, str) else _utf8(data)
        if not _SURROGATE_ESCAPE.search(text):
            raise NotJSON(str(error)) from error
    import json  # only for text that msgspec rejects

    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise NotJSON(str(error)) from error


def decode_object(text: str) -> dict[str, Any] | None:
    """The object in a JSON text, or None if it is not JSON or not an object."""
    try:
        value = decode(text)
        return _clean_value(value) if isinstance(value, dict) else None
    except (NotJSON, RecursionError):
        return None


def clean(text: str) -> str:
    """The same JSON text with lone surrogate escapes replaced. Other text is returned unchanged, valid or not."""
    text = valid_unicode(text)
    if not _SURROGATE_ESCAPE.search(text):
        return text
    try:
        return dumps(_clean_value(decode(text)))
    except (NotJSON, RecursionError):
        return text


def is_too_deep(data: bytes) -> bool:
    """Whether JSON is nested deeper than MAX_DEPTH. Does not parse, so it cannot recurse."""
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return False
    return depth(data) > MAX_DEPTH


def depth(data: bytes) -> int:
    """The nesting depth. Does not parse, so it cannot recurse."""
    deepest = level = 0
    for match in _STRUCTURE.finditer(data):
        first = data[match.start()]
        if first in b"[{":
            level += 1
            deepest = max(deepest, level)
        elif first in b"]}":
            level -= 1
    return deepest


def _clean_value(value: Any) -> Any:
    match value:
        case str():
            return valid_unicode(value)
        case dict():
            return {valid_unicode(str(key)): _clean_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_clean_value(item) for item in value]
        case _:
            return value


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotJSON(str(error)) from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
