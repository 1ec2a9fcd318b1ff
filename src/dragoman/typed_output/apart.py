"""Whether values of two schemas can be told apart."""

from __future__ import annotations

from typing import Any

from dragoman.base import jsontext
from dragoman.values.schema import type_of

Schema = dict[str, Any]


def differ(one: Schema, other: Schema) -> bool:
    """Whether no value fits both: their types differ, or they are objects with different constants."""
    kinds = [_kinds(schema) for schema in (one, other)]
    if not all(kinds):
        return False
    if not kinds[0] & kinds[1]:
        return True
    if kinds[0] != {"object"} or kinds[1] != {"object"}:
        return False
    shared = set(one.get("required") or ()) & set(other.get("required") or ())
    return any(_constants(one, name) and _constants(other, name) and not _constants(one, name) & _constants(other, name) for name in shared)


def _kinds(schema: Schema) -> set[str]:
    if "anyOf" in schema:
        inner = [_kinds(each) for each in schema["anyOf"]]
        return set().union(*inner) if all(inner) else set()
    kind = schema.get("type")
    if kind is None and "enum" in schema:
        kind = [type_of(value) for value in schema["enum"]]
    kinds = {kind} if isinstance(kind, str) else set(kind or ())
    return {"number" if each == "integer" else each for each in kinds}


def _constants(schema: Schema, name: str) -> set[str]:
    values = (schema.get("properties") or {}).get(name, {}).get("enum") or ()
    return {jsontext.dumps(value) for value in values}
