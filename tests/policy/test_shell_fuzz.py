"""What the policy lets run unasked does nothing but read, whatever is hidden in it. `DRAGOMAN_LONG=1` makes 200,000 commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman.policy.rules import Rule
from shell_fuzz import INJECTIONS, Ground, fuzz
from system_parts import require_program

COUNT = 200_000 if os.environ.get("DRAGOMAN_LONG") else 2_000


def test_nothing_hidden_in_a_command_that_is_allowed_happens(tmp_path: Path) -> None:
    require_program("bash")
    found = fuzz(COUNT, 20, tmp_path.resolve() / "ground")
    assert found.holes == []
    assert found.allowed > COUNT / 10, "the policy allows so little that nothing was tried"


def test_the_ground_notices_what_a_command_does(tmp_path: Path) -> None:
    """Each of these would be a hole: were they allowed, the test above would fail."""
    require_program("bash")
    ground = Ground(tmp_path.resolve() / "ground")
    bad = [
        "echo $(touch PWN)",
        "find . -name a.txt -fprint PWN",
        "cat link",
        "cat ~/.ssh/id_rsa",
        "cd evil && git status",
        "cd hooked && git status",
        "cd masked && git status",
        "cd rebasing && git status",
        "cd swapped && git grep outside",
        "strings @args.txt",
        "cd evil2/in && git status",
        "cd evil2/odd && git diff",
        "cd borrowed && git log -p",
        "cd alternate && git show HEAD",
        "cd sub && cat /proc/self/cwd/here",
        "cd sub && cat ../p/here",
        "rm a.txt",
    ]
    assert [command for command in ("ls", *bad, "pwd") if ground.run([command])] == bad


LISTED = ["echo", "ls", "cat", "grep", "git", "test", "printf", "head", "find", "sed", "awk", "sort", "uniq", "true"]


def test_a_rule_for_a_program_lets_no_injection_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the user has written `find *`: what only reads is covered, what runs or writes something is not."""
    require_program("bash")
    ground = Ground(tmp_path.resolve() / "ground")
    for key, value in ground.environment.items():
        monkeypatch.setenv(key, value)
    rules = tuple(Rule("allow", text) for name in LISTED for text in (name, f"{name} *"))
    tried = [f"{name} {before}{text}" for name in LISTED for text in INJECTIONS for before in ("", "a.txt ")]
    allowed = [command for command in dict.fromkeys(tried) if "\0" not in command and ground.allows(command, rules)]
    assert ground.run(allowed) == []
    assert len(allowed) > 50
