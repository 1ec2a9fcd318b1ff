"""Alignment whatever is written: it raises nothing, changes nothing that fits, and done twice is the same as done once."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.base import jsontext
from dragoman.text_tools.align import AlignedCall, UnknownTool, align
from dragoman.text_tools.toolset import Toolset
from dragoman.values.schema import problems

NAMES = st.sampled_from(
    ["path", "file_path", "filePath", "File-Path", "command", "cmd", "comand", "limit", "limt", "count", "arguments", "x"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
TEXTS = st.sampled_from(["3", "3.0", "true", "None", "null", '{"a": "1"}', "[1, '2']", '["3"]', "{'x': (1, 2)}", "", " 7 ", '"3"'])
VALUES = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
ARGS = st.dictionaries(NAMES | st.text(max_size=6), VALUES, max_size=5)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "null"])
LEAVES = (
    TYPES.map(lambda kind: {"type": kind})
    | st.lists(TYPES, min_size=1, max_size=3).map(lambda kinds: {"type": kinds})
    | st.sampled_from([{}, True, {"enum": [1, "a", None]}, {"$ref": "#/$defs/one"}, {"$ref": "#"}, {"type": "string", "nullable": True}])
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items}),
        st.dictionaries(NAMES, inner, max_size=3).map(lambda fields: {"type": "object", "properties": fields}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"allOf": parts}),
    ),
    max_leaves=5,
)


@st.composite
def toolsets(draw: st.DrawFn) -> Toolset:
    fields = draw(st.dictionaries(NAMES, SCHEMAS, max_size=4))
    schema: dict[str, Any] = {"type": "object", "properties": fields, "$defs": {"one": {"type": "integer"}}}
    schema["required"] = draw(st.lists(st.sampled_from(sorted(fields)), unique=True) if fields else st.just([]))
    extra = draw(st.sampled_from(["open", "closed", "integers"]))
    schema |= {"open": {}, "closed": {"additionalProperties": False}, "integers": {"additionalProperties": {"type": "integer"}}}[extra]
    tools = Toolset.of([{"name": "read_file", "parameters": schema}, {"name": "other"}])
    assert tools is not None
    return tools


def same(one: Any, other: Any) -> bool:
    """Equal with types, as JSON sees them."""
    return jsontext.dumps(_plain(one)) == jsontext.dumps(_plain(other))


def _plain(value: Any) -> Any:
    match value:
        case bool() | None | str():
            return value
        case int() | float():
            return repr(value)
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case _:
            return [_plain(item) for item in value]


@given(toolsets(), ARGS, st.booleans())
def test_done_twice_is_done_once(tools: Toolset, args: dict[str, Any], raw: bool) -> None:
    given_args = {name: value if not raw or isinstance(value, str) else jsontext.dumps(value) for name, value in args.items()}
    before = copy.deepcopy(given_args)
    once = align("ReadFile", given_args, tools, raw=raw)
    assert isinstance(once, AlignedCall)
    assert given_args == before
    twice = align(once.name, once.args, tools)
    assert isinstance(twice, AlignedCall)
    assert same(twice.args, once.args)
    assert not twice.repairs


@given(toolsets(), ARGS)
def test_what_fits_is_the_same_object(tools: Toolset, args: dict[str, Any]) -> None:
    schema = tools.schema("read_file")
    assert schema is not None
    declared = {name: value for name, value in args.items() if name in schema["properties"]}
    if problems(schema, declared):
        return
    found = align("read_file", declared, tools)
    assert isinstance(found, AlignedCall)
    assert found.args is declared
    assert not found.repairs
    assert not found.problems


@given(toolsets(), ARGS)
def test_no_value_is_lost_and_none_is_given_twice(tools: Toolset, args: dict[str, Any]) -> None:
    found = align("read_file", args, tools)
    assert isinstance(found, AlignedCall)
    if not any(" → *" in repair for repair in found.repairs):
        assert len(found.args) == len(args)
    exact = args.keys() & tools.schema("read_file")["properties"].keys()  # type: ignore[index]
    assert exact <= found.args.keys() or any(" → *" in repair for repair in found.repairs)


@given(toolsets(), ARGS)
def test_a_change_never_makes_what_fits_not_fit(tools: Toolset, args: dict[str, Any]) -> None:
    schema = tools.schema("read_file")
    found = align("read_file", args, tools)
    assert isinstance(found, AlignedCall)
    assert list(found.problems) == problems(schema, found.args)
    if not problems(schema, args):
        assert not found.problems


@given(toolsets(), ARGS)
def test_declared_text_is_kept_to_the_letter(tools: Toolset, args: dict[str, Any]) -> None:
    schema = tools.schema("read_file")
    assert schema is not None
    found = align("read_file", args, tools, raw=True)
    assert isinstance(found, AlignedCall)
    for name, value in args.items():
        if isinstance(value, str) and schema["properties"].get(name) == {"type": "string"}:
            assert found.args[name] == value


@given(st.text(max_size=30), st.dictionaries(st.text(max_size=5), VALUES, max_size=3), SCHEMAS | VALUES)
def test_nothing_raises_whatever_the_name_and_the_schema(name: str, args: dict[str, Any], schema: Any) -> None:
    tools = Toolset({"f": schema if isinstance(schema, dict) else {"properties": schema}, "g": None})
    for raw in (False, True):
        assert isinstance(align(name, args, tools, raw=raw), AlignedCall | UnknownTool)
        assert isinstance(align("f", args, tools, raw=raw), AlignedCall)


def test_work_is_bounded_whatever_refers_to_what() -> None:
    doubled: dict[str, Any] = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 20} for n in range(30)}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": doubled | {"d30": {"type": "integer"}}}
    deep: Any = "1"
    for _ in range(500):
        deep = {"x": deep}
    tools = Toolset({"f": schema, "g": {"$ref": "#", "properties": {"x": {"$ref": "#"}}}})
    assert isinstance(align("f", {"x": "3"}, tools), AlignedCall)
    assert isinstance(align("g", deep, tools), AlignedCall)
    many = {f"name{n}": "[" * n for n in range(2_000)}
    assert isinstance(align("g", many, tools, raw=True), AlignedCall)
