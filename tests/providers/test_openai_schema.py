"""Schemas for OpenAI's strict mode: only what it accepts is called strict, and what is called strict means what was asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.providers.openai_schema import object_root, strict_schema
from dragoman.providers.openai_settings import named_schema
from dragoman.testing.mock.openai_strict import strict_flaw
from dragoman.values.messages import Settings
from dragoman.values.profile import Profile

Json = dict[str, Any]
TEXT = {"type": "string"}


def closed(**properties: Any) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def tagged(tag: str, **properties: Any) -> Json:
    return closed(kind={"const": tag, "type": "string"}, **properties)


# --- a checker of just the words in these tests -------------------------------------------------------------------------------


def fits(value: Any, schema: Any, root: Json) -> bool:
    if "$ref" in schema and not fits(value, root["$defs"][schema["$ref"].rpartition("/")[2]] if "/" in schema["$ref"] else root, root):
        return False
    kinds = schema.get("type", [])
    if kinds and not any(is_a(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    if ("const" in schema and value != schema["const"]) or ("enum" in schema and value not in schema["enum"]):
        return False
    if "anyOf" in schema and not any(fits(value, each, root) for each in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(fits(value, each, root) for each in schema["oneOf"]) != 1:
        return False
    if not all(fits(value, each, root) for each in schema.get("allOf", ())):
        return False
    if isinstance(value, list) and not all(fits(each, schema.get("items", {}), root) for each in value):
        return False
    return not isinstance(value, dict) or object_fits(value, schema, root)


def object_fits(value: Json, schema: Json, root: Json) -> bool:
    properties, other = schema.get("properties", {}), schema.get("additionalProperties", True)
    if not set(schema.get("required", ())) <= value.keys():
        return False
    for name, each in value.items():
        if name in properties:
            if not fits(each, properties[name], root):
                return False
        elif other is False or (isinstance(other, dict) and not fits(each, other, root)):
            return False
    return True


def is_a(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "null":
            return value is None
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)


# --- properties ---------------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "default", "kind"])
LEAVES: st.SearchStrategy[Json] = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 3, "description": "a number"},
        {"type": "string", "format": "uri", "description": "where"},
        {"type": ["string", "null"], "default": None},
        {"enum": ["x", 1]},
        {"const": "x"},
        {"type": "array"},
        {"type": "object"},
        {"$ref": "#/$defs/Word", "description": "a word"},
        {"$ref": "#"},
        {"not": {"type": "string"}},
        {},
    ]
)


def containers(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    branches = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        inner.map(lambda each: {"type": "array", "items": each}),
        inner.map(lambda each: {"type": "object", "additionalProperties": each}),
        branches.map(lambda each: {"anyOf": each}),
        branches.map(lambda each: {"oneOf": each}),
        branches.map(lambda each: {"allOf": each, "title": "all"}),
        objects(inner),
    )


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Json]) -> Json:
    properties = draw(st.dictionaries(NAMES, inner, max_size=3))
    optional = draw(st.sets(st.sampled_from([*properties, "-"]), max_size=1))
    schema: Json = {"type": "object", "properties": properties, "required": [name for name in properties if name not in optional]}
    return schema | draw(st.sampled_from([{}, {"additionalProperties": False}, {"additionalProperties": True}]))


SCHEMAS = objects(st.recursive(LEAVES, containers, max_leaves=6)).map(
    lambda schema: {**schema, "$defs": {"Word": {"type": "string", "title": "Word"}}}
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(["x", "y", 1, 3, None]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@given(SCHEMAS)
def test_a_strict_schema_holds_only_what_strict_mode_accepts(schema: Json) -> None:
    strict = strict_schema(schema)
    if strict is not None:
        assert strict_flaw(strict) == ""
        assert strict_schema(strict) == strict, "said in the accepted words, it is not said again"


@given(SCHEMAS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_what_fits_a_strict_schema_fits_the_original(schema: Json, value: Json) -> None:
    """And the other way round, but for properties that nobody mentioned."""
    strict = strict_schema(schema)
    if strict is None:
        return
    if fits(value, strict, strict):
        assert fits(value, schema, schema)
    elif fits(value, schema, schema):
        assert has_unmentioned(value, schema)


def has_unmentioned(value: Any, schema: Json) -> bool:
    """Whether a value has a property that some open object of the schema does not mention."""
    return '"additionalProperties": false' not in json.dumps(schema) or not fits(value, shut(schema), shut(schema))


def shut(schema: Any) -> Any:
    match schema:
        case {"type": "object"}:
            return {**{key: shut(each) for key, each in schema.items()}, "additionalProperties": False}
        case dict():
            return {key: shut(each) for key, each in schema.items()}
        case list():
            return [shut(each) for each in schema]
        case _:
            return schema


WORDS = st.sampled_from(["type", "properties", "required", "items", "anyOf", "oneOf", "$ref", "$defs", "enum", "format", "pattern", "x"])


@given(st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner)))
def test_no_nonsense_makes_it_raise(schema: Any) -> None:
    strict_schema(schema)


# --- examples -----------------------------------------------------------------------------------------------------------------


def test_a_discriminated_union_is_said_as_any_of() -> None:
    """As pydantic writes it."""
    definitions = {"Cat": tagged("cat", lives={"type": "integer"}), "Dog": tagged("dog", name=TEXT)}
    branches = [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]
    union = {"oneOf": branches, "discriminator": {"propertyName": "kind"}, "title": "Pet"}
    strict = strict_schema({**closed(pet=union), "$defs": definitions})
    assert strict is not None
    assert strict["properties"]["pet"] == {"anyOf": branches, "title": "Pet"}


@pytest.mark.parametrize(
    "schema",
    [
        closed(a={"oneOf": [TEXT, {"type": "string", "minLength": 2}]}),
        closed(a={"allOf": [TEXT, {"pattern": "x"}]}),
        closed(a={"not": TEXT}),
        closed(a={"type": "array", "prefixItems": [TEXT]}),
        closed(a={"type": "array"}),
        closed(a={"type": "array", "items": TEXT, "uniqueItems": True}),
        closed(a={"type": "object", "patternProperties": {"^x": TEXT}, "additionalProperties": False}),
        closed(a={"type": "object", "additionalProperties": TEXT}),
        closed(a={"type": "object"}),
        closed(a={}),
        closed(a=TEXT) | {"if": {}, "then": {}},
        closed(a=TEXT) | {"dependentRequired": {"a": ["b"]}},
        closed(a=TEXT) | {"required": []},
        closed(a=TEXT) | {"additionalProperties": True},
        closed(a={"type": "string", "pattern": "^(?=x)"}),
        closed(a={"$ref": "#/properties/b"}, b=TEXT),
        closed(a={"enum": [str(number) for number in range(1_001)]}),
        closed(**{f"p{number}": TEXT for number in range(5_001)}),
        {"anyOf": [closed(a=TEXT), closed(b=TEXT)]},
        {"type": "array", "items": TEXT},
    ],
)
def test_what_strict_mode_cannot_say_is_not_called_strict(schema: Json) -> None:
    named = named_schema(Settings(response_schema=json.dumps(schema)), Profile())
    assert named == {"name": "answer", "schema": schema, "strict": False}, "and a map stays a map"


def test_eleven_objects_in_each_other_are_too_many() -> None:
    schema = TEXT
    for _ in range(10):
        schema = closed(a=schema)
    assert strict_schema(schema) == schema
    assert strict_schema(closed(a=schema)) is None


def test_nothing_stands_beside_a_reference_and_no_format_is_lost() -> None:
    schema = closed(
        site={"type": "string", "format": "uri", "description": "The page."}, word={"$ref": "#/$defs/W", "description": "Which."}
    )
    strict = strict_schema({**schema, "$defs": {"W": {**TEXT, "default": "x"}}})
    assert strict is not None
    assert strict["properties"] == {
        "site": {"type": "string", "description": "The page. (format: uri)"},
        "word": {"description": "Which.", "anyOf": [{"$ref": "#/$defs/W"}]},
    }
    assert strict["$defs"] == {"W": TEXT}


def test_an_object_that_forgot_to_say_so_is_closed() -> None:
    """A model of pydantic does not mention other properties, and wants none."""
    schema = {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}
    assert strict_schema(schema) == closed(a=TEXT)


def test_a_recursive_model_is_an_object_at_the_root() -> None:
    """The service refuses a reference there, strict or not."""
    node = closed(next={"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]})
    schema = {"$ref": "#/$defs/Node", "$defs": {"Node": node}}
    strict = strict_schema(schema)
    assert strict == {**node, "$defs": {"Node": node}}
    assert object_root(schema)["type"] == "object"


def test_a_service_that_knows_no_strict_mode_gets_the_schema_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {**TEXT, "default": "x"}}, "required": ["a"]}
    named = named_schema(Settings(response_schema=json.dumps(schema)), Profile(strict_schema=False))
    assert named == {"name": "answer", "schema": schema, "strict": False}
