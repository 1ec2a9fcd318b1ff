"""What was judged, and shown to a person, is what is changed: a link that is swapped in between leads a call nowhere else."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from dragoman.testing import ScriptedProvider
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolCall, ToolResult

RACES = 4_000 if os.environ.get("DRAGOMAN_LONG") else 200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`sub` is a link to a plain folder."""
    (tmp_path / "plain").mkdir()
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / "sub").symlink_to("plain")
    return tmp_path


def swap(folder: Path, target: str, name: str = "next") -> None:
    (folder / name).symlink_to(target)
    (folder / name).replace(folder / "sub")


def results(folder: Path, calls: list[tuple[str, dict[str, Any]]], ask: Any, mode: str) -> list[str]:
    async def main() -> list[str]:
        steps = [
            "".join(f"call: {name} {json.dumps(args)}\n" for name, args in some)
            for some in (calls[at : at + 20] for at in range(0, len(calls), 20))
        ]
        provider = ScriptedProvider("---\n".join([*steps, "text: Good."]))
        async with make_agent(provider, workspace=folder, ask=ask, approval=mode, describe=False) as agent:
            await agent.run("go")
        parts = [part for message in provider.requests[-1].messages for part in message.parts]
        return [part.text for part in parts if isinstance(part, ToolResult)]

    return asyncio.run(main())


def test_a_yes_is_to_the_file_that_was_shown(folder: Path) -> None:
    shown: list[Intent] = []

    def ask(call: ToolCall, view: Intent) -> Allow:
        shown.append(view)
        swap(folder, ".git/hooks")
        return Allow()

    (text,) = results(folder, [("write_file", {"file_path": "sub/pre-commit", "content": "evil"})], ask, "default")
    assert ([view.writes for view in shown], shown[0].guarded) == ([(f"{folder}/plain/pre-commit",)], "")
    assert "not what was allowed" in text
    assert (os.listdir(folder / ".git" / "hooks"), os.listdir(folder / "plain")) == ([], [])


def test_a_yes_is_to_the_folder_that_was_shown(folder: Path) -> None:
    def ask(call: ToolCall, view: Intent) -> Allow:
        swap(folder, ".git/hooks")
        return Allow()

    (text,) = results(folder, [("run_shell", {"command": "touch made", "directory": "sub"})], ask, "default")
    assert "not what was allowed" in text
    assert os.listdir(folder / ".git" / "hooks") == []


def test_links_that_are_swapped_all_the_time_lead_no_write_to_what_is_guarded(folder: Path) -> None:
    over = threading.Event()

    def swap_on() -> None:
        for number in itertools.count():
            if over.is_set():
                return
            swap(folder, ("plain", ".git/hooks")[number % 2])

    swapping = threading.Thread(target=swap_on)
    swapping.start()
    try:
        calls = [("write_file", {"file_path": f"sub/{number}.txt", "content": "x"}) for number in range(RACES)]
        found = results(folder, calls, lambda call, view: Deny("no"), "auto-edit")
    finally:
        over.set()
        swapping.join()
    assert os.listdir(folder / ".git" / "hooks") == []
    assert len(os.listdir(folder / "plain")) == sum("created" in text for text in found)
