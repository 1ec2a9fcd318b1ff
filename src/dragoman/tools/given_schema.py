"""A JSON Schema given for a function, in the place of one made from its annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.base import jsontext
from dragoman.values.errors import InputError, shown
from dragoman.values.schema import problems
from dragoman.words import say

if TYPE_CHECKING:
    from inspect import Parameter


def checked_schema(name: str, schema: object, taken: Mapping[str, Parameter]) -> dict[str, Any]:
    """A copy of the schema. Raises InputError where it describes no object, or arguments that the function does not take or lack."""
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise InputError(say("tools.schema_not_object", name=name, given=shown(schema)))
    fields = schema.get("properties", {})
    if not isinstance(fields, Mapping):
        raise InputError(say("tools.schema_not_object", name=name, given=shown(schema)))
    try:
        copied = jsontext.decode(jsontext.encode({"type": "object", "properties": {}, **schema}))
    except (TypeError, ValueError) as error:
        raise InputError(say("tools.schema_not_json", name=name, reason=error)) from error
    named = {key: each for key, each in taken.items() if each.kind is not each.VAR_KEYWORD}
    required = schema.get("required", ())
    unknown = [key for key in fields if key not in named and len(named) == len(taken)]
    missing = [key for key, each in named.items() if each.default is each.empty and key not in required]
    if unknown:
        raise InputError(say("tools.schema_unknown", name=name, fields=", ".join(unknown)))
    if missing:
        raise InputError(say("tools.schema_missing", name=name, fields=", ".join(missing)))
    return dict(copied)


def check_arguments(schema: dict[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, if they fit. Raises msgspec.ValidationError."""
    given = dict(args)
    if found := problems(schema, given):
        raise msgspec.ValidationError("; ".join(found))
    return given
