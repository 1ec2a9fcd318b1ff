"""The types of expressions, as far as annotations tell, to find those that are a Literal."""

from __future__ import annotations

import ast
import importlib
import inspect
import types
from collections.abc import Iterator, Mapping
from typing import Any, ForwardRef, Literal, Union, get_args, get_origin


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()
"""Stands for what the source alone does not tell."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def alternatives(annotation: Any) -> list[str] | None:
    """The texts of a Literal, or of a union of them. None among them is left out; None is returned for any other type."""
    if isinstance(annotation, str):
        return None
    found: list[str] = []
    for part in _members(annotation):
        if get_origin(part) is not Literal:
            return None
        found += [each for each in get_args(part) if isinstance(each, str)]
    return found or None


def _members(annotation: Any) -> list[Any]:
    if get_origin(annotation) in (Union, types.UnionType):
        return [each for part in get_args(annotation) for each in _members(part)]
    if isinstance(annotation, ForwardRef):  # what the public names are made of: an import, written out
        return _members(eval(annotation.__forward_arg__))
    return [] if annotation in (None, type(None), UNKNOWN) else [annotation]


class Literals:
    """Reads types of expressions off the annotations of a Source."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._modules = {module.name: module for module in source.modules}
        self._names: dict[str, _Names] = {}
        self._busy: set[ast.AST] = set()

    def literals(self, node: ast.expr) -> list[str] | None:
        """The texts an expression can be, by its type."""
        found = [alternatives(each) for each in self.of(node)]
        return [text for texts in found if texts for text in texts] if found and None not in found else None

    def annotation(self, module: Any, written: ast.expr | str | None) -> Any:
        """The type that an annotation means in its module."""
        if written is None:
            return UNKNOWN
        if module.name not in self._names:
            self._names[module.name] = _Names(module)
        names = self._names[module.name]
        try:
            return eval(written if isinstance(written, str) else ast.unparse(written), names.real, names)
        except (NameError, TypeError, AttributeError, SyntaxError):
            return UNKNOWN

    def of(self, node: ast.expr) -> list[Any]:
        """The types an expression can have; empty where nothing tells."""
        if node in self._busy:
            return []
        self._busy.add(node)
        try:
            return [member for each in self._of(node) for member in _members(each)]
        finally:
            self._busy.discard(node)

    def _of(self, node: ast.expr) -> list[Any]:
        match node:
            case ast.Await(value=value) | ast.NamedExpr(value=value):
                return self.of(value)
            case ast.Attribute(value=base, attr=name):
                return [each for owner in self.of(base) for each in self._attribute(owner, name)]
            case ast.Subscript(value=base):
                return [element for each in self.of(base) for element in _elements(each, by_key=True)]
            case ast.Call(func=ast.Name() as function):
                return self._returned(self.named(function))
            case ast.Call(func=ast.Attribute(value=base, attr="values")) if not self.methods(base, "values"):
                return [types.GenericAlias(tuple, (each, ...)) for table in self.of(base) for each in _elements(table, by_key=True)]
            case ast.Call(func=ast.Attribute(value=base, attr=name)):
                return [each for method in self.methods(base, name) for each in self._returned(method)]
            case ast.IfExp(body=body, orelse=orelse):
                return [*self.of(body), *self.of(orelse)]
            case ast.BoolOp(values=parts):
                return [each for part in parts for each in self.of(part)]
            case ast.Name():
                return self._name(node)
        return []

    def _name(self, node: ast.Name) -> list[Any]:
        module = self._source.owner[node]
        for scope in module.above(node):
            match scope:
                case ast.match_case(pattern=pattern) if captured := [*_captures(pattern, node.id)]:
                    return [each for path in captured for each in self._captured(module, node, path)]
                case ast.Match(subject=ast.Name(id=name)) if name == node.id:
                    case = next(each for each in module.above(node) if isinstance(each, ast.match_case))
                    if isinstance(case.pattern, ast.MatchClass | ast.MatchOr) and (types_ := self._classes(module, case.pattern)):
                        return types_
                case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                    found = [self._looped(each.target, each.iter, node.id) for each in scope.generators]
                    if any(each is not None for each in found):
                        return [each for part in found for each in part or []]
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    if (found := self._in_function(module, scope, node)) is not None:
                        return found
        return []

    def _in_function(self, module: Any, scope: Any, node: ast.Name) -> list[Any] | None:
        arguments = scope.args
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if each.arg == node.id:
                owner = module.parents.get(scope)
                if isinstance(owner, ast.ClassDef) and each.arg in ("self", "cls"):
                    return [getattr(importlib.import_module(module.name), owner.name, UNKNOWN)]
                return [self.annotation(module, each.annotation)]
        found: list[Any] = []
        is_bound = False
        for inner in ast.walk(scope):
            match inner:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=written) if name == node.id:
                    return [self.annotation(module, written)]
                case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.NamedExpr(target=ast.Name(id=name), value=value):
                    if name == node.id:
                        is_bound, found = True, [*found, *self.of(value)]
                case ast.Assign(targets=[ast.Tuple(elts=elements)], value=ast.Tuple(elts=values)) if node.id in map(_id, elements):
                    is_bound, found = True, [*found, *self.of(values[[*map(_id, elements)].index(node.id)])]
                case ast.Assign(targets=[ast.Tuple(elts=elements)], value=value) if node.id in map(_id, elements):
                    at = [*map(_id, elements)].index(node.id)
                    is_bound, found = True, [*found, *(get_args(each)[at] for each in self.of(value) if at < len(get_args(each)))]
                case ast.For(target=target, iter=over) if (looped := self._looped(target, over, node.id)) is not None:
                    is_bound, found = True, [*found, *looped]
                case ast.withitem(context_expr=value, optional_vars=ast.Name(id=name)) if name == node.id:
                    is_bound, found = True, [*found, *self.of(value)]
        return found if is_bound else None

    def _looped(self, target: ast.expr, over: ast.expr, name: str) -> list[Any] | None:
        if isinstance(target, ast.Name) and target.id == name:
            if isinstance(over, ast.Call) and _id(over.func) in ("sorted", "reversed", "list", "tuple") and over.args:
                over = over.args[0]
            return [element for each in self.of(over) for element in _elements(each)]
        if isinstance(target, ast.Tuple) and name in map(_id, target.elts):
            at = [*map(_id, target.elts)].index(name)
            if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr == "items":
                return [get_args(each)[at] for each in self.of(over.func.value) if len(get_args(each)) == 2]
            if isinstance(over, ast.Call) and _id(over.func) == "enumerate" and at == 1:
                return [element for each in self.of(over.args[0]) for element in _elements(each)]
            rows = [element for each in self.of(over) for element in _elements(each)]
            return [get_args(row)[at] for row in rows if at < len(get_args(row))]
        return None

    # --- classes

    def module(self, name: str) -> Any:
        return self._modules.get(name)

    def named(self, name: ast.Name) -> Any:
        return self.annotation(self._source.owner[name], name.id)

    def methods(self, base: ast.expr, name: str) -> list[Any]:
        return [found for owner in self.of(base) if (found := inspect.getattr_static(get_origin(owner) or owner, name, None)) is not None]

    def _returned(self, function: Any) -> list[Any]:
        function = getattr(function, "__func__", function)
        if isinstance(function, type):
            return [function]
        function = inspect.unwrap(function) if callable(function) else function
        written = getattr(function, "__annotations__", {}).get("return")
        return [] if written is None else [self._written(function.__module__, written)]

    def _written(self, module: str, written: Any) -> Any:
        known = self._modules.get(module)
        return written if not isinstance(written, str) else self.annotation(known, written) if known else UNKNOWN

    def _attribute(self, owner: Any, name: str) -> list[Any]:
        owner = get_origin(owner) or owner
        for base in getattr(owner, "__mro__", ()):
            if (written := inspect.get_annotations(base).get(name)) is not None:
                return [self._written(base.__module__, written)]
            found = vars(base).get(name)
            getter = getattr(found, "fget", None) or getattr(found, "func", None)
            if getter is not None:
                return self._returned(getter)
            if kept := self._kept(base, name):
                return kept
        return []

    def _kept(self, owner: type, name: str) -> list[Any]:
        """What `self.name` is set to in a method of a class that does not declare it."""
        module = self._modules.get(owner.__module__)
        classes = (
            [each for each in ast.walk(module.tree) if isinstance(each, ast.ClassDef) and each.name == owner.__name__] if module else []
        )
        for inner in (inner for each in classes for inner in ast.walk(each)):
            match inner:
                case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=attr), annotation=written) if attr == name:
                    return [self.annotation(module, written)]
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=attr)], value=value) if attr == name:
                    return self.of(value)
        return []

    def _classes(self, module: Any, pattern: ast.pattern) -> list[Any]:
        patterns = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
        return [self.annotation(module, each.cls) for each in patterns if isinstance(each, ast.MatchClass)]

    def _captured(self, module: Any, node: ast.Name, path: tuple[ast.expr | None, str]) -> list[Any]:
        owner, attribute = path
        if owner is None:
            return []
        kind = self.annotation(module, owner)
        return self._attribute(kind, attribute) if attribute else [kind]


class _Names(dict[str, Any]):
    """What names mean in a module, also those that are imported for the type checker alone."""

    def __init__(self, module: Any) -> None:
        self.real = vars(importlib.import_module(module.name))
        self._imports = {
            name.asname or name.name: (node.module, name.name)
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ImportFrom) and node.module and not node.level
            for name in node.names
        }

    def __missing__(self, name: str) -> Any:
        if name in self.real:
            return self.real[name]
        module, original = self._imports[name]
        return getattr(importlib.import_module(module), original)


def _captures(pattern: ast.pattern, name: str) -> Iterator[tuple[ast.expr | None, str]]:
    """How a pattern binds a name: to an object of a class, or to an attribute of one."""
    match pattern:
        case ast.MatchAs(name=bound, pattern=ast.MatchClass(cls=cls)) if bound == name:
            yield cls, ""
        case ast.MatchAs(pattern=ast.pattern() as inner):
            yield from _captures(inner, name)
        case ast.MatchOr(patterns=patterns):
            for each in patterns:
                yield from _captures(each, name)
        case ast.MatchClass(cls=cls, kwd_attrs=attributes, kwd_patterns=patterns):
            for attribute, inner in zip(attributes, patterns, strict=True):
                if isinstance(inner, ast.MatchAs) and inner.name == name and inner.pattern is None:
                    yield cls, attribute
                else:
                    yield from _captures(inner, name)


def _elements(annotation: Any, by_key: bool = False) -> list[Any]:
    """What a loop over an object of this type gives, or what stands under a key of it."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if not parts or not isinstance(origin, type):
        return []
    if issubclass(origin, Mapping):
        return [parts[1] if by_key else parts[0]]
    return [parts[0]] if origin is not tuple or parts[-1] is Ellipsis else [*parts]


def _id(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""
