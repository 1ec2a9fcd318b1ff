"""Commands that really run outside the sandbox: where they write, with which environment, and what the record says of them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from dragoman.loop.options import Sandboxing
from dragoman.policy.sandbox.sandbox import Sandbox
from dragoman.rules import allow
from dragoman.sessions.export import to_conversation_record, to_markdown
from dragoman.sessions.transcript import ToolCallStep, read_transcript
from dragoman.testing import ScriptedProvider
from dragoman.tools.shell import RunShell
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.events import ToolCallFinished
from dragoman.values.messages import ToolCall, ToolResult
from dragoman.values.record import Entry, ToolStarted
from policy.sandbox.sandboxes import LEVELS, sandbox_at
from told_commands import told_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
Ask = Callable[[ToolCall, Intent], Allow | Deny]


class Ran:
    """What came of some calls."""

    def __init__(self) -> None:
        self.results: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self.entries: list[Entry] = []
        self.asked: list[Intent] = []
        self.events: list[Any] = []
        self.schema: dict[str, Any] = {}
        self.background: Any = ()


def run_calls(folder: Path, *calls: dict[str, Any], answer: Allow | Deny | None = None, level: Any = 1, **options: Any) -> Ran:
    ran = Ran()

    def ask(call: ToolCall, intent: Intent) -> Allow | Deny:
        ran.asked.append(intent)
        return answer or Allow()

    async def main() -> None:
        written = "".join(f"call: run_shell {json.dumps({'timeout_s': 60, **each})}\n---\n" for each in calls)
        provider = ScriptedProvider(f"{written}text: Good.")
        given = {
            "workspace": folder / "work",
            "builtin": ["run_shell", "shell_output"],
            "describe": False,
            "sandbox": Sandboxing(level=level),
        }
        async with make_agent(provider, **{**given, "ask": ask, "approval": "auto", "sessions": folder / "sessions", **options}) as agent:
            async for event in agent.run("go"):
                ran.events.append(event)
            ran.background = agent.background_commands
            ran.entries = list(agent._session.history.entries)
        parts = [part for message in provider.requests[-1].messages for part in message.parts]
        ran.texts = [part.text for part in parts if isinstance(part, ToolResult)]
        ran.results = [told for told in told_in(ran.entries) if "error" not in told]
        ran.schema = next(tool for tool in provider.requests[0].tools if tool.name == "run_shell").schema

    (folder / "work").mkdir(exist_ok=True)
    asyncio.run(main())
    return ran


def require_level(level: int, folder: Path) -> None:
    (folder / "work").mkdir(exist_ok=True)
    with sandbox_at(level, folder / "work"):
        pass


@pytest.mark.parametrize("level", LEVELS)
def test_it_writes_where_a_command_inside_cannot(level: int, tmp_path: Path) -> None:
    require_level(level, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    inside = {"command": f"echo in > {elsewhere}/in"}
    outside = {"command": f"echo out > {elsewhere}/out && echo $UNSEEN", "outside": "May I write there?"}
    ran = run_calls(tmp_path, inside, outside, level=level)
    assert [path.name for path in elsewhere.iterdir()] == ["out"]
    assert [intent.outside for intent in ran.asked] == ["May I write there?"]
    assert ran.asked[0].preview == outside["command"]
    assert "outside" not in ran.results[0]
    assert ran.results[1]["outside"] is True
    assert "sandbox" not in ran.results[1]
    assert [entry.outside for entry in ran.entries if isinstance(entry, ToolStarted)] == [False, True]
    assert [event.outside for event in ran.events if isinstance(event, ToolCallFinished)] == [False, True]


def test_the_record_and_its_exports_say_so(tmp_path: Path) -> None:
    ran = run_calls(tmp_path, {"command": "echo a"}, {"command": "echo b", "outside": "why"}, {"command": "echo c", "outside": "why"})
    steps = [step for step in read_transcript(ran.entries).steps if isinstance(step, ToolCallStep)]
    assert [step.outside for step in steps] == [False, True, True]
    assert to_markdown(ran.entries).count("done, outside the sandbox") == 2
    assert json.dumps(to_conversation_record(ran.entries)).count("outsideSandbox") == 2


def test_what_was_refused_did_not_run_outside(tmp_path: Path) -> None:
    ran = run_calls(tmp_path, {"command": "touch ../x", "outside": "why"}, answer=Deny("no"))
    assert not (tmp_path / "x").exists()
    assert not [entry for entry in ran.entries if isinstance(entry, ToolStarted)]
    assert "outside the sandbox" not in to_markdown(ran.entries)


def test_with_nobody_to_ask_only_a_rule_lets_it_out(tmp_path: Path) -> None:
    call = {"command": "touch ../x", "outside": "why"}
    ran = run_calls(tmp_path, call, ask=None, rules=[allow("touch *"), allow("run_shell")])
    assert not (tmp_path / "x").exists()
    assert "nobody can be asked" in ran.texts[0]
    assert "a rule of the user's" in ran.schema["properties"]["outside"]["description"], "it does not say that somebody is asked"
    run_calls(tmp_path, call, ask=None, rules=[allow("outside touch *")])
    assert (tmp_path / "x").exists()


def test_it_has_the_users_environment_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"SSH_AUTH_SOCK": "/run/agent.sock", "DOCKER_HOST": "unix:///run/d.sock", "ODD_VARIABLE": "odd", "MY_API_KEY": "secret"}
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    ran = run_calls(tmp_path, {"command": "env", "outside": "why"}, {"command": "env"})
    outside, inside = (set(result["stdout"].splitlines()) for result in ran.results)
    shown = {f"{name}={value}" for name, value in names.items()}
    assert outside & shown == {"SSH_AUTH_SOCK=/run/agent.sock", "DOCKER_HOST=unix:///run/d.sock", "ODD_VARIABLE=odd"}
    assert inside & shown == set()


def test_by_a_rule_it_finds_no_program_of_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "work" / "bin"
    tools.mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{tools}")
    ran = run_calls(tmp_path, {"command": "printenv PATH", "outside": "why"}, rules=[allow("outside printenv PATH")])
    assert ran.asked == []
    assert str(tools) not in ran.results[0]["stdout"]
    ran = run_calls(tmp_path, {"command": "printenv PATH", "outside": "why"})
    assert len(ran.asked) == 1
    assert str(tools) in ran.results[0]["stdout"]


def test_a_background_command_may_be_outside_too(tmp_path: Path) -> None:
    call = {"command": f"echo up; touch {tmp_path}/x; sleep 60", "outside": "why", "background": True}
    ran = run_calls(tmp_path, call, {"command": "sleep 60", "background": True})
    assert (tmp_path / "x").exists()
    assert len(ran.asked) == 1
    assert "(in the background)" in ran.asked[0].preview
    assert ran.results[0]["outside"] is True
    assert [each.is_outside for each in ran.background] == [True, False]


def test_it_is_offered_only_where_there_is_to_be_a_sandbox(tmp_path: Path) -> None:
    ran = run_calls(tmp_path, {"command": "true", "outside": "why"}, level="off", approval="default")
    assert "outside" not in ran.schema["properties"]
    assert "not run" in ran.texts[0]
    assert "outside" in run_calls(tmp_path, {"command": "true"}).schema["properties"]
    ran = run_calls(tmp_path, {"command": "true"}, level="external")
    assert "outside" not in ran.schema["properties"], "where a container is the boundary, no way leads out of it"


def test_without_a_sandbox_it_is_an_ordinary_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sandbox, "is_sandbox", False)
    ran = run_calls(tmp_path, {"command": "env true", "outside": "why"}, approval="default")
    assert [(intent.outside, intent.guarded) for intent in ran.asked] == [("", "")]
    assert ran.results[0]["exitCode"] == 0
    assert "outside" not in ran.results[0]
    assert [entry.outside for entry in ran.entries if isinstance(entry, ToolStarted)] == [False]


def test_the_tool_runs_nothing_outside_that_was_not_decided_so(tmp_path: Path) -> None:
    """Whoever calls it, whatever else was allowed."""

    async def main() -> str:
        provider = ScriptedProvider("text: Good.")
        given = {"workspace": tmp_path / "work", "builtin": ["run_shell"], "describe": False, "sandbox": Sandboxing(level=1)}
        async with make_agent(provider, **given) as agent:
            tool = agent._harness.registry.get("run_shell")
            assert isinstance(tool, RunShell)
            output = await tool.run({"command": "touch ../x", "outside": "why"}, lambda text: None)
            return str(output.content[0])

    (tmp_path / "work").mkdir()
    assert "was not allowed to run outside" in asyncio.run(main())
    assert not (tmp_path / "x").exists()
