"""Subagents that other programs' files define, run for real in the mode auto: what their files forbid does not happen.

Each tries to write a file, to edit one, to run commands that write, to call a server's tool and to fetch a page. Then the folder is looked
at, and what the server was asked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from loop.together_service import Parts
from program import Done, Place, Service, calls, script
from quay import Quay

Serve = Callable[..., Service]
ASKED, ORDER = "Have the helper do it.", "Do everything that you can."
TRIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("write_file", {"file_path": "written.txt", "content": "x"}),
    ("edit", {"file_path": "old.txt", "old_string": "old", "new_string": "new"}),
    ("run_shell", {"command": "touch shell.txt", "description": "x"}),
    ("run_shell", {"command": "git log --oneline > log.txt", "description": "x"}),
    ("run_shell", {"command": "git log --oneline && touch after.txt", "description": "x"}),
    ("mcp__harbour__numbers", {}),
    ("web_fetch", {"prompt": "Read http://127.0.0.1:9/page and tell me"}),
)
ALL = frozenset({"write", "edit", "shell", "server"})


def task(agent: str = "helper", prompt: str = ORDER) -> tuple[str, dict[str, str]]:
    return ("task", {"agent": agent, "description": "do it", "prompt": prompt})


def tries(*more: str) -> str:
    return script(calls(("read_file", {"file_path": "old.txt"})), calls(*TRIES), *more, "text: I tried.")


def markdown(*head: str) -> str:
    return "\n".join(("---", "name: helper", "description: Helps.", *head, "---", "You help.", ""))


def put(place: Place, where: str, text: str) -> None:
    path = (place.home if where.startswith("~") else place.work) / where.removeprefix("~/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def prepare(quay: Quay) -> Place:
    quay.configure("harbour")
    place = quay.place
    (place.work / "old.txt").write_text("old\n")
    return place


def happened(quay: Quay) -> set[str]:
    """What the attempts have left behind."""
    work = quay.place.work
    did = {"write"} if (work / "written.txt").exists() else set[str]()
    did |= {"edit"} if (work / "old.txt").read_text() != "old\n" else set()
    did |= {"shell"} if any((work / name).exists() for name in ("shell.txt", "log.txt", "after.txt")) else set()
    return did | ({"server"} if any(line.startswith("call ") for line in quay.log("harbour")) else set())


def inner_results(done: Done) -> list[str]:
    """What the calls of subagents came to."""
    found: list[dict[str, Any]] = done.of("subagent")
    while any(event["type"] == "subagent" for event in found):
        found = [event["event"] if event["type"] == "subagent" else event for event in found]
    return [event["text"] for event in found if event["type"] == "tool_result"]


def attempt(quay: Quay, serve: Serve, scripts: dict[str, str] | None = None, *flags: str) -> Done:
    serve(Parts(scripts or {ASKED: script(calls(task()), "text: Done."), ORDER: tries()}))
    options = ("--approval", "auto", "--trust", "--allow", "mcp__*", "--output-format", "stream-json", *flags)
    done = quay.place.ask(ASKED, *options)
    assert done.code == 0, done
    return done


OPENCODE = ".opencode/agents/helper.md"
CLAUDE = ".claude/agents/helper.md"
GEMINI = ".gemini/agents/helper.md"
CODEX = ".codex/agents/helper.toml"


def opencode_json(**agent: Any) -> str:
    return json.dumps({"agent": {"helper": {"description": "Helps.", "prompt": "You help.", **agent}}}, indent=1)


def codex(*lines: str) -> str:
    return "\n".join(('name = "helper"', 'description = "Helps."', 'developer_instructions = "You help."', *lines, ""))


FILES: dict[str, tuple[str, str, set[str]]] = {
    "nothing is forbidden": (CLAUDE, markdown(), {"write", "edit", "shell", "server"}),
    "claude: tools []": (CLAUDE, markdown("tools: []"), set()),
    "claude: tools with nothing": (CLAUDE, markdown("tools:"), set()),
    "claude: tools as lines": (CLAUDE, markdown("tools:", "  - Read", "  - Grep"), set()),
    "claude: Tools in capitals": (CLAUDE, markdown("Tools: Read"), set()),
    "claude: part of Bash": (CLAUDE, markdown("tools: Read, Bash(git log:*)"), set()),
    "claude: part of Edit": (CLAUDE, markdown("tools: Read, Edit(docs/**)"), set()),
    "claude: a server of another name": (CLAUDE, markdown("tools: Read, mcp__other"), set()),
    "claude: one server": (CLAUDE, markdown("tools: Read, mcp__harbour__*"), {"server"}),
    "claude: disallowedTools": (CLAUDE, markdown("disallowedTools: Write, Edit, Bash"), {"server"}),
    "claude: disallowed part": (CLAUDE, markdown("disallowedTools: Bash(touch:*), Bash(git:*), mcp__harbour"), {"write", "edit"}),
    "claude: plan": (CLAUDE, markdown("permissionMode: plan"), set()),
    "claude: default": (CLAUDE, markdown("permissionMode: default"), {"server"}),
    "claude: acceptEdits": (CLAUDE, markdown("permissionMode: acceptEdits"), {"write", "edit", "server"}),
    "claude: dontAsk": (CLAUDE, markdown("permissionMode: dontAsk"), {"server"}),
    "claude: tools and bypassPermissions": (CLAUDE, markdown("tools: Read", "permissionMode: bypassPermissions"), set()),
    "claude: a worktree of its own": (CLAUDE, markdown("isolation: worktree"), set()),
    "opencode: edit and bash denied": (OPENCODE, markdown("permission:", "  edit: deny", "  bash: deny"), {"server"}),
    "opencode: edit and bash asked": (OPENCODE, markdown("permission:", "  edit: ask", "  bash: ask"), {"server"}),
    "opencode: all denied": (OPENCODE, markdown("permission: deny"), set()),
    "opencode: all denied but": (OPENCODE, markdown("permission:", '  "*": deny', "  read: allow", "  bash: allow"), {"shell"}),
    "opencode: patterns": (
        OPENCODE,
        markdown("permission:", "  edit:", '    "*": deny', '    "docs/*": allow', "  bash:", '    "*": deny', '    "git log*": allow'),
        {"server"},
    ),
    "opencode: a pattern that denies": (
        OPENCODE,
        markdown("permission:", "  bash:", '    "touch *": deny', '    "git *": deny'),
        {"write", "edit", "server"},
    ),
    "opencode: write false": (OPENCODE, markdown("tools:", "  write: false", "  bash: false"), {"server"}),
    "opencode: a server's tools false": (OPENCODE, markdown("tools:", "  harbour_*: false", "  bash: false"), {"write", "edit"}),
    "opencode: its second version": (
        OPENCODE,
        markdown("permissions:", '  - {action: "*", resource: "*", effect: deny}', '  - {action: read, resource: "*", effect: allow}'),
        set(),
    ),
    "opencode.json: denied": ("opencode.json", opencode_json(permission={"edit": "deny", "bash": {"*": "ask"}}), {"server"}),
    "opencode.json: tools": ("opencode.json", opencode_json(tools={"write": False, "edit": False, "bash": False}), {"server"}),
    "codex: read-only": (CODEX, codex('sandbox_mode = "read-only"'), set()),
    "codex: untrusted": (CODEX, codex('approval_policy = "untrusted"'), {"server"}),
    "codex: full access": (CODEX, codex('sandbox_mode = "danger-full-access"', 'approval_policy = "never"'), ALL),
    "gemini: tools": (GEMINI, markdown("kind: local", "tools:", "  - read_file"), set()),
    "gemini: no tools": (GEMINI, markdown("tools: []"), set()),
    "gemini: all servers": (GEMINI, markdown("tools: [read_file, mcp_*]"), {"server"}),
    "ours: tools": (".dragoman/agents/helper.md", markdown("tools: read_file, run_shell(git log *)"), set()),
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
@pytest.mark.parametrize("name", FILES)
def test_what_a_file_forbids_does_not_happen(quay: Quay, serve: Serve, name: str) -> None:
    where, text, expected = FILES[name]
    place = prepare(quay)
    put(place, where, text)
    done = attempt(quay, serve)
    assert happened(quay) == expected, (inner_results(done), done.err)


def said(done: Done) -> str:
    """What the caller's call came to."""
    return done.of("tool_result")[-1]["text"]


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
@pytest.mark.parametrize("line", ["tools: Read, Task, Bash(git log:*)", "permissionMode: plan", "isolation: worktree"])
def test_those_that_it_calls_may_do_no_more(quay: Quay, serve: Serve, line: str) -> None:
    place = prepare(quay)
    put(place, CLAUDE, markdown(line))
    inner = "Do it for me."
    scripts = {
        ASKED: script(calls(task()), "text: Done."),
        ORDER: script(calls(task("general", inner)), "text: Asked."),
        inner: tries(),
    }
    done = attempt(quay, serve, scripts)
    assert happened(quay) == set(), inner_results(done)
    assert sum(".claude/agents/helper.md" in text or "plan mode" in text for text in inner_results(done)) >= 1


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
def test_commands_that_begin_as_the_file_says_run_and_no_others(quay: Quay, serve: Serve) -> None:
    place = prepare(quay)
    put(place, CLAUDE, markdown("tools: Bash(touch allowed*), Bash(make test:*)"))
    lines = [
        "touch allowed.txt",
        "touch other.txt",
        "touch allowed.txt; touch third.txt",
        "make test $(touch fourth.txt)",
        "sh -c 'touch fifth.txt'",
    ]
    commands = [("run_shell", {"command": line, "description": "x"}) for line in lines]
    attempt(quay, serve, {ASKED: script(calls(task()), "text: Done."), ORDER: script(calls(*commands), "text: Tried.")})
    assert sorted(path.name for path in place.work.glob("*.txt")) == ["allowed.txt", "old.txt"]


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
def test_one_that_only_reads_runs_commands_that_read(quay: Quay, serve: Serve) -> None:
    place = prepare(quay)
    put(place, CODEX, codex('sandbox_mode = "read-only"'))
    commands = [("run_shell", {"command": line, "description": "x"}) for line in ("cat old.txt", "cat old.txt > new.txt")]
    done = attempt(quay, serve, {ASKED: script(calls(task()), "text: Done."), ORDER: script(calls(*commands), "text: Tried.")})
    first, second = inner_results(done)
    assert first.startswith("old")
    assert ".codex/agents/helper.toml" in second
    assert not (place.work / "new.txt").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
def test_a_tool_that_is_called_through_another_is_refused_too(quay: Quay, serve: Serve) -> None:
    place = prepare(quay)
    quay.configure("harbour", count=1000)
    put(place, OPENCODE, markdown("permission:", '  "harbour_*": deny'))
    through = ("call_tool", {"name": "mcp__harbour__numbers", "arguments": {}})
    done = attempt(quay, serve, {ASKED: script(calls(task()), "text: Done."), ORDER: script(calls(through), "text: Tried.")})
    assert ".opencode/agents/helper.md" in inner_results(done)[0]
    assert "server" not in happened(quay)


@pytest.mark.parametrize(
    ("where", "line"), [(GEMINI, "max_turns: 2"), (CLAUDE, "maxTurns: 2"), (OPENCODE, "steps: 2"), (OPENCODE, "maxSteps: 2")]
)
def test_after_its_turns_it_ends_with_what_it_has_and_says_so(quay: Quay, serve: Serve, where: str, line: str) -> None:
    place = prepare(quay)
    put(place, where, markdown(line))
    read = calls(("read_file", {"file_path": "old.txt"}))
    endless = script(f"text: Half of it.\n{read}", read, read, read, "text: All of it.")
    done = attempt(quay, serve, {ASKED: script(calls(task()), "text: Done."), ORDER: endless})
    assert len(inner_results(done)) == 2
    assert said(done).startswith("Half of it.")
    assert f"{where}:2" in said(done)
    assert not done.of("tool_result")[-1]["is_error"]
    assert [event for event in done.events if event["type"] != "tool_result" and "was ended before it was done" in json.dumps(event)]


def test_after_its_time_it_ends_with_what_it_has_and_says_so(quay: Quay, serve: Serve) -> None:
    place = prepare(quay)
    put(place, GEMINI, markdown("timeout_mins: 0.01"))
    read = calls(("read_file", {"file_path": "old.txt"}))
    done = attempt(
        quay, serve, {ASKED: script(calls(task()), "text: Done."), ORDER: script(f"text: Half of it.\n{read}", "wait: 300\ntext: never")}
    )
    assert said(done).startswith("Half of it.")
    assert "0.01 minutes" in said(done)


def test_a_file_that_cannot_be_honoured_is_named_and_its_subagent_is_not_there(quay: Quay, serve: Serve) -> None:
    place = prepare(quay)
    put(place, CLAUDE, markdown("hooks:", "  PreToolUse:", "    - hooks:", "        - type: command", "          command: ./check"))
    asked = serve("text: Hello.")
    done = place.ask("hi", "--trust")
    assert f"{CLAUDE}:4" in done.err
    assert "hooks" in done.err
    assert "helper" not in json.dumps(asked.requests[0]["tools"])
