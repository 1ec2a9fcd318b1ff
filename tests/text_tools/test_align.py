"""What a call was meant to be: parameter mapping, done by schema (TEXT-5)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dragoman.text_tools.align import AlignedCall, NameMapping, UnknownTool, align
from dragoman.text_tools.toolset import Toolset
from dragoman.values.messages import ToolSpec

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def tool(name: str, required: tuple[str, ...] = (), *, closed: bool = False, **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": name, "parameters": schema | ({"additionalProperties": False} if closed else {})}


TOOLS = [
    tool("read_file", ("file_path",), file_path=STRING, offset=INTEGER, limit=INTEGER),
    tool("run_shell", ("command",), command=STRING, background={"type": "boolean"}),
    tool("edit", ("file_path", "old_string", "new_string"), file_path=STRING, old_string=STRING, new_string=STRING),
    tool("list_directory", path=STRING),
    {"name": "anything", "description": "no schema", "parameters": None},
]


def aligned(
    name: str, args: dict[str, Any], tools: list[Any] = TOOLS, *, raw: bool = False, mapping: NameMapping | None = None
) -> AlignedCall:
    found = align(name, args, Toolset.of(tools), raw=raw, mapping=mapping)
    assert isinstance(found, AlignedCall), found
    return found


def of_value(schema: Any, value: Any, *, raw: bool = False) -> Any:
    return aligned("f", {"x": value}, [tool("f", x=schema)], raw=raw).args["x"]


# --- names of tools


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("read_file", "read_file"),
        ("ReadFile", "read_file"),
        ("read-file", "read_file"),
        ("READ.FILE", "read_file"),
        ("functions.read_file", "read_file"),
        ("functions.read_file:0", "read_file"),
        ("functions.ReadFile:12", "read_file"),
        ("read_file:3", "read_file"),
        ("default_api.list_directory", "list_directory"),
        (" run_shell\n", "run_shell"),
    ],
)
def test_a_tool_is_found_by_the_name_that_was_meant(written: str, meant: str) -> None:
    found = aligned(written, {"file_path": "a", "command": "ls"})
    assert found.name == meant
    assert bool(found.repairs) == (written != meant)


def test_a_tool_nobody_offered_is_refused_with_the_nearest_names() -> None:
    found = align("read_fil", {"file_path": "a"}, Toolset.of(TOOLS))
    assert isinstance(found, UnknownTool)
    assert "read_fil" in found.reason
    assert found.suggestions[0] == "read_file"


def test_a_name_that_two_tools_share_but_for_case_is_not_guessed() -> None:
    found = align("READFILE", {}, Toolset.of([tool("read_file"), tool("readFile")]))
    assert isinstance(found, UnknownTool)
    assert set(found.suggestions) == {"read_file", "readFile"}


def test_the_users_own_names_for_tools_and_parameters_are_taken() -> None:
    mapping = {"": {"bash": "run_shell"}, "run_shell": {"zeile": "command"}, "*": {"ort": "path"}}
    assert aligned("bash", {"zeile": "ls"}, mapping=mapping).args == {"command": "ls"}
    assert aligned("list_directory", {"ort": "src"}, mapping=mapping).args == {"path": "src"}


def test_without_tools_every_name_is_taken_and_nothing_is_changed() -> None:
    args = {"anything": "3"}
    found = align("functions.x:0", args, None, raw=True)
    assert found == AlignedCall("functions.x:0", args)
    assert isinstance(found, AlignedCall)
    assert found.args is args


def test_a_tool_without_a_schema_takes_what_is_given() -> None:
    args = {"x": "3"}
    assert aligned("Anything", args).args is args


# --- names of parameters


@pytest.mark.parametrize(
    ("name", "written", "meant"),
    [
        ("read_file", {"filePath": "a"}, {"file_path": "a"}),
        ("read_file", {"path": "a"}, {"file_path": "a"}),
        ("read_file", {"absolute_path": "a", "max_lines": 3}, {"file_path": "a", "limit": 3}),
        ("read_file", {"file_pth": "a"}, {"file_path": "a"}),
        ("read_file", {"flie_path": "a"}, {"file_path": "a"}),
        ("run_shell", {"cmd": "ls"}, {"command": "ls"}),
        ("run_shell", {"comand": "ls"}, {"command": "ls"}),
        ("edit", {"path": "a", "old_str": "x", "new_str": "y"}, {"file_path": "a", "old_string": "x", "new_string": "y"}),
        ("edit", {"path": "a", "search": "x", "replace": "y"}, {"file_path": "a", "old_string": "x", "new_string": "y"}),
    ],
)
def test_a_parameter_is_found_by_the_name_that_was_meant(name: str, written: dict[str, Any], meant: dict[str, Any]) -> None:
    found = aligned(name, written)
    assert found.args == meant
    assert not found.problems
    for old in written.keys() - meant.keys():
        assert any(repair.startswith(f"{old} → ") for repair in found.repairs)


def test_the_order_of_the_arguments_stays() -> None:
    assert list(aligned("edit", {"new_str": "y", "old_str": "x", "path": "a"}).args) == ["new_string", "old_string", "file_path"]


def test_nothing_that_is_there_is_overwritten() -> None:
    found = aligned("read_file", {"file_path": "a", "path": "b", "FILE_PATH": "c"})
    assert found.args == {"file_path": "a", "path": "b", "FILE_PATH": "c"}
    assert not found.repairs


def test_two_names_for_one_parameter_are_not_decided() -> None:
    found = aligned("run_shell", {"cmd": "ls", "script": "pwd"})
    assert found.args == {"cmd": "ls", "script": "pwd"}
    assert found.problems == ("command is required",)


def test_a_slip_is_mended_only_where_one_parameter_can_be_meant() -> None:
    either = tool("f", ("value_a", "value_b"), value_a=STRING, value_b=STRING)
    assert aligned("f", {"value_c": "x"}, [either]).args == {"value_c": "x"}
    taken = aligned("f", {"value_a": "x", "value_c": "y"}, [either])
    assert taken.args == {"value_a": "x", "value_b": "y"}


def test_a_slip_is_mended_only_where_the_type_could_be_right() -> None:
    numbers = tool("f", ("offset",), offset=INTEGER)
    assert aligned("f", {"ofset": "first"}, [numbers]).args == {"ofset": "first"}
    assert aligned("f", {"ofset": "12"}, [numbers]).args == {"offset": 12}


def test_short_names_are_not_taken_for_one_another() -> None:
    assert aligned("f", {"a": 1}, [tool("f", ("x",), x=INTEGER)]).args == {"a": 1}


def test_what_can_only_be_guessed_is_left_where_the_arguments_fit_already() -> None:
    args = {"file_path": "a", "max_lines": 3}
    found = aligned("read_file", args)
    assert found.args is args
    closed = tool("read_file", ("file_path",), closed=True, file_path=STRING, limit=INTEGER)
    assert aligned("read_file", args, [closed]).args == {"file_path": "a", "limit": 3}


def test_a_name_that_differs_in_case_alone_is_mended_even_there() -> None:
    assert aligned("read_file", {"file_path": "a", "Limit": 3}).args == {"file_path": "a", "limit": 3}


def test_what_fits_under_a_name_of_its_own_is_not_moved_where_it_would_not_fit() -> None:
    args = {"file_path": "a", "Limit": "all of it"}
    found = aligned("read_file", args)
    assert found.args is args
    assert not found.repairs


def test_after_the_sure_exchanges_come_the_likely_ones() -> None:
    found = aligned("edit", {"path": "a", "new_str": "y", "old_strin": "x"})
    assert found.args == {"file_path": "a", "new_string": "y", "old_string": "x"}


def test_fields_that_a_schema_welcomes_keep_their_names() -> None:
    schema = {"type": "object", "properties": {"name": STRING}, "additionalProperties": STRING}
    args = {"Name": "x"}
    assert aligned("f", args, [{"name": "f", "parameters": schema}]).args is args


@pytest.mark.parametrize("key", ["arguments", "parameters", "input", "kwargs", "read_file"])
def test_a_key_around_all_arguments_is_taken_off_if_they_then_fit(key: str) -> None:
    found = aligned("read_file", {key: {"path": "a", "limit": "3"}})
    assert found.args == {"file_path": "a", "limit": 3}
    assert found.repairs[0] == f"{key}.* → *"
    assert aligned("read_file", {key: '{"file_path": "a"}'}, raw=True).args == {"file_path": "a"}


def test_a_key_stays_where_taking_it_off_would_not_help() -> None:
    args = {"arguments": {"something": 1}}
    assert aligned("read_file", args).args is args
    own = {"input": {"file_path": "a"}}
    assert aligned("f", own, [tool("f", input={"type": "object"})]).args is own


# --- values


@pytest.mark.parametrize(
    ("schema", "written", "meant"),
    [
        (INTEGER, "3", 3),
        (INTEGER, " -12 ", -12),
        (INTEGER, "3.0", 3),
        (INTEGER, "123456789012345678901234567890", 123456789012345678901234567890),
        (INTEGER, "3.5", "3.5"),
        (INTEGER, "three", "three"),
        (INTEGER, "null", "null"),
        (INTEGER, "1e999", "1e999"),
        (INTEGER, "٣", "٣"),
        ({"type": "number"}, "3.5", 3.5),
        ({"type": "number"}, "-2e3", -2000.0),
        ({"type": "number"}, "NaN", "NaN"),
        ({"type": "number"}, "1e999", "1e999"),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": "boolean"}, "yes", "yes"),
        ({"type": "object"}, '{"a": [1]}', {"a": [1]}),
        ({"type": "object"}, "{'a': True, 'b': None}", {"a": True, "b": None}),
        ({"type": "object"}, "not_json", "not_json"),
        ({"type": "array"}, '["a", "b"]', ["a", "b"]),
        ({"type": "array"}, "('a', 'b')", ["a", "b"]),
        ({"type": "array"}, '{"a": 1}', '{"a": 1}'),
        ({"type": "array"}, "[__import__('os')]", "[__import__('os')]"),
        ({"type": "array", "items": INTEGER}, ["1", 2], [1, 2]),
        ({"type": "array", "items": INTEGER}, '["1", 2]', [1, 2]),
        ({"type": "object", "properties": {"n": INTEGER}}, {"n": "1", "m": "2"}, {"n": 1, "m": "2"}),
        ({"type": "object", "additionalProperties": INTEGER}, {"n": "1"}, {"n": 1}),
        (STRING, "3", "3"),
        (STRING, '{"a": 1}', '{"a": 1}'),
        (STRING, "true", "true"),
        (STRING, 5, "5"),
        (STRING, {"a": 1}, {"a": 1}),
        (STRING, 1.5, 1.5),
        (STRING, True, True),
        ({"enum": [1, 2]}, "2", 2),
        ({"const": 1}, "1", 1),
        ({"type": ["string", "null"]}, "null", "null"),
        ({"type": ["integer", "null"]}, "null", None),
        ({"type": "integer", "nullable": True}, "None", None),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "7", 7),
        ({"oneOf": [{"type": "boolean"}, {"type": "array"}]}, "[1]", [1]),
        ({"anyOf": [STRING, INTEGER]}, "7", "7"),
        ({"allOf": [{"description": "how many"}, INTEGER]}, "7", 7),
        ({}, "7", "7"),
        (True, "7", "7"),
        ({"type": "kartoffel"}, "7", "7"),
    ],
)
def test_values_become_what_the_schema_declares_and_text_stays_text(schema: Any, written: Any, meant: Any) -> None:
    read = of_value(schema, written)
    assert read == meant
    assert type(read) is type(meant)


@pytest.mark.parametrize(
    ("schema", "written", "meant"),
    [
        (STRING, " 007\n", " 007\n"),
        (STRING, "null", "null"),
        (INTEGER, " 7\n", 7),
        (INTEGER, "abc", "abc"),
        ({"type": ["null", "string"]}, "null", None),
        ({"type": ["null", "string"]}, "hello", "hello"),
        ({"type": ["string", "integer"]}, "7", 7),
        ({"type": ["string", "integer"]}, "7 ", "7 "),
        ({"type": ["string", "boolean"]}, "True", "True"),
        ({"type": ["string", "array"]}, "['a']", "['a']"),
        ({"type": ["string", "array"]}, '["a"]', ["a"]),
        ({"type": "object", "properties": {"n": INTEGER}}, '{"n": "1"}', {"n": 1}),
        ({}, "7", "7"),
    ],
)
def test_text_that_says_nothing_of_its_type_is_typed_by_the_schema(schema: Any, written: str, meant: Any) -> None:
    read = of_value(schema, written, raw=True)
    assert read == meant
    assert type(read) is type(meant)


def test_what_fits_within_is_the_same_object_too() -> None:
    inner = {"n": 1, "list": [1, 2]}
    args = {"x": inner}
    schema = {"type": "object", "properties": {"n": INTEGER, "list": {"type": "array", "items": INTEGER}}}
    assert aligned("f", args, [tool("f", x=schema)]).args is args


def test_references_are_followed_and_may_go_round() -> None:
    node = {"type": "object", "properties": {"n": INTEGER, "next": {"$ref": "#/$defs/node"}}}
    schema = {"type": "object", "properties": {"node": {"$ref": "#/$defs/node"}}, "$defs": {"node": node, "x": {"$ref": "#/$defs/x"}}}
    tools = [{"name": "f", "parameters": schema}]
    assert aligned("f", {"node": {"n": "1", "next": {"n": "2"}}}, tools).args == {"node": {"n": 1, "next": {"n": 2}}}
    schema["properties"]["node"] = {"$ref": "#/$defs/x"}
    assert aligned("f", {"node": "1"}, tools).args == {"node": "1"}


def test_parameters_behind_a_reference_are_known() -> None:
    schema = {"$ref": "#/$defs/args", "$defs": {"args": {"type": "object", "properties": {"count": INTEGER}, "required": ["count"]}}}
    assert aligned("f", {"Count": "2"}, [{"name": "f", "parameters": schema}]).args == {"count": 2}


def test_every_change_is_listed_and_the_arguments_given_are_not_touched() -> None:
    args = {"path": "a", "limit": "3"}
    before = copy.deepcopy(args)
    found = aligned("ReadFile", args)
    assert found.repairs == ("ReadFile → read_file", "path → file_path", 'limit: "3" → 3')
    assert args == before


def test_typing_by_the_schema_is_no_repair() -> None:
    assert not aligned("read_file", {"file_path": "a", "limit": "3"}, raw=True).repairs


def test_what_still_does_not_fit_is_told() -> None:
    found = aligned("read_file", {"limit": "many"})
    assert found.args == {"limit": "many"}
    assert found.problems == ("file_path is required", "limit must be an integer, not a string")


def test_tool_specs_are_taken_as_they_are() -> None:
    spec = ToolSpec.of("read_file", "", {"type": "object", "properties": {"n": INTEGER}})
    assert aligned("read_file", {"n": "1"}, [spec]).args == {"n": 1}


def test_names_with_one_meaning_are_settled_before_those_with_several() -> None:
    """`glob` may mean `pattern` or `include`; once `query` is `pattern`, it means `include`."""
    grep = tool("grep", ("pattern",), pattern=STRING, include=STRING)
    assert aligned("grep", {"query": "x", "glob": "*.py"}, [grep]).args == {"pattern": "x", "include": "*.py"}
    assert aligned("grep", {"glob": "*.py"}, [grep]).args == {"pattern": "*.py"}


def test_another_unit_is_another_number_and_no_typo() -> None:
    wait = tool("wait", ("timeout_s",), timeout_s={"type": "number"})
    assert aligned("wait", {"timeout_ms": 5000}, [wait]).args == {"timeout_ms": 5000}
    assert aligned("wait", {"timeoutMs": 5000}, [wait]).args == {"timeoutMs": 5000}
    assert aligned("wait", {"timout_s": 5}, [wait]).args == {"timeout_s": 5}
