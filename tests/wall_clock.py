"""Finds what depends on how busy the machine is, in the source of a test: upper bounds on seconds of the wall clock, and short limits."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

WALL = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns"}
PROCESSOR = {"process_time", "process_time_ns", "thread_time", "thread_time_ns"}
LEAST_WAIT_S = 30.0
"""A limit on waiting that a busy machine may reach is shorter than this. 60 is usual."""
LEAST_WORK_S = 5.0
"""The same for processor time."""
LIMITED = {"timeout": 0, "wait_for": 1, "wait": 0, "join": 0, "result": 0, "gone_within": 0, "started_within": 0}
"""Functions that give up → which of their arguments says when."""
BY_NAME = {"run", "ask", "communicate", "check_output", "check_call", "Barrier", "acquire", "expect", "expect_gone", "ended", *LIMITED}
"""Functions that take their limit by name: `timeout`, `timeout_s`, `within_s` or `seconds`."""
LIMIT_NAMES = {"timeout", "timeout_s", "within_s", "seconds"}
GIVING_UP = ("Timeout", "TimedOut", "suppress")
"""In a `with` around it, or in the handler of its `try`: reaching the limit is what is expected."""

Found = tuple[int, str]


def find_wall_clock(source: str) -> Iterator[Found]:
    """The lines of a test file that a busy machine can break, each with what is wrong with it."""
    tree = ast.parse(source)
    constants = {
        target.id: float(value.value)
        for statement in tree.body
        if isinstance(statement, ast.Assign) and isinstance(value := statement.value, ast.Constant) and isinstance(value.value, int | float)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    virtual = "virtual_time" in source
    found = set[Found]() if virtual else {*short_limits(tree, constants)}
    if any(f"{clock}(" in source for clock in WALL | PROCESSOR):
        functions = [each for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
        shared = {name for name in durations_in(functions, set(), virtual) if name.endswith("()")}
        for part in tree.body:
            found |= {*asserted_seconds(part, durations_in([part], shared, virtual), constants, virtual)}
    yield from sorted(found)


def durations_in(parts: Sequence[ast.stmt], known: set[str], virtual: bool) -> set[str]:
    """Names of what holds a difference of two readings of the wall clock in these, and with `()` of functions that return one."""
    found = set(known)
    while True:
        before = len(found)
        for node in (node for part in parts for node in ast.walk(part)):
            match node:
                case ast.Assign(targets=[target], value=value) if is_duration(value, found, virtual):
                    found |= assigned(target, value, found, virtual)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    if any(is_duration(each.value, found, virtual) for each in returns_of(node) if each.value is not None):
                        found.add(f"{name}()")
        if len(found) == before:
            return found


def assigned(target: ast.expr, value: ast.expr, found: set[str], virtual: bool) -> set[str]:
    """The names that an assignment of a duration makes one. Of several, those that are called so."""
    if isinstance(target, ast.Name):
        return {target.id}
    names = [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]
    if isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple) and len(value.elts) == len(target.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        return {each.id for each, part in pairs if isinstance(each, ast.Name) and is_duration(part, found, virtual)}
    return {name for name in names if name.endswith("_s") or name in ("took", "seconds", "elapsed")}


def returns_of(function: ast.AST) -> Iterator[ast.Return]:
    """Its own returns, not those of functions inside it."""
    for child in ast.iter_child_nodes(function):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from returns_of(child)


def is_duration(node: ast.expr, durations: set[str], virtual: bool) -> bool:
    match node:
        case ast.BinOp(op=ast.Sub(), left=left, right=right) if reads(left, WALL, virtual) or reads(right, WALL, virtual):
            return True
        case ast.Name(id=name):
            return name in durations
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args):
            return f"{name}()" in durations or any(is_duration(each, durations, virtual) for each in args)
        case ast.BinOp(left=left, right=right):
            return is_duration(left, durations, virtual) or is_duration(right, durations, virtual)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return any(is_duration(each, durations, virtual) for each in elements)
        case ast.Await(value=value) | ast.Starred(value=value) | ast.GeneratorExp(elt=value) | ast.ListComp(elt=value):
            return is_duration(value, durations, virtual)
        case _:
            return False


def reads(node: ast.AST, clocks: set[str], virtual: bool = False) -> bool:
    """Whether it reads one of these clocks. In a file that runs in virtual time, a loop's clock is none of them."""
    for each in ast.walk(node):
        match each:
            case ast.Call(func=ast.Attribute(value=whose, attr=name)) if name in clocks:
                if ast.unparse(whose) == "time" or (name == "time" and "loop" in ast.unparse(whose) and not virtual):
                    return True
            case ast.Call(func=ast.Name(id=name)) if name in clocks - {"time"}:
                return True
    return False


def asserted_seconds(tree: ast.AST, durations: set[str], constants: dict[str, float], virtual: bool) -> Iterator[Found]:
    """Assertions on durations, and on deadlines that come soon."""
    deadlines = {
        target.id: least
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and reads(node.value, WALL, virtual)
        for target, value in pairs_of(node)
        if isinstance(target, ast.Name) and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)
        if (least := number(value.right, constants)) is not None
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assert):
            continue
        for compared in (each for each in ast.walk(node.test) if isinstance(each, ast.Compare)):
            sides = [compared.left, *compared.comparators]
            if any(is_duration(side, durations, virtual) for side in upper_bounded(compared)):
                yield compared.lineno, "asserts seconds of the wall clock"
            for side in sides:
                if isinstance(side, ast.Name) and deadlines.get(side.id, LEAST_WAIT_S) < LEAST_WAIT_S:
                    yield compared.lineno, f"waits for {deadlines[side.id]:g} s only"
            numbers = [value for side in sides if (value := number(side, constants)) is not None]
            if any(reads(side, PROCESSOR) for side in sides) and any(value < LEAST_WORK_S for value in numbers):
                yield compared.lineno, f"allows {min(numbers):g} s of processor time only"


def upper_bounded(compared: ast.Compare) -> Iterator[ast.expr]:
    """The sides that must not be too large. That something took long enough may be asserted: no machine is too busy for it."""
    sides = [compared.left, *compared.comparators]
    for left, sign, right in zip(sides, compared.ops, sides[1:], strict=False):
        if isinstance(sign, ast.Lt | ast.LtE):
            yield left
        elif isinstance(sign, ast.Gt | ast.GtE):
            yield right


def pairs_of(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=True)
        else:
            yield target, node.value


def short_limits(tree: ast.AST, constants: dict[str, float]) -> Iterator[Found]:
    """Limits that a busy machine may reach, where reaching them is not what the test expects."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", "") or getattr(call.func, "attr", "")
        limit = limit_of(call, name, constants)
        is_pause = name == "wait" and limit is not None and limit < 1
        if limit is not None and 0 < limit < LEAST_WAIT_S and not is_pause and not is_expected(call, tree):
            yield call.lineno, f"{name} gives up after {limit:g} s"


def is_expected(call: ast.Call, tree: ast.AST) -> bool:
    """Whether giving up is what the lines around it wait for."""
    for node in ast.walk(tree):
        match node:
            case ast.With(items=items) | ast.AsyncWith(items=items):
                words = [ast.unparse(item) for item in items]
            case ast.Try(handlers=handlers):
                words = [ast.unparse(each.type) for each in handlers if each.type is not None]
            case _:
                continue
        if node.lineno <= call.lineno <= (node.end_lineno or 0) and any(each in word for each in GIVING_UP for word in words):
            return True
    return False


def limit_of(call: ast.Call, name: str, constants: dict[str, float]) -> float | None:
    if name in BY_NAME:
        for keyword in call.keywords:
            of_the_program = keyword.arg != "timeout_s" or "place" in ast.unparse(call.func)  # others limit what is tested
            if keyword.arg in LIMIT_NAMES and of_the_program:
                return number(keyword.value, constants)
    place = LIMITED.get(name)
    return number(call.args[place], constants) if place is not None and len(call.args) > place else None


def number(node: ast.expr, constants: dict[str, float]) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id=name):
            return constants.get(name)
        case _:
            return None
