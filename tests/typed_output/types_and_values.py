"""Types of every kind with values of them, for property tests."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import itertools
import uuid
from typing import Any, Literal, NotRequired, TypedDict

import msgspec
from hypothesis import strategies as st

Case = tuple[Any, st.SearchStrategy[Any]]
"""A type, and values of it."""


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Cat(msgspec.Struct, tag=True, frozen=True):
    name: str
    lives: int = 9


class Dog(msgspec.Struct, tag=True, frozen=True):
    name: str
    weights: tuple[int, str] = (1, "kg")


class Tree(msgspec.Struct):
    value: int
    children: list[Tree] = []


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
LEAVES: list[Case] = [
    (int, st.integers(-(2**53), 2**53)),
    (str, TEXT),
    (bool, st.booleans()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (Color, st.sampled_from(Color)),
    (Level, st.sampled_from(Level)),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
    (datetime.date, st.dates()),
    (uuid.UUID, st.uuids()),
    (Cat | Dog, st.builds(Cat, TEXT) | st.builds(Dog, TEXT, st.tuples(st.integers(0, 9), TEXT))),
    (Any, st.none() | st.booleans() | TEXT | st.lists(st.integers(0, 9), max_size=2) | st.dictionaries(TEXT, TEXT, max_size=2)),
]
TREES: st.SearchStrategy[Any] = st.recursive(
    st.builds(Tree, st.integers(0, 99)), lambda inner: st.builds(Tree, st.integers(0, 99), st.lists(inner, max_size=2)), max_leaves=4
)
_NUMBERS = itertools.count()
_NAMES = ("one", "two", "three", "key", "value", "more", "kind")


def is_optional(hint: Any) -> bool:
    return hint is Any or type(None) in getattr(hint, "__args__", ())


@st.composite
def cases(draw: st.DrawFn, depth: int = 3) -> Case:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(LEAVES))
    make = draw(st.sampled_from([_list, _map, _optional, _tuple, _pair_with_rest, _struct, _dataclass, _typed_dict, _mixed]))
    return make(draw, depth - 1)


def _list(draw: st.DrawFn, depth: int) -> Case:
    hint, values = draw(cases(depth))
    return list[hint], st.lists(values, max_size=3)


def _map(draw: st.DrawFn, depth: int) -> Case:
    hint, values = draw(cases(depth))
    return dict[str, hint], st.dictionaries(TEXT, values, max_size=3)


def _optional(draw: st.DrawFn, depth: int) -> Case:
    hint, values = draw(cases(depth))
    return (hint, values) if is_optional(hint) else (hint | None, st.none() | values)


def _tuple(draw: st.DrawFn, depth: int) -> Case:
    parts = draw(st.lists(cases(depth), min_size=1, max_size=3))
    return tuple[tuple(hint for hint, _ in parts)], st.tuples(*(values for _, values in parts))


def _pair_with_rest(draw: st.DrawFn, depth: int) -> Case:
    hint, values = draw(cases(depth))
    return tuple[hint, ...], st.lists(values, max_size=3).map(tuple)


def _mixed(draw: st.DrawFn, depth: int) -> Case:
    """A union of kinds that JSON tells apart, until one of them is written in another form."""
    hint, values = draw(cases(depth))
    pairs = dict[str, int]
    return list[hint] | pairs | int, st.lists(values, max_size=2) | st.dictionaries(TEXT, st.integers(0, 9), max_size=2) | st.integers(0, 9)


def _fields(draw: st.DrawFn, depth: int) -> dict[str, tuple[Case, bool]]:
    names = draw(st.lists(st.sampled_from(_NAMES), unique=True, max_size=4))
    return {name: (draw(cases(depth)), draw(st.booleans())) for name in names}


def _values(draw: st.DrawFn, fields: dict[str, tuple[Case, bool]], make: Any) -> st.SearchStrategy[Any]:
    required = {name: values for name, ((_, values), given) in fields.items() if given}
    optional = {name: values for name, ((_, values), given) in fields.items() if not given}
    return st.fixed_dictionaries(required, optional=optional).map(lambda given: make(**given))


def _struct(draw: st.DrawFn, depth: int) -> Case:
    fields = _fields(draw, depth)
    defaults = {name: draw(values) for name, ((_, values), required) in fields.items() if not required}
    specs = [(name, hint) for name, ((hint, _), required) in fields.items() if required]
    specs += [(name, fields[name][0][0], _default(value)) for name, value in defaults.items()]  # type: ignore[misc]
    made = msgspec.defstruct(_name(), specs, kw_only=True)
    return made, _values(draw, fields, made)


def _default(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else msgspec.field(default_factory=lambda: value)


def _name() -> str:
    """A new one each time: msgspec tells classes apart by their names."""
    return f"Made{next(_NUMBERS)}"


def _dataclass(draw: st.DrawFn, depth: int) -> Case:
    fields = _fields(draw, depth)
    specs: list[Any] = [(name, hint) for name, ((hint, _), required) in fields.items() if required]
    for name, ((hint, values), required) in fields.items():
        if not required:
            value = draw(values)
            specs.append((name, hint, dataclasses.field(default_factory=lambda value=value: value)))
    made = dataclasses.make_dataclass(_name(), specs, kw_only=True)
    return made, _values(draw, fields, made)


def _typed_dict(draw: st.DrawFn, depth: int) -> Case:
    fields = _fields(draw, depth)
    made = TypedDict(_name(), {name: hint if required else NotRequired[hint] for name, ((hint, _), required) in fields.items()})  # type: ignore[misc]
    return made, _values(draw, fields, dict)
