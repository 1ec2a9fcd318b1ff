"""Exercises of the polyglot benchmark, solved by a script that works as a model does. `DRAGOMAN_LONG=1` takes all 34 on every protocol;
`python -m benchmarks.polyglot` counts."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest
from benchmarks.ours import MODELS
from benchmarks.polyglot import WAYS, exercises, solve

from dragoman.policy.sandbox.sandbox import Sandbox
from dragoman.testing import Loopback

LONG = bool(os.environ.get("DRAGOMAN_LONG"))


@pytest.mark.parametrize(("number", "protocol"), list(enumerate(MODELS)))
def test_the_tests_of_an_exercise_pass_and_have_run_in_the_sandbox(number: int, protocol: str, corpora: Path, tmp_path: Path) -> None:
    with closing(Sandbox([str(tmp_path)])) as sandbox:
        if not sandbox.detected.level:
            pytest.skip("no sandbox can be made here, and commands run in the mode auto in one only")
    found = exercises(corpora / "public" / "polyglot_python.tar.xz")
    chosen = list(enumerate(found)) if LONG else [(number + 1, found[number])]
    with Loopback() as loopback:
        for place, exercise in chosen:
            run = solve(exercise, WAYS[place % len(WAYS)], protocol, loopback)
            assert run.is_solved, (exercise.name, run.why)
            assert run.is_sandboxed, exercise.name
