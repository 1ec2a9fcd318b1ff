"""What the person wished and what was found out at the beginning is still known after the conversation was compressed.
`DRAGOMAN_LONG=1` takes 100 rounds on every protocol; `python -m benchmarks.hundred_rounds` counts tokens."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest
from benchmarks.hundred_rounds import FACTS, known, work
from benchmarks.ours import MODELS

from dragoman.policy.sandbox.sandbox import Sandbox

LONG = bool(os.environ.get("DRAGOMAN_LONG"))


@pytest.mark.parametrize("protocol", list(MODELS) if LONG else ["anthropic"])
def test_a_long_session_keeps_what_its_task_needs(protocol: str, tmp_path: Path) -> None:
    with closing(Sandbox([str(tmp_path)])) as sandbox:
        if not sandbox.detected.level:
            pytest.skip("no sandbox can be made here, and commands run in the mode auto in one only")
    worker, _ = work(64_000 if LONG else 16_000, 100 if LONG else 12, protocol)
    assert worker.summaries > 0
    assert known(worker.last) == list(FACTS)
