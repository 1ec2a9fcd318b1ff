"""Would OpenAI's strict mode accept this JSON schema? Written from the service's error messages, not from our way to avoid them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.testing.mock.violation import Json

_REFUSED = (
    *("oneOf", "allOf", "not", "if", "then", "else", "prefixItems", "patternProperties", "propertyNames", "minProperties"),
    *("maxProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "minContains", "maxContains", "uniqueItems"),
    *("dependentRequired", "dependentSchemas", "dependencies"),
)
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
_MAX_DEPTH = 10
_MAX_PROPERTIES = 5_000
_MAX_ENUM_VALUES = 1_000


def strict_flaw(schema: Json) -> str:
    """What strict mode says against a schema; empty if nothing."""
    for word in ("oneOf", "anyOf", "allOf", "enum", "not"):
        if word in schema:
            return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
    properties = enum_values = 0
    for node, context, depth in _nodes(schema, (), 0):
        if wording := _node_flaw(node):
            return f"In context={context}, {wording}"
        if depth > _MAX_DEPTH:
            return f"{depth} levels of nesting exceeds limit of {_MAX_DEPTH}."
        properties += len(_mapping(node.get("properties")))
        enum_values += len(_sequence(node.get("enum")))
    if properties > _MAX_PROPERTIES:
        return f"{properties} properties exceeds limit of {_MAX_PROPERTIES}."
    return f"{enum_values} enum values exceeds limit of {_MAX_ENUM_VALUES}." if enum_values > _MAX_ENUM_VALUES else ""


def _node_flaw(node: Any) -> str:
    if not isinstance(node, dict):
        return f"{node!r} is not of type 'object'."
    if refused := next((word for word in _REFUSED if word in node), ""):
        return f"'{refused}' is not permitted."
    if "$ref" in node:
        beside = sorted(node.keys() - {"$ref", "$defs", "definitions"})
        return f"$ref cannot have keywords {{{', '.join(map(repr, beside))}}}." if beside else ""
    if not node.keys() & {"type", "anyOf", "enum", "const"}:
        return "schema must have a 'type' key."
    if "format" in node and node["format"] not in _FORMATS:
        return f"'{node['format']}' is not a valid format."
    if node.get("type") == "array" and "items" not in node:
        return "array schema missing items."
    return _object_flaw(node) if node.get("type") == "object" or "properties" in node else ""


def _object_flaw(node: Json) -> str:
    if node.get("additionalProperties") is not False:
        return "'additionalProperties' is required to be supplied and to be false."
    properties, required = _mapping(node.get("properties")), _sequence(node.get("required"))
    every = "'required' is required to be supplied and to be an array including every key in properties."
    if missing := [name for name in properties if name not in required]:
        return f"{every} Missing '{missing[0]}'."
    extra = [name for name in required if name not in properties]
    return f"{every} Extra required key '{extra[0]}' supplied." if extra else ""


def _nodes(node: Any, context: tuple[str, ...], depth: int) -> Iterator[tuple[Any, tuple[str, ...], int]]:
    """Every schema within, where it stands, and in how many objects. Nothing is looked at within one that is refused anyway."""
    if not isinstance(node, dict):
        yield node, context, depth
        return
    depth += "properties" in node
    yield node, context, depth
    for group in ("properties", "$defs", "definitions"):
        for name, each in _mapping(node.get(group)).items():
            yield from _nodes(each, (*context, group, name), depth if group == "properties" else 0)
    for index, each in enumerate(_sequence(node.get("anyOf"))):
        yield from _nodes(each, (*context, "anyOf", str(index)), depth)
    if "items" in node:
        yield from _nodes(node["items"], (*context, "items"), depth)


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
