"""docs/inside/concurrency.md lists all that many agents share: state that outlives a call is found in the source and named there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "dragoman"
PAGE = ROOT / "docs" / "inside" / "concurrency.md"
KEEPERS = {"Turnstile", "OpenConnections", "WeakSet", "WeakValueDictionary", "WeakKeyDictionary", "ContextVar", "local"}
"""Whatever a module holds of these is changed later, or nobody would need it."""
EMPTY = {"dict", "list", "set", "deque", "defaultdict", "OrderedDict", "Counter"}


def test_what_many_agents_share_is_written_down() -> None:
    page = PAGE.read_text(encoding="utf-8")
    sources = {path.relative_to(SOURCE): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    shared = {f"{path}: {name}" for path, source in sources.items() for name in shared_in(source)}
    unlisted = sorted(each for each in shared if f"`{each.rpartition(' ')[2]}`" not in page)
    assert not unlisted, f"say in {PAGE.name} who shares these, and by which rule: {unlisted}"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("_memo: dict[str, int] = {}", ["_memo"]),
        ("waiting = []", ["waiting"]),
        ("_seen = set()", ["_seen"]),
        ("gate = Turnstile(3)", ["gate"]),
        ("_here = contextvars.ContextVar('x')", ["_here"]),
        ("@cache\ndef read(name): ...", ["read"]),
        ("@functools.lru_cache(maxsize=3)\ndef read(name): ...", ["read"]),
        ("_made = None\ndef make():\n    global _made\n    _made = 1", ["_made"]),
        ("WORDS = {'a': 1}", []),
        ("PATTERN = re.compile('x')", []),
        ("def f():\n    seen = {}", []),
    ],
)
def test_state_is_found(source: str, found: list[str]) -> None:
    assert list(shared_in(source)) == found


def shared_in(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value):
                if is_state(value):
                    yield name
            case ast.FunctionDef(name=name, decorator_list=decorators):
                if any("cache" in ast.unparse(decorator) for decorator in decorators):
                    yield name
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names


def is_state(value: ast.expr | None) -> bool:
    match value:
        case ast.Dict(keys=[]) | ast.List(elts=[]):
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args):
            return name in KEEPERS or (name in EMPTY and not args)
        case _:
            return False
