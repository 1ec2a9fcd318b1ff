"""A process killed while calls wait to be decided, or right after: another goes on, each call runs once, and the request is right."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from destinations import MAIN
from dragoman.testing import Loopback
from dragoman.values.parts import INTERRUPTED

SCRIPT = """
call: balance {}
call: pay {"to": "harbour"}
call: pay {"to": "pilot"}
---
text: Both are paid.
"""
TESTS = Path(__file__).parent.parent
SAID = {"gemini": "contents", "openai_chat": "messages", "openai_responses": "input", "anthropic": "messages"}


class Service:
    """The model's service, and what is asked of it by the processes that come and go."""

    def __init__(self, where: str, loopback: Loopback, folder: Path) -> None:
        self.where, self.loopback, self.folder = where, loopback, folder
        deployment = loopback.connect(MAIN[where]).deployment
        assert deployment is not None
        self._url = loopback.url + urlsplit(deployment.base_url).path.rstrip("/")

    def start(self, work: str, folder: Path | None = None) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "crash.pending_worker", str(folder or self.folder), self._url, MAIN[self.where], work]
        environment = {**os.environ, "PYTHONPATH": str(TESTS)}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=TESTS, env=environment)

    def run(self, work: str, folder: Path | None = None) -> str:
        process = self.start(work, folder)
        out, err = process.communicate(timeout=60)
        assert process.returncode in (0, -signal.SIGKILL), err
        assert not err
        return out.strip() if process.returncode == 0 else "killed"

    def begin(self) -> None:
        """Both calls wait, and then the process is killed."""
        process = self.start("begin")
        assert process.stdout is not None
        line = process.stdout.readline()
        assert len(line.split()) == 2, process.communicate()
        process.kill()
        process.communicate(timeout=60)

    def bodies(self) -> list[dict[str, Any]]:
        assert not [request.violation for request in self.loopback.requests if request.violation]
        return [request.body for request in self.loopback.requests]

    @property
    def paid(self) -> list[str]:
        path = self.folder / "paid"
        return path.read_text(encoding="utf-8").split() if path.exists() else []


@pytest.mark.parametrize("where", MAIN)
def test_killed_while_calls_wait(where: str, tmp_path: Path) -> None:
    with Loopback(SCRIPT) as loopback:
        service = Service(where, loopback, tmp_path / "waits")
        service.folder.mkdir()
        service.begin()
        assert service.paid == []
        assert service.run("finish") == "Both are paid."
        assert service.paid == ["harbour", "pilot"]
        first, second = service.bodies()
        key = SAID[where]
        loopback.play(SCRIPT)
        (tmp_path / "straight").mkdir()
        assert service.run("straight", tmp_path / "straight") == "Both are paid."
        _, _, _, straight = service.bodies()
    assert second[key][: len(first[key])] == first[key], "what was sent before is not sent otherwise"
    assert without_ids(second) == without_ids(straight), "what would have been sent without a restart"


@pytest.mark.parametrize(("where", "moment"), [*zip(MAIN, ("decide", "start", "tool", "start"), strict=True)])
def test_killed_after_the_decision(where: str, moment: str, tmp_path: Path) -> None:
    """What had not begun runs once; what had begun is told as interrupted, and never runs again."""
    with Loopback(SCRIPT) as loopback:
        service = Service(where, loopback, tmp_path)
        service.begin()
        assert service.run(moment) == "killed"
        before = {"decide": [], "start": [], "tool": ["harbour"]}[moment]
        assert service.paid == before
        assert service.run("finish") == "Both are paid."
        assert service.paid == (["harbour", "pilot"] if moment == "decide" else [*before, "pilot"])
        _, request = service.bodies()
    assert json.dumps(request).count(INTERRUPTED) == (moment != "decide")


def without_ids(body: Any) -> Any:
    """Ids of calls and sessions are made anew for each conversation."""
    if isinstance(body, dict):
        return {key: without_ids(value) for key, value in body.items() if key not in IDS}
    return [without_ids(each) for each in body] if isinstance(body, list) else body


IDS = {"id", "call_id", "tool_call_id", "tool_use_id", "prompt_cache_key"}
