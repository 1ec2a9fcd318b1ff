"""Gemini's `Schema`: the subset of OpenAPI that `parameters` and `responseSchema` may use, and proto JSON's error messages."""

from __future__ import annotations

import json
import re

from dragoman.testing.mock.violation import Json, Kind, Violation, fits

_PACKAGE = "type.googleapis.com/google.ai.generativelanguage.v1beta"
_SCHEMA: dict[str, Kind] = {
    "type": "any",
    "format": "string",
    "title": "string",
    "description": "string",
    "nullable": "bool",
    "enum": "array",
    "items": "object",
    "prefixItems": "array",
    "minItems": "any",
    "maxItems": "any",
    "properties": "object",
    "propertyOrdering": "array",
    "required": "array",
    "minProperties": "any",
    "maxProperties": "any",
    "minLength": "any",
    "maxLength": "any",
    "minimum": "number",
    "maximum": "number",
    "pattern": "string",
    "example": "any",
    "anyOf": "array",
    "default": "any",
}
_TYPES = ("TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")
_FORMATS = {"STRING": ("enum", "date-time"), "NUMBER": ("float", "double"), "INTEGER": ("int32", "int64")}
_PROTO_TYPES = {"string": "TYPE_STRING", "bool": "TYPE_BOOL", "int": "TYPE_INT32", "number": "TYPE_DOUBLE"}
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


def snake(name: str) -> str:
    """`functionCall` as the service names it in its errors: `function_call`."""
    return _HUMP.sub(r"_\1", name).lower()


def camel(name: str) -> str:
    """`function_call` as JSON prefers it. Both spellings are accepted."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest) if rest and first else name


def unknown_name(name: str, path: str, line: int = 0) -> Violation:
    """A field proto JSON does not know."""
    where = f" at '{path}'" if path else ""
    return Violation(line, f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.')


def invalid_value(value: object, path: str, kind: str, line: int = 0) -> Violation:
    """A value of the wrong type for proto JSON."""
    return Violation(line, f"Invalid value at '{path}' ({kind}), {json.dumps(value)}")


def not_repeating(name: str, path: str, line: int = 0) -> Violation:
    """A list where one value belongs."""
    wording = f"Invalid JSON payload received. Unknown name \"{name}\" at '{path}': Proto field is not repeating, cannot start list."
    return Violation(line, wording)


def request_error(path: str, wording: str, line: int = 0, *, paraphrase: bool = False) -> Violation:
    """The error for a request whose fields parse but are inconsistent."""
    return Violation(line, f"* GenerateContentRequest.{path}: {wording}\n", paraphrase)


def list_of(value: object) -> object:
    """What proto JSON makes of a message where a list of them belongs: a list of one."""
    return [value] if isinstance(value, dict) else value


def parse_fields(value: object, fields: dict[str, Kind], path: str, line: int = 0) -> Json | Violation:
    """An object's fields under their camelCase names, or why proto JSON rejects it."""
    if isinstance(value, list):
        owner, _, name = path.rpartition(".")
        return not_repeating(name, owner, line)
    if not isinstance(value, dict):
        return invalid_value(value, path, "TYPE_MESSAGE", line)
    found: Json = {}
    for name, item in value.items():
        field = name if name in fields else camel(name)
        if field not in fields:
            return unknown_name(name, path, line)
        if item is None:
            continue
        kind = fields[field]
        item = list_of(item) if kind == "array" else item
        where = f"{path}.{snake(field)}" if path else snake(field)
        if not fits(item, kind):
            if isinstance(item, list):
                return not_repeating(name, path, line)
            return invalid_value(item, where, _PROTO_TYPES.get(kind if isinstance(kind, str) else "string", "TYPE_MESSAGE"), line)
        found[field] = item
    return found


def schema_violation(schema: object, proto_path: str, path: str) -> Violation | None:
    """Why a schema is outside the subset. Proto paths number the properties, request paths name them."""
    if isinstance(schema, dict) and isinstance(schema.get("type"), list):
        return not_repeating("type", proto_path, 20)
    fields = parse_fields(schema, _SCHEMA, proto_path, 20)
    if isinstance(fields, Violation):
        return fields
    kind = fields.get("type", "")
    if isinstance(kind, int) and not isinstance(kind, bool) and 0 <= kind < len(_TYPES):
        kind = _TYPES[kind]  # proto JSON takes an enum's number too
    if not isinstance(kind, str) or (kind and kind.upper() not in _TYPES):
        return invalid_value(kind, f"{proto_path}.type", f"{_PACKAGE}.Type", 20)
    for index, each in enumerate(fields.get("enum", [])):
        if not isinstance(each, str):
            return invalid_value(each, f"{proto_path}.enum[{index}]", "TYPE_STRING", 20)
    for index, (name, each) in enumerate(fields.get("properties", {}).items()):
        if found := schema_violation(each, f"{proto_path}.properties[{index}].value", f"{path}.properties[{name}]"):
            return found
    for name in ("anyOf", "prefixItems"):
        for index, each in enumerate(fields.get(name, [])):
            at = f"{snake(name)}[{index}]"
            if found := schema_violation(each, f"{proto_path}.{at}", f"{path}.{at}"):
                return found
    if "items" in fields and (found := schema_violation(fields["items"], f"{proto_path}.items", f"{path}.items")):
        return found
    return _consistency_violation(fields, kind.upper(), path)


def _consistency_violation(fields: Json, kind: str, path: str) -> Violation | None:
    """Why fields contradict each other, if they do."""
    properties = fields.get("properties", {})
    if kind != "OBJECT":
        for name in ("properties", "required"):
            if fields.get(name):
                return request_error(f"{path}.{name}", "only allowed for OBJECT type", 20)
    for index, name in enumerate(fields.get("required", [])):
        if name not in properties:
            return request_error(f"{path}.required[{index}]", "property is not defined", 20)
    if kind == "ARRAY" and "items" not in fields:
        return request_error(f"{path}.items", "missing field.", 20)
    if kind != "ARRAY" and "items" in fields:
        return request_error(f"{path}.items", "field predicate failed: $type == Type.ARRAY", 20)
    if fields.get("enum") and kind != "STRING":
        return request_error(f"{path}.enum", "only allowed for STRING type", 20)
    if "" in fields.get("enum", []):
        return request_error(f"{path}.enum[{fields['enum'].index('')}]", "cannot be empty", 20)
    form = fields.get("format")
    if form and form not in _FORMATS.get(kind, ()):
        wording = f"only {' and '.join(repr(each) for each in _FORMATS.get(kind, ()))} are supported for {kind} type"
        return request_error(f"{path}.format", wording, 20, paraphrase=kind != "STRING")
    return None
