"""Imports go downward only: ground ← rooms ← loop ← app ← front ends; annexes are opened where they are needed.

The rule is kept by reading the source, not by running it. Imports for type checkers alone (`if TYPE_CHECKING:`) are free.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = "dragoman"
SOURCE = Path(__file__).resolve().parent.parent / "src" / PACKAGE

# A room is a package directly under dragoman. A new one takes its place here, and in docs/architecture.md.
GROUND = ("base", "values", "http")
"""Each stands on those before it."""
ROOMS = {"context", "policy", "providers", "sessions", "text_tools", "tools"}
"""Blind to each other: they meet through `values.contracts`."""
LOOP = {"loop"}
APP = {"app"}
"""What all front ends share."""
FRONT_ENDS = {"__main__", "cli"}
ANNEXES = {"local", "testing"}
"""They stand on ground and rooms. Whoever opens one does it where it is needed, never while being loaded."""


@dataclass(frozen=True)
class Import:
    """One import of something of ours, as written."""

    importer: str
    target: str
    line: int
    at_top: bool
    """Whether it happens when the importer is loaded, not when one of its functions is called."""

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


def test_every_room_has_a_layer() -> None:
    homeless = {room_of(module) for module in modules()} - {*GROUND} - ROOMS - LOOP - APP - FRONT_ENDS - ANNEXES - {""}
    assert not homeless, f"say in tests/test_imports.py which layer these belong to: {sorted(homeless)}"


def test_imports_go_downward() -> None:
    assert [str(each) for each in upward_imports(modules())] == []


def test_no_module_is_loaded_in_a_circle() -> None:
    assert cycles(modules()) == []


def test_the_public_namespace_loads_nothing_of_ours() -> None:
    assert [str(each) for each in imports_of(PACKAGE, modules()) if each.at_top] == []


# The checks themselves, on small planted trees: each rule is seen to fail.


@pytest.mark.parametrize(
    ("importer", "line"),
    [
        ("base.jsontext", "from dragoman.values.errors import InputError"),
        ("values.messages", "from dragoman.providers import wire"),
        ("values.messages", "from dragoman.http import sse"),
        ("values.messages", "import dragoman.loop.agent"),
        ("values.messages", "from dragoman import Message"),
        ("http.sse", "from dragoman.providers.wire import Wire"),
        ("providers.wire", "from dragoman.tools.registry import Registry"),
        ("providers.wire", "from dragoman import tools"),
        ("providers.wire", "from ..tools import registry"),
        ("providers.wire", "def f():\n    import dragoman.tools.registry"),
        ("providers.wire", "try:\n    from dragoman.loop import agent\nexcept ImportError:\n    pass"),
        ("providers.wire", "from dragoman.local import engine"),
        ("tools", "from dragoman.loop.agent import Agent"),
        ("local.engine", "from dragoman.loop.agent import Agent"),
        ("local.engine", "from dragoman.testing import script"),
        ("loop.agent", "from dragoman.cli import main"),
        ("loop.agent", "from dragoman.app import setup"),
        ("app.setup", "from dragoman.cli import main"),
        ("", "from dragoman import app"),
        ("loop.agent", "if TYPE_CHECKING:\n    pass\nelse:\n    from dragoman.cli import main"),
        ("", "from dragoman import cli"),
    ],
)
def test_an_upward_import_is_found(importer: str, line: str) -> None:
    assert len(list(upward_imports(plant(importer, line)))) == 1


@pytest.mark.parametrize(
    ("importer", "line"),
    [
        ("values.messages", "from dragoman.values.errors import InputError\nfrom dragoman.base import jsontext"),
        ("values.messages", "import json, msgspec"),
        ("values.messages", "import dragoman_plugin"),
        ("values.messages", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dragoman.loop.agent import Agent"),
        ("values.messages", "import typing\nif typing.TYPE_CHECKING:\n    from dragoman.loop.agent import Agent"),
        ("http.sse", "from dragoman.values import errors"),
        ("providers.wire", "from dragoman.values import messages, errors\nfrom dragoman.http.sse import decode"),
        ("providers.wire", "from dragoman.providers.gemini import to_wire"),
        ("providers.wire", "from . import gemini"),
        ("providers.wire", "from dragoman import __version__"),
        ("providers.wire", "def f():\n    from dragoman.local.engine import Engine"),
        ("providers", "from .wire import Wire"),
        ("local.engine", "from dragoman.providers.wire import Wire"),
        ("loop.agent", "from dragoman.tools import registry\nfrom dragoman.loop import chat\nfrom dragoman.values import messages"),
        ("cli.main", "import dragoman\nfrom dragoman.loop.agent import Agent\nfrom dragoman.providers import wire"),
        ("__main__", "from dragoman.cli.main import main"),
    ],
)
def test_a_downward_import_is_free(importer: str, line: str) -> None:
    assert [str(each) for each in upward_imports(plant(importer, line))] == []


def test_a_circle_is_found_and_a_deferred_import_is_none() -> None:
    circle = {
        "dragoman.loop.chat": "import dragoman.loop.turn",
        "dragoman.loop.turn": "from dragoman.loop.agent import x",
        "dragoman.loop.agent": "from dragoman.loop import chat",
    }
    assert cycles(circle) == [["dragoman.loop.agent", "dragoman.loop.chat", "dragoman.loop.turn"]]
    assert cycles(circle | {"dragoman.loop.agent": "def f():\n    from dragoman.loop import chat"}) == []
    assert cycles({"dragoman.loop.chat": "from dragoman.loop.chat import x"}) == [["dragoman.loop.chat"]]


PLANTED = (
    "base.jsontext values.messages values.errors http.sse providers.wire providers.gemini tools.registry loop.chat loop.agent "
    "local.engine testing.script app.setup cli.main"
)


def plant(importer: str, source: str) -> dict[str, str]:
    modules = {"", "__main__", *PLANTED.split(), *(name.partition(".")[0] for name in PLANTED.split())}
    tree = {".".join(filter(None, [PACKAGE, module])): "" for module in modules}
    return tree | {".".join(filter(None, [PACKAGE, importer])): source}


# Reading the imports.


def modules() -> dict[str, str]:
    """Every module of the package by dotted name, with its source."""
    return {module_name(path): path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}


def module_name(path: Path) -> str:
    parts = [PACKAGE, *path.relative_to(SOURCE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_package(module: str, tree: Mapping[str, str]) -> bool:
    return module == PACKAGE or any(other.startswith(f"{module}.") for other in tree)


def room_of(module: str) -> str:
    """The room a module is in; empty for the public namespace itself."""
    return module.partition(".")[2].partition(".")[0]


def may_import(importer: str, each: Import) -> bool:
    here, there = room_of(importer), room_of(each.target)
    if here == there:
        return True
    if there in ANNEXES:
        return not each.at_top and here not in GROUND
    if here in GROUND:
        return there in GROUND[: GROUND.index(here)]
    if here in ROOMS:
        return there in GROUND
    if here in ANNEXES:
        return there in {*GROUND} | ROOMS
    if here in LOOP:
        return there in {*GROUND} | ROOMS
    if here in APP:
        return there not in FRONT_ENDS
    return here in FRONT_ENDS or there not in FRONT_ENDS | APP  # the public namespace offers everything but the front ends


def upward_imports(tree: Mapping[str, str]) -> Iterator[Import]:
    for importer in tree:
        for each in imports_of(importer, tree):
            if not may_import(importer, each):
                yield each


def imports_of(importer: str, tree: Mapping[str, str]) -> Iterator[Import]:
    for statement, at_top in statements(ast.parse(tree[importer])):
        for target in targets(statement, importer, tree):
            yield Import(importer, target, statement.lineno, at_top)


def statements(node: ast.AST, at_top: bool = True) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """The import statements below a node, those for type checkers left out."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node, at_top
        return
    children = node.orelse if is_type_checking_block(node) else ast.iter_child_nodes(node)
    deferred = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for child in children:
        yield from statements(child, at_top and not deferred)


def is_type_checking_block(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def targets(statement: ast.Import | ast.ImportFrom, importer: str, tree: Mapping[str, str]) -> Iterator[str]:
    """The modules of ours that a statement names: `from a import b` means `a.b` where that is a module, else `a`."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names if is_ours(alias.name))
        return
    source = source_of(statement, importer, tree)
    if not is_ours(source):
        return
    for alias in statement.names:
        if source == PACKAGE and alias.name == "__version__":
            continue  # the one fact about the project that every room may tell
        full = f"{source}.{alias.name}"
        yield full if full in tree else source


def source_of(statement: ast.ImportFrom, importer: str, tree: Mapping[str, str]) -> str:
    if statement.level == 0:
        return statement.module or ""
    climb = statement.level - (1 if is_package(importer, tree) else 0)
    base = importer.split(".")[: len(importer.split(".")) - climb]
    return ".".join([*base, *filter(None, [statement.module])])


def is_ours(module: str) -> bool:
    return module == PACKAGE or module.startswith(f"{PACKAGE}.")


def cycles(tree: Mapping[str, str]) -> list[list[str]]:
    """Groups of modules that need each other while being loaded, each sorted by name."""
    direct = {module: {each.target for each in imports_of(module, tree) if each.at_top and each.target in tree} for module in tree}
    reach = {module: reachable(module, direct) for module in tree}
    groups = {frozenset(other for other in reach[module] if module in reach[other]) for module in tree if module in reach[module]}
    return sorted(sorted(group) for group in groups)


def reachable(start: str, direct: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(direct[start])
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting.extend(direct[module])
    return found
