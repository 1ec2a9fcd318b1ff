"""Files of a source tree, parsed when they are looked into, and what binds a name in them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path


class Module:
    """A file of the source, parsed when it is first looked into: most never are."""

    def __init__(self, path: Path, name: str, owner: dict[ast.AST, Module]) -> None:
        self.path = path
        self.name = name
        self.text = path.read_text(encoding="utf-8")
        self.parents: dict[ast.AST, ast.AST] = {}
        self._owner = owner

    @cached_property
    def tree(self) -> ast.Module:
        tree = ast.parse(self.text)
        self.parents |= {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._owner |= dict.fromkeys((tree, *self.parents), self)
        return tree

    @cached_property
    def calls(self) -> dict[str, list[ast.Call]]:
        found: dict[str, list[ast.Call]] = defaultdict(list)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and (name := name_of(node.func)):
                found[name].append(node)
        return found

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent


def dotted(path: Path, folder: Path) -> str:
    return ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")


def name_of(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""


def names_in(target: ast.AST) -> set[str]:
    """The names that an assignment to this target changes."""
    if isinstance(target, ast.Subscript):
        return {target.value.id} if isinstance(target.value, ast.Name) else set()
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def assigned(scope: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((target, value) for target in targets)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                yield target, value
            case ast.AugAssign(target=target, value=value):
                yield target, node.value


def captured(scope: ast.AST) -> Iterator[set[str]]:
    """Names that a `match`, a `with` or an `except` binds: of these only the type can be known."""
    for node in ast.walk(scope):
        match node:
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name) | ast.ExceptHandler(name=str() as name):
                yield {name}
            case ast.withitem(optional_vars=ast.expr() as target):
                yield names_in(target)
