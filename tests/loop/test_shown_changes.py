"""What a person was shown of an edit is what is written, though the file is changed by others meanwhile."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from dragoman.testing import ScriptedProvider
from dragoman.tools.edit import UNSEEN_NOTE
from dragoman.values.calls import Allow, Intent, Later
from dragoman.values.messages import ToolCall, ToolResult

EDIT = {"file_path": "a.txt", "old_string": "one", "new_string": "two", "replace_all": True}


def script_of(*calls: tuple[str, dict[str, Any]]) -> ScriptedProvider:
    return ScriptedProvider("".join(f"call: {name} {json.dumps(args)}\n" for name, args in calls) + "---\ntext: Good.")


def results_of(provider: ScriptedProvider) -> list[str]:
    parts = [part for message in provider.requests[-1].messages for part in message.parts]
    return [part.text for part in parts if isinstance(part, ToolResult)]


def told(folder: Path, ask: Any, *calls: tuple[str, dict[str, Any]], mode: str = "default") -> list[str]:
    async def main() -> list[str]:
        provider = script_of(*calls)
        async with make_agent(provider, workspace=folder, ask=ask, approval=mode, describe=False) as agent:
            await agent.run("go")
        return results_of(provider)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("meanwhile", "becomes"),
    [
        ("one\nmore\n", "two\nmore\n"),  # what is removed and added is as it was shown
        ("more\none\n", "more\ntwo\n"),
        ("one\none\n", ""),  # more would be replaced
        ("not one\n", ""),
    ],
)
def test_a_yes_is_to_the_lines_that_were_shown(tmp_path: Path, meanwhile: str, becomes: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")

    def ask(call: ToolCall, view: Intent) -> Allow:
        assert "-one\n+two\n" in view.preview
        path.write_text(meanwhile)
        return Allow()

    (text,) = told(tmp_path, ask, ("edit", EDIT))
    assert path.read_text() == (becomes or meanwhile)
    if not becomes:
        assert text == "a.txt changed after the user was shown this change, so nothing was written: make the call again"


def test_a_file_that_changed_after_the_question_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")

    def ask(call: ToolCall, view: Intent) -> Allow:
        path.write_text("one\nprecious\n")
        return Allow()

    read, text = told(tmp_path, ask, ("read_file", {"file_path": "a.txt"}), ("write_file", {"file_path": "a.txt", "content": "x"}))
    assert (read, path.read_text()) == ("one\n", "one\nprecious\n")
    assert "changed since it was read" in text


@pytest.mark.parametrize("meanwhile", ["one\nelsewhere\n", "one and one\n"])
def test_a_yes_that_comes_later_is_to_what_was_shown_then(tmp_path: Path, meanwhile: str) -> None:
    """In another process, which has read nothing."""
    path = tmp_path / "w" / "a.txt"
    path.parent.mkdir()
    path.write_text("one\n")

    async def put_off(call: ToolCall, view: Intent) -> Later:
        return Later()

    async def main() -> str:
        options = {"workspace": path.parent, "sessions": tmp_path / "sessions", "describe": False, "ask": put_off}
        async with make_agent(script_of(("edit", EDIT)), **options) as agent:
            (pending,) = (await agent.run("go")).pending
            session = agent.session_id
        path.write_text(meanwhile)
        provider = ScriptedProvider("text: Good.")
        async with make_agent(provider, resume=session, **options) as agent:
            await agent.resume({pending.id: Allow()})
        return results_of(provider)[-1]

    text = asyncio.run(main())
    if meanwhile == "one\nelsewhere\n":
        assert (path.read_text(), text) == ("two\nelsewhere\n", "changed a.txt (+1 -1 lines)")
    else:
        assert (path.read_text(), text) == (
            meanwhile,
            "not run: the file changed after the user was shown this change: make the call again",
        )


def test_a_file_that_its_own_command_changed_is_edited_and_the_model_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    calls = (("read_file", {"file_path": "a.txt"}), ("run_shell", {"command": "echo more >> a.txt"}), ("edit", EDIT))
    texts = told(tmp_path, lambda call, view: Allow(), *calls)
    assert texts[-1] == f"changed a.txt (+1 -1 lines)\n[{UNSEEN_NOTE}]"
    assert path.read_text() == "two\nmore\n"


def test_several_edits_are_shown_as_one_diff_and_taken_back_as_one(tmp_path: Path) -> None:
    path = tmp_path / "w" / "a.txt"
    path.parent.mkdir()
    path.write_text("one\ntwo\n")
    shown: list[str] = []

    def ask(call: ToolCall, view: Intent) -> Allow:
        shown.append(view.preview)
        return Allow()

    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "two", "new_string": "2"}]

    async def main() -> None:
        provider = script_of(("edit", {"file_path": "a.txt", "edits": edits}))
        options = {"workspace": path.parent, "sessions": tmp_path / "sessions", "describe": False, "ask": ask}
        async with make_agent(provider, **options) as agent:
            await agent.run("go")
            assert path.read_text() == "1\n2\n"
            assert agent.undo() == (str(path),)
            assert path.read_text() == "one\ntwo\n"

    asyncio.run(main())
    assert [preview.count("\n-") for preview in shown] == [2]
