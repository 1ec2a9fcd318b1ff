"""Worktrees of hostile repositories: our own calls of git run nothing that a repository names, and write nowhere else."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from dragoman.app.safe_git import SafeGit
from dragoman.app.worktrees import leave_worktree, open_worktree
from dragoman.policy.git_folder import find_pipe
from dragoman.values.errors import InputError
from special_files import plant
from swaps import contents_of

HOOKS = ("post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-rewrite", "fsmonitor-watchman")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


class Hostile:
    """A repository, and a program that leaves a mark when it runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tree = folder, folder / "area" / "work"
        self.mark = folder / "ran"
        self.program = folder / "area" / "evil.sh"
        self.tree.mkdir(parents=True)
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.mark}\ncat\n')
        self.program.chmod(0o755)
        git(self.tree, "init", "-q", "-b", "main")
        for name in ("a.txt", "b.txt"):
            (self.tree / name).write_text("one\n")

    def commit(self, **files: str) -> None:
        for name, text in files.items():
            (self.tree / name).write_text(text)
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-qm", "first")
        for path in self.tree.iterdir():  # so that git looks at them again
            if path.is_file():
                os.utime(path, (1, 1))

    def set(self, key: str, value: str) -> None:
        git(self.tree, "config", key, value)

    def ran(self) -> str:
        return self.mark.read_text() if self.mark.exists() else ""

    def live(self) -> None:
        """A session in a worktree, from its beginning to its end."""
        worktree = open_worktree(str(self.tree), "fix")
        for path in Path(worktree.path).iterdir():
            if path.is_file() and path.name != ".git":
                os.utime(path, (1, 1))
        leave_worktree(worktree)


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hostile:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return Hostile(tmp_path)


def test_the_mark_is_left_where_git_is_called_as_usual(hostile: Hostile) -> None:
    """That the tests below would see something."""
    hostile.commit(**{".gitattributes": "* filter=evil\n"})
    hostile.set("filter.evil.clean", str(hostile.program))
    git(hostile.tree, "status")
    assert "evil.sh" in hostile.ran()


def test_nothing_that_the_configuration_names_runs(hostile: Hostile) -> None:
    hostile.commit(**{".gitattributes": "* filter=evil diff=evil merge=evil\n*.txt filter=e.v=il\n"})
    program = str(hostile.program)
    for key in (
        *(f"filter.{name}.{way}" for name in ("evil", "e.v=il") for way in ("clean", "smudge", "process")),
        *("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.gitProxy", "core.askPass", "core.alternateRefsCommand"),
        *("diff.external", "diff.evil.command", "diff.evil.textconv", "merge.evil.driver", "gpg.program", "gpg.ssh.program"),
        *("pager.status", "pager.branch", "pager.config", "pager.worktree", "sequence.editor", "uploadpack.packObjectsHook"),
        *("credential.helper", "remote.origin.uploadpack", "remote.origin.vcs", "interactive.diffFilter", "lfs.customtransfer.x.path"),
        *("alias.status", "alias.worktree", "alias.rev-parse", "hook.evil.command"),
    ):
        hostile.set(key, program)
    for key, value in {
        "filter.evil.required": "true",
        "remote.origin.url": f"ext::{program}",
        "remote.origin.promisor": "true",
        "extensions.partialClone": "origin",
        "core.repositoryformatversion": "1",
        "hook.evil.event": "post-checkout",
        "core.hooksPath": str(hostile.folder / "area" / "hooks"),
        "submodule.recurse": "true",
        "status.submoduleSummary": "true",
        "log.showSignature": "true",
        "protocol.ext.allow": "always",
    }.items():
        hostile.set(key, value)
    for folder in (hostile.folder / "area" / "hooks", hostile.tree / ".git" / "hooks"):
        folder.mkdir(exist_ok=True)
        for name in HOOKS:
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(hostile.program)
    hostile.live()
    assert hostile.ran() == ""


@pytest.mark.parametrize("where", ["include", "worktree"])
def test_filters_named_in_other_files_of_the_repository_do_not_run(hostile: Hostile, where: str) -> None:
    hostile.commit(**{".gitattributes": "* filter=evil\n"})
    named = f'[filter "evil"]\n\tclean = {hostile.program}\n\tsmudge = {hostile.program}\n'
    if where == "include":
        (hostile.tree / ".git" / "more").write_text(named)
        hostile.set("include.path", "more")
    else:
        hostile.set("extensions.worktreeConfig", "true")
        (hostile.tree / ".git" / "config.worktree").write_text(named)
    hostile.live()
    assert hostile.ran() == ""


def test_a_configuration_that_depends_on_the_branch_is_refused(hostile: Hostile) -> None:
    """It would hold in the new worktree only."""
    hostile.commit(**{".gitattributes": "* filter=evil\n"})
    (hostile.tree / ".git" / "more").write_text(f'[filter "evil"]\n\tsmudge = {hostile.program}\n')
    hostile.set("includeIf.onbranch:dragoman/**.path", "more")
    with pytest.raises(InputError, match="on a condition"):
        hostile.live()
    assert hostile.ran() == ""


def test_a_filter_that_a_session_puts_into_its_worktree_does_not_run_when_that_is_removed(hostile: Hostile) -> None:
    hostile.commit(**{".gitattributes": "* filter=evil\n"})
    hostile.set("extensions.worktreeConfig", "true")
    worktree = open_worktree(str(hostile.tree), "fix")
    own = hostile.tree / ".git" / "worktrees" / "fix"
    (own / "config.worktree").write_text(f'[filter "evil"]\n\tclean = {hostile.program}\n')
    for path in Path(worktree.path).iterdir():
        if path.name != ".git":
            os.utime(path, (1, 1))
    leave_worktree(worktree)
    assert hostile.ran() == ""


def test_the_user_s_own_filter_runs_unless_the_repository_sets_what_it_may_obey(hostile: Hostile) -> None:
    hostile.commit(**{".gitattributes": "* filter=lfs\n"})
    config = Path(os.environ["HOME"], ".gitconfig")
    config.write_text(f'[filter "lfs"]\n\tsmudge = {hostile.program}\n\tclean = cat\n')
    hostile.set("lfs.repositoryformatversion", "0")
    hostile.set("core.hooksPath", ".husky")
    assert open_worktree(str(hostile.tree), "one").unfiltered == ""
    assert "evil.sh" in hostile.ran()
    hostile.mark.unlink()
    hostile.set("lfs.standalonetransferagent", "x")
    assert open_worktree(str(hostile.tree), "two").unfiltered == "lfs.standalonetransferagent"
    assert hostile.ran() == ""


@pytest.mark.parametrize("name", ["git", "git-evil"])
def test_neither_git_nor_a_filter_is_taken_from_the_repository(hostile: Hostile, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    hostile.commit(**{".gitattributes": "* filter=lfs\n"})
    Path(os.environ["HOME"], ".gitconfig").write_text('[filter "lfs"]\n\tsmudge = git-evil\n\tclean = git-evil\n')
    programs = hostile.tree / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / name).symlink_to(hostile.program)
    monkeypatch.chdir(hostile.tree)
    monkeypatch.setenv("PATH", f"{programs}:.venv/bin:{os.environ['PATH']}")
    hostile.live()
    assert hostile.ran() == ""


LINKS = ["refs/heads/dragoman", "logs/refs/heads/dragoman", "worktrees", "packed-refs", "logs", "."]


@pytest.mark.parametrize("link", LINKS)
def test_git_does_not_write_behind_a_link_in_the_repository(hostile: Hostile, link: str) -> None:
    hostile.commit()
    outside = hostile.folder / "outside"
    (outside / "mine").mkdir(parents=True)
    (outside / "fix").write_text(git(hostile.tree, "rev-parse", "HEAD") + "\n")
    path = hostile.tree / ".git" / link
    if link == ".":
        path = hostile.tree / ".git"
        git(outside, "init", "-q", "--separate-git-dir", str(outside / "other"), str(outside / "tree"))
        path.rename(outside / "git")
        path.symlink_to(outside / "git")
    else:
        if path.exists():
            path.rename(f"{path}.moved")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(outside)
    before = contents_of(outside)
    with pytest.raises(InputError, match="leads elsewhere"):
        open_worktree(str(hostile.tree), "fix")
    assert contents_of(outside) == before


def test_the_folder_of_worktrees_is_no_link(hostile: Hostile) -> None:
    hostile.commit()
    outside = hostile.folder / "outside"
    outside.mkdir()
    Path(f"{hostile.tree}-worktrees").symlink_to(outside)
    with pytest.raises(InputError, match="leads elsewhere"):
        open_worktree(str(hostile.tree), "fix")
    assert contents_of(outside) == {}


def test_links_that_a_session_has_made_keep_its_worktree_from_being_removed(hostile: Hostile) -> None:
    hostile.commit()
    outside = hostile.folder / "outside"
    outside.mkdir()
    worktree = open_worktree(str(hostile.tree), "fix")
    heads = hostile.tree / ".git" / "refs" / "heads" / "dragoman"
    heads.rename(outside / "dragoman")
    heads.symlink_to(outside / "dragoman")
    before = contents_of(outside)
    leave_worktree(worktree)
    assert contents_of(outside) == before


@pytest.mark.parametrize("kind", ["link", "FIFO"])
def test_the_note_that_a_worktree_is_in_use_is_a_file_of_its_own(hostile: Hostile, kind: str) -> None:
    hostile.commit()
    worktree = open_worktree(str(hostile.tree), "fix")
    os.close(worktree.held)
    note = hostile.tree / ".git" / "worktrees" / "fix" / "dragoman-in-use"
    note.unlink()
    if kind == "FIFO":
        os.mkfifo(note)
    else:
        note.symlink_to(hostile.folder / "made")
    with pytest.raises(InputError):
        open_worktree(str(hostile.tree), "fix")
    assert not (hostile.folder / "made").exists()


@pytest.mark.parametrize("name", [".git/HEAD", ".git/index", ".git/config", ".git/refs/heads/x/y", ".git/info/exclude", ".gitignore"])
@pytest.mark.parametrize("kind", ["pipe", "zero"])
def test_git_is_not_called_where_it_would_wait_for_a_pipe_or_a_device(tmp_path: Path, name: str, kind: str) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    git(tree, "init", "-q")
    (tree / ".git" / "HEAD").write_text("ref: refs/heads/x/y\n")
    plant(tree / name, kind)
    safe = SafeGit([str(tree)])
    safe._program = "/does/not/exist"  # calling it would be another complaint
    for call in (safe.look, safe.ask, safe.work):
        with pytest.raises(InputError, match=re.escape(f"{tree / name} is a named pipe or a device")):
            call(str(tree), "status")


def test_a_pipe_in_the_folder_of_a_linked_worktree_is_found(tmp_path: Path) -> None:
    tree, linked = tmp_path / "tree", tmp_path / "linked"
    tree.mkdir()
    git(tree, "init", "-q")
    git(tree, "commit", "-q", "--allow-empty", "-m", "x")
    git(tree, "worktree", "add", "-q", str(linked))
    assert find_pipe(str(linked)) == ""
    (tree / ".gitignore").symlink_to(os.devnull)
    assert find_pipe(str(tree)) == "", "git reads it to its end"
    inner = tree / ".git" / "worktrees" / "linked" / "HEAD"
    plant(inner, "pipe")
    assert find_pipe(str(linked)) == str(inner)
    inner.unlink()
    plant(tree / ".git" / "packed-refs", "pipe")
    assert find_pipe(str(linked)) == str(tree / ".git" / "packed-refs")
