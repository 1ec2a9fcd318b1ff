"""Reduces a JSON Schema to the subset that Gemini's `parameters` field accepts, for models without `parametersJsonSchema`."""

from __future__ import annotations

from typing import Any

_KEPT = frozenset(
    {
        *("type", "format", "title", "description", "nullable", "enum", "anyOf", "default", "example", "propertyOrdering"),
        *("properties", "required", "minProperties", "maxProperties", "items", "minItems", "maxItems"),
        *("minLength", "maxLength", "pattern", "minimum", "maximum"),
    }
)
_FORMATS = {"STRING": {"enum", "date-time"}, "NUMBER": {"float", "double"}, "INTEGER": {"int32", "int64"}}
_MAX_DEPTH = 16
_MAX_REFERENCES = 5

Path = tuple[str, ...]
"""The steps from the root down to here: a reference, or "" for a step without one."""


def reduce_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as far as the subset can express it. It may allow more than the schema, never less: we validate arguments anyway."""
    return _reduce(schema, schema, ())


def _reduce(schema: Any, root: dict[str, Any], path: Path) -> dict[str, Any]:
    if not isinstance(schema, dict) or len(path) > _MAX_DEPTH:
        return {"type": "STRING"} if not isinstance(schema, dict) else {"type": "OBJECT"}
    path = (*path, str(schema.get("$ref", "")))
    schema = _resolve(schema, root, path)
    out: dict[str, Any] = {key: value for key, value in schema.items() if key in _KEPT}
    types = _types(schema)
    if "null" in types:
        out["nullable"] = True
        types = [name for name in types if name != "null"]
    alternatives = [item for key in ("anyOf", "oneOf") for item in schema.get(key) or ()]
    if alternatives and not isinstance(schema.get("type"), str):
        return _reduce_any_of(alternatives, out, root, path)
    out.pop("anyOf", None)
    if len(types) > 1:
        extra = {key: out[key] for key in ("description", "nullable") if key in out}
        return _reduce_any_of([{**schema, "type": name} for name in types], extra, root, path)
    return _reduce_typed(types[0] if types else "string", out, schema, root, path)


def _reduce_typed(name: str, out: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], path: Path) -> dict[str, Any]:
    out["type"] = name.upper()
    if name == "object":
        properties = schema.get("properties") or {}
        out["properties"] = {key: _reduce(value, root, path) for key, value in properties.items() if not _is_endless(value, path)}
        out["required"] = list(dict.fromkeys(key for key in schema.get("required") or () if key in out["properties"]))
    if name != "object" or not out.get("properties"):
        for key in ("properties", "required", "minProperties", "maxProperties"):
            out.pop(key, None)  # "only allowed for OBJECT type"
    if name == "array":
        out["items"] = _reduce(schema.get("items") or {"type": "string"}, root, path)
    else:
        for key in ("items", "minItems", "maxItems"):
            out.pop(key, None)
    if out.get("format") not in _FORMATS.get(out["type"], ()):
        out.pop("format", None)
    if "enum" in out:
        _keep_enum(out)
    return {key: value for key, value in out.items() if value is not None and value != []}


def _keep_enum(out: dict[str, Any]) -> None:
    """Only non-empty strings may be enumerated."""
    values = [value for value in out["enum"] if isinstance(value, str) and value]
    if out["type"] == "STRING" and values:
        out["enum"] = values
    else:
        del out["enum"]


def _reduce_any_of(alternatives: list[Any], out: dict[str, Any], root: dict[str, Any], path: Path) -> dict[str, Any]:
    choices = [_reduce(item, root, path) for item in alternatives if not _is_null(item)]
    if len(choices) < len(alternatives):
        out["nullable"] = True
    extra = {key: out[key] for key in ("description", "nullable") if out.get(key) is not None}
    if len(choices) == 1:
        return {**choices[0], **extra}
    return {"anyOf": choices, **extra} if choices else {"type": "STRING", **extra}


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def _types(schema: dict[str, Any]) -> list[str]:
    declared = schema.get("type")
    if isinstance(declared, list):
        return [str(name).lower() for name in declared]
    if isinstance(declared, str):
        return [declared.lower()]
    if "properties" in schema:
        return ["object"]
    if "items" in schema:
        return ["array"]
    if "const" in schema or "enum" in schema:
        return ["string"]
    return []


def _is_endless(schema: Any, path: Path) -> bool:
    """Whether a property leads to a reference already followed twice: a recursive schema is described one level deep only."""
    if not isinstance(schema, dict):
        return False
    inner = [schema, schema.get("items"), *(schema.get("anyOf") or ()), *(schema.get("oneOf") or ()), *(schema.get("allOf") or ())]
    references = [item["$ref"] for item in inner if isinstance(item, dict) and isinstance(item.get("$ref"), str)]
    followed = sum(map(bool, path))
    return any(path.count(each) > 1 or followed >= _MAX_REFERENCES for each in references)


def _resolve(schema: dict[str, Any], root: dict[str, Any], path: Path) -> dict[str, Any]:
    """Follow local references, and turn const and allOf into keywords of the subset."""
    for _ in range(8):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            break
        found = _lookup(reference, root)
        schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
    for part in schema.get("allOf") or ():
        if isinstance(part, dict) and len(path) <= _MAX_DEPTH:
            inner = _resolve(part, root, (*path, ""))
            properties = {**(inner.get("properties") or {}), **(schema.get("properties") or {})}
            required = [*(schema.get("required") or ()), *(inner.get("required") or ())]
            schema = {**inner, **schema, **({"properties": properties, "required": required} if properties else {})}
    if isinstance(schema.get("const"), str) and "enum" not in schema:
        schema = {**schema, "enum": [schema["const"]]}
    return schema


def _lookup(reference: str, root: dict[str, Any]) -> dict[str, Any]:
    if not reference.startswith("#"):
        return {}
    found: Any = root
    for key in reference[1:].split("/")[1:]:
        found = found.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
