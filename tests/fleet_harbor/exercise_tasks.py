"""The 34 exercises as tasks of Harbor, and the model that works on all of them at once."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.conversation import words
from benchmarks.polyglot import WAYS, Exercise, Worker

from dragoman.testing.script_steps import ScriptedAnswer

_NAMED = re.compile(r"Solve the exercise ([a-z0-9-]+)\.")
TASK = """\
schema_version = "1.4"

[agent]
timeout_sec = 600.0

[verifier]
timeout_sec = 300.0

[environment]
workdir = "/app"
"""


def write_task(exercise: Exercise, folder: Path) -> None:
    """A task folder. The tests of the exercise are put back before they are run, whatever became of those in the workspace."""
    task = folder / exercise.name
    for path, data in exercise.files.items():
        for place in ("environment", "tests/exercise"):
            if place == "environment" or path != exercise.stub:
                (task / place / path).parent.mkdir(parents=True, exist_ok=True)
                (task / place / path).write_bytes(data)
    (task / "task.toml").write_text(TASK, encoding="utf-8")
    (task / "instruction.md").write_text(
        f"Solve the exercise {exercise.name}. Its instructions are in .docs/instructions.md.\n", encoding="utf-8"
    )
    test = f"cp -r /tests/exercise/. /app/ && cd /app && python -m pytest -q -p no:cacheprovider {shlex.quote(exercise.tests)}"
    (task / "tests" / "test.sh").write_text(
        f"{test} && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n", encoding="utf-8"
    )
    (task / "solution").mkdir()
    (task / "solution" / "solution.py").write_text(exercise.solution, encoding="utf-8")
    (task / "solution" / "solve.sh").write_text(f"cp /solution/solution.py /app/{shlex.quote(exercise.stub)}\n", encoding="utf-8")


class AllWorkers:
    """A scripted model for many conversations at once: each request says which exercise it is about."""

    def __init__(self, exercises: Sequence[Exercise]) -> None:
        self._workers = {each.name: Worker(each, WAYS[number % len(WAYS)]) for number, each in enumerate(exercises)}

    def __call__(self, asked: Any) -> ScriptedAnswer:
        named = _NAMED.search(words(asked.body))
        assert named is not None, "a request about no exercise"
        return self._workers[named[1]](asked)
