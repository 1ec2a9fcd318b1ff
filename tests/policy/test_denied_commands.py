"""A file that a rule keeps from being read is not shown by git, or under another name, without a question: also in `auto`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dragoman.policy.judge import Law, MustAsk, judge
from dragoman.rules import deny
from dragoman.values.calls import Allow, Intent
from dragoman.values.messages import ToolSpec
from system_parts import require_program

SHELL = ToolSpec("run_shell", "", kind="execute")
SHOWING = [
    "git show HEAD:.env", "git log -p", "git log --patch -1", "git archive HEAD | tar x -C out", "git cat-file -p HEAD:.env",
    "git diff HEAD~1",
    "git stash show -p", "git grep SECRET", "git blame .env", "git --work-tree=out checkout -- .", "git worktree add out/x",
    "git clone . out/x", "git format-patch -1", "git checkout-index -a --prefix=out/", "git bundle create x HEAD",
    "bash -c 'git show HEAD:.env'",
    "x=$(git show HEAD:.env); echo $x", "cd sub && git log -p", "git -C sub show HEAD:.env", "env git fast-export HEAD", "git show HEAD",
    "cat other.txt", "cp other.txt copy.txt", "bash -c 'cat other.txt'", "dd if=other.txt of=x",
]  # fmt: skip
ORDINARY = [
    "git status",
    "git diff sub", "git add -A", "git commit -m 'fix: show the diff'", "git push -u origin main", "git log --oneline", "git diff --stat",
    "git show --name-only HEAD", "git stash", "git stash pop", "git worktree list", "cat plain.txt", "make test > log.txt",
    "git checkout -b x",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    require_program("git")
    work = (tmp_path / "work").resolve()
    (work / "sub").mkdir(parents=True)
    for name in (".env", "plain.txt"):
        (work / name).write_text("SECRET=1\n")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], cwd=work, check=True)
    os.link(work / ".env", work / "other.txt")
    return work


def verdict(command: str, folder: Path) -> object:
    law = Law((deny("read_file **/.env"),), (str(folder),))
    return judge(SHELL, Intent(command=command, directory=str(folder), sandboxed=True), "auto", law=law)


@pytest.mark.parametrize("command", SHOWING)
def test_what_shows_it_asks(command: str, folder: Path) -> None:
    found = verdict(command, folder)
    assert isinstance(found, MustAsk)
    assert "from being read" in found.view.why


@pytest.mark.parametrize("command", ORDINARY)
def test_what_does_not_runs(command: str, folder: Path) -> None:
    assert verdict(command, folder) == Allow()


def test_nothing_asks_where_git_does_not_know_the_file(folder: Path) -> None:
    subprocess.run(["git", "rm", "-q", "--cached", ".env"], cwd=folder, check=True)
    assert verdict("git log -p", folder) == Allow()
