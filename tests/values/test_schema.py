"""Does a value fit a schema, and what is a model told where it does not."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.values.schema import MAX_PROBLEMS, problems

READ_FILE = {
    "type": "object",
    "properties": {"file_path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}, "offset": {"type": "integer"}},
    "required": ["file_path"],
    "additionalProperties": False,
}


def objects(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({}, ["file_path is required"]),
        ({"file_path": "a", "limit": "5"}, ["limit must be an integer, not a string"]),
        ({"file_path": "a", "limit": True}, ["limit must be an integer, not a boolean"]),
        ({"file_path": "a", "limit": 2.5}, ["limit must be an integer, not a number with a fraction"]),
        ({"file_path": "a", "limit": 0}, ["limit must be at least 1, not 0"]),
        ({"file_path": None}, ["file_path must be a string, not null"]),
        ({"filepath": "a"}, ["file_path is required", "unknown field `filepath`: did you mean `file_path`?"]),
        ({"file_path": "a", "Limit": 1}, ["unknown field `Limit`: did you mean `limit`?"]),
        ({"file_path": "a", "zzz": 1}, ["unknown field `zzz`: the fields are file_path, limit, offset"]),
        ("a.py", ["the value must be an object, not a string"]),
        ({"file_path": "a", "limit": 3}, []),
        ({"file_path": "a", "limit": 3.0}, []),
    ],
)
def test_problems_of_arguments_are_told_in_words(value: Any, told: list[str]) -> None:
    assert problems(READ_FILE, value) == told


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        # enum and const, with JSON's idea of equality
        ({"enum": ["a", "b"]}, "c", 'the value must be one of "a", "b", not "c"'),
        ({"enum": [1, 2]}, True, "the value must be one of 1, 2, not true"),
        ({"enum": [1]}, 1.0, ""),
        ({"enum": [[1, {"a": None}]]}, [1.0, {"a": None}], ""),
        ({"enum": ["content", "count", "files", "none"]}, "contents", 'not "contents": did you mean "content"?'),
        ({"enum": []}, 1, "the value must be one of none, not 1"),
        ({"const": {"a": 1}}, {"a": True}, 'the value must be {"a":1}, not {"a":true}'),
        ({"const": "x"}, "y", 'the value must be "x", not "y"'),
        # numbers
        ({"maximum": 5}, 6, "at most 5, not 6"),
        ({"exclusiveMinimum": 5}, 5, "more than 5, not 5"),
        ({"exclusiveMaximum": 5}, 5.0, "less than 5, not 5"),
        ({"minimum": 5, "exclusiveMinimum": True}, 5, "more than 5, not 5"),
        ({"maximum": 5, "exclusiveMaximum": True}, 4, ""),
        ({"type": "number"}, 3, ""),
        ({"type": "number"}, "3", "must be a number, not a string"),
        ({"minimum": 5}, "text", ""),
        # strings
        ({"minLength": 1}, "", "at least 1 character, not 0"),
        ({"maxLength": 2}, "äöü", "at most 2 characters, not 3"),
        ({"pattern": "^[a-z]+$"}, "ABC", "must match ^[a-z]+$"),
        ({"pattern": "^[a-z]+$"}, "abc", ""),
        ({"format": "date"}, "not a date", ""),
        # arrays
        ({"minItems": 1}, [], "at least 1 item, not 0"),
        ({"maxItems": 1}, [1, 2], "at most 1 item, not 2"),
        ({"uniqueItems": True}, [1, 2, 1.0], "must not hold the same item twice: 1"),
        ({"uniqueItems": True}, [1, True, "1", None], ""),
        ({"uniqueItems": True}, [None, None], "the same item twice"),
        ({"items": {"type": "string"}}, ["a", 1], "[1] must be a string, not an integer"),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["a", "b"], "at most 1 item, not 2"),
        ({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, ["a", "b"], "[1] must be an integer"),
        ({"items": [{"type": "string"}], "additionalItems": False}, ["a", "b"], "at most 1 item"),
        # objects
        ({"additionalProperties": {"type": "integer"}}, {"a": 1, "b": "x"}, "b must be an integer, not a string"),
        ({"additionalProperties": False}, {"a": 1}, "unknown field `a`: no fields are taken"),
        ({"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}, {"x-a": "1"}, ""),
        ({"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}, {"x-a": 1}, "x-a must be a string"),
        ({"patternProperties": {"^x-": {}}, "additionalProperties": False}, {"y": 1}, "unknown field `y`"),
        ({"minProperties": 1}, {}, "at least 1 field, not 0"),
        # several types
        ({"type": ["string", "null"]}, None, ""),
        ({"type": ["string", "null"]}, 1, "must be a string or null, not an integer"),
        ({"type": ["string", "array", "null"]}, 1, "must be a string, an array or null, not an integer"),
        ({"type": "string", "nullable": True}, None, ""),
        ({"type": "string", "nullable": True}, 1, "must be a string or null, not an integer"),
        # alternatives
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5", "the value must be an integer or null, not a string"),
        ({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, "c", 'the value must be one of "a", "b", not "c"'),
        ({"anyOf": [{"minLength": 3}, {"const": "x"}]}, "y", "fits none of the forms allowed: "),
        ({"oneOf": [{"type": "integer"}, {"minimum": 5}]}, 6, "fits more than one of the forms allowed"),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, 6, ""),
        ({"allOf": [{"minimum": 2}, {"maximum": 4}]}, 5, "at most 4"),
        ({"not": {"type": "string"}}, "x", "has a form that is not allowed"),
        ({"not": {"type": "string"}}, 1, ""),
        # references
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, 1, "must be a string"),
        ({"$ref": "#/definitions/a~1b%20c", "definitions": {"a/b c": {"type": "string"}}}, 1, "must be a string"),
        ({"$ref": "#/allOf/0", "allOf": [{"type": "string"}]}, "x", ""),
        ({"$ref": "https://example.org/schema"}, 1, ""),
        ({"$ref": "#/$defs/missing"}, 1, ""),
        # what makes no sense, or is not known, is passed over
        ({"type": "date"}, 1, ""),
        ({"type": 5, "minimum": "x", "required": "a", "properties": [], "enum": 3, "anyOf": {}, "minLength": None}, {"a": 1}, ""),
        ({"if": False, "unevaluatedProperties": False}, {"a": 1}, ""),
        (None, 1, ""),
        (True, 1, ""),
        (False, 1, "the value is not allowed"),
        ({"properties": {"a": False}}, {"a": 1}, "a is not allowed"),
    ],
)
def test_each_keyword(schema: Any, value: Any, told: str) -> None:
    found = problems(schema, value)
    assert (told in "\n".join(found)) if told else found == []


def test_a_problem_names_its_place() -> None:
    schema = objects(items={"type": "array", "items": objects(status={"enum": ["open", "done"]}, **{"due date": {"type": "string"}})})
    value = {"items": [{"status": "open"}, {"due date": 1}, {"status": "maybe", "stat": 1}]}
    assert problems(schema, value) == [
        'items[1]["due date"] must be a string, not an integer',
        'items[2].status must be one of "open", "done", not "maybe"',
        "unknown field `items[2].stat`: the fields are status, due date",
    ]


def test_a_recursive_schema_follows_the_value() -> None:
    tree = {"type": "object", "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}}}
    assert problems(tree, {"children": [{"children": [{"name": "leaf"}]}]}) == []
    assert problems(tree, {"children": [{"children": [{"name": 1}]}]}) == ["children[0].children[0].name must be a string, not an integer"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string", "oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}},
    ],
)
def test_a_schema_that_goes_in_circles_ends(schema: dict[str, Any]) -> None:
    assert problems(schema, "x") == []


def test_problems_are_bounded_in_number_and_length() -> None:
    found = problems(objects(), {f"{'x' * 500}{number}": number for number in range(1000)})
    assert len(found) == MAX_PROBLEMS
    assert found[-1].startswith("and ")
    assert max(map(len, found)) < 200
    (long,) = problems({"enum": ["x" * 1000] * 100}, "y" * 100_000)
    assert len(long) < 2_000


def test_forms_within_forms_do_not_grow_without_bound() -> None:
    schema: dict[str, Any] = {"minLength": 9}
    for _ in range(12):
        schema = {"anyOf": [schema, schema]}
    assert sum(map(len, problems(schema, "x"))) < 2_000


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|a)*$", "(a|aa)+$", "(?:a*)*b", "(.*a){12}", "(?=a+)a+$", r"(a+)\1$", "^(a?){30}a{30}$", "a*a*a*a*a*a*b", "a" * 300],
)
def test_no_pattern_takes_long(pattern: str) -> None:
    """It is not checked then, and the tool must say itself. A second is a thousand times what it takes."""
    before_s = time.process_time()
    problems({"pattern": pattern}, "a" * 5_000 + "!")
    problems({"patternProperties": {pattern: {}}}, {"a" * 40: 1})
    assert time.process_time() - before_s < 5.0


@pytest.mark.parametrize("pattern", ["(", "[", "a{99999999999}", "[[a]", r"\p{L}", "(?<name>a)", "*"])
def test_a_pattern_python_cannot_read_is_passed_over(pattern: str) -> None:
    assert problems({"pattern": pattern}, "x") in ([], [f"the value must match {pattern}"])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
KEYWORDS = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "items",
    "prefixItems",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "uniqueItems",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "$ref",
    "$defs",
    "nullable",
    "pattern",
    "format",
    "additionalItems",
]
words = st.sampled_from([*["string", "integer", "number", "boolean", "object", "array", "null", "#/$defs/a", "#", "a", "b"], "^a", "(a"])
names = st.sampled_from(["a", "b"])


def schemas_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Keywords with what belongs there, or with anything at all."""
    likely = st.one_of(inner, st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=2), st.lists(words, max_size=3))
    return st.dictionaries(st.sampled_from(KEYWORDS), st.one_of(likely, words, json_values), max_size=5)


schemas = st.recursive(
    st.booleans() | st.dictionaries(st.sampled_from(KEYWORDS), words | json_values, max_size=3), schemas_of, max_leaves=10
)


@given(schema=schemas | json_values, value=json_values | st.dictionaries(names, json_values))
def test_it_never_raises(schema: Any, value: Any) -> None:
    found = problems(schema, value)
    assert len(found) <= MAX_PROBLEMS
    assert all(isinstance(each, str) and each for each in found)


@given(value=json_values)
def test_a_value_fits_its_own_description(value: Any) -> None:
    assert problems({"const": value}, value) == []
    assert problems({"enum": [value]}, value) == []
    assert problems(described(value), value) == []
    assert problems({"not": described(value)}, value) != []


def described(value: Any) -> dict[str, Any]:
    """The narrowest schema of a value."""
    match value:
        case dict():
            fields = {name: described(item) for name, item in value.items()}
            return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
        case list():
            return {"type": "array", "prefixItems": [described(item) for item in value], "items": False, "minItems": len(value)}
        case str():
            return {"type": "string", "minLength": len(value), "maxLength": len(value), "const": value}
        case bool() | None:
            return {"const": value}
        case _:
            return {"type": "number", "minimum": value, "maximum": value}


def test_what_is_deeper_than_any_stack_is_refused_or_passed_over() -> None:
    value: Any = 1
    for _ in range(20_000):
        value = [value]
    assert problems({"$defs": {}, "items": {"$ref": "#"}}, value) == []
    assert problems({"enum": [1]}, value) == ["the value is nested too deeply"]
