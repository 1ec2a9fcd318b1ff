"""Tool arguments repeated in HTTP headers, for proxies that route by them (`x-mcp-header` in a tool's schema)."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_KEY = "x-mcp-header"
_MOST_DEPTH = 64
_SAFE_INTEGER = 2**53 - 1

Mirrored = dict[tuple[str, ...], str]
"""The name of the header's last part, by the path of its argument."""


class WrongHeader(ValueError):
    """A schema that names headers in a way that is not allowed: its tool must not be offered."""


def mirrored_of(schema: dict[str, Any]) -> Mirrored:
    """Raises WrongHeader."""
    found: Mirrored = {}
    _find(schema, (), found, 0)
    names = [name.lower() for name in found.values()]
    if len(set(names)) < len(names):
        raise WrongHeader("a header is named twice")
    if sum(1 for _ in _all_marks(schema, 0)) > len(found):
        raise WrongHeader("a header stands where an argument cannot be told from the schema alone")
    return found


def headers_for(mirrored: Mirrored, arguments: dict[str, Any]) -> dict[str, str]:
    """For one call. An argument that is missing or null has no header."""
    headers: dict[str, str] = {}
    for path, name in mirrored.items():
        value: Any = arguments
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if (text := _as_text(value)) is not None:
            headers[f"Mcp-Param-{name}"] = header_value(text)
    return headers


def header_value(text: str) -> str:
    """A text as the value of a header: as it is where it is plain ASCII, else encoded."""
    if _PLAIN.fullmatch(text) and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="


def _find(schema: Any, path: tuple[str, ...], found: Mirrored, depth: int) -> None:
    """Through `properties` alone."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or depth > _MOST_DEPTH:
        return
    for name, each in properties.items():
        if not isinstance(each, dict):
            continue
        if _KEY in each:
            found[(*path, name)] = _checked(each)
        _find(each, (*path, name), found, depth + 1)


def _checked(schema: dict[str, Any]) -> str:
    header = schema[_KEY]
    if not isinstance(header, str) or not _TOKEN.fullmatch(header):
        raise WrongHeader(f"{header!r} cannot be the name of a header")
    if schema.get("type") not in {"string", "integer", "boolean"}:
        raise WrongHeader(f"{header!r} is not of a text, an integer or a boolean")
    return header


def _all_marks(schema: Any, depth: int) -> Iterator[str]:
    """At any depth; a property that merely has this name does not count."""
    if depth > _MOST_DEPTH * 2:
        return
    if isinstance(schema, list):
        for each in schema:
            yield from _all_marks(each, depth + 1)
    if not isinstance(schema, dict):
        return
    for name, each in schema.items():
        if name == _KEY:
            yield name
        elif name in {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"} and isinstance(each, dict):
            for inner in each.values():
                yield from _all_marks(inner, depth + 1)
        elif name not in {"default", "const", "enum", "examples"}:
            yield from _all_marks(each, depth + 1)


def _as_text(value: Any) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case int() if abs(value) <= _SAFE_INTEGER:
            return str(value)
        case float() if value.is_integer() and abs(value) <= _SAFE_INTEGER:
            return str(int(value))
        case str():
            return value
        case _:
            return None
