"""`allowed-tools`: what is not named is asked about; `disallowed-tools`: what is named is refused. Nothing is allowed by either."""

from __future__ import annotations

import pytest

from dragoman.policy.allowed_tools import AllowedTools
from dragoman.policy.judge import Law, MustAsk
from dragoman.values.calls import Deny, Intent
from dragoman.values.messages import ToolSpec

LAW = Law(folders=("/work",))
SHELL = ToolSpec.of("run_shell", "", {"type": "object"}, kind="execute")
EDIT = ToolSpec.of("write_file", "", {"type": "object"}, kind="edit")
FETCH = ToolSpec.of("web_fetch", "", {"type": "object"}, kind="fetch")
READ = ToolSpec.of("read_file", "", {"type": "object"}, read_only=True)


def may(names: list[str], spec: ToolSpec, intent: Intent) -> bool:
    return AllowedTools(names, "the skill x").limit(spec, intent, LAW) is None


@pytest.mark.parametrize(
    ("names", "command", "runs"),
    [
        (["Bash"], "rm -rf x", True),
        (["run_shell_command"], "make", True),
        (["Bash(git add:*)"], "git add .", True),
        (["Bash(git add:*)"], "git push", False),
        (["Bash(git add:*)"], "git add . && rm x", False),
        (["Bash(git add:*)"], "git add $(rm x)", False),
        (["Read"], "make", False),
        (["Read"], "ls", True),
        (["*"], "make", True),
        (["nonsense("], "make", False),
    ],
)
def test_commands(names: list[str], command: str, runs: bool) -> None:
    assert may(names, SHELL, Intent(command=command, directory="/work")) is runs


def test_edits_fetches_and_reads() -> None:
    there = Intent(writes=("/work/src/a.py",))
    assert may(["Edit"], EDIT, there)
    assert may(["Write(src/**)"], EDIT, there)
    assert not may(["Edit(docs/**)"], EDIT, there)
    assert not may(["Bash"], EDIT, there)
    assert may(["write_file"], EDIT, there)
    assert may(["WebFetch(domain:example.org)"], FETCH, Intent(scope="example.org"))
    assert not may(["WebFetch(domain:example.org)"], FETCH, Intent(scope="example.com"))
    assert may(["Bash"], READ, Intent(reads=("/work/a",))), "what only reads is never refused"
    asked = AllowedTools(["Bash"], "the skill x").limit(EDIT, there, LAW)
    assert isinstance(asked, MustAsk)
    assert asked.view.why == "the skill x names only these tools as those it needs: Bash"


@pytest.mark.parametrize(
    ("names", "spec", "intent", "refused"),
    [
        (["Bash"], SHELL, Intent(command="ls", directory="/work"), True),
        (["Bash(rm:*)"], SHELL, Intent(command="ls && rm x", directory="/work"), True),
        (["Bash(rm:*)"], SHELL, Intent(command="ls", directory="/work"), False),
        (["Write"], EDIT, Intent(writes=("/work/a",)), True),
        (["Edit(docs/**)"], EDIT, Intent(writes=("/work/a",)), False),
        (["WebFetch"], FETCH, Intent(scope="example.org"), True),
        (["Read"], READ, Intent(reads=("/work/a",)), True),
        (["mcp__harbour"], ToolSpec.of("mcp__harbour__tide", "", {"type": "object"}), Intent(), True),
        (["nonsense("], SHELL, Intent(command="ls", directory="/work"), False),
    ],
)
def test_what_is_disallowed_is_refused(names: list[str], spec: ToolSpec, intent: Intent, refused: bool) -> None:
    assert isinstance(AllowedTools((), "the skill x", names).limit(spec, intent, LAW), Deny) is refused


def test_a_command_that_may_hide_what_is_disallowed_is_asked_about() -> None:
    limit = AllowedTools((), "the skill x", ["Bash(rm:*)"]).limit
    for command in ("x=m; r$x a", "bash -c " * 2_000 + "x"):
        asked = limit(SHELL, Intent(command=command, directory="/work"), LAW)
        assert isinstance(asked, MustAsk), command[:20]
        assert "may hide" in asked.view.why
