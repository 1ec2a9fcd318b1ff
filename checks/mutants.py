"""`make mutants`: does the suite notice when a line of the program is wrong?

A sample of small changes, chosen by a seed, is made one at a time in a copy of the checkout. One run of the suite with marks at those
places tells which tests reach each of them, in the programs that tests start as well. Then the tests that reach a change are run with it,
the quickest first, up to the first that fails. A test that also fails without the change does not count.

The results are appended to a file, so that a run that was cut short goes on where it ended. What runs when a module is imported is not
changed, nor are sentences.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutants"
LEFT_OUT = ("words", "testing")
"""Folders of the program that are not sampled: sentences, and what tests drive."""
COMPARED = {
    "==": "!=",
    "!=": "==",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "is": "is not",
    "is not": "is",
    "in": "not in",
    "not in": "in",
}
COUNTED: dict[type[ast.operator], tuple[str, str]] = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "//")}
FIRST = 60
"""So many of the quickest tests run alone before all others run side by side."""
LIMIT_S = 600
PROBE = '''"""Tells which test reaches which mark."""
import os
from pathlib import Path

_HITS = Path(__file__).resolve().parents[2] / "hits"
_seen = set()
_of_this_process = None

def _test():
    global _of_this_process
    if test := os.environ.get("PYTEST_CURRENT_TEST"):
        return test.rpartition(" ")[0]
    if _of_this_process is None:
        pid = os.getpid()
        while pid > 1 and not (_HITS / f"current-{pid}").exists():
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        _of_this_process = (_HITS / f"current-{pid}").read_text() if pid > 1 else ""
    return _of_this_process

def hit(number):
    test = _test()
    if test and (number, test) not in _seen:
        _seen.add((number, test))
        with open(_HITS / f"hits-{os.getpid()}", "a") as file:
            file.write(f"{number}\\t{test}\\n")
'''


@dataclass(frozen=True)
class Mutant:
    file: str
    """From the checkout's folder."""
    line: int
    begin: int
    end: int
    """Where the change begins and ends in the file's bytes."""
    becomes: str
    mark_line: int
    """The statement begins on this line."""

    def apply(self, source: bytes) -> bytes:
        return source[: self.begin] + self.becomes.encode() + source[self.end :]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description="Change a sample of lines, and see whether a test fails.")
    parser.add_argument("--seed", type=int, default=46)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("tests", nargs="*", help="the tests that count; all, if none are named")
    parser.add_argument("--list", action="store_true", help="show the sample and end")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results and make the copy anew")
    asked = parser.parse_args()
    sample = choose(ROOT, asked.seed, asked.count)
    if asked.list:
        print(*(describe(each, ROOT) for each in sample), sep="\n")
        return 0
    if asked.fresh:
        shutil.rmtree(WORK, ignore_errors=True)
    label = "-".join([str(asked.seed), *(re.sub(r"\W+", "_", each) for each in asked.tests)])
    tree, results = WORK / "tree", WORK / f"results-{label}.jsonl"
    prepare_copy(tree)
    reached = find_tests(tree, sample, WORK / f"reached-{label}.json", asked.workers, asked.tests)
    known = {tuple(each["mutant"].values()) for each in read_results(results)}
    for number, mutant in enumerate(sample, 1):
        if tuple(asdict(mutant).values()) in known:
            continue
        outcome, test = try_mutant(tree, mutant, reached.get(str(number - 1), []), asked.workers)
        with results.open("a") as file:
            print(json.dumps({"mutant": asdict(mutant), "outcome": outcome, "test": test}), file=file)
        print(f"{number:4} {outcome:9} {describe(mutant, ROOT)}{'  ← ' + test if test else ''}", flush=True)
    counts = Counter(each["outcome"] for each in read_results(results))
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()))
    return 0


def read_results(file: Path) -> list[dict[str, dict[str, object]]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def describe(mutant: Mutant, root: Path) -> str:
    source = (root / mutant.file).read_bytes()
    before = source[mutant.begin : mutant.end].decode().strip() or "(nothing)"
    return f"{mutant.file}:{mutant.line}: {one_line(before)} → {one_line(mutant.becomes.strip()) or '(nothing)'}"


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)[:60]


# --- the sample ---------------------------------------------------------------------------------------------------------------------


def choose(root: Path, seed: int, count: int) -> list[Mutant]:
    """Draw lines of the program until so many have a change; each line is as likely as any other."""
    files = sorted(file for file in (root / "src").rglob("*.py") if not {*LEFT_OUT} & {*file.relative_to(root / "src/dragoman").parts})
    lines = [(file, number) for file in files for number in range(1, file.read_bytes().count(b"\n") + 1)]
    drawn = random.Random(seed)
    changes: dict[Path, list[Mutant]] = {}
    sample: list[Mutant] = []
    while len(sample) < count:
        file, line = drawn.choice(lines)
        if file not in changes:
            changes[file] = list(find_changes(file.read_bytes(), str(file.relative_to(root))))
        here = [each for each in changes[file] if each.line == line and each not in sample]
        if here and is_python((mutant := drawn.choice(here)).apply(file.read_bytes())):
            sample.append(mutant)
    return sample


def is_python(source: bytes) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


def find_changes(source: bytes, name: str) -> Iterator[Mutant]:
    """Find every small change inside a function."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)

    def begin(node: ast.expr | ast.stmt) -> int:
        return starts[node.lineno - 1] + node.col_offset

    def end(node: ast.expr | ast.stmt) -> int:
        return starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def visit(node: ast.AST, mark: int, inside: bool) -> Iterator[Mutant]:
        if isinstance(node, ast.stmt):
            decorators = getattr(node, "decorator_list", [])
            first = min((each.lineno for each in decorators), default=node.lineno)
            if source[starts[first - 1] : starts[first]].decode().strip().startswith("elif"):
                first = mark
            elif first == node.lineno and source[starts[first - 1] : begin(node)].strip():
                first = mark  # not the first on its line
            mark = first
        if inside and isinstance(node, (ast.expr, ast.stmt)):
            for start, stop, becomes in changes_of(node):
                yield Mutant(name, source.count(b"\n", 0, start) + 1, start, stop, becomes, mark)
        inner = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "args", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from visit(child, mark, inner)

    def changes_of(node: ast.expr | ast.stmt) -> Iterator[tuple[int, int, str]]:
        match node:
            case ast.Compare(left=left, ops=[_], comparators=[right]):
                between = source[end(left) : begin(right)].decode()
                if (other := COMPARED.get(one_line(between.strip()))) is not None:
                    yield end(left), begin(right), f" {other} "
            case ast.BoolOp(values=[first, second, *_]):
                between = source[end(first) : begin(second)].decode()
                if (word := between.strip()) in ("and", "or"):
                    yield end(first), begin(second), between.replace(word, "or" if word == "and" else "and")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield begin(node), begin(operand), ""
            case ast.BinOp(left=left, op=operation, right=right) if type(operation) in COUNTED:
                sign, other = COUNTED[type(operation)]
                between = source[end(left) : begin(right)].decode()
                if between.strip() == sign:
                    yield end(left), begin(right), between.replace(sign, other)
            case ast.Constant(value=bool(value)):
                yield begin(node), end(node), str(not value)
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                yield begin(node), end(node), str(value + 1)
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.NamedExpr):
                yield begin(test), end(test), f"(not ({source[begin(test) : end(test)].decode()}))"
            case ast.Return(value=value) if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
                yield begin(value), end(value), "None"
            case ast.Expr(value=ast.Call() | ast.Await()):
                yield begin(node), end(node), "pass"
            case ast.Break() | ast.Continue():
                yield begin(node), end(node), "continue" if isinstance(node, ast.Break) else "break"
            case _:
                pass

    yield from visit(tree, 1, False)


# --- the tests that reach it --------------------------------------------------------------------------------------------------------


def prepare_copy(tree: Path) -> None:
    if not tree.exists():
        tree.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(tree)], check=True)
        subprocess.run(["make", "--silent", ".venv/.ready-dev"], cwd=tree, check=True)


def find_tests(tree: Path, sample: list[Mutant], kept: Path, workers: int, tests: list[str]) -> dict[str, list[str]]:
    """Run the suite once with a mark at each place. The quickest tests come first."""
    if kept.exists():
        found: dict[str, list[str]] = json.loads(kept.read_text())
        return found
    hits = WORK / "hits"
    shutil.rmtree(hits, ignore_errors=True)
    hits.mkdir(parents=True)
    (tree / "src" / "dragoman_probe.py").write_text(PROBE)
    put_marks(tree, sample)
    try:
        run_tests(tree, tests, workers, plugin=True, limit_s=5400, stop=False)
    finally:
        restore(tree)
        (tree / "src" / "dragoman_probe.py").unlink()
    seconds = json.loads((tree / ".pytest_cache/v/dragoman/seconds").read_text())
    reached: dict[str, set[str]] = {}
    for file in hits.glob("hits-*"):
        for line in file.read_text().splitlines():
            number, _, test = line.partition("\t")
            reached.setdefault(number, set()).add(test)
    found = {number: sorted(tests, key=lambda test: seconds.get(test, 9.0)) for number, tests in reached.items()}
    kept.write_text(json.dumps(found))
    return found


def put_marks(tree: Path, sample: list[Mutant]) -> None:
    by_file: dict[str, list[tuple[int, int]]] = {}
    for number, mutant in enumerate(sample):
        by_file.setdefault(mutant.file, []).append((mutant.mark_line, number))
    for name, marks in by_file.items():
        lines = (tree / name).read_text().split("\n")
        for line, number in sorted(marks, reverse=True):
            indent = re.match(r"\s*", lines[line - 1])
            mark = f"try:\\n import dragoman_probe; dragoman_probe.hit({number})\\nexcept BaseException: pass"
            lines.insert(line - 1, f'{indent[0] if indent else ""}exec("{mark}")')
        (tree / name).write_text("\n".join(lines))


def pytest_runtest_setup(item: object) -> None:
    """Say which test this process runs: the programs that it starts look here."""
    import os

    hits = Path(os.getcwd()).parent / "hits" if Path.cwd().name == "tree" else None
    if hits and hits.is_dir():
        (hits / f"current-{os.getpid()}").write_text(getattr(item, "nodeid", ""))


# --- one change ---------------------------------------------------------------------------------------------------------------------


def try_mutant(tree: Path, mutant: Mutant, tests: list[str], workers: int) -> tuple[str, str]:
    if not tests:
        return "unreached", ""
    file = tree / mutant.file
    before = file.read_bytes()
    file.write_bytes(mutant.apply(before))
    try:
        for some in (tests[:FIRST], tests[FIRST:]):
            while some and (failed := first_failure(tree, some, workers if len(some) > FIRST else 1)):
                if failed == "(out of time)":
                    return "timed out", ""
                file.write_bytes(before)
                if not first_failure(tree, [failed], 1):
                    return "killed", failed
                file.write_bytes(mutant.apply(before))
                some = [test for test in some if test != failed]  # it fails without the change too
    finally:
        file.write_bytes(before)
    return "survived", f"{len(tests)} tests"


def first_failure(tree: Path, tests: list[str], workers: int) -> str:
    ran = run_tests(tree, tests, workers, plugin=False, limit_s=LIMIT_S, stop=True)
    if ran is None:
        return "(out of time)"
    failed = re.findall(r"^FAILED (.+)$", ran, re.MULTILINE)
    return failed[0] if failed else ""


def run_tests(tree: Path, tests: list[str], workers: int, *, plugin: bool, limit_s: float, stop: bool) -> str | None:
    """Run these tests, or all, and return what was printed; nothing where the time did not suffice."""
    listed = tree.parent / "tests.txt"
    listed.write_text("\n".join(tests))
    command = [str(tree / ".venv/bin/python"), "-m", "pytest", "-q", "--workers", str(workers)]
    command += ["-x", "-p", "no:cacheprovider"] if stop else []
    command += ["-p", "checks.mutants"] if plugin else []
    command += [f"@{listed}"] if tests else []
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        return process.communicate(timeout=limit_s - (time.monotonic() - began))[0]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None


def restore(tree: Path) -> None:
    subprocess.run(["git", "checkout", "--quiet", "--", "src"], cwd=tree, check=True)


if __name__ == "__main__":
    sys.exit(main())
