"""`python -m benchmarks.polyglot`: the 34 Python exercises of Aider's polyglot benchmark through `dragoman -p --approval auto`.

The model is a script that works as a model does: it looks around, runs the tests, changes the file in one of five ways, runs the tests
again and answers. What it does next depends on what the last request said: an edit that was refused costs it a reading and another edit.
Its solutions are the exercises' own. Counted are exercises whose tests pass in the end (run once more outside, as they came),
requests, refused calls, and the size of what was sent. The archive is read in place: `public/polyglot_python.tar.xz` of the corpora.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.conversation import Told, told
from benchmarks.corpora import CORPORA, NO_CORPORA
from benchmarks.ours import MODELS
from benchmarks.program import recorded_results, run_program
from benchmarks.table import Table
from dragoman.testing import Loopback
from dragoman.testing.script_steps import CallStep, Say, ScriptedAnswer

ARCHIVE = CORPORA / "public" / "polyglot_python.tar.xz"
_LEFT_OUT = (".meta/", ".approaches/", ".articles/")
WAYS = (
    "read and edit in one answer",
    "edit what grep showed",
    "write the whole file",
    "two edits in one answer",
    "edit after a command's change",
)
_FILTERS = re.compile(r"^Seccomp_filters:\s*(\d+)", re.MULTILINE)
_TESTED = re.compile(r"tested behind (\d+) filters")
_CONFTEST = """\
def pytest_terminal_summary(terminalreporter):
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    terminalreporter.write_line(f"tested behind {status['Seccomp_filters'].strip()} filters")
"""
"""So that the record says where the tests ran: in the sandbox they are behind one filter of system calls more than we are."""


class Exercise(NamedTuple):
    name: str
    files: dict[str, bytes]
    """What the model may see."""
    stub: str
    tests: str
    solution: str


class Run(NamedTuple):
    is_solved: bool
    is_sandboxed: bool
    requests: int
    refused: int
    sent_bytes: int
    why: str = ""


def exercises(archive_path: Path = ARCHIVE) -> list[Exercise]:
    """All of the archive; none where it is not here."""
    if not archive_path.is_file():
        return []
    found: dict[str, dict[str, bytes]] = {}
    with tarfile.open(archive_path) as archive:
        for member in archive:
            _, _, inner = member.name.partition("exercises/practice/")
            name, _, path = inner.partition("/")
            if path and member.isfile() and (file := archive.extractfile(member)):
                found.setdefault(name, {})[path] = file.read()
    return [_exercise(name, found[name]) for name in sorted(found)]


def _exercise(name: str, files: dict[str, bytes]) -> Exercise:
    about = json.loads(files[".meta/config.json"])["files"]
    seen = {path: data for path, data in files.items() if not path.startswith(_LEFT_OUT)}
    return Exercise(name, seen, about["solution"][0], about["test"][0], files[about["example"][0]].decode())


# --- the model


class Worker:
    """The model at one exercise. Chooses its answer by the results in the request."""

    def __init__(self, exercise: Exercise, way: str) -> None:
        self.exercise = exercise
        self.way = way
        self.sizes: list[int] = []

    def __call__(self, asked: Any) -> ScriptedAnswer:
        self.sizes.append(len(json.dumps(asked.body, ensure_ascii=False).encode()))
        results = told(asked.body)
        steps = self._next(results)
        return ScriptedAnswer(tuple(steps))

    def _next(self, results: list[Told]) -> Iterator[Any]:
        tests = [result for result in results if result.name == "run_shell" and "pytest" in str(result.arguments)]
        if not results:
            yield Say("I look around first.")
            yield _call("list_directory", path=".")
            yield _call("read_file", file_path=".docs/instructions.md")
        elif not tests:
            if not any("_test.py" in str(result.arguments) for result in results):
                yield from self._look()
            else:
                yield self._test()
        elif has_passed(tests[-1].text):
            yield Say("The exercise is solved: all its tests pass.")
        elif len(tests) > 3:
            yield Say("The tests still fail, and I do not know why.")
        else:
            after = max(number for number, result in enumerate(results) if result is tests[-1]) + 1
            yield from self._change(results[after:], tries=len(tests))

    def _look(self) -> Iterator[CallStep]:
        yield _call("read_file", file_path=self.exercise.tests)
        if self.way == "edit what grep showed":
            yield _call("grep", pattern=".", path=self.exercise.stub)
        elif self.way != "read and edit in one answer":
            yield _call("read_file", file_path=self.exercise.stub)

    def _change(self, since: list[Told], tries: int) -> Iterator[Any]:
        """`since`: what came of the calls after the tests had failed for the so-manieth time."""
        changes = [result for result in since if result.name in ("edit", "write_file")]
        if not changes and tries == 1:
            if self.way == "edit after a command's change" and not since:
                yield _call("run_shell", command=f"printf '\\n# changed\\n' >> {self.exercise.stub}", writes=True)
            else:
                yield from self._first_change()
        elif (changes and not is_refused(changes[-1])) or (since and self.exercise.solution.strip() in since[-1].text):
            yield self._test()
        elif since and since[-1].name == "read_file":
            yield _call("edit", file_path=self.exercise.stub, old_string=self._stub(), new_string=self.exercise.solution.rstrip("\n"))
        else:
            yield Say("I read the file and try again.")
            yield _call("read_file", file_path=self.exercise.stub)

    def _first_change(self) -> Iterator[CallStep]:
        stub, whole, solution = self.exercise.stub, self._stub(), self.exercise.solution
        match self.way:
            case "write the whole file":
                yield _call("write_file", file_path=stub, content=solution)
            case "two edits in one answer":
                lines = solution.splitlines(keepends=True)
                half = "".join(lines[: len(lines) // 2])
                yield _call("edit", file_path=stub, old_string=whole, new_string=half + "# and the rest")
                yield _call("edit", file_path=stub, old_string="# and the rest", new_string=solution[len(half) :].rstrip("\n"))
            case "read and edit in one answer":
                yield _call("read_file", file_path=stub)
                yield _call("edit", file_path=stub, old_string=whole, new_string=solution.rstrip("\n"))
            case _:
                yield _call("edit", file_path=stub, old_string=whole, new_string=solution.rstrip("\n"))

    def _stub(self) -> str:
        return self.exercise.files[self.exercise.stub].decode().strip("\n")

    def _test(self) -> CallStep:
        return _call("run_shell", command=f"python -m pytest -q -p no:cacheprovider {self.exercise.tests}", description="Run the tests")


def _call(name: str, **arguments: object) -> CallStep:
    return CallStep(name, json.dumps(arguments))


def has_passed(text: str) -> bool:
    """Whether pytest passed, by what a result says."""
    return " passed" in text and " failed" not in text and " error" not in text


def is_refused(result: Told) -> bool:
    """Chat and Responses have no mark for it: there, the first line decides. Where it misleads, a reading or the tests show it."""
    return result.is_error or any(word in result.text.partition("\n")[0] for word in ("has not been read", "not found", "read it again"))


# --- running it


def solve(exercise: Exercise, way: str, protocol: str, loopback: Loopback) -> Run:
    worker = Worker(exercise, way)
    loopback.play(worker)
    folder = Path(tempfile.mkdtemp(prefix="dragoman-polyglot-", dir="/var/tmp"))
    try:
        workspace = folder / exercise.name
        _lay_out(exercise, workspace)
        ran = run_program(protocol, loopback.url, folder, workspace, "Solve the exercise in .docs/instructions.md.")
        results = recorded_results(folder / "home")
        behind = [int(number) for name, text, _ in results if name == "run_shell" for number in _TESTED.findall(text)]
        is_sandboxed = len(behind) > 1 and min(behind) > own_filters()
        is_solved = ran.returncode == 0 and "is solved" in ran.stdout and _passes_outside(exercise, workspace / exercise.stub)
        refused = sum(outcome in ("failed", "refused") and name != "run_shell" for name, _, outcome in results)
        return Run(is_solved, is_sandboxed, len(worker.sizes), refused, sum(worker.sizes), (ran.stdout + ran.stderr)[-500:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def own_filters() -> int:
    found = _FILTERS.search(Path("/proc/self/status").read_text(encoding="utf-8"))
    return int(found[1]) if found else 0


def _lay_out(exercise: Exercise, workspace: Path) -> None:
    for path, data in {**exercise.files, "conftest.py": _CONFTEST.encode()}.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_bytes(data)


def _passes_outside(exercise: Exercise, solution: Path) -> bool:
    """The tests as they came, whatever became of those in the workspace."""
    with tempfile.TemporaryDirectory() as fresh:
        for path, data in exercise.files.items():
            Path(fresh, path).parent.mkdir(parents=True, exist_ok=True)
            Path(fresh, path).write_bytes(data)
        shutil.copy(solution, Path(fresh, exercise.stub))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", exercise.tests]
        return subprocess.run(command, cwd=fresh, capture_output=True, timeout=300, check=False).returncode == 0


def measure(chosen: Sequence[Exercise], protocols: Sequence[str]) -> Table:
    columns = ["protocol", "exercises", "solved", "tests in the sandbox", "requests", "refused calls", "sent, kB"]
    table = Table("Polyglot exercises through `dragoman -p --approval auto`", columns)
    with Loopback() as loopback:
        for protocol in protocols:
            runs = [solve(each, WAYS[number % len(WAYS)], protocol, loopback) for number, each in enumerate(chosen)]
            sums = [sum(getattr(run, name) for run in runs) for name in ("is_solved", "is_sandboxed", "requests", "refused", "sent_bytes")]
            table.rows.append([protocol, len(runs), *sums[:-1], round(sums[-1] / 1000)])
            for each, run in zip(chosen, runs, strict=True):
                if not (run.is_solved and run.is_sandboxed):
                    table.notes.append(f"{protocol}, {each.name}: {run.why!r}")
    table.notes.append(f"The file is changed in five ways in turn: {', '.join(WAYS)}.")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exercises", type=int, default=34, help="how many of them, from the first")
    parser.add_argument("--protocols", nargs="+", choices=MODELS, default=list(MODELS))
    given = parser.parse_args()
    found = exercises()
    print(measure(found[: given.exercises], given.protocols).markdown() if found else NO_CORPORA)


if __name__ == "__main__":
    main()
