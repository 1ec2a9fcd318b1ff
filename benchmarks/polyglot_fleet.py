"""`python -m benchmarks.polyglot_fleet`: the 34 Python exercises of the polyglot benchmark as one fleet, their own tests as checks.

The model is the script of `benchmarks.polyglot`, which answers all of them at once: it shows that the harness solves what a model can
solve. `--model local/NAME` asks a model of this machine instead, and whatever it does is counted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.conversation import words
from benchmarks.corpora import NO_CORPORA
from benchmarks.polyglot import WAYS, Exercise, Worker, exercises
from benchmarks.table import Table
from dragoman.testing import Loopback
from dragoman.testing.script_steps import ScriptedAnswer

_NAMED = re.compile(r"Solve the exercise ([a-z0-9-]+)\.")
SCRIPTED = "anthropic/claude-opus-5"


class AllWorkers:
    """A scripted model for many conversations at once: each request says which exercise it is about."""

    def __init__(self, chosen: Sequence[Exercise]) -> None:
        self._workers = {each.name: Worker(each, WAYS[number % len(WAYS)]) for number, each in enumerate(chosen)}

    def __call__(self, asked: Any) -> ScriptedAnswer:
        named = _NAMED.search(words(asked.body))
        assert named is not None, "a request about no exercise"
        return self._workers[named[1]](asked)


def instruction(exercise: Exercise) -> str:
    return f"Solve the exercise {exercise.name}. Its instructions are in .docs/instructions.md."


def task_of(exercise: Exercise, folder: Path) -> dict[str, Any]:
    """A line of `tasks.jsonl`. The tests are put back before they are run, whatever became of those in the workspace."""
    for path, data in exercise.files.items():
        (folder / exercise.name / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / exercise.name / path).write_bytes(data)
    return {
        "id": exercise.name,
        "prompt": instruction(exercise),
        "workspace": str(folder / exercise.name),
        "check": f"python -m pytest -q -p no:cacheprovider {exercise.tests}",
        "check_files": {exercise.tests: exercise.files[exercise.tests].decode()},
        "limits": {"turns": 40, "seconds": 900},
    }


def measure(chosen: Sequence[Exercise], model: str, workers: int) -> Table:
    table = Table("Polyglot exercises as a fleet", ["model", "exercises", "passed", "other outcomes", "requests", "seconds"])
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name, Loopback(AllWorkers(chosen)) as loopback:
        folder = Path(name)
        (folder / "tasks.jsonl").write_text("".join(json.dumps(task_of(each, folder / "exercises")) + "\n" for each in chosen))
        env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        if model == SCRIPTED:
            env |= {"DRAGOMAN_HOME": str(folder / "home"), "ANTHROPIC_API_KEY": "a-key", "ANTHROPIC_BASE_URL": loopback.url}
        began_s = time.monotonic()
        command = [sys.executable, "-m", "dragoman", "fleet", "run", "tasks.jsonl", "--model", model, "--workers", str(workers)]
        ran = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began_s
        path = folder / "fleet" / "tasks" / "results.jsonl"
        if not path.is_file():
            raise SystemExit(ran.stderr[-2_000:])
        results = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    outcomes = Counter(each["outcome"] for each in results)
    others = ", ".join(f"{outcome} {count}" for outcome, count in outcomes.items() if outcome != "passed") or "none"
    asked = sum(each["requests"] for each in results)
    table.rows.append(["scripted" if model == SCRIPTED else model, len(results), outcomes["passed"], others, asked, round(seconds)])
    for each in results:
        if each["outcome"] != "passed":
            table.notes.append(f"{each['task']}: {each['outcome']}, {each['reason'][:200]!r}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exercises", type=int, default=34, help="how many of them, from the first")
    parser.add_argument("--model", default=SCRIPTED)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    found = exercises()[: given.exercises]
    print(measure(found, given.model, given.workers).markdown() if found else NO_CORPORA)


if __name__ == "__main__":
    main()
