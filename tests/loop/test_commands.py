"""The commands of an agent: in a sandbox where one was asked for, and their end with the agent."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Literal

import pytest

from agents import make_agent
from dragoman.loop.options import Sandboxing
from dragoman.policy.rules import deny
from dragoman.testing import ScriptedProvider
from dragoman.values.calls import Allow, Intent
from dragoman.values.errors import InputError
from dragoman.values.events import NoticeGiven
from dragoman.values.messages import ToolCall, ToolResult
from system_parts import require_program
from told_commands import told_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the launcher is for Linux")


def run_command(folder: Path, command: str, **options: Any) -> tuple[dict[str, Any], Intent]:
    """What the model is told of it, and what was asked."""
    asked: list[Intent] = []

    def allow(call: ToolCall, intent: Intent) -> Allow:
        asked.append(intent)
        return Allow()

    async def main() -> dict[str, Any]:
        provider = ScriptedProvider(f"call: run_shell {json.dumps({'command': command, 'writes': True})}\n---\ntext: Good.")
        async with make_agent(provider, workspace=folder, builtin=["run_shell"], describe=False, ask=allow, **options) as agent:
            await agent.run("go")
            [result] = told_in(agent.history.entries)
        return result

    return asyncio.run(main()), asked[0]


def test_commands_run_in_a_sandbox_only_where_one_was_asked_for(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    inside = tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    result, intent = run_command(inside, f"touch {outside}/a", sandbox=True)
    if not intent.sandboxed:
        pytest.skip("no sandbox works here")
    assert result["exitCode"] != 0
    assert not (outside / "a").exists()
    result, intent = run_command(inside, f"touch {outside}/a; touch here")
    assert (result["exitCode"], intent.sandboxed) == (0, False)
    assert (outside / "a").exists()


@pytest.mark.parametrize("level", [1, 2, 3])
def test_commands_write_in_the_workspace_also_where_it_is_the_current_folder(
    tmp_path: Path, level: Literal[1, 2, 3], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if level == 2:
        require_program("bwrap")
    result, intent = run_command(tmp_path, "echo here > a; cat a", sandbox=Sandboxing(level=level))
    assert (result["stdout"], intent.sandboxed) == ("here\n", True)


def test_which_level_holds_is_known_from_the_first_command_on(tmp_path: Path) -> None:
    async def main() -> None:
        provider = ScriptedProvider('call: run_shell {"command": "true"}\n---\ntext: Good.')
        async with make_agent(provider, workspace=tmp_path, builtin=["run_shell"], describe=False, sandbox=True) as agent:
            assert agent.approvals.known_sandbox is None, "nothing was started to find out"
            await agent.run("go")
            known = agent.approvals.known_sandbox
            assert known is not None
            assert known.words in agent.approvals.sandbox

    asyncio.run(main())


def test_a_file_that_a_rule_keeps_from_being_read_is_hidden_from_commands(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PASSPHRASE")
    result, intent = run_command(tmp_path, "cat .env; echo end", sandbox=True, rules=[deny("read_file .env")])
    if not intent.sandboxed:
        pytest.skip("no sandbox works here")
    assert "end" in result["stdout"]
    assert "PASSPHRASE" not in json.dumps(result)


def test_options_of_the_sandbox_are_checked() -> None:
    provider = ScriptedProvider("text: Hi.")
    for wrong in (Sandboxing(level=4), Sandboxing(level=True), Sandboxing(writable=[3]), "yes"):  # type: ignore[arg-type,list-item]
        with pytest.raises(InputError, match="sandbox"):
            make_agent(provider, sandbox=wrong)
    make_agent(provider, sandbox=Sandboxing(level=3)).close()


@pytest.mark.parametrize("background", [False, True])
def test_user_and_model_are_told_what_a_command_left_behind(background: bool, tmp_path: Path) -> None:
    """Files that agents go by, and a name that leads git elsewhere, which is gone."""

    async def main() -> tuple[list[str], str]:
        command = "git init -q .; echo x > AGENTS.md; echo ../x > .git/commondir"
        calls = f"call: run_shell {json.dumps({'command': 'git init -q .'})}\n---\n"
        calls += f"call: run_shell {json.dumps({'command': command, 'background': background})}\n---\n"
        calls += 'call: shell_output {"id": "bg1", "wait_s": 60}\n---\n' if background else ""
        provider = ScriptedProvider(f"{calls}text: Good.\n---\ntext: Well.")
        options: dict[str, Any] = {"builtin": ["run_shell", "shell_output"], "describe": False, "sandbox": True, "approval": "auto"}
        notices: list[str] = []
        async with make_agent(provider, workspace=tmp_path, **options) as agent:
            for prompt in ("go", "on"):
                notices += [
                    event.message async for event in agent.run(prompt) if isinstance(event, NoticeGiven) and event.about == "sandbox"
                ]
        results = [part.text for message in provider.requests[-1].messages for part in message.parts if isinstance(part, ToolResult)]
        return notices, results[-1]

    notices, result = asyncio.run(main())
    assert len(notices) == 1
    for told in (notices[0], result):
        assert "Undone" in told
        assert ".git/commondir" in told
        assert "AGENTS.md" in told
        assert ".git, " not in told
    assert not (tmp_path / ".git/commondir").exists()
