"""Structured output for Anthropic: whatever the schema, only words that the service takes are sent, and no valid answer is ruled out."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from dragoman.providers.anthropic_schema import format_instruction, output_schema
from dragoman.testing.mock.anthropic_schemas import schema_violation
from dragoman.values.messages import Settings
from dragoman.values.profile import Profile
from dragoman.values.schema import problems

Json = dict[str, Any]
TAKEN = {
    "type",
    "title",
    "description",
    "enum",
    "const",
    "anyOf",
    "$ref",
    "$defs",
    "properties",
    "required",
    "additionalProperties",
    "items",
}
TAKEN |= {"minItems", "format"}
NAMES = st.sampled_from(["a", "b", "type", "items", "minimum"])


def pairs() -> st.SearchStrategy[tuple[Json, Any]]:
    """A schema and a value that fits it."""
    numbers = st.integers(0, 50).map(lambda low: ({"type": "integer", "minimum": low, "maximum": low + 9, "multipleOf": 1}, low + 3))
    texts = st.text(max_size=5).map(
        lambda said: ({"type": "string", "minLength": len(said), "maxLength": 9, "description": "A text."}, said)
    )
    dates = st.sampled_from(["date", "phone"]).map(lambda form: ({"type": "string", "format": form}, "2026-11-16"))
    literals = st.sampled_from([({"enum": ["x", 1, None], "type": ["string", "integer", "null"]}, None), ({"const": "x"}, "x")])
    nulls = st.sampled_from([({"type": ["string", "null"], "pattern": "a+"}, None), ({"type": "boolean", "default": True}, False)])
    return st.recursive(st.one_of(numbers, texts, dates, literals, nulls), nested, max_leaves=6)


def nested(inner: st.SearchStrategy[tuple[Json, Any]]) -> st.SearchStrategy[tuple[Json, Any]]:
    lists = st.tuples(inner, st.integers(0, 3)).map(
        lambda made: (
            {"type": "array", "items": made[0][0], "minItems": made[1], "maxItems": 5, "uniqueItems": False},
            [made[0][1]] * made[1],
        )
    )
    objects = st.dictionaries(NAMES, inner, max_size=3).flatmap(
        lambda fields: st.sets(st.sampled_from(sorted(fields)) if fields else st.nothing()).map(
            lambda required: (
                {"type": "object", "properties": {name: each[0] for name, each in fields.items()}, "required": sorted(required)},
                {name: each[1] for name, each in fields.items()},
            )
        )
    )
    unions = st.tuples(inner, inner, st.sampled_from(["anyOf", "oneOf"])).map(
        lambda made: ({made[2]: [made[0][0], made[1][0]]}, made[0][1])
    )
    tuples = st.lists(inner, min_size=1, max_size=2).map(
        lambda made: ({"type": "array", "prefixItems": [each[0] for each in made]}, [each[1] for each in made])
    )
    return st.one_of(lists, objects, unions, tuples)


def sent(schema: Json) -> Json | None:
    return output_schema(Settings(response_schema=json.dumps(schema)), Profile())


def words(schema: Any) -> set[str]:
    """Every word of a schema; names of properties and definitions are none."""
    found = set(schema)
    named = [each for word in ("properties", "$defs") for each in schema.get(word, {}).values()]
    for each in [*named, *schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]:
        found |= words(each)
    return found


@given(pairs())
def test_only_words_the_service_takes_and_every_fitting_value_still_fits(made: tuple[Json, Any]) -> None:
    schema, value = made
    rewritten = sent(schema)
    assert rewritten is not None
    assert words(rewritten) <= TAKEN
    assert schema_violation(rewritten, "schema") is None
    assume(not problems(schema, value))
    assert problems(rewritten, value) == []


@given(pairs(), st.sampled_from([{}, {"type": "object"}, {"type": "object", "additionalProperties": {"type": "string"}}, True]))
def test_what_has_no_words_is_never_narrowed(made: tuple[Json, Any], open_one: Any) -> None:
    """Rather than an object that is always empty, the prompt asks for what is meant."""
    for schema in (
        {"type": "object", "properties": {"a": made[0], "b": open_one}},
        {"type": "array", "items": {"anyOf": [open_one, made[0]]}},
    ):
        settings = Settings(response_schema=json.dumps(schema))
        assert output_schema(settings, Profile()) is None
        assert settings.response_schema in format_instruction(settings, Profile())


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*TAKEN, "allOf", "x"]), inner),
    )
)
def test_nonsense_does_not_break_it(schema: Any) -> None:
    rewritten = sent(schema)
    assert rewritten is None or words(rewritten) <= TAKEN | {"definitions"}


def test_a_model_with_definitions_keeps_them() -> None:
    class Street(BaseModel):
        name: str = Field(min_length=1)
        number: int = Field(ge=1)

    class Person(BaseModel):
        """Somebody."""

        home: Street = Field(description="Where they live.")
        work: Street | None = None
        tags: list[str] = Field(max_length=3)

    rewritten = sent(Person.model_json_schema())
    assert rewritten is not None
    assert rewritten["properties"]["home"] == {"anyOf": [{"$ref": "#/$defs/Street"}], "description": "Where they live."}
    assert rewritten["$defs"]["Street"]["properties"]["number"]["description"] == "(minimum: 1)"
    assert problems(rewritten, {"home": {"name": "A", "number": 1}, "work": None, "tags": []}) == []
    assert problems(rewritten, {"home": {"name": "A", "number": "one"}, "work": None, "tags": []})
