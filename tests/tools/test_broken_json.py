"""Arguments that are not JSON: mended where only one reading is possible, else described."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tools import broken_json
from dragoman.tools.broken_json import describe_fault, mend_arguments

words = st.text(st.sampled_from('ab,:"\\{}[]\n\t é'), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(words, values, min_size=1, max_size=3)


def read(text: str) -> Any:
    mended = mend_arguments(text)
    return None if mended is None else json.loads(mended[0])


@pytest.mark.parametrize(
    ("written", "mended", "repair"),
    [
        ('{"a": 1,}', {"a": 1}, broken_json.TRAILING_COMMA),
        ('{"a": [1, 2, ], }', {"a": [1, 2]}, broken_json.TRAILING_COMMA),
        ('{"a": "x\ny"}', {"a": "x\ny"}, broken_json.RAW_CONTROLS),
        ('{"a": True, "b": None}', {"a": True, "b": None}, broken_json.PYTHON_WORDS),
        ('{"a": {"b": "c"}', {"a": {"b": "c"}}, broken_json.MISSING_BRACKETS),
        ('{"a": [true', {"a": [True]}, broken_json.MISSING_BRACKETS),
        ('{"a": 1}}', {"a": 1}, broken_json.SPARE_BRACKETS),
        ('"{\\"a\\": 1}"', {"a": 1}, broken_json.QUOTED_OBJECT),
    ],
)
def test_a_slip_with_one_reading_is_mended_and_named(written: str, mended: dict[str, Any], repair: str) -> None:
    found = mend_arguments(written)
    assert found is not None
    assert (json.loads(found[0]), found[1]) == (mended, (repair,))


@pytest.mark.parametrize(
    "written",
    [
        '{"a": "b',
        '{"a": "b",',
        '{"a": 12',
        '{"a": tru',
        '{"a"',
        '{"a":',
        "{",
        '{"a": "x" "b": 1}',
        '{"a": "say "hi" to him"}',
        '{"a": [1, 2}',
        '{"a":1,,"b":2}',
        '{"a": 1} {"b": 2}',
        '{"a": 1} and more',
        '{"a": "\\d"}',
        "{'a': 1}",
        '{"a": NaN}',
        "[1,]",
        "a",
        "",
        '"a"',
        "{" * 100,
    ],
)
def test_what_could_be_read_in_two_ways_or_goes_on_is_left_alone(written: str) -> None:
    assert mend_arguments(written) is None


@given(objects)
def test_valid_arguments_are_never_changed(value: dict[str, Any]) -> None:
    assert mend_arguments(json.dumps(value)) is None


def with_slips(value: Any) -> str:
    """As a careless model writes it: a comma behind the last item, Python's words, line breaks as they are."""
    match value:
        case dict():
            return "{" + "".join(f"{with_slips(key)}: {with_slips(item)}, " for key, item in value.items()) + "}"
        case list():
            return "[" + "".join(f"{with_slips(item)}, " for item in value) + "]"
        case str():
            return json.dumps(value).replace("\\n", "\n") if "\\" not in value else json.dumps(value)
        case _:
            return repr(value)


@given(objects, st.sampled_from(["", "}", "]}"]))
def test_every_slip_is_mended_to_what_was_meant(value: dict[str, Any], spare: str) -> None:
    assert read(with_slips(value) + spare) == value


@given(objects, st.data())
def test_a_text_that_breaks_off_is_never_completed_inside_a_value(value: dict[str, Any], data: st.DataObject) -> None:
    """Whatever is completed, each of its values is one that was written to its end."""
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    found = read(cut)
    if found is not None:
        assert cut.rstrip()[-1] in '"}]el'
        assert is_beginning(found, value)


def is_beginning(found: Any, whole: Any) -> bool:
    """The same, but for members and items that are missing at the end."""
    if isinstance(found, dict) and isinstance(whole, dict):
        pairs = list(zip(found.items(), whole.items(), strict=False))
        return len(found) <= len(whole) and all(one == other and is_beginning(a, b) for (one, a), (other, b) in pairs)
    if isinstance(found, list) and isinstance(whole, list):
        return len(found) <= len(whole) and all(map(is_beginning, found, whole))
    return type(found) is type(whole) and found == whole


@given(st.text(max_size=30) | objects.map(json.dumps).flatmap(lambda text: st.integers(0, len(text)).map(lambda end: text[:end])))
def test_any_text_is_described_and_none_breaks_it(text: str) -> None:
    mend_arguments(text)
    assert describe_fault(text).startswith("its arguments ")


def test_a_long_text_is_quoted_around_the_mistake_alone() -> None:
    told = describe_fault('{"a": "' + "x" * 5_000 + '" "b": "' + "y" * 5_000 + '"}')
    assert "Expecting ',' delimiter, line 1 column 5010" in told
    assert len(told) < 500
    assert len(describe_fault('{"a": "' + "x" * 5_000)) < 500
