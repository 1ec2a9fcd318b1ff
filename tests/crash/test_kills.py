"""SS01: a writer killed without warning, again and again, loses nothing it acknowledged. `DRAGOMAN_KILLS=1000` for the long run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crash.logs import LOGS

KILLS = int(os.environ.get("DRAGOMAN_KILLS", "25"))
"""Read here: tests run without variables of ours."""
SEED = int(os.environ.get("DRAGOMAN_KILLS_SEED", "0")) or int.from_bytes(os.urandom(4), "big")


@pytest.mark.parametrize("kind", LOGS)
def test_killed_at_random_moments_nothing_acknowledged_is_lost(tmp_path: Path, kind: str) -> None:
    tests = Path(__file__).parent.parent
    run = subprocess.run(
        [sys.executable, "-m", "crash.kills", str(tmp_path), str(KILLS), str(SEED), kind],
        capture_output=True,
        text=True,
        cwd=tests,
        env={**os.environ, "PYTHONPATH": str(tests)},
        timeout=60 + KILLS,
    )
    assert run.returncode == 0, run.stderr
    seen = json.loads(run.stdout)
    print(f"seed {SEED}: {seen}")
    assert run.stderr == "", f"seed {SEED}"
    assert seen["kills"] == KILLS
    assert (seen["lost"], seen["wrong"], seen["refused"]) == (0, 0, 0), f"seed {SEED}: {seen}"
    assert seen["acknowledged"] >= KILLS / 5, f"seed {SEED}: {seen}"
    if KILLS >= 200:  # fewer are left to chance
        assert seen["writing"] + seen["syncing"] >= KILLS / 2, f"too few were struck in a write: {seen}"
        assert (seen["torn"] > 0) == (kind == "files"), seen
