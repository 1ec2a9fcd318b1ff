"""The public namespace: lazy, complete, and honest about what it has."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

import dragoman


@pytest.fixture
def borrowed(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A public name lent by the standard library, so that the mechanism is seen apart from what it offers."""
    monkeypatch.setitem(dragoman._EXPORTS, "fsum", "math")
    yield "fsum"
    vars(dragoman).pop("fsum", None)


def test_a_name_is_imported_when_asked_for_and_then_kept(borrowed: str) -> None:
    import math

    assert borrowed not in vars(dragoman)
    assert getattr(dragoman, borrowed) is math.fsum
    assert vars(dragoman)[borrowed] is math.fsum


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'dragoman' has no attribute 'nonsense'"):
        _ = dragoman.nonsense
    assert not hasattr(dragoman, "__wrapped__")


PUBLIC = ("dragoman", "dragoman.testing")
SOURCE = Path(dragoman.__path__[0]).parent


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_resolves_and_is_listed(name: str) -> None:
    module = import_module(name)
    assert set(module.__all__) <= set(dir(dragoman)) | set(module._EXPORTS)
    for public in module.__all__:
        assert getattr(module, public) is not None, public


@pytest.mark.parametrize("name", PUBLIC)
def test_type_checkers_see_the_same_names_from_the_same_modules(name: str) -> None:
    """The block for type checkers is read, because it is never run."""
    module = import_module(name)
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname: node.module for node in imports for alias in node.names if alias.name == alias.asname}
    modules = dict.fromkeys(getattr(module, "_MODULES", ()), "dragoman")
    assert seen == module._EXPORTS | modules


@pytest.mark.parametrize(
    ("old", "name", "new"),
    [
        ("dragoman.base.words", "in_language", "dragoman.words"),
        ("dragoman.tools.citations", "cite", "dragoman.tools.web.citations"),
        ("dragoman.tools.links", "display_text", "dragoman.tools.web.links"),
    ],
)
def test_what_pages_of_the_version_before_named_is_had_with_a_warning(old: str, name: str, new: str) -> None:
    module = import_module(old)
    with pytest.warns(DeprecationWarning, match=f"{old} is {new} from version 0.2 on"):
        assert getattr(module, name) is getattr(import_module(new), name)
    with pytest.raises(AttributeError):
        _ = module.nonsense


def test_there_are_few_names_at_the_top() -> None:
    assert len(dragoman._EXPORTS) <= 70


@pytest.mark.parametrize("name", dragoman._MODULES)
def test_a_public_module_says_where_its_names_come_from(name: str) -> None:
    module = import_module(f"dragoman.{name}")
    assert getattr(dragoman, name) is module
    assert module.__doc__


@pytest.mark.parametrize("name", [name for name in dragoman._MODULES if name not in ("context", "testing")])
def test_a_public_module_lists_all_that_it_offers(name: str) -> None:
    module = import_module(f"dragoman.{name}")
    offered = {each for each in vars(module) if not each.startswith("_")}
    assert sorted(module.__all__) == sorted(offered)


def test_every_event_and_every_entry_is_public() -> None:
    events = {*get_args(dragoman.TurnEvent), *get_args(dragoman.StreamEvent)}
    assert {each.__name__ for each in events} <= {*dragoman.events.__all__}, "events.py lists them"
    assert {each.__name__ for each in get_args(dragoman.record.Entry)} <= {*dragoman.record.__all__}, "record.py lists them"


def test_a_misspelt_name_is_an_error_to_type_checkers(tmp_path: Path) -> None:
    """E.g. `dm.Agnet`: the module's `__getattr__` is not for them."""
    source = tmp_path / "misspelt.py"
    source.write_text("import dragoman as dm\n\nright = dm.Agent, dm.events.Retrying, dm.testing.Script\nwrong = dm.Agnet\n")
    checker = Path(sys.executable).with_name("pyrefly")
    checked = subprocess.run([checker, "check", "--preset", "default", "--search-path", SOURCE, source], capture_output=True, text=True)
    told = checked.stdout + checked.stderr
    assert "Agnet" in told
    assert told.count("ERROR") == 1, told


def test_no_public_name_is_a_modules_too() -> None:
    """Whoever imports the module would find it in the place of the name."""
    import pkgutil

    modules = {module.name for module in pkgutil.iter_modules(dragoman.__path__)}
    assert set(dragoman._EXPORTS) & modules == set()


def test_type_checkers_know_the_signature_of_a_tool(tmp_path: Path) -> None:
    source = tmp_path / "tools.py"
    head = "import dragoman as dm\n\n\n@dm.tool(read_only=True)\ndef tides(harbour: str) -> list[str]:\n    return [harbour]\n\n\n"
    source.write_text(f"{head}right: list[str] = tides('Muscat')\nresult: str = dm.ToolResult('1', 'tides').text\nwrong = tides(7)\n")
    checker = Path(sys.executable).with_name("pyrefly")
    checked = subprocess.run([checker, "check", "--preset", "default", "--search-path", SOURCE, source], capture_output=True, text=True)
    assert (checked.stdout + checked.stderr).count("ERROR") == 1, checked.stdout + checked.stderr


TYPED_RUNS = """\
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

import dragoman as dm
from dragoman.events import TurnEvent


@dataclass
class Harbour:
    name: str


class Tide(TypedDict):
    high: list[str]


async def book(berth: int) -> float:
    return berth / 2


def plain(berth: int) -> bytes:
    return bytes(berth)


async def ask(model: str, schema: Mapping[str, Any]) -> None:
    agent = dm.Agent(model, system="Be brief.", limits=dm.Limits(output_tries=1))
    assert_type(agent, dm.Agent[None, str])
    assert_type(dm.Agent(model, deps=Harbour("Sur")), dm.Agent[Harbour])
    assert_type(dm.coding_agent(model, deps=Harbour("Sur"), output=Tide), dm.Agent[Harbour, Tide])
    assert_type((await agent.run("hi")).output, str)
    assert_type((await agent.run("hi", output=Harbour, settings=dm.Settings())).output, Harbour)
    assert_type((await agent.run("hi", output=list[Harbour])).output, list[Harbour])
    assert_type((await agent.run("hi", output=Tide)).output, Tide)
    assert_type((await agent.run("hi", output=book)).output, float)
    assert_type((await agent.run("hi", output=plain)).output, bytes)
    assert_type((await agent.run("hi", output=schema)).output, Any)
    either: dm.Result[Harbour | Tide] = await agent.run("hi", output=Harbour | Tide)
    assert_type(either.output, Harbour | Tide)
    assert_type(agent.run_sync("hi", output=Harbour).output, Harbour)
    typed = dm.Agent(model, output=Harbour)

    @typed.check
    def known(harbour: Harbour) -> Harbour:
        return harbour

    async with typed.run("hi") as run:
        async for event in run:
            assert_type(event, TurnEvent)
    assert_type(run.result.output.name, str)
    assert_type(typed.run_sync("hi").output, Harbour)
    assert_type(typed.run_sync("hi", output=int).output, int)


def keep(agent: dm.Agent, run: dm.Run, result: dm.Result) -> str:
    return result.output


wrong = dm.Agent("gemini", sytem="misspelt")
worse: int = dm.Agent("gemini").run_sync("hi").output
"""


def test_type_checkers_know_the_type_of_an_output(tmp_path: Path) -> None:
    """Every line holds but the last two."""
    source = tmp_path / "typed_runs.py"
    source.write_text(TYPED_RUNS)
    checker = Path(sys.executable).with_name("pyrefly")
    checked = subprocess.run([checker, "check", "--preset", "default", "--search-path", SOURCE, source], capture_output=True, text=True)
    told = checked.stdout + checked.stderr
    lines = TYPED_RUNS.splitlines()
    assert {int(number) for number in re.findall(r"typed_runs.py:(\d+):", told)} == {len(lines) - 1, len(lines)}, told


def test_the_overloads_of_an_agent_name_its_parameters() -> None:
    """They are written down apart from the function, for type checkers alone."""
    import inspect

    from dragoman.loop.agent_signature import AgentOptions, RunArguments, SyncRunOptions

    for function, options in (
        (dragoman.Agent.__init__, AgentOptions),
        (dragoman.Agent.run, RunArguments),
        (dragoman.Agent.run_sync, SyncRunOptions),
    ):
        named = {name for name, each in inspect.signature(function).parameters.items() if each.kind is each.KEYWORD_ONLY}
        assert named - {"output", "deps"} == set(options.__annotations__), function
