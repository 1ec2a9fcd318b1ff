"""Commands as hooks of the loop, in this process: questions, summaries, agents inside others, and where sessions begin and end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import dragoman as dm
from dragoman.app.command_hooks import CommandHooks, open_hooks
from dragoman.app.options import Options
from dragoman.app.setup import set_up
from dragoman.options import ApprovalOptions
from dragoman.testing import ScriptedProvider
from processes import gone_within, marked_sleep

SUMMARY = "text: <snapshot><goal>short</goal></snapshot>"


class Desk:
    """A folder with hooks, and what they were told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log.jsonl"
        self.hooks: dict[str, Any] = {}

    def on(self, event: str, then: str = "", matcher: str = "") -> None:
        """`then` is a shell line after the hook has written down what it was told."""
        line = f"tr -d '\\n' >> {self.log}; echo >> {self.log}; {then or 'true'}"
        self.hooks[event] = [{"matcher": matcher, "hooks": [{"type": "command", "command": line}]}]

    def open(self) -> CommandHooks:
        home = self.folder / "home"
        (home / ".claude").mkdir(parents=True)
        (home / ".claude" / "settings.json").write_text(json.dumps({"hooks": self.hooks}))
        (self.folder / "work").mkdir()
        env = {"HOME": str(home), "DRAGOMAN_HOME": str(home / "d"), "PATH": os.environ["PATH"]}
        hooks = open_hooks(set_up(Options(directory=str(self.folder / "work")), env))
        assert hooks is not None
        return hooks

    @property
    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    @property
    def events(self) -> list[str]:
        return [each["hook_event_name"] for each in self.told]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def open_agent(desk: Desk, script: str, **options: Any) -> tuple[dm.Agent, ScriptedProvider]:
    hooks, provider = desk.open(), ScriptedProvider(script)
    agent = dm.Agent(provider, hooks=hooks.points(), **options)
    hooks.bind(agent)
    return agent, provider


@pytest.mark.parametrize(
    ("answer", "is_run", "questions"),
    [
        ({"behavior": "allow"}, True, 0),
        ({"behavior": "deny", "message": "not today"}, False, 0),
        ({}, True, 1),
    ],
)
def test_a_hook_answers_a_question_in_the_user_s_place(desk: Desk, answer: dict[str, str], is_run: bool, questions: int) -> None:
    desk.on("PermissionRequest", f"echo '{json.dumps({'hookSpecificOutput': {'hookEventName': 'PermissionRequest', 'decision': answer}})}'")
    desk.on("Notification", matcher="permission_prompt")
    asked: list[str] = []
    ran: list[str] = []

    @dm.tool(kind="execute")
    def sail(to: str) -> str:
        """Set sail."""
        ran.append(to)
        return "sailing"

    def ask(call: dm.ToolCall, view: Any) -> dm.Allow:
        asked.append(call.name)
        return dm.Allow()

    agent, provider = open_agent(desk, 'call: sail {"to": "Sur"}\n---\ntext: Done.', tools=[sail], approval=ApprovalOptions(ask=ask))
    with agent:
        agent.run_sync("Sail.")
    assert (ran == ["Sur"], len(asked)) == (is_run, questions)
    assert desk.events == ["PermissionRequest", *(["Notification"] if questions else [])]
    if not is_run:
        assert "not today" in str(provider.requests[1])


def test_a_hook_that_answers_in_the_user_s_place_does_not_lead_a_call_to_what_is_guarded(desk: Desk) -> None:
    changed = {"behavior": "allow", "updatedInput": {"file_path": ".git/hooks/post-checkout", "content": "x"}}
    desk.on(
        "PermissionRequest", f"echo '{json.dumps({'hookSpecificOutput': {'hookEventName': 'PermissionRequest', 'decision': changed}})}'"
    )
    asked: list[str] = []

    def ask(call: dm.ToolCall, view: Any) -> dm.Deny:
        asked.append(call.name)
        return dm.Deny("no")

    work = desk.folder / "work"
    agent, _ = open_agent(
        desk,
        'call: write_file {"file_path": "a.txt", "content": "x"}\n---\ntext: Done.',
        tools=dm.ToolOptions(builtin=True),
        workspace=work,
        approval=ApprovalOptions(ask=ask),
    )
    (work / ".git" / "hooks").mkdir(parents=True)
    with agent:
        agent.run_sync("Write.")
    assert asked == ["write_file"], "the user is asked after all"
    assert not (work / ".git" / "hooks" / "post-checkout").exists()


def test_a_summary_may_be_refused_and_begins_the_session_anew(desk: Desk) -> None:
    desk.on("PreCompact", "test -e allowed || { echo 'Not yet.' >&2; exit 2; }")
    desk.on("PostCompact")
    desk.on("SessionStart", "echo Remember the harbours.", matcher="compact|clear")
    answers = ["text: " + "word " * 400] * 6
    agent, provider = open_agent(desk, "\n---\n".join([*answers, SUMMARY, "text: One.", "text: Two."]), workspace=desk.folder)
    with agent:
        for number in range(6):
            agent.run_sync(f"{number} " + "wave " * 400)
        assert desk.events == []
        refused = agent.compress_sync()
        assert (refused.status, refused.reason) == ("noop", "Not yet.")
        (desk.folder / "allowed").touch()
        assert agent.compress_sync().status == "compressed"
        agent.run_sync("And now?")
        agent.clear()
        agent.run_sync("From the start.")
    assert desk.events == ["PreCompact", "PreCompact", "PostCompact", "SessionStart", "SessionStart"]
    assert [each.get("source") for each in desk.told][-2:] == ["compact", "clear"]
    assert provider.requests[-2].messages[-1].text == "Remember the harbours."
    assert [message.text for message in provider.requests[-1].messages] == ["From the start.", "Remember the harbours."]


def test_an_agent_inside_another_goes_through_the_same_hooks(desk: Desk) -> None:
    desk.on("SubagentStart", "echo Be quick.", matcher="scout")
    desk.on("SubagentStop", f"""test $(grep -c SubagentStop {desk.log}) -gt 1 || {{ echo 'Look again.' >&2; exit 2; }}""")
    desk.on("PreToolUse", "echo 'It is dark.' >&2; exit 2", matcher="look")
    desk.on("Stop")
    desk.on("UserPromptSubmit")

    @dm.tool(read_only=True)
    def look() -> str:
        """Look."""
        raise AssertionError("never called")

    inner_model = ScriptedProvider("call: look {}\n---\ntext: Dark.\n---\ntext: Very dark.")
    inner = dm.Agent(inner_model, tools=[look])
    agent, _ = open_agent(
        desk, 'call: scout {"prompt": "Look."}\n---\ntext: Done.', tools=[inner.as_tool("scout", "Looks.")], session=desk.folder / "kept"
    )
    with inner, agent:
        agent.run_sync("Go.")
        session = agent.session_id
    assert desk.events == ["UserPromptSubmit", "SubagentStart", "PreToolUse", "SubagentStop", "SubagentStop", "Stop"]
    assert {each["session_id"] for each in desk.told} == {session}
    start, call, stop, again = desk.told[1:5]
    assert start["agent_id"] == call["agent_id"] == stop["agent_id"] != session
    assert (start["agent_type"], call["agent_type"]) == ("scout", "scout")
    assert (stop["stop_hook_active"], again["stop_hook_active"]) == (False, True)
    assert os.path.exists(stop["agent_transcript_path"])
    assert inner_model.requests[0].messages[-1].text == "Look.\n\nBe quick."
    assert "It is dark." in str(inner_model.requests[1])
    assert inner_model.requests[2].messages[-1].text == "Look again."


def test_hooks_have_a_run_go_on_only_so_often(desk: Desk) -> None:
    desk.on("Stop", "echo 'Once more.' >&2; exit 2")
    agent, provider = open_agent(desk, "\n---\n".join(["text: Done."] * 20))
    with agent:
        agent.run_sync("Go.")
    assert len(provider.requests) == 9
    assert [each["stop_hook_active"] for each in desk.told] == [False, *[True] * 8]


def test_a_failed_call_is_told_as_such_and_a_result_can_be_replaced(desk: Desk) -> None:
    desk.on("PostToolUseFailure", """echo '{"hookSpecificOutput": {"additionalContext": "Try the other harbour."}}'""")
    desk.on("PostToolUse", """echo '{"hookSpecificOutput": {"updatedMCPToolOutput": {"tide": "secret"}}}'""")

    @dm.tool(read_only=True)
    def tides(harbour: str) -> str:
        """Tides."""
        if harbour == "Sur":
            raise ValueError("no such harbour")
        return "04:05"

    script = 'call: tides {"harbour": "Sur"}\n---\ncall: tides {"harbour": "Muscat"}\n---\ntext: Done.'
    agent, provider = open_agent(desk, script, tools=[tides])
    with agent:
        agent.run_sync("Go.")
    failed, worked = desk.told
    assert (failed["hook_event_name"], "no such harbour" in failed["error"]) == ("PostToolUseFailure", True)
    assert (worked["hook_event_name"], worked["tool_response"]["content"]) == ("PostToolUse", "04:05")
    assert "Try the other harbour." in str(provider.requests[1])
    assert "secret" in str(provider.requests[2])
    assert "04:05" not in str(provider.requests[2])


def test_a_hook_has_no_keys_in_its_environment_and_leaves_no_process(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "sk-0123456789")
    monkeypatch.setenv("MY_TOKEN", "sk-9876543210")
    left = marked_sleep()
    desk.on("UserPromptSubmit", f"env > {desk.folder}/env; (env -i setsid nohup {left} >{desk.folder}/left 2>&1 </dev/null &)")
    agent, _ = open_agent(desk, "text: hi")
    with agent:
        agent.run_sync("hi")
    assert (desk.folder / "left").exists()
    assert gone_within(60, left), "what a hook leaves ends with it"
    seen = (desk.folder / "env").read_text()
    assert "sk-" not in seen
    assert "CLAUDE_PROJECT_DIR=" in seen
