"""What lies in a workspace: repositories, files that rules keep from being read, files that are known outside as well."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.policy.denied_reads import denied_patterns, find_denied_elsewhere, is_denied
from dragoman.policy.judge import Law, MustAsk, judge
from dragoman.policy.rules import Rule, deny
from dragoman.policy.sandbox import detection, survey
from dragoman.policy.sandbox.bubblewrap import find_bubblewrap
from dragoman.policy.sandbox.launcher.order import INFO_FD
from dragoman.policy.sandbox.survey import Linked, Survey
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


def test_the_look_is_bounded(tmp_path: Path) -> None:
    for where in ("a/b/.git", "a/b/c/d/e/f/.git", "node_modules/x/.git"):
        (tmp_path / where).mkdir(parents=True)
    root = str(tmp_path)
    whole = Survey([root]).look()
    assert (whole.repositories, whole.is_whole) == ((f"{root}/a/b", f"{root}/a/b/c/d/e/f"), True)
    part = Survey([root], most=5).look()
    assert (part.repositories, part.is_whole) == ((f"{root}/a/b",), False)


def test_it_looks_again_after_a_while_or_when_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Survey([str(tmp_path)])
    assert seen.look().repositories == ()
    (tmp_path / "a/b/.git").mkdir(parents=True)
    assert seen.look().repositories == ()
    assert seen.look(at_once=True).repositories == (str(tmp_path / "a/b"),)
    monkeypatch.setattr(survey, "AGAIN_S", 0.0)
    (tmp_path / "c/.git").mkdir(parents=True)
    again = Survey([str(tmp_path)])
    again.look()
    (tmp_path / "c/.git").rmdir()
    while str(tmp_path / "c") in again.look().repositories:
        pass


def test_files_known_outside_are_found_and_those_known_inside_alone_are_not(tmp_path: Path) -> None:
    work, store = tmp_path / "work", tmp_path / "store"
    for folder in (work / "lib", work / "other", store):
        folder.mkdir(parents=True)
    (store / "shared").write_text("x")
    os.link(store / "shared", work / "lib/shared")
    (work / "a").write_text("x")
    os.link(work / "a", work / "other/a")
    (work / "link").symlink_to(store / "shared")
    found = Survey([str(work)]).look().shared
    assert {path: [each.name for each in linked] for path, linked in found.items()} == {str(work / "lib"): ["shared"]}


NAMES = st.sampled_from(["a", "b", "c", "d"])
STEPS = st.lists(st.tuples(st.sampled_from(["file", "folder", "link out", "link in", "unlink", "rename"]), NAMES, NAMES), max_size=25)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_looking_at_changed_folders_alone_misses_nothing_that_looking_at_all_finds(steps: list[tuple[str, str, str]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        work, store = Path(place, "work"), Path(place, "store")
        (work / "a").mkdir(parents=True)
        store.mkdir()
        (store / "x").write_text("x")
        steadily = Survey([str(work)])
        for kind, first, second in steps:
            try:
                match kind:
                    case "file":
                        (work / first / second).write_text("x")
                    case "folder":
                        (work / first / second).mkdir(parents=True)
                    case "link out":
                        os.link(store / "x", work / first / second)
                    case "link in":
                        os.link(work / "a" / first, work / "b" / second)
                    case "unlink":
                        (work / first / second).unlink()
                    case _:
                        (work / first).rename(work / second)
            except OSError:
                pass
            found, all_of_it = names(steadily.look(at_once=True).shared), names(Survey([str(work)]).look().shared)
            assert found >= all_of_it


def names(shared: Mapping[str, tuple[Linked, ...]]) -> set[tuple[str, str]]:
    return {(path, each.name) for path, linked in shared.items() for each in linked}


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
    os.link(work / "app/.env", work / "another-name")
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


@pytest.mark.parametrize("level", [1, 2])
def test_a_hidden_file_stays_hidden_where_its_folder_is_moved_to(level: int, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app/.env").write_text("CONTENT")
    with sandbox_at(level, tmp_path, is_denied=is_denied(denied_patterns(RULES), str(tmp_path))) as sandbox:
        said = asyncio.run(bash(sandbox, "mv app moved; cat moved/.env; true", tmp_path))[1]
        said += asyncio.run(bash(sandbox, "cat moved/.env; true", tmp_path))[1]
    assert "CONTENT" not in said
    assert (tmp_path / "moved/.env").read_text() == "CONTENT"
