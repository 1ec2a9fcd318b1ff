"""Which values an expression can still have at its place: after the conditions around it, and those before it that left the function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def narrowed(module: Any, node: ast.expr, values: list[Any]) -> list[Any]:
    """The values without those that a condition on the same expression has ruled out."""
    text = ast.dump(_loaded(node))
    for condition, holds in _conditions(module, node):
        values = [each for each in values if not isinstance(each, str | type(None)) or _agrees(condition, holds, text, each)]
    return values


def _conditions(module: Any, node: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """What is known to hold, or not to, where a node is evaluated."""
    child: ast.AST = node
    for parent in module.above(node):
        match parent:
            case ast.IfExp(test=test, body=body) if child is not test:
                yield test, child is body
            case ast.BoolOp(op=operator, values=parts) if isinstance(child, ast.expr):
                yield from ((part, isinstance(operator, ast.And)) for part in parts[: parts.index(child)])
            case ast.ListComp(generators=loops) | ast.SetComp(generators=loops) | ast.GeneratorExp(generators=loops):
                yield from ((test, True) for loop in loops for test in loop.ifs if child not in loops)
            case ast.Match(subject=subject, cases=cases) if isinstance(child, ast.match_case):
                yield from ((_one_of(subject, each.pattern), False) for each in cases[: cases.index(child)] if each.guard is None)
                yield _one_of(subject, child.pattern), True
        for block in (getattr(parent, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(block, list) and child in block:
                if isinstance(parent, ast.If):
                    yield parent.test, block is parent.body
                for before in block[: block.index(child)]:
                    if isinstance(before, ast.If) and isinstance(before.body[-1], LEAVES) and not before.orelse:
                        yield before.test, False
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        child = parent


def _one_of(subject: ast.expr, pattern: ast.pattern) -> ast.expr:
    """A pattern of plain texts as the condition it is; of another nothing is known."""
    patterns = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    texts = [each.value for each in patterns if isinstance(each, ast.MatchValue)]
    return ast.Compare(subject, [ast.In()], [ast.Tuple(texts, ast.Load())]) if len(texts) == len(patterns) else ast.Constant(None)


def _agrees(condition: ast.AST, holds: bool, text: str, value: Any) -> bool:
    """Whether a value is possible where a condition holds, or does not."""
    match condition:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _agrees(inner, not holds, text, value)
        case ast.BoolOp(op=ast.And(), values=parts) if holds:
            return all(_agrees(part, True, text, value) for part in parts)
        case ast.BoolOp(op=ast.Or(), values=parts) if not holds:
            return all(_agrees(part, False, text, value) for part in parts)
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if ast.dump(_loaded(left)) == text:
            return _compared(operator, value, right, holds)
        case ast.expr() if ast.dump(_loaded(condition)) == text:
            return bool(value) == holds
    return True


def _compared(operator: ast.cmpop, value: Any, right: ast.expr, holds: bool) -> bool:
    try:
        other = ast.literal_eval(right)
    except ValueError:
        return True
    match operator:
        case ast.Eq() | ast.Is():
            return (value == other) == holds
        case ast.NotEq() | ast.IsNot():
            return (value != other) == holds
        case ast.In():
            return (value in other) == holds
        case ast.NotIn():
            return (value not in other) == holds
    return True


def _loaded(node: ast.expr) -> ast.expr:
    """The expression that is looked at: `(x := y)` is x."""
    return ast.Name(node.target.id, ast.Load()) if isinstance(node, ast.NamedExpr) else node
