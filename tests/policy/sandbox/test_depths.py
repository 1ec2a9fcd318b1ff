"""What lies deep in a workspace: repositories whose hooks stay as they are, and files that rules keep from being read."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.policy.denied_reads import denied_patterns, find_denied_elsewhere, is_denied
from dragoman.policy.judge import Law, MustAsk, judge
from dragoman.policy.rules import Rule, deny
from dragoman.policy.sandbox import depths, detection
from dragoman.policy.sandbox.bubblewrap import find_bubblewrap
from dragoman.policy.sandbox.depths import Depths
from dragoman.policy.sandbox.launcher.order import INFO_FD
from dragoman.values.calls import Allow, Intent
from dragoman.values.messages import ToolSpec
from policy.sandbox.sandboxes import LEVELS, bash, sandbox_at

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")


@pytest.mark.parametrize("level", LEVELS)
def test_a_repository_deep_in_the_workspace_keeps_its_hooks_and_settings(level: int, tmp_path: Path) -> None:
    deep = tmp_path / "services" / "eu" / "billing"
    deep.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(deep)], check=True)
    before = (deep / ".git/config").read_bytes()
    hostile = "echo 'touch PWN' > .git/hooks/post-commit; git config core.fsmonitor 'touch PWN'; echo x > .git/commondir; echo fine > a"
    with sandbox_at(level, tmp_path) as sandbox:
        asyncio.run(bash(sandbox, f"cd {deep}; {hostile}", tmp_path))
    assert (deep / ".git/config").read_bytes() == before
    assert not (deep / ".git/hooks/post-commit").exists()
    assert not (deep / ".git/commondir").exists()
    assert (deep / "a").read_text() == "fine\n", "the rest of it can be worked on"


def test_the_look_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for where in ("a/b/.git", "a/b/c/d/e/f/.git", "a/b/c/d/e/f/g/.git", "node_modules/x/.git"):
        (tmp_path / where).mkdir(parents=True)
    root = str(tmp_path)
    assert Depths([root]).repositories == (f"{root}/a/b", f"{root}/a/b/c/d/e/f")
    monkeypatch.setattr(depths, "MAX_FOLDERS", 4)
    assert Depths([root]).repositories == (f"{root}/a/b",)


def test_what_was_seen_is_looked_for_again_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Depths([str(tmp_path)])
    assert seen.repositories == ()
    (tmp_path / "a/b/.git").mkdir(parents=True)
    assert seen.repositories == ()
    monkeypatch.setattr(depths, "AGAIN_S", 0.0)
    assert seen.repositories == (str(tmp_path / "a/b"),)


RULES = [deny("read_file **/.env"), deny("read_file secrets/**"), deny("read_file *.pem")]


@pytest.mark.parametrize("level", [1, 2])
def test_a_file_that_rules_keep_from_being_read_is_hidden_from_commands(level: int, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "app").mkdir(parents=True)
    (work / "secrets").mkdir()
    outside = tmp_path / "outside.txt"
    hidden = [work / "app/.env", work / "secrets/a.txt", work / "key.pem", outside]
    for path in (*hidden, work / "plain.txt"):
        path.write_text("CONTENT\n")
    patterns = denied_patterns([*RULES, deny(f"read_file {outside}"), Rule("deny", "", "read_file"), Rule("ask", "plain.txt", "read_file")])
    options = {"is_denied": is_denied(patterns, str(work)), "denied": find_denied_elsewhere(patterns)}
    with sandbox_at(level, work, **options) as sandbox:
        said = asyncio.run(bash(sandbox, f"cat {' '.join(map(str, hidden))}; grep -rl CONTENT .", work))[1]
    assert "CONTENT" not in said
    assert [line for line in said.splitlines() if line.startswith("./")] == ["./plain.txt"]
    assert all(path.read_text() == "CONTENT\n" for path in hidden)


@pytest.mark.parametrize(
    ("command", "is_asked"),
    [
        ("cat plain.txt", False),
        ("cat app/.env", True),
        ("cat secrets/deep/a.txt", True),
        ("head -3 *.pem", True),
        ("grep -r x app", True),
        ("grep -r x other", False),
        ("ls secrets", True),
    ],
)
def test_without_a_sandbox_a_command_that_names_such_a_file_asks(tmp_path: Path, command: str, is_asked: bool) -> None:
    for where in ("app/.env", "secrets/deep/a.txt", "key.pem", "plain.txt", "other/a.txt"):
        (tmp_path / where).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / where).touch()
    spec = ToolSpec.of("run_shell", "", {"type": "object"}, kind="execute")
    root = os.path.realpath(tmp_path)
    verdict = judge(spec, Intent(command=command, directory=root, preview=command), "default", law=Law(tuple(RULES), (root,)))
    assert isinstance(verdict, MustAsk if is_asked else Allow), verdict
    if isinstance(verdict, MustAsk):
        assert "from being read" in verdict.view.why


def test_where_no_gate_can_be_made_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bubblewrap that names a child whose network we cannot enter, as where the system lets only it make one."""
    with sandbox_at(2, tmp_path) as sandbox:
        assert sandbox.detected.has_own_network
        assert "no host can be reached" not in sandbox.detected.words
    real = find_bubblewrap()
    closed = tmp_path / "bwrap"
    lies = f"echo '{{\"child-pid\": 999999999}}' >&{INFO_FD}"
    sorted_out = f'while (($#)); do if [ "$1" = --info-fd ]; then shift 2; {lies}; else words+=("$1"); shift; fi; done'
    closed.write_text(f'#!/bin/bash\nwords=()\n{sorted_out}\nexec {real} "${{words[@]}}"\n')
    closed.chmod(0o755)
    monkeypatch.setattr(detection, "find_bubblewrap", lambda: str(closed))
    with sandbox_at(2, tmp_path) as sandbox:
        assert sandbox.detected.level == 2
        assert not sandbox.detected.has_own_network
        assert "no host can be reached" in sandbox.detected.words
