"""Python types as JSON Schemas, and JSON as values of them."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from dragoman.values.errors import InputError
from dragoman.values.schema import problems
from dragoman.values.typed import Misfit, typed


class City(msgspec.Struct):
    name: str
    size: Annotated[int, msgspec.Meta(ge=1)] = 1


@dataclasses.dataclass
class Country:
    name: str
    capital: City | None = None


class Road(TypedDict):
    number: int
    kind: Literal["street", "path"]


class Meeting(pydantic.BaseModel):
    day: datetime.date
    minutes: int = pydantic.Field(ge=5, le=600)
    guests: list[Guest] = []


class Guest(pydantic.BaseModel):
    name: str


class Node(msgspec.Struct):
    value: int
    next: Node | None = None


CASES: list[tuple[Any, Any, Any]] = [
    (City, {"name": "Oslo"}, City("Oslo")),
    (Country, {"name": "Norway", "capital": {"name": "Oslo", "size": 7}}, Country("Norway", City("Oslo", 7))),
    (Road, {"number": 3, "kind": "path"}, {"number": 3, "kind": "path"}),
    (
        Meeting,
        {"day": "2026-11-15", "minutes": 30, "guests": [{"name": "Ada"}]},
        Meeting(day=datetime.date(2026, 11, 15), minutes=30, guests=[Guest(name="Ada")]),
    ),
    (list[City], [{"name": "Oslo"}], [City("Oslo")]),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (list[Meeting], [], []),
    (Node, {"value": 1, "next": {"value": 2}}, Node(1, Node(2))),
    ({"type": "object", "required": ["a"]}, {"a": 1}, {"a": 1}),
    (int | str, 3, 3),
]


@pytest.mark.parametrize(("hint", "value", "expected"), CASES)
def test_a_value_that_fits_is_converted(hint: Any, value: Any, expected: Any) -> None:
    kind = typed(hint)
    assert problems(kind.schema, value) == []
    assert kind.convert(value) == expected


@pytest.mark.parametrize(
    ("hint", "value", "words"),
    [
        (City, {"size": 1}, "name"),
        (City, {"name": "Oslo", "size": 0}, "size"),
        (Country, {"name": "Norway", "capital": 3}, "capital"),
        (Meeting, {"day": "tomorrow", "minutes": 30}, "day"),
        (Meeting, {"day": "2026-11-15", "minutes": 1}, "minutes"),
        ({"type": "object", "required": ["a"]}, {}, "a is required"),
    ],
)
def test_a_value_that_does_not_fit_is_told_where(hint: Any, value: Any, words: str) -> None:
    with pytest.raises(Misfit, match=words):
        typed(hint).convert(value)


def test_classes_that_nothing_tells_apart_are_named() -> None:
    kind = typed(City | Country)
    value = {"kind": "Country", "value": {"name": "Norway"}}
    assert problems(kind.schema, value) == []
    assert kind.convert(value) == Country("Norway")
    assert kind.convert({"kind": "City", "value": {"name": "Oslo"}}) == City("Oslo")
    with pytest.raises(Misfit, match="City, Country"):
        kind.convert({"name": "Oslo"})


def test_the_root_is_spelled_out_and_only_what_is_needed_is_defined() -> None:
    assert typed(City).schema["type"] == "object"
    assert "$defs" not in typed(City).schema
    assert set(typed(Node).schema["$defs"]) == {"Node"}


def test_a_type_without_a_schema_is_refused_with_what_to_use() -> None:
    with pytest.raises(InputError, match="msgspec Struct, a dataclass"):
        typed(type("Odd", (), {}))
