"""The tools there are, by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.tools.builtin import ToolDependencies, builtin_tools
from dragoman.tools.output import Outputs
from dragoman.tools.registry import Registry
from dragoman.tools.workspace import Workspace
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.errors import InputError
from dragoman.values.messages import ToolSpec
from scheduling import PlainTool


def registry(*names: str) -> Registry:
    return Registry([PlainTool(name) for name in names])


def test_tools_stand_in_the_order_of_their_registration() -> None:
    tools = registry("write", "read", "edit")
    assert tools.names == ("write", "read", "edit")
    assert [tool.spec.name for tool in tools] == ["write", "read", "edit"]
    assert [spec.name for spec in tools.specs] == ["write", "read", "edit"]
    assert len(tools) == 3
    assert "read" in tools
    assert "nope" not in tools


def test_specs_stay_the_same_object_until_something_changes() -> None:
    """What was rendered for one request is found again for the next."""
    tools = registry("read", "edit")
    before = tools.specs
    assert tools.specs is before
    tools.register(PlainTool("write"))
    assert tools.specs is not before
    assert tools.specs[:2] == before
    assert tools.specs[0] is before[0]


def test_a_name_is_taken_once_unless_it_is_to_be_replaced() -> None:
    tools = registry("read", "edit")
    with pytest.raises(InputError, match="already a tool called 'read'"):
        tools.register(PlainTool("read"))
    other = PlainTool("read")
    tools.register(other, replace=True)
    assert tools.get("read") is other
    assert tools.names == ("read", "edit")


def test_a_tool_can_be_taken_out() -> None:
    tools = registry("read", "edit")
    read = tools.get("read")
    assert tools.remove("read") is read
    assert tools.remove("read") is None
    assert tools.get("read") is None
    assert [spec.name for spec in tools.specs] == ["edit"]


def test_tools_may_come_and_go_while_they_are_listed() -> None:
    tools = registry("a", "b")
    for tool in tools:
        tools.remove(tool.spec.name)
    assert len(tools) == 0


@pytest.mark.parametrize("name", ["", "1st", "read file", "läs", "a.b", "a" * 65, "read\n"])
def test_a_name_no_service_takes_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="invalid tool name"):
        registry(name)


@pytest.mark.parametrize("name", ["a", "_", "read-file", "A" * 64])
def test_a_name_every_service_takes_is_good(name: str) -> None:
    assert registry(name).names == (name,)


@pytest.mark.parametrize("parameters", ["{", "[]", '"object"'])
def test_parameters_that_are_no_schema_are_refused(parameters: str) -> None:
    tool = PlainTool("t")
    tool.spec = ToolSpec("t", "", parameters)
    with pytest.raises(InputError, match="the parameters of tool 't'"):
        Registry([tool])


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("Read_File", "read_file"),
        ("readFile", "read_file"),
        ("read-file", "read_file"),
        ("raed_file", "read_file"),
        ("functions.run_shell", "run_shell"),
        ("default_api:grep", "grep"),
        ("tools/Grep", "grep"),
    ],
)
def test_the_nearest_names_are_found(wrong: str, right: str) -> None:
    assert registry("read_file", "read_many_files", "run_shell", "grep").nearest(wrong)[0] == right


def test_what_is_near_nothing_finds_nothing() -> None:
    assert registry("read_file", "grep").nearest("xyzzy") == []
    assert registry("read_file", "grep").nearest("\x1b[0m" * 100_000) == []


def test_built_in_tools_take_no_parameter_that_they_do_not_declare(tmp_path: Path) -> None:
    """Otherwise another name for an optional one is ignored, and the call does something else than was meant."""
    dependencies = ToolDependencies(
        Workspace(tmp_path), MemoryBlobs(), Outputs(tmp_path / "out", 1_000), ask_user=_ask_nobody, memory_file=str(tmp_path / "memory.md")
    )
    for each in builtin_tools(dependencies):
        assert each.spec.schema["additionalProperties"] is False, each.spec.name


async def _ask_nobody(question: str, choices: Sequence[str]) -> str:
    return ""
