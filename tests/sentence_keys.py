"""Finds every place of the source that looks a sentence up by a key that is not written out, and the keys it can ask for.

The syntax tree is followed backwards from `say(…)` and `lookup(…)`: through names, tables, conditions, what a function returns and what its
callers give it (here), and to types that are a `Literal` (literal_types.py). Where that leads nowhere, the place has no keys, and whoever
asks must name them.
"""

from __future__ import annotations

import ast
import importlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from literal_types import UNKNOWN, Literals, alternatives
from narrowing import narrowed
from source_trees import Module, assigned, captured, dotted, name_of, names_in

LOOKED_UP_BY = ("say", "lookup")
"""The functions of the catalogue that take a key."""
CHANGES = {"replace", "lower", "upper", "strip", "removeprefix", "removesuffix"}
MOST = 4_000
"""More combinations than a place can mean."""
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Place:
    """One call whose key is put together, or chosen elsewhere."""

    where: str
    """The file and the line, for the reader of a failure."""
    pattern: str
    """The key with `{}` for what is filled in; where all of it is, the function around the call and the expression."""
    keys: frozenset[str] | None
    """None where the source alone does not tell."""


class Source:
    """All modules of a package, importable under its name."""

    def __init__(self, folder: Path, skip: Callable[[Path], bool] = lambda path: False) -> None:
        paths = [path for path in sorted(folder.rglob("*.py")) if not skip(path)]
        self.owner: dict[ast.AST, Module] = {}
        """The module of every node of a tree that was looked into."""
        self.modules = [Module(path, dotted(path, folder), self.owner) for path in paths]
        self.types = Literals(self)
        self._busy: set[ast.AST] = set()
        self._known: dict[ast.AST, list[Any]] = {}

    def places(self) -> Iterator[Place]:
        """Every call that looks up a key which is not a plain literal."""
        for module in self.modules:
            if not any(name in module.text for name in LOOKED_UP_BY):
                continue
            names = _names_of_lookups(module.tree)
            for node in ast.walk(module.tree):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
                    yield from self._place(module, node)

    def _place(self, module: Module, node: ast.Name) -> Iterator[Place]:
        call = module.parents[node]
        where = f"{module.path.name}:{node.lineno}"
        if not isinstance(call, ast.Call) or call.func is not node or not call.args:
            yield Place(where, f"{self._around(node)}: {ast.unparse(call)}", None)
        else:
            for key in _branches(call.args[0]):
                keys = self.values(key)
                whole = all(isinstance(each, str) for each in keys)
                yield Place(where, self._pattern(key), frozenset(keys) if keys and whole else None)

    def _pattern(self, key: ast.expr) -> str:
        if isinstance(key, ast.JoinedStr):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in key.values)
        if isinstance(key, ast.Name):
            made = [value for _, value in self.bindings(key) if isinstance(value, ast.JoinedStr)]
            if len(made) == 1:
                return self._pattern(made[0])
        return f"{self._around(key)}: {ast.unparse(key)}"

    def _around(self, node: ast.AST) -> str:
        return next((each.name for each in self.owner[node].above(node) if isinstance(each, Function)), "")

    # --- what an expression can be

    def values(self, node: ast.expr) -> list[Any]:
        """All objects an expression can be, with UNKNOWN among them where the source alone does not tell."""
        if node in self._known:
            return self._known[node]
        if node in self._busy:
            return [UNKNOWN]
        self._busy.add(node)
        try:
            found = self._values(node)[:MOST]
            if UNKNOWN in found and (literals := self.types.literals(node)) is not None:
                found = [*literals]
            self._known[node] = narrowed(self.owner[node], node, _unique(found))
        finally:
            self._busy.discard(node)
        return self._known[node]

    def _values(self, node: ast.expr) -> list[Any]:
        match node:
            case ast.Constant(value=value):
                return [value]
            case ast.JoinedStr(values=parts):
                return [_joined(tuple(map(_shown, each))) for each in itertools.product(*map(self.values, parts))]
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None) | ast.NamedExpr(value=value):
                return self.values(value)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return [_joined(each) for each in itertools.product(self.values(left), self.values(right))]
            case ast.IfExp(body=body, orelse=orelse):
                return [*self.values(body), *self.values(orelse)]
            case ast.BoolOp(op=ast.Or(), values=[*first, last]):
                return [each for part in first for each in self.values(part) if each is UNKNOWN or each] + self.values(last)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return [*itertools.islice(itertools.product(*map(self.values, elements)), MOST)]
            case ast.Dict():
                return [self._table(node)]
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
                return [tuple(self.values(element))]
            case ast.Subscript(value=base, slice=index):
                return [each for table in self.values(base) for each in self._items(table, index)]
            case ast.Attribute(value=base, attr=name):
                getters = [getattr(each, "fget", None) or getattr(each, "func", None) for each in self.types.methods(base, name)]
                found = [getattr(each, name, UNKNOWN) for each in self.values(base) if each is not UNKNOWN and not isinstance(each, str)]
                return self._returned(getters) if any(getters) else found or [UNKNOWN]
            case ast.Call():
                return self._called(node)
            case ast.Name():
                return [each for read in self._bound(node) for each in read()]
            case _:
                return [UNKNOWN]

    def _table(self, node: ast.Dict) -> Any:
        """A dict with all the keys it may have, and what stands under each where that is one thing."""
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            for part in self.values(value) if key is None else [{each: _only(self.values(value)) for each in self.values(key)}]:
                if not isinstance(part, Mapping) or UNKNOWN in part:
                    return UNKNOWN
                found |= part
        return found

    def _items(self, table: Any, index: ast.expr) -> list[Any]:
        if isinstance(index, ast.Slice):
            bounds = [None if each is None else _only(self.values(each)) for each in (index.lower, index.upper, index.step)]
            return [table[slice(*bounds)] if isinstance(table, str | tuple) and UNKNOWN not in bounds else UNKNOWN]
        found = []
        for key in self.values(index):
            if isinstance(table, Mapping) and table:
                found += [table[key]] if key in table else [*table.values()]
            elif isinstance(table, str | tuple) and isinstance(key, int):
                found += [table[key]] if -len(table) <= key < len(table) else []
            else:
                found += [*table] if isinstance(table, tuple) else [UNKNOWN]
        return found

    def _called(self, call: ast.Call) -> list[Any]:
        match call:
            case ast.Call(func=ast.Attribute(value=base, attr="get"), args=[_, *default]):
                tables = self.values(base)
                if all(isinstance(each, Mapping) and each for each in tables):  # an empty one is filled later
                    return [each for table in tables for each in table.values()] + (self.values(default[0]) if default else [None])
            case ast.Call(func=ast.Attribute(value=base, attr=change)) if change in CHANGES:
                given = [_only(self.values(each)) for each in call.args]
                return [getattr(each, change)(*given) if isinstance(each, str) else UNKNOWN for each in self.values(base)]
            case ast.Call(func=ast.Name(id="str"), args=[only]):
                return self.values(only)
            case ast.Call(func=ast.Name() as function):
                return self._returned([self.types.named(function)])
            case ast.Call(func=ast.Attribute(value=base, attr=name)):
                return self._returned(self.types.methods(base, name))
        return [UNKNOWN]

    def _returned(self, functions: list[Any]) -> list[Any]:
        """What functions return, if each is one of the source that returns a text."""
        found: list[Any] = []
        for function in functions:
            function = getattr(function, "__func__", function)
            module = self.types.module(getattr(function, "__module__", ""))
            name = getattr(function, "__qualname__", "").split(".")
            body: ast.AST | None = module.tree if module else None
            for part in name if module else []:
                inner = [each for each in getattr(body, "body", []) if getattr(each, "name", "") == part]
                body = inner[-1] if inner else None
            if not isinstance(body, Function) or "str" not in ast.unparse(body.returns or ast.Constant("")):
                return [UNKNOWN]
            returned = [each.value for each in ast.walk(body) if isinstance(each, ast.Return) and each.value is not None]
            found += [value for each in returned for value in self.values(each)]
        return found or [UNKNOWN]

    # --- what a name stands for

    def bindings(self, name: ast.Name) -> list[tuple[ast.expr, ast.expr]]:
        """What is assigned to a name in the function around it: the target and the value."""
        scope = next((each for each in self.owner[name].above(name) if isinstance(each, Function)), None)
        return [(target, value) for target, value in assigned(scope) if name.id in names_in(target)] if scope else []

    def _bound(self, name: ast.Name) -> list[Callable[[], list[Any]]]:
        """How to read the values of a name: the innermost scope that binds it decides."""
        module = self.owner[name]
        for scope in module.above(name):
            if isinstance(scope, COMPREHENSIONS):
                loops = [(each.target, each.iter) for each in scope.generators if name.id in names_in(each.target)]
            elif isinstance(scope, SCOPES):
                if (read := self._parameter(module, scope, name.id)) is not None:
                    return [read]
                loops = [
                    (each.target, each.iter) for each in ast.walk(scope) if isinstance(each, ast.For) and name.id in names_in(each.target)
                ]
                given = [(target, value) for target, value in assigned(scope) if name.id in names_in(target)]
                if given or any(name.id in names for names in captured(scope)):
                    unread = [lambda: [UNKNOWN]] if any(name.id in names for names in captured(scope)) else []
                    reads = [lambda target=target, value=value: _picked(target, name.id, self.values(value)) for target, value in given]
                    return [*unread, *reads, *self._loops(loops, name.id)]
            else:
                continue
            if loops:
                return self._loops(loops, name.id)
        return [lambda: [vars(importlib.import_module(module.name)).get(name.id, UNKNOWN)]]

    def _loops(self, loops: list[tuple[ast.expr, ast.expr]], name: str) -> list[Callable[[], list[Any]]]:
        return [lambda target=target, over=over: _picked(target, name, self.elements(over)) for target, over in loops]

    def elements(self, over: ast.expr) -> list[Any]:
        """What a loop goes through."""
        match over:
            case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
                return [
                    value
                    for each in elements
                    for value in (self.elements(each.value) if isinstance(each, ast.Starred) else self.values(each))
                ]
            case ast.Call(func=ast.Attribute(value=base, attr="items" | "values" | "keys" as way)):
                tables = self.values(base)
                return [each for table in tables for each in (getattr(table, way)() if isinstance(table, Mapping) and table else [UNKNOWN])]
            case ast.Call(func=ast.Name(id="get_args"), args=[ast.Name() as written]):
                return alternatives(self.types.named(written)) or [UNKNOWN]
            case ast.Call(func=ast.Name(id="sorted" | "reversed" | "list" | "tuple"), args=[inner]):
                return self.elements(inner)
            case ast.IfExp(body=body, orelse=orelse):
                return [*self.elements(body), *self.elements(orelse)]
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner]):
                return [(UNKNOWN, each) for each in self.elements(inner)]
        found: list[Any] = []
        for each in self.values(over):
            found += [*each] if isinstance(each, tuple | list | frozenset | set | Mapping) and each else [UNKNOWN]
        return found

    def _parameter(self, module: Module, function: ast.AST, name: str) -> Callable[[], list[Any]] | None:
        """Reads a parameter from its type where that is a Literal, else from every call."""
        if isinstance(function, ast.Lambda) or not isinstance(function, Function):
            return None
        arguments = function.args
        positional = [*arguments.posonlyargs, *arguments.args]
        found = [each for each in (*positional, *arguments.kwonlyargs) if each.arg == name]
        if not found:
            return None
        literals = alternatives(self.types.annotation(module, found[0].annotation))
        if literals is not None:
            return lambda: [*literals]
        defaults = dict(zip([each.arg for each in reversed(positional)], reversed(arguments.defaults), strict=False))
        defaults |= {each.arg: value for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value is not None}
        is_method = positional[:1] != [] and positional[0].arg in ("self", "cls")
        if (is_method and found[0] is positional[0]) or "str" not in ast.unparse(found[0].annotation or ast.Constant("")):
            return lambda: [UNKNOWN]  # an object: its type tells more than its callers
        at = positional.index(found[0]) - is_method if found[0] in positional else None
        return lambda: self._given(module, function.name, name, at, defaults.get(name))

    def _given(self, module: Module, function: str, name: str, at: int | None, default: ast.expr | None) -> list[Any]:
        modules = [module] if function.startswith("_") else [each for each in self.modules if f"{function}(" in each.text]
        calls = [call for each in modules for call in each.calls.get(function, []) if self._is_of(module, function, call)]
        found: list[Any] = [UNKNOWN] if self._is_passed_on(module, function) else []
        for call in calls:
            by_name = [each.value for each in call.keywords if each.arg == name]
            is_spread = any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords)
            if by_name:
                found += self.values(by_name[0])
            elif at is not None and at < len(call.args) and not is_spread:
                found += self.values(call.args[at])
            else:
                found += self.values(default) if default is not None and not is_spread else [UNKNOWN]
        return found or [UNKNOWN]

    def _is_of(self, module: Module, function: str, call: ast.Call) -> bool:
        """Whether a call can be one of this function, and not of another of the same name."""
        own = vars(importlib.import_module(module.name)).get(function)
        if own is None and isinstance(call.func, ast.Attribute):
            owners = self.types.of(call.func.value)
            methods = [vars(each).get(function) for owner in owners for each in getattr(owner, "__mro__", ())]
            return not owners or any(getattr(each, "__module__", "") == module.name for each in methods)
        if own is None:
            return self.owner[call] is module
        return isinstance(call.func, ast.Name) and self.types.named(call.func) in (own, UNKNOWN)

    def _is_passed_on(self, module: Module, function: str) -> bool:
        """Whether the module hands the function to something else that calls it."""
        called = {id(call.func) for call in module.calls.get(function, [])}
        return any(
            isinstance(node, ast.Name | ast.Attribute) and name_of(node) == function and id(node) not in called
            for node in ast.walk(module.tree)
        )


def _branches(key: ast.expr) -> Iterator[ast.expr]:
    """The sides of a condition that are not written out."""
    if isinstance(key, ast.IfExp):
        yield from _branches(key.body)
        yield from _branches(key.orelse)
    elif not isinstance(key, ast.Constant):
        yield key


def _names_of_lookups(tree: ast.Module) -> set[str]:
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1] == "words"]
    return {name.asname or name.name for node in imports for name in node.names if name.name in LOOKED_UP_BY}


def _picked(target: ast.expr, name: str, values: list[Any]) -> list[Any]:
    match target:
        case ast.Name(id=found) if found == name:
            return values
        case ast.Tuple(elts=elements):
            at = next((at for at, each in enumerate(elements) if name in names_in(each)), 0)
            if any(isinstance(each, ast.Starred) for each in elements[: at + 1]):
                return [UNKNOWN]
            inner = [each[at] if isinstance(each, tuple) and at < len(each) else UNKNOWN for each in values]
            return _picked(elements[at], name, inner)
        case _:
            return [UNKNOWN]


def _joined(parts: tuple[Any, ...]) -> Any:
    return "".join(parts) if all(isinstance(each, str) for each in parts) else UNKNOWN


def _shown(part: Any) -> Any:
    return str(part) if isinstance(part, int) else part


def _only(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else UNKNOWN


def _unique(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    seen: set[str] = set()
    for each in values:
        if not isinstance(each, str):
            found += [] if any(each is known for known in found) else [each]
        elif each not in seen:
            seen.add(each)
            found.append(each)
    return found
