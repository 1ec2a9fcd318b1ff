"""The 34 exercises as tasks of Harbor."""

from __future__ import annotations

import shlex
from pathlib import Path

from benchmarks.polyglot import Exercise
from benchmarks.polyglot_fleet import instruction

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
    (task / "instruction.md").write_text(instruction(exercise) + "\n", encoding="utf-8")
    test = f"cp -r /tests/exercise/. /app/ && cd /app && python -m pytest -q -p no:cacheprovider {shlex.quote(exercise.tests)}"
    (task / "tests" / "test.sh").write_text(
        f"{test} && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n", encoding="utf-8"
    )
    (task / "solution").mkdir()
    (task / "solution" / "solution.py").write_text(exercise.solution, encoding="utf-8")
    (task / "solution" / "solve.sh").write_text(f"cp /solution/solution.py /app/{shlex.quote(exercise.stub)}\n", encoding="utf-8")
