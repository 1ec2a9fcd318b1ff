"""What has come of a JSON text is a value that only grows until it is the whole one."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base import jsontext
from dragoman.typed_output.asking import OutputRequest, Reading
from dragoman.typed_output.partial_json import NOTHING, complete
from dragoman.typed_output.wire_form import Service, wire_form
from dragoman.values.typed import typed

SCALARS = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3))


def grows(before: Any, after: Any) -> bool:
    """Whether more text can make the one of the other."""
    if before is NOTHING:
        return True
    if isinstance(before, dict) and isinstance(after, dict):
        return list(after)[: len(before)] == list(before) and all(grows(value, after[key]) for key, value in before.items())
    if isinstance(before, list) and isinstance(after, list):
        return len(before) <= len(after) and all(map(grows, before, after))
    if isinstance(before, str) and isinstance(after, str):
        return after.startswith(before)
    return type(before) is type(after) and before == after


@given(VALUES, st.booleans(), st.sampled_from([None, 2]), st.sampled_from(["", "```json\n", " \n"]))
def test_every_beginning_grows_towards_the_whole(value: Any, ascii_only: bool, indent: int | None, head: str) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    parts = [complete(head + text[:length]) for length in range(len(text) + 1)]
    for before, after in zip(parts, [*parts[1:], value], strict=True):
        assert grows(before, after), (before, after)
    assert complete(head + text + "\n") == value


class Port(msgspec.Struct):
    name: str
    berths: dict[str, int]
    place: tuple[float, float]
    ships: list[dict[str, str]]
    note: str | None = None


PORTS = st.builds(
    Port,
    name=st.text(max_size=5),
    berths=st.dictionaries(st.text(max_size=3), st.integers(0, 99), max_size=3),
    place=st.tuples(st.floats(0, 9), st.floats(0, 9)),
    ships=st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2), max_size=2),
    note=st.none() | st.text(max_size=4),
)


@pytest.mark.parametrize("service", ["openai", "anthropic", "gemini", "tool"])
@given(port=PORTS)
def test_in_the_form_of_a_service_it_grows_towards_the_value(service: Service, port: Port) -> None:
    kind = typed(Port)
    form = wire_form(kind.schema, service)
    request = OutputRequest(Reading(form, kind), {}, is_bound=True)
    text = jsontext.dumps(form.to_wire(msgspec.to_builtins(port)))
    parts = [request.read_part(text[:length]) for length in range(len(text) + 1)]
    whole = form.from_wire(jsontext.decode(text))
    for part in parts:
        assert part is NOTHING or _is_part(part, whole), (part, whole)
    for before, after in pairwise(parts):
        assert before is NOTHING or after is not NOTHING


def _is_part(part: Any, whole: Any) -> bool:
    """`grows`, whatever the order of the properties: a form may put optional ones elsewhere."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and _is_part(value, whole[key]) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(_is_part, part, whole))
    return grows(part, whole)


@pytest.mark.parametrize("text", ["", "   ", "```", "```json", "Let me see", "}", "[}", "12", "tru", '{"a" 1}'])
def test_what_is_no_value_yet(text: str) -> None:
    assert complete(text) is NOTHING or complete(text) == {}


def test_any_text_is_read_without_an_error() -> None:
    @given(st.text(alphabet='{}[]:,"\\u d8a01tfn \n`', max_size=20))
    def read(text: str) -> None:
        complete(text)

    read()
