"""Words of a schema that a service does not know: said in the description, where the model reads them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.base import jsontext
from dragoman.values.schema import type_of

Schema = dict[str, Any]

_ALWAYS = frozenset(("type", "title", "description", "properties", "required", "additionalProperties", "items", "prefixItems"))
_UNSAID = frozenset(
    ("default", "examples", "example", "$schema", "$id", "$comment", "discriminator", "deprecated", "readOnly", "writeOnly")
)
"""Words that bind no value."""


def describe_rest(schema: Schema, keywords: frozenset[str] | None) -> Schema:
    """The schema with the keywords that are known; the others stand in its description. None: all are known."""
    if keywords is None:
        return schema
    kept = {key: value for key, value in schema.items() if key in _ALWAYS or key in keywords}
    rest = {key: value for key, value in schema.items() if key not in kept and key not in _UNSAID}
    if rest:
        said = ", ".join(f"{key}: {value if isinstance(value, str) else jsontext.dumps(value)}" for key, value in rest.items())
        kept["description"] = f"{schema.get('description', '')} ({said})".strip()
    return kept


def split_enum(schema: Schema) -> Schema:
    """An enumeration with the type of its values; one of several types as a choice between them. Services want one type each."""
    values = schema["enum"] if "enum" in schema else [schema["const"]]
    about = {key: schema[key] for key in ("title", "description") if key in schema}
    groups: dict[str, list[Any]] = {}
    for value in values:
        groups.setdefault(type_of(value), []).append(value)
    choices = [_of_one_type(kind, group) for kind, group in groups.items()]
    return {**about, **choices[0]} if len(choices) == 1 else {**about, "anyOf": choices}


def _of_one_type(kind: str, values: Iterable[Any]) -> Schema:
    if kind == "null":
        return {"type": "null"}
    return {"type": kind, "enum": list(values)}
