"""A Python type as a JSON Schema, and JSON as a value of that type.

msgspec knows Structs, dataclasses, TypedDicts, NamedTuples, enums and the containers; pydantic converts its own models, where it is
installed; a JSON Schema stands for itself. A union of classes that nothing tells apart is written as `{"kind": ..., "value": ...}`.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin

import msgspec

from dragoman.base import jsontext
from dragoman.values.errors import InputError
from dragoman.values.schema import problems, unchecked_patterns
from dragoman.words import say

T = TypeVar("T")
Schema = dict[str, Any]

KIND, VALUE = "kind", "value"
_DEFINITIONS = "#/$defs/"


class Misfit(ValueError):
    """The value does not fit the type. Its text says why, in words for a model."""


class Typed(Generic[T]):
    """A type with its schema. `convert` makes a value of decoded JSON, or raises Misfit."""

    def __init__(self, name: str, schema: Schema, convert: Callable[[Any], T], members: tuple[Typed[Any], ...] = ()) -> None:
        self.name = name
        self.schema = schema
        self.convert = convert
        self.members = members
        """The members of a union of classes that nothing tells apart; else none."""

    def __repr__(self) -> str:
        return f"<type {self.name}>"


def typed(hint: type[T] | Any) -> Typed[T]:
    """Raises InputError if the type has no JSON Schema."""
    if isinstance(hint, Mapping):
        return _from_schema(dict(hint))
    if is_of_pydantic(hint):
        return _from_pydantic(hint)
    try:
        return _from_msgspec(hint)
    except (TypeError, ValueError, KeyError) as error:  # the last: two classes of one name
        if members := _members(hint):
            return _from_union(members)
        if "pydantic" in sys.modules:
            return _from_pydantic(hint)
        raise InputError(say("values.no_schema", type=name_of(hint), reason=_first_line(error))) from error


def _first_line(error: Exception) -> str:
    """Of msgspec's reasons the others tell what its own users could do."""
    return str(error).partition("\n")[0].partition(" requires either:")[0]


def name_of(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")


# --- each kind of type -----------------------------------------------------------------------------------------------------------


def _from_schema(schema: Schema) -> Typed[Any]:
    check_patterns = pattern_check(schema)

    def check(value: Any) -> Any:
        check_patterns(value)
        if found := problems(schema, value):
            raise Misfit("; ".join(found))
        return value

    return Typed(str(schema.get("title") or "answer"), schema, check)


def _from_msgspec(hint: Any) -> Typed[Any]:
    (root,), components = msgspec.json.schema_components([hint], ref_template=_DEFINITIONS + "{name}")

    schema = _with_root({**root, "$defs": components})
    check = pattern_check(schema)

    def convert(value: Any) -> Any:
        check(value)
        try:
            return msgspec.convert(value, hint, str_keys=True)
        except msgspec.ValidationError as error:
            raise Misfit(str(error)) from None

    return Typed(name_of(hint), schema, convert)


def pattern_check(schema: Schema) -> Callable[[Any], None]:
    """What to call before a value is converted by a library that matches patterns without a bound. It raises Misfit for a value with
    which that could take for ever."""
    if not any(_patterns_in(schema)):
        return lambda value: None

    def check(value: Any) -> None:
        if unchecked := unchecked_patterns(schema, value):
            raise Misfit("; ".join(unchecked))

    return check


def _patterns_in(schema: Any) -> Iterator[str]:
    match schema:
        case dict():
            if isinstance(pattern := schema.get("pattern"), str):
                yield pattern
            for each in schema.values():
                yield from _patterns_in(each)
        case list():
            for each in schema:
                yield from _patterns_in(each)
        case _:
            pass


def _from_union(members: tuple[Any, ...]) -> Typed[Any]:
    """A union of classes with the same shape: each is written with its name, so that the one that is meant comes back."""
    inner = tuple(typed(member) for member in members)
    names = [f"{each.name}_{number}" if _is_twice(each.name, inner) else each.name for number, each in enumerate(inner, 1)]
    branches = [_branch(name, each.schema) for name, each in zip(names, inner, strict=True)]
    definitions = {key: value for each in inner for key, value in each.schema.get("$defs", {}).items()}
    by_name = dict(zip(names, inner, strict=True))

    def convert(value: Any) -> Any:
        member = by_name.get(str(value.get(KIND))) if isinstance(value, dict) else None
        if member is None or VALUE not in value:
            raise Misfit(f"an object is needed with {KIND}, one of {', '.join(names)}, and its {VALUE}")
        return member.convert(value[VALUE])

    schema: Schema = {"anyOf": branches, **({"$defs": definitions} if definitions else {})}
    return Typed(" | ".join(names), schema, convert, inner)


def _is_twice(name: str, members: tuple[Typed[Any], ...]) -> bool:
    return sum(each.name == name for each in members) > 1


def _branch(name: str, schema: Schema) -> Schema:
    value = {key: part for key, part in schema.items() if key != "$defs"}
    properties = {KIND: {"type": "string", "enum": [name]}, VALUE: value}
    return {"title": name, "type": "object", "properties": properties, "required": [KIND, VALUE], "additionalProperties": False}


def _from_pydantic(hint: Any) -> Typed[Any]:
    from pydantic import TypeAdapter, ValidationError
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

    try:
        adapter: Any = TypeAdapter(hint)
        schema = adapter.json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        raise InputError(say("values.no_schema", type=name_of(hint), reason=_first_line(error))) from error

    check = pattern_check(schema) if _matches_by_re(adapter.core_schema) else None

    def convert(value: Any) -> Any:
        if check is not None:
            check(value)
        try:
            return adapter.validate_json(jsontext.encode(value))
        except ValidationError as error:
            raise Misfit("; ".join(_pydantic_words(each) for each in error.errors(include_url=False)[:10])) from None

    return Typed(name_of(hint), _with_root(schema), convert)


def _matches_by_re(core: Any, depth: int = 0) -> bool:
    """Whether pydantic would match a pattern by Python's `re`. Its own engine takes time in proportion to the text."""
    if depth > 50:
        return True
    match core:
        case re.Pattern():
            return True
        case dict():
            if core.get("regex_engine") == "python-re":
                return True
            return any(_matches_by_re(each, depth + 1) for each in core.values())
        case list() | tuple():
            return any(_matches_by_re(each, depth + 1) for each in core)
        case _:
            return False


def _pydantic_words(problem: Mapping[str, Any]) -> str:
    place = ".".join(map(str, problem["loc"]))
    return f"{place}: {problem['msg']}" if place else str(problem["msg"])


def is_of_pydantic(hint: Any) -> bool:
    """Whether a part of the type is pydantic's own. It is not imported to find out: who has such a type has imported it."""
    if "pydantic" not in sys.modules:
        return False
    return any(
        hasattr(each, "__pydantic_core_schema__")
        or hasattr(each, "__get_pydantic_core_schema__")
        or type(each).__module__.partition(".")[0] == "pydantic"  # Annotated[int, Field(ge=1)]
        for each in _parts(hint)
    )


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for inner in get_args(hint):
        yield from _parts(inner)


def _members(hint: Any) -> tuple[Any, ...]:
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else ()


# --- the root --------------------------------------------------------------------------------------------------------------------


def _with_root(schema: Schema) -> Schema:
    """The schema with its root spelled out instead of referred to, and only the definitions that are still needed."""
    root = {key: value for key, value in schema.items() if key != "$defs"}
    definitions: dict[str, Schema] = schema.get("$defs", {})
    if isinstance(name := root.get("$ref"), str) and name.startswith(_DEFINITIONS):
        root = {**definitions[name.removeprefix(_DEFINITIONS)], **{key: value for key, value in root.items() if key != "$ref"}}
    needed: dict[str, Schema] = {}
    waiting = list(references(root))
    while waiting:
        name = waiting.pop().removeprefix(_DEFINITIONS)
        if name not in needed and name in definitions:
            needed[name] = definitions[name]
            waiting += references(definitions[name])
    return {**root, **({"$defs": {name: needed[name] for name in definitions if name in needed}} if needed else {})}


def references(schema: Any) -> Iterator[str]:
    """Every `$ref` within."""
    match schema:
        case dict():
            if isinstance(name := schema.get("$ref"), str):
                yield name
            for value in schema.values():
                yield from references(value)
        case list():
            for value in schema:
                yield from references(value)
