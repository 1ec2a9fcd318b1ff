"""What is written of a body says all of it: its fields, and its differences from another body, can be read back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.differences import apply, compare
from wire.layout import Json, join_lines, one_line, read_fields, write_fields

KEYS = st.sampled_from(["role", "type", "text", "content", "a", "b", "c-d", "", "$", "0", "odd key", 'quo"te', "a.b", "x]", "é", "\u2028"])
TEXTS = st.text(max_size=8) | st.sampled_from([" → ", "as in x", ": ", "…", "long " * 40, "\n- a: 1"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=20)
BODIES = st.dictionaries(KEYS, VALUES, max_size=6)


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """The value with something changed in it, moved, added or gone."""
    match draw(st.integers(0, 3)), value:
        case (0, _):
            return draw(VALUES)
        case (_, dict()):
            keys = draw(st.permutations(list(value))) if draw(st.booleans()) else list(value)
            kept = {key: draw(changed(value[key])) if draw(st.booleans()) else value[key] for key in keys if draw(st.integers(0, 3))}
            return draw(st.sampled_from([kept, {**kept, **draw(BODIES)}, {**draw(BODIES), **kept}]))
        case (_, list()):
            kept = [draw(changed(item)) if draw(st.booleans()) else item for item in value if draw(st.integers(0, 3))]
            at = draw(st.integers(0, len(kept)))
            return [*kept[:at], *draw(st.lists(VALUES, max_size=2)), *kept[at:]]
    return value


PAIRS = VALUES.flatmap(lambda value: st.tuples(st.just(value), changed(value)))


@given(PAIRS | st.tuples(VALUES, VALUES))
def test_differences_applied_to_the_old_value_make_the_new_one(pair: tuple[Any, Any]) -> None:
    """The order of fields included, and by way of the text, as the files hold it."""
    old, new = pair
    lines = compare(old, new)
    assert join_lines("\n".join(lines)) == lines
    assert one_line(apply(old, lines)) == one_line(new)


@given(VALUES)
def test_there_is_no_difference_between_a_value_and_itself(value: Any) -> None:
    assert compare(value, value) == []


@given(BODIES, BODIES)
def test_fields_are_read_as_they_were_written(body: Json, other: Json) -> None:
    for like in ({}, {"other": other}, {"other": body}):
        assert one_line(read_fields("\n".join(write_fields(body, like)), like)) == one_line(body)


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ({"model": "a", "n": 1}, {"model": "b", "n": 1}, ['model: "a" → "b"']),
        ({"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 3}, ["- b: 2"]),
        ({"a": 1}, {"a": 1, "b": {"c": 2}}, ['+ b: {"c": 2}']),
        ({"a": 1, "b": 2}, {"z": 0, "a": 1, "y": 0, "b": 2}, ["+ z (first): 0", "+ y (after a): 0"]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ["- b: 2", "+ b (first): 2"]),
        ({"a": [1]}, {"a": {"b": 1}}, ['a: [1] → {"b": 1}']),
        (
            {"messages": [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hm."}]},
            {"messages": [{"role": "system", "content": ""}, {"role": "user", "content": "Hi."}]},
            [
                '+ messages[0]: {"role": "system", "content": ""}',
                'messages[0].content: "Hello." → "Hi."',
                '- messages[1]: {"role": "assistant", "content": "Hm."}',
            ],
        ),
    ],
)
def test_a_difference_reads_as_one(old: Json, new: Json, lines: list[str]) -> None:
    assert compare(old, new) == lines
