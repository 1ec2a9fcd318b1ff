"""JSON Schemas for OpenAI's strict mode. It understands a part of the language only, and refuses a request whose schema says more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dragoman.base import jsontext

Schema = dict[str, Any]

_KEPT = frozenset(
    ("type", "enum", "const", "title", "description", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
) | {"minItems", "maxItems", "minLength", "maxLength"}
_NOTES = frozenset(("default", "examples", "example", "$schema", "$id", "$comment", "discriminator", "deprecated", "readOnly", "writeOnly"))
"""Words that no value is checked by: strict mode refuses them, and nothing is lost without them."""
_FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"))
_REFERENCE = re.compile(r"#(/(\$defs|definitions)/[^/]+)?")
_LOOKAROUND = re.compile(r"(?<!\\)(?:\\\\)*\(\?<?[=!]")
_UNIONS = ("anyOf", "oneOf", "allOf")

_MAX_DEPTH = 10
_MAX_PROPERTIES = 5_000
_MAX_NAME_CHARS = 120_000
_MAX_ENUM_VALUES = 1_000
_LARGE_ENUM = 250
_MAX_LARGE_ENUM_CHARS = 15_000


class _NotStrict(Exception):
    """The schema says something that strict mode has no words for."""


def object_root(schema: Schema) -> Schema:
    """The schema with its root spelled out. Recursive models refer to their own definition there, and only an object is accepted."""
    target = _resolve(schema, schema)
    if target is schema:
        return schema
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def strict_schema(schema: Schema) -> Schema | None:
    """The schema in the words of strict mode, if they can say it without changing its meaning, else None.

    An object that does not mention other properties is closed: nobody wants properties that he has not asked for.
    """
    root = object_root(schema)
    try:
        strict = _node(root, root)
    except (_NotStrict, AttributeError, TypeError):  # the latter: no schema at all, which the service says better than we could
        return None
    return strict if strict.get("type") == "object" and "anyOf" not in strict and _fits_limits(strict) else None


def _node(schema: Any, root: Schema) -> Schema:
    if not isinstance(schema, dict) or sum(key in schema for key in _UNIONS) > 1:
        raise _NotStrict
    node: Schema = {}
    for key, value in schema.items():
        node |= _word(key, value, schema, root)
    if "$ref" in node and len(node) > 1:  # nothing may stand beside a reference, but anything beside anyOf
        node["anyOf"] = [{"$ref": node.pop("$ref")}, *_refuse(node.get("anyOf"))]
    if not node.keys() & {"type", "$ref", "anyOf"}:
        node["type"] = _types_of_values(schema)
    _close_object(node, schema)
    if "array" in _types(schema) and "items" not in node:
        raise _NotStrict
    return node


def _word(key: str, value: Any, schema: Schema, root: Schema) -> Schema:
    match key:
        case "properties" | "$defs" | "definitions":
            return {key: {name: _node(each, root) for name, each in value.items()}}
        case "items":
            return {key: _node(value, root)}
        case "anyOf" if value:
            return {key: [_node(each, root) for each in value]}
        case "oneOf" if _are_exclusive(value, root):  # then it says the same as anyOf
            return {"anyOf": [_node(each, root) for each in value]}
        case "allOf" if len(value) == 1:
            return {"anyOf": [_node(value[0], root)]}
        case "$ref" if _REFERENCE.fullmatch(value):
            return {key: value}
        case "pattern" if not _LOOKAROUND.search(value):
            return {key: value}
        case "format":
            return {key: value} if value in _FORMATS else {"description": f"{schema.get('description', '')} (format: {value})".strip()}
        case "description" if schema.get("format", "date") not in _FORMATS:
            return {}  # said with the format
        case "required" | "additionalProperties":
            return {}  # see _close_object
        case _ if key in _KEPT:
            return {key: value}
        case _ if key in _NOTES:
            return {}
        case _:
            raise _NotStrict


def _close_object(node: Schema, schema: Schema) -> None:
    if "object" not in _types(schema):
        if schema.keys() & {"properties", "required", "additionalProperties"}:
            raise _NotStrict
        return
    properties, other = node.get("properties"), schema.get("additionalProperties")
    required = schema.get("required", [])
    if other not in (None, False) or (properties is None and other is None):  # a map, whose keys strict mode cannot leave open
        raise _NotStrict
    if set(required) != set(properties or ()):
        raise _NotStrict
    node |= {"properties": properties or {}, "required": required, "additionalProperties": False}


def _refuse(beside: object) -> tuple[()]:
    if beside is not None:
        raise _NotStrict
    return ()


def _resolve(schema: Any, root: Schema) -> Any:
    """What a reference refers to; anything else is what it is."""
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    if not isinstance(reference, str) or reference == "#" or not _REFERENCE.fullmatch(reference):
        return schema
    _, group, name = reference.split("/")
    found = root.get(group, {}).get(name.replace("~1", "/").replace("~0", "~"))
    return found if isinstance(found, dict) else schema


def _are_exclusive(branches: Any, root: Schema) -> bool:
    """Whether no value fits two branches: their types differ, or they are objects told apart by a constant."""
    resolved = [_resolve(branch, root) for branch in branches]
    if not all(isinstance(branch, dict) for branch in resolved):
        return False
    if _are_disjoint([{"number" if kind == "integer" else kind for kind in _types(branch)} for branch in resolved]):
        return True
    shared = set.intersection(*(set(branch.get("required", ())) for branch in resolved))
    return any(_are_disjoint([_constants(branch.get("properties", {}).get(name)) for branch in resolved]) for name in shared)


def _are_disjoint(groups: list[set[str]]) -> bool:
    return all(groups) and sum(map(len, groups)) == len(set.union(*groups))


def _constants(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    values = [schema["const"]] if "const" in schema else schema.get("enum", [])
    return {jsontext.dumps(value) for value in values}


def _types(schema: Schema) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _types_of_values(schema: Schema) -> str | list[str]:
    values = [schema["const"]] if "const" in schema else schema.get("enum", [])
    kinds = list(dict.fromkeys(_type_of(value) for value in values))
    if not kinds:
        raise _NotStrict  # anything at all
    return kinds[0] if len(kinds) == 1 else kinds


def _type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            raise _NotStrict


# --- how large it may be: the schema and each of its definitions for themselves -----------------------------------------------


def _fits_limits(schema: Schema) -> bool:
    definitions = {**schema.get("$defs", {}), **schema.get("definitions", {})}
    nodes = list(_nodes(schema, 0))
    names = [name for node, _ in nodes for name in node.get("properties", ())] + list(definitions)
    enums = [[value for value in node["enum"] if isinstance(value, str)] for node, _ in nodes if "enum" in node]
    constants = [node["const"] for node, _ in nodes if isinstance(node.get("const"), str)]
    return (
        max(depth for _, depth in nodes) <= _MAX_DEPTH
        and len(names) - len(definitions) <= _MAX_PROPERTIES
        and sum(map(len, [*names, *constants, *(value for values in enums for value in values)])) <= _MAX_NAME_CHARS
        and sum(len(node["enum"]) for node, _ in nodes if "enum" in node) <= _MAX_ENUM_VALUES
        and all(sum(map(len, values)) <= _MAX_LARGE_ENUM_CHARS for values in enums if len(values) > _LARGE_ENUM)
    )


def _nodes(node: Schema, depth: int) -> Iterator[tuple[Schema, int]]:
    """Every schema within, with the number of objects it stands in."""
    depth += "properties" in node
    yield node, depth
    for inner in [*node.get("properties", {}).values(), *node.get("anyOf", ()), *([node["items"]] if "items" in node else ())]:
        yield from _nodes(inner, depth)
    for group in ("$defs", "definitions"):
        for definition in node.get(group, {}).values():
            yield from _nodes(definition, 0)
