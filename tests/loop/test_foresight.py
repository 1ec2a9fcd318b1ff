"""What a change would do is found out beside the event loop, which goes on: a diff of a large file takes seconds."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from dragoman.testing.scripted import ScriptedProvider
from dragoman.tools import planned_change
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolCall


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each time a file to be changed is read: whether that was in the event loop's thread."""
    found: list[bool] = []
    real = planned_change.read_existing

    def noted(*args: Any) -> Any:
        found.append(threading.current_thread() is threading.main_thread())
        return real(*args)

    monkeypatch.setattr(planned_change, "read_existing", noted)
    return found


def run(folder: Path, *calls: str, ask: Any) -> str:
    async def main() -> str:
        script = "\n---\n".join([*(f"call: {call}" for call in calls), "text: Done."])
        agent = make_agent(ScriptedProvider(script), workspace=folder, sessions=folder / "sessions", ask=ask)
        async for _ in agent.run("hi"):
            pass
        await agent.aclose()
        return str(agent.history.view.messages)

    return asyncio.run(main())


def test_the_diff_that_is_approved_is_made_once_and_not_in_the_loop(tmp_path: Path, threads: list[bool]) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    shown: list[str] = []

    async def ask(call: ToolCall, intent: Intent) -> Allow | Deny:
        shown.append(intent.preview)
        return Allow()

    run(tmp_path, 'read_file {"file_path": "a.txt"}', 'edit {"file_path": "a.txt", "old_string": "old", "new_string": "new"}', ask=ask)
    assert (tmp_path / "a.txt").read_text() == "new\n"
    assert "+new" in shown[0]
    assert threads == [False, False], "once for rules, person and checkpoint together, and once to do it"


def test_a_change_that_cannot_work_is_not_tried_in_the_loop_either(tmp_path: Path, threads: list[bool]) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    wrong = 'edit {"file_path": "a.txt", "old_string": "zzz", "new_string": "new"}'
    told = run(tmp_path, 'read_file {"file_path": "a.txt"}', wrong, wrong, ask=None)
    assert told.count("was not found in a.txt") == 2
    assert threads == [False, False]


def test_a_file_that_changed_since_is_looked_at_again(tmp_path: Path, threads: list[bool]) -> None:
    """While the person thinks, somebody else changes the file: nothing is written over it."""
    (tmp_path / "a.txt").write_text("old\n")

    async def ask(call: ToolCall, intent: Intent) -> Allow | Deny:
        (tmp_path / "a.txt").write_text("somebody else's\n")
        return Allow()

    told = run(
        tmp_path, 'read_file {"file_path": "a.txt"}', 'edit {"file_path": "a.txt", "old_string": "old", "new_string": "new"}', ask=ask
    )
    assert (tmp_path / "a.txt").read_text() == "somebody else's\n"
    assert "was not found in a.txt" in told
