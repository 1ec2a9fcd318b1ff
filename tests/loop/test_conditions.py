"""What the model is told of the mode, the boundary around commands and who can answer: in each circumstance, when it changes, and truly."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from dragoman import Agent
from dragoman.context.environment import COMMANDS, MODE, PERSON
from dragoman.loop.conditions import Conditions, condition_lines, conditions_of
from dragoman.loop.options import Sandboxing
from dragoman.loop.surroundings import read_branch
from dragoman.policy.approvals import Unattended
from dragoman.policy.rules import allow
from dragoman.policy.sandbox.detection import Detected
from dragoman.policy.sandbox.sandbox import Sandbox
from dragoman.testing import ScriptedProvider
from dragoman.tools.function import FunctionTool
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import Message, Request, ToolCall, ToolResult
from dragoman.values.notes import CHANGED_BEGINS
from dragoman.values.profile import Profile, SmallModel
from dragoman.values.record import Said
from policy.sandbox.sandboxes import sandbox_at

MODES = ("plan", "default", "auto-edit", "auto")
BOUNDARIES = ("", "sandbox", "no_servers", "landlock", "macos", "external", "none")


def yes(call: ToolCall, intent: Intent) -> Allow:
    return Allow()


def no(call: ToolCall, intent: Intent) -> Deny:
    return Deny("nobody is there")


def notes_of(request: Request) -> list[str]:
    """The messages about changes, in their order."""
    return [message.text for message in request.messages if message.text.startswith(CHANGED_BEGINS)]


def line_of(text: str, begins: str) -> str:
    return next((line for line in text.split("\n") if line.startswith(begins)), "")


# --- the words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "boundary", "can_ask"), [*itertools.product(MODES, BOUNDARIES, (True, False))])
def test_every_line_is_one_line_and_promises_no_more_than_holds(mode: Any, boundary: Any, can_ask: bool) -> None:
    reads = boundary in ("sandbox", "no_servers")
    now = Conditions(mode=mode, boundary=boundary, can_ask=can_ask, reads_unasked=reads, has_background=True, network="none")
    lines = condition_lines(now)
    assert all(line.startswith(begins) and "\n" not in line and "  " not in line for begins, line in lines.items())
    assert (COMMANDS in lines) is bool(boundary)
    said = lines[MODE]
    about_edits = mode == "default"
    about_commands = bool(boundary) and (mode in ("default", "auto-edit") or (mode == "auto" and boundary == "none"))
    assert ("I am asked" in said) is (can_ask and (about_edits or about_commands))
    assert ("`writes`" in said) is (reads and can_ask and mode in ("default", "auto-edit"))
    assert ("Edits are refused" in said) is (mode == "plan" or (mode == "default" and not can_ask))
    whole = lines.get(COMMANDS, "")
    assert ("answer later commands" in whole) is (boundary == "sandbox")
    assert ("read-only" in whole) is (boundary in ("sandbox", "no_servers", "landlock", "macos"))
    assert ("$TMPDIR" in whole) is (boundary in ("landlock", "macos"))


@pytest.mark.parametrize(
    ("changes", "begins", "wanted"),
    [
        ({"network": "asks"}, COMMANDS, "asks me about new hosts"),
        ({"network": "hosts"}, COMMANDS, "to the hosts I allowed"),
        ({"network": "none"}, COMMANDS, "There is no network;"),
        ({"writable": ("/data",)}, COMMANDS, "in my directories, /data, and in a /tmp and"),
        ({"commands_write": True}, MODE, "Commands run unasked within their boundary."),
        ({"edits_run": True}, MODE, "Edits in my directories run unasked."),
        ({"has_rules": True}, MODE, "My rules may allow more."),
        ({"person": "nobody"}, PERSON, "nobody can answer or approve anything"),
        ({"person": "here"}, PERSON, "I can answer."),
    ],
)
def test_each_fact_has_its_words(changes: dict[str, Any], begins: str, wanted: str) -> None:
    before, now = Conditions(boundary="sandbox"), Conditions(**{"boundary": "sandbox", **changes})
    assert wanted in condition_lines(now)[begins]
    if changes != {"network": "none"}:
        assert wanted not in condition_lines(before).get(begins, "")


def test_what_a_model_lacks_it_is_not_told_of() -> None:
    assert condition_lines(Conditions(has_edits=False, boundary="")) == {}
    lines = condition_lines(Conditions(boundary="sandbox", has_background=False, has_sockets=True))
    assert "background" not in lines[COMMANDS]
    assert "docker" not in lines[COMMANDS]


# --- what is told at the beginning -------------------------------------------------------------------------------------------


def first_of(folder: Path, **options: Any) -> str:
    provider = ScriptedProvider("text: Hi.")
    with make_agent(provider, workspace=folder, **options) as agent:
        agent.run_sync("hello")
        assert agent._harness.commands is None or agent.approvals.mode == "auto", "nothing was looked for"
    return provider.requests[0].messages[0].text


CASES: list[tuple[dict[str, Any], list[str], list[str]]] = [
    ({"sandbox": True, "ask": yes}, ["in a sandbox, unless", "asks me about", "unless you set `writes`", "Questions: I can"], ["nobody"]),
    ({"sandbox": True, "ask": Unattended(no)}, ["in a sandbox, unless", "no network", "none may write", "nobody can"], ["I am asked"]),
    ({"sandbox": True}, ["Edits are refused.", "none may write"], ["Questions:", "I am asked"]),
    ({"sandbox": True, "hosts": ["packages.example.org"]}, ["to the hosts I allowed"], ["no network"]),
    ({"sandbox": Sandboxing(level="off"), "ask": yes}, ["without a sandbox, with my rights", "commands that do more"], ["/tmp and caches"]),
    ({"sandbox": Sandboxing(level="external"), "ask": yes}, ["in a container or virtual machine"], ["read-only", "`writes`"]),
    ({"sandbox": False}, ["without a sandbox"], ["in a sandbox"]),
    ({"sandbox": Sandboxing(level="external"), "approval": "auto"}, ["mode: auto", "Commands run unasked"], ["refused"]),
    ({"approval": "plan", "sandbox": True, "ask": yes}, ["mode: plan. Edits are refused", "none may write"], ["I am asked", "`writes`"]),
    ({"approval": "auto-edit", "ask": yes}, ["Edits in my directories run unasked", "I am asked about commands"], ["refused"]),
    ({"rules": [allow("pytest *")]}, ["My rules may allow more."], []),
    ({"builtin": ["read_file", "grep"]}, ["I'm working in"], ["Approval mode", "Commands run"]),
    ({"builtin": ["read_file", "edit"]}, ["Approval mode"], ["Commands run", "ommands that"]),
]  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
@pytest.mark.parametrize(("options", "there", "absent"), CASES)
@pytest.mark.parametrize("calling", ["native", "text"])
def test_the_first_message_says_what_holds(
    options: dict[str, Any], there: list[str], absent: list[str], calling: str, tmp_path: Path
) -> None:
    text = first_of(tmp_path, calling=calling, **options)
    assert [words for words in there if words not in text] == [], text
    assert [words for words in absent if words in text] == [], text


def test_an_agent_with_functions_alone_is_told_nothing() -> None:
    def tide(hour: int) -> str:
        return "high"

    provider = ScriptedProvider("text: Hi.")
    with Agent(provider, tools=[tide]) as agent:
        agent.run_sync("hello")
        agent.approvals.mode = "plan"
        agent.run_sync("and now?")
    assert [message.text for message in provider.requests[-1].messages] == ["hello", "Hi.", "and now?"]
    assert provider.requests[-1].system == ""


def test_a_model_too_small_for_long_instructions_is_told_nothing(tmp_path: Path) -> None:
    provider = ScriptedProvider("text: Hi.\n---\ntext: Yes.", profile=Profile(small=SmallModel(short_prompt=True)))
    with make_agent(provider, workspace=tmp_path, ask=yes) as agent:
        agent.run_sync("hello")
        agent.approvals.mode = "plan"
        agent.run_sync("and now?")
    assert [message.text for message in provider.requests[-1].messages] == ["hello", "Hi.", "and now?"]


def test_the_branch_is_read_without_git(tmp_path: Path) -> None:
    assert read_branch(str(tmp_path)) == ""
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    subprocess.run([*run, "init", "-q", "-b", "fix/the"], check=True)
    (tmp_path / "sub").mkdir()
    assert read_branch(str(tmp_path / "sub")) == "fix/the"
    subprocess.run([*run, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*run, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree")], check=True)
    assert read_branch(str(tmp_path / "tree")) == "other"
    subprocess.run([*run, "checkout", "-q", "--detach"], check=True)
    assert read_branch(str(tmp_path)).startswith("none, at commit ")
    (tmp_path / ".git" / "HEAD").write_text("root:x:0:0:secret\n")
    assert read_branch(str(tmp_path)) == "", "only what git writes there is shown"
    assert "Git branch: other\n" in first_of(tmp_path / "tree")


# --- what is told when it changes --------------------------------------------------------------------------------------------


def play(folder: Path, change: Callable[[Agent], None], **options: Any) -> ScriptedProvider:
    """A run in which a call changes something: two requests."""
    provider = ScriptedProvider("call: turn {}\n---\ntext: Good.\n---\ntext: Again.")
    held: list[Agent] = []

    def turn() -> str:
        """Turn."""
        change(held[0])
        return "turned"

    with make_agent(provider, workspace=folder, **{"tools": [turn], "ask": yes, **options}) as agent:
        held.append(agent)
        agent.run_sync("go")
        agent.run_sync("go on")
    return provider


def set_mode(*modes: Any) -> Callable[[Agent], None]:
    def change(agent: Agent) -> None:
        for mode in modes:
            agent.approvals.mode = mode

    return change


def test_a_mode_that_changes_in_the_middle_of_a_run_is_told_with_the_next_request(tmp_path: Path) -> None:
    provider = play(tmp_path, set_mode("plan"))
    first, second, third = provider.requests
    assert notes_of(first) == []
    (note,) = notes_of(second)
    assert note.split("\n\n")[1].startswith("Approval mode: plan.")
    assert not line_of(note, COMMANDS), "what has not changed is not told again"
    assert second.messages[-1].text == note, "it is the last thing before the answer"
    assert second.messages[: len(first.messages)] == first.messages, "nothing that was sent is edited"
    assert third.messages[: len(second.messages)] == second.messages
    assert notes_of(third) == [note], "it is told once"


def test_what_changes_and_changes_back_is_not_told(tmp_path: Path) -> None:
    provider = play(tmp_path, set_mode("plan", "default"))
    assert [notes_of(request) for request in provider.requests] == [[], [], []]


@pytest.mark.parametrize("calling", ["native", "text"])
def test_between_two_prompts_it_is_told_before_the_prompt(calling: str, tmp_path: Path) -> None:
    provider = ScriptedProvider("text: One.\n---\ntext: Two.")
    with make_agent(provider, workspace=tmp_path, ask=yes, calling=calling) as agent:
        agent.run_sync("one")
        agent.approvals.mode = "auto-edit"
        agent.run_sync("two")
        abouts = [entry.about for entry in agent.history.entries if isinstance(entry, Said)]
    texts = [message.text for message in provider.requests[-1].messages]
    assert texts[-1] == "two"
    assert "Edits in my directories run unasked." in texts[-2]
    assert abouts == ["environment", "", "", "changed", "", ""]


def test_a_folder_that_is_added_and_a_mode_that_changes_are_one_message(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "more").mkdir()
    provider = ScriptedProvider("text: One.\n---\ntext: Two.")
    with make_agent(provider, workspace=tmp_path / "work", ask=yes) as agent:
        agent.run_sync("one")
        agent.add_directory(str(tmp_path / "more"))
        agent.approvals.mode = "plan"
        agent.run_sync("two")
    (note,) = notes_of(provider.requests[-1])
    assert str(tmp_path / "more") in note
    assert "Approval mode: plan." in note


linux = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")


@linux
def test_the_sandbox_turned_off_and_writing_turned_on_are_told(tmp_path: Path) -> None:
    provider = play(tmp_path, lambda agent: agent._harness.turn_sandbox(on=False), sandbox=True)
    (note,) = notes_of(provider.requests[1])
    assert "Commands run without a sandbox, with my rights." in note
    assert "I am asked about commands that do more than read." in note

    def let_write(agent: Agent) -> None:
        agent.approvals.commands_write = True

    (note,) = notes_of(play(tmp_path, let_write, sandbox=True).requests[1])
    assert "Commands run unasked within their boundary." in note
    assert "sandbox" not in note


@linux
@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (Detected(1), ""),
        (Detected(2), ""),
        (Detected(2, can_have_gate=False), "no command reaches another's server"),
        (Detected(3), "not even 127.0.0.1"),
        (Detected(0, ("none",)), "without a sandbox, with my rights"),
    ],
)
def test_a_level_that_is_other_than_was_told_is_told_with_the_first_result(
    found: Detected, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sandbox, "known", property(lambda self: found))

    def run_something(agent: Agent) -> None:
        agent._harness._launch().sandbox  # noqa: B018

    notes = notes_of(play(tmp_path, run_something, sandbox=True).requests[1])
    assert [wanted in note for note in notes] == ([True] if wanted else [])


def test_a_summary_that_swallows_a_change_does_not_swallow_the_knowledge_of_it(tmp_path: Path) -> None:
    answers = [
        *("text: " + " ".join(f"Tide {number}." for number in range(1_000)) for _ in range(6)),
        "text: <snapshot>It went well.</snapshot>",
        "text: Three.",
    ]
    provider = ScriptedProvider("\n---\n".join(answers))
    with make_agent(provider, workspace=tmp_path, ask=yes) as agent:
        agent.run_sync("one")
        agent.approvals.mode = "plan"
        for _ in range(5):
            agent.run_sync("And then?")
        assert agent.compress_sync().status == "compressed"
        agent.run_sync("three")
    (note,) = notes_of(provider.requests[-1])
    assert "Approval mode: plan." in note


# --- on resume ---------------------------------------------------------------------------------------------------------------


def hold(folder: Path, prompt: str, **options: Any) -> Request:
    provider = ScriptedProvider("text: Yes.")
    with make_agent(provider, workspace=folder / "work", sessions=folder / "sessions", **options) as agent:
        agent.run_sync(prompt)
    return provider.requests[0]


def test_who_can_answer_is_told_when_a_session_is_resumed_by_another_front_end(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    first = hold(tmp_path, "one", ask=yes)
    second = hold(tmp_path, "two", ask=Unattended(no), resume="latest")
    third = hold(tmp_path, "three", ask=yes, resume="latest")
    fourth = hold(tmp_path, "four", ask=yes, resume="latest")
    assert line_of(first.messages[0].text, PERSON).startswith("Questions: I can answer.")
    assert line_of(notes_of(second)[-1], PERSON).startswith("Questions: nobody")
    assert line_of(notes_of(third)[-1], PERSON).startswith("Questions: I can answer.")
    assert len(notes_of(fourth)) == 2, "nothing has changed since"


def without_conditions(message: Message) -> Message:
    kept = [part for part in message.text.split("\n\n") if not part.startswith((MODE, COMMANDS, PERSON))]
    return Message("user", (type(message.parts[0])("\n\n".join(kept)),))


def test_a_session_of_an_earlier_version_goes_on_as_it_did_until_something_changes(tmp_path: Path) -> None:
    """It was told of no conditions: it sends what it sent, and is told all of them once one changes."""
    import msgspec

    from dragoman.loop.history import History

    with make_agent(ScriptedProvider("text: One."), workspace=tmp_path, ask=yes) as agent:
        agent.run_sync("one")
        entries = list(agent.history.entries)
    at = next(at for at, entry in enumerate(entries) if isinstance(entry, Said) and entry.about == "environment")
    entries[at] = msgspec.structs.replace(entries[at], message=without_conditions(entries[at].message))
    provider = ScriptedProvider("text: Two.\n---\ntext: Three.\n---\ntext: Four.")
    with make_agent(provider, workspace=tmp_path, ask=yes, history=History(entries=entries)) as agent:
        agent.run_sync("two")
        agent.run_sync("three")
        agent.approvals.mode = "plan"
        agent.run_sync("four")
    assert "Approval mode" not in provider.requests[0].messages[0].text
    assert notes_of(provider.requests[1]) == []
    (note,) = notes_of(provider.requests[2])
    assert [bool(line_of(note, begins)) for begins in (MODE, COMMANDS, PERSON)] == [True, True, True]


# --- what is told is true ----------------------------------------------------------------------------------------------------


def run_commands(folder: Path, *commands: str | dict[str, Any], **options: Any) -> list[str]:
    """What the model reads of each: the results, as text."""
    given = [each if isinstance(each, dict) else {"command": each} for each in commands]
    provider = ScriptedProvider("".join(f"call: run_shell {json.dumps(each)}\n---\n" for each in given) + "text: Done.")

    async def main() -> None:
        async with make_agent(provider, workspace=folder, **options) as agent:
            await agent.run("go")

    asyncio.run(main())
    parts = [part for message in provider.requests[-1].messages for part in message.parts]
    return [part.text for part in parts if isinstance(part, ToolResult)]


def test_cd_and_variables_do_not_last(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with make_agent(ScriptedProvider("text: Hi."), workspace=tmp_path) as agent:
        spec = agent.tools.get("run_shell").spec  # type: ignore[union-attr]
    assert "cd and variables do not last" in spec.schema["properties"]["directory"]["description"]
    _, second = run_commands(tmp_path, "cd sub && export TIDE=high && pwd", 'pwd; echo "tide:$TIDE:"', ask=yes)
    assert "tide::" in second
    assert f"{tmp_path}/sub" not in second


@linux
@pytest.mark.parametrize("level", [1, 2, 3])
def test_what_is_said_of_the_sandbox_is_so(level: Any, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with sandbox_at(level, work):
        pass  # it works here
    subprocess.run(["git", "-C", str(work), "init", "-q"], check=True)
    text = first_of(work, sandbox=Sandboxing(level=level), approval="auto")
    temporary = "$TMPDIR" if level == 3 else "/tmp"
    outside = "/etc" if os.access("/etc", os.W_OK) else os.path.expanduser("~")  # where only the sandbox keeps this user from writing
    assert f"at most in my directories, and in a {temporary} and caches of their own" in text.replace("in $", "in a $")
    assert ("not even 127.0.0.1" in text) is (level == 3)
    assert ("answer later commands" in text) is (level != 3)
    wrote, beside, elsewhere, _, config, network = run_commands(
        work,
        "echo a > a && echo written",
        f'echo a > "{temporary}/a" && echo "${{XDG_CACHE_HOME:-none}}" && mkdir -p "$XDG_CACHE_HOME" && echo written',
        f"echo a > {outside}/of-a-test && echo written",
        "git config told.tide high",
        "git config told.tide || echo unset",
        "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 2)' || echo none",
        sandbox=Sandboxing(level=level),
        approval="auto",
    )
    assert "written" in wrote
    assert "written" in beside
    assert "written" not in elsewhere
    assert "sandbox" in elsewhere, "a result says what the sandbox stopped"
    assert "unset" in config
    assert "none" in network


@linux
@pytest.mark.parametrize("level", ["off", 1, 2, 3])
def test_in_plan_mode_commands_that_only_read_run_at_every_level_and_no_other_writes(level: Any, tmp_path: Path) -> None:
    """--help says so: `ls` and `grep` run in every mode."""
    (tmp_path / "a.txt").write_text("the tide\n")
    if level != "off":
        with sandbox_at(level, tmp_path):
            pass
    options = {"sandbox": Sandboxing(level=level), "approval": "plan", "rules": [allow("touch *")]}
    text = first_of(tmp_path, **options)
    listed, found, touched = run_commands(tmp_path, "ls", "grep -c tide a.txt", "touch b.txt", **options)
    assert "a.txt" in listed
    assert "1" in found
    assert not (tmp_path / "b.txt").exists()
    if level in ("off", 3):
        assert "plan mode only reads" in touched
    assert ("Commands that do more than read are refused." in text) is (level == "off")


def test_tools_that_call_nobody_are_told_in_the_name_of_the_tool_they_call() -> None:
    """A refusal names the tool that was meant, not `call_tool`."""

    class Caller:
        def __init__(self, inner: FunctionTool) -> None:
            self.spec = FunctionTool(self.call_tool).spec
            self._inner = inner

        def call_tool(self, name: str) -> str:
            """Call a tool."""
            return name

        def intend(self, args: Any) -> Intent:
            return Intent("call")

        def stands_for(self, args: Any) -> Any:
            return self._inner, {}

        async def run(self, args: Any, show: Any) -> Any:
            raise AssertionError

    def sink() -> str:
        """Sink a ship."""
        return "sunk"

    inner = FunctionTool(sink, kind="execute")
    provider = ScriptedProvider('call: call_tool {"name": "sink"}\n---\ntext: Good.')
    with Agent(provider, tools=[Caller(inner)]) as agent:
        agent.run_sync("go")
    (result,) = [part for message in provider.requests[-1].messages for part in message.parts if isinstance(part, ToolResult)]
    assert "sink needs a person's approval" in result.text
    assert "call_tool" not in result.text


def test_the_facts_of_a_subagent_say_nothing_of_who_answers(tmp_path: Path) -> None:
    """Its own instructions do."""
    with make_agent(ScriptedProvider("text: Hi."), workspace=tmp_path, ask=yes) as agent:
        harness = agent._harness
        assert conditions_of(harness).person == "here"
        harness.called_by = harness
        assert conditions_of(harness).person == ""
        harness.called_by = None
