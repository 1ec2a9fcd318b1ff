"""Many conversations leave nothing behind, and more agents than there are files wait for each other.

`DRAGOMAN_CONVERSATIONS=500` for the long run (`make many`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from many.crowd import HERE, service

CONVERSATIONS = int(os.environ.get("DRAGOMAN_CONVERSATIONS", "25"))
"""Read here: tests run without variables of ours."""
TURNS = 20


def drive(*arguments: object) -> Any:
    tests = HERE.parent
    argv = [sys.executable, str(HERE / "driver.py"), *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(tests)}
    run = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=60 + 2 * CONVERSATIONS)
    assert (run.returncode, run.stderr) == (0, ""), run.stderr
    return json.loads(run.stdout)


def test_conversations_that_are_closed_leave_nothing_behind(tmp_path: Path) -> None:
    """500 turns; the first conversations are not counted, for they load what the others need."""
    with service("ours") as [url]:
        samples = drive("conversations", url, CONVERSATIONS, TURNS, tmp_path)["samples"]
    first, last = samples[1], samples[-1]
    print(f"{CONVERSATIONS} conversations of {TURNS} turns: {first} → {last}")
    assert last["tasks"] == first["tasks"] == 1
    assert last["files"] <= first["files"]
    assert last["objects"] <= first["objects"] + 1_000, "a conversation of 20 turns has some hundred objects"
    assert last["memory_kb"] <= first["memory_kb"] + 1_500, samples


@pytest.mark.skipif(sys.platform == "win32", reason="the limit is set as Unix does it")
@pytest.mark.parametrize("connections", ["shared", "own"])
def test_more_agents_than_files_wait_for_each_other(connections: str) -> None:
    with service("ours") as [url]:
        assert drive("crammed", url, 300, 128, connections)["faults"] == []
