"""Commands and skills of other programs in the mode auto: what their heads do not grant does not happen unasked."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from loop.together_service import Parts
from program import Place, Service, calls, script

Serve = Callable[..., Service]
TRIES = calls(("write_file", {"file_path": "written", "content": "x"}), ("run_shell", {"command": "touch shell", "description": "x"}))
REVIEWER = "---\ndescription: x\nmode: subagent\npermission:\n  edit: deny\n  bash: deny\n---\n"
linux = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")


def put(place: Place, where: str, text: str) -> None:
    path = place.home / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def happened(place: Place) -> set[str]:
    return {name for name in ("written", "shell") if (place.work / name).exists()}


CLAUDE, OPENCODE, SKILL = ".claude/commands/x.md", ".config/opencode/commands/x.md", ".claude/skills/x/SKILL.md"
HEADS = {
    "nothing is said": (CLAUDE, "description: x", {"written", "shell"}),
    "no tool is needed": (CLAUDE, "allowed-tools: []", set()),
    "an empty line": (CLAUDE, "allowed-tools:", set()),
    "a part of Bash": (CLAUDE, "allowed-tools: Bash(git log:*)", set()),
    "writing alone": (CLAUDE, "allowed-tools: Write", {"written"}),
    "what is taken away": (CLAUDE, "disallowed-tools: Write, Bash(touch:*)", set()),
    "a skill that needs none": (SKILL, "name: x\ndescription: x\nallowed-tools: []", set()),
    "a skill run by an agent that reads": (SKILL, "name: x\ndescription: x\ncontext: fork\nagent: Explore", set()),
    "run by an agent that plans": (OPENCODE, "agent: plan", set()),
    "run by one that may not write": (OPENCODE, "agent: reviewer", set()),
    "run by one that may": (OPENCODE, "agent: build", {"written", "shell"}),
}


@linux
@pytest.mark.parametrize("name", HEADS)
def test_what_a_head_does_not_grant_does_not_happen(place: Place, serve: Serve, name: str) -> None:
    where, head, expected = HEADS[name]
    put(place, where, f"---\n{head}\n---\nDo it.")
    put(place, ".config/opencode/agents/reviewer.md", REVIEWER)
    serve(script(TRIES, "text: ok"))
    done = place.ask("/x", "--approval", "auto")
    assert (done.code, done.out) == (0, "ok\n"), done
    assert happened(place) == expected, done.err


@linux
def test_a_skill_that_a_subagent_activates_holds_in_its_run(place: Place, serve: Serve) -> None:
    put(place, SKILL, "---\nname: x\ndescription: x\nallowed-tools: Read\n---\nDo it.")
    task = ("task", {"agent": "general", "description": "do it", "prompt": "Use the skill."})
    inner = script(calls(("activate_skill", {"name": "x"})), TRIES, "text: Tried.")
    serve(Parts({"Have it done.": script(calls(task), "text: ok"), "Use the skill.": inner}))
    assert place.ask("Have it done.", "--approval", "auto").code == 0
    assert happened(place) == set()


@pytest.mark.parametrize(
    "line", ["hooks:\n  PreToolUse: [{hooks: [{type: command, command: ./x}]}]", "permissionMode: plan", "allowed-tools Read"]
)
@pytest.mark.parametrize("where", [CLAUDE, SKILL])
def test_a_head_that_cannot_be_honoured_is_named_and_not_used(place: Place, serve: Serve, where: str, line: str) -> None:
    put(place, where, f"---\nname: x\ndescription: x\n{line}\n---\nDo it.")
    asked = serve(script(TRIES, "text: ok"))
    done = place.ask("/x", "--approval", "auto-edit")
    assert f"{where}:4" in done.err
    assert "Do it." not in str(asked.requests[0])


def test_an_agent_that_is_not_there_is_told(place: Place, serve: Serve) -> None:
    put(place, OPENCODE, "---\nagent: nobody\n---\nDo it.")
    serve("text: ok")
    place.ask("/x").complaint(42, "nobody")
