"""`dragoman --worktree`: a session in a git worktree of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.app.worktrees import leave_worktree, open_worktree
from dragoman.values.errors import InputError
from policy.sandbox.sandboxes import sandbox_at
from program import Place, Service, calls, script
from terminals import terminal

Serve = Callable[..., Service]


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


@pytest.fixture
def repository(place: Place) -> Path:
    git(place.work, "init", "-q", "-b", "main")
    (place.work / "a.txt").write_text("one\n")
    git(place.work, "add", "-A")
    git(place.work, "commit", "-qm", "first")
    return place.work


def test_a_worktree_leaves_the_main_tree_untouched(place: Place, serve: Serve, repository: Path) -> None:
    (repository / "open.txt").write_text("not committed")
    before = (git(repository, "status", "--porcelain"), git(repository, "stash", "list"), git(repository, "rev-parse", "HEAD"))
    serve(script(calls(("write_file", {"file_path": "b.txt", "content": "two"})), "text: Written."))
    done = place.ask("Write b.txt.", "--worktree", "fix", "--approval", "auto-edit")
    assert done.out == "Written.\n", done
    made = repository.parent / "work-worktrees" / "fix"
    assert (made / "b.txt").read_text() == "two"
    assert not (repository / "b.txt").exists()
    assert before == (git(repository, "status", "--porcelain"), git(repository, "stash", "list"), git(repository, "rev-parse", "HEAD"))
    assert git(repository, "branch", "--format=%(refname:short)").split() == ["dragoman/fix", "main"]
    assert git(made, "rev-parse", "--abbrev-ref", "HEAD") == "dragoman/fix"
    assert "1 uncommitted change stays" in done.err
    told = [" ".join(line.split()) for line in done.err.splitlines()]
    assert f"dragoman: go on: dragoman -C {made} -c" in told
    assert told[-1] == f"dragoman: remove: git worktree remove --force {made} && git branch -D dragoman/fix"
    serve("text: Still here.")
    again = place.ask("Go on.", "--worktree", "fix", "-c")
    assert again.out == "Still here.\n", again
    assert (made / "b.txt").exists()


def test_without_git_there_is_none(place: Place, repository: Path) -> None:
    place.ask("hi", "--worktree", env={"PATH": str(place.home)}).complaint(42, "needs git, which was not found")


def test_an_unchanged_worktree_is_removed(place: Place, serve: Serve, repository: Path) -> None:
    serve("text: Nothing to do.")
    done = place.ask("hi", "--worktree")
    assert done.out == "Nothing to do.\n"
    assert "were removed" in done.err
    assert git(repository, "branch", "--format=%(refname:short)") == "main"
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert not (repository.parent / "work-worktrees").exists()


def test_two_sessions_in_one_worktree_leave_it_to_each_other(place: Place, repository: Path) -> None:
    first = open_worktree(str(repository), "fix")
    second = open_worktree(str(repository), "fix")
    assert (bool(first.base), second.base, second.branch) == (True, "", "dragoman/fix")
    assert "another session works in" in leave_worktree(first)
    assert (Path(second.path) / "a.txt").exists(), "nothing was changed, but somebody is in it"
    leave_worktree(second)
    third = open_worktree(str(repository), "alone")
    assert "were removed" in leave_worktree(third)


def test_a_submodule_has_no_worktree_inside_the_tree_around_it(place: Place, repository: Path) -> None:
    library = place.home / "library"
    library.mkdir()
    git(library, "init", "-q", "-b", "main")
    git(library, "commit", "-qm", "one", "--allow-empty")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "vendor/lib")
    git(repository, "commit", "-qam", "second")
    with pytest.raises(InputError, match="does not work in a submodule"):
        open_worktree(str(repository / "vendor" / "lib"), "fix")
    assert git(repository, "status", "--porcelain") == ""


def test_a_repository_s_hooks_do_not_run_for_a_worktree(place: Place, serve: Serve, repository: Path) -> None:
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {place.home}/ran\n")
    hook.chmod(0o755)
    serve("text: ok")
    assert place.ask("hi", "--worktree").code == 0
    assert not (place.home / "ran").exists()


def test_a_worktree_is_trusted_as_its_repository_is(place: Place, serve: Serve, repository: Path) -> None:
    (repository / "AGENTS.md").write_text("Always answer in rhyme.")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "rules")
    asked = serve(script("text: no", "text: yes"))
    place.ask("hi", "--worktree")
    assert "rhyme" not in json.dumps(asked.requests[-1])
    place.run("trust")
    place.ask("hi", "--worktree")
    assert "rhyme" in json.dumps(asked.requests[-1])


def test_why_there_is_no_worktree_is_said(place: Place, serve: Serve) -> None:
    serve("text: never")
    place.ask("hi", "--worktree").complaint(42, "needs a git repository")
    git(place.work, "init", "-q")
    place.ask("hi", "--worktree").complaint(42, "commit something first")
    (place.work / "a").write_text("a")
    git(place.work, "add", "-A")
    git(place.work, "commit", "-qm", "first")
    place.ask("hi", "--worktree", "../out").complaint(42, "cannot be the name")


def test_the_sandbox_holds_in_a_worktree_and_lets_git_commit_there(place: Place, serve: Serve, repository: Path) -> None:
    with sandbox_at(1, place.work):
        pass  # skipped where it does not work
    commit = "git add -A && git -c user.name=a -c user.email=a@b commit -qm two && git log --oneline | wc -l"
    outside = f"echo x > {repository}/a.txt; echo done"
    wanted = [("write_file", {"file_path": "b.txt", "content": "two"}), *(("run_shell", {"command": each}) for each in (commit, outside))]
    serve(script(*(calls(each) for each in wanted), "text: Committed."))
    done = place.ask("Commit it.", "--worktree", "fix", "--approval", "auto")
    assert done.out == "Committed.\n", done
    assert git(repository, "log", "--format=%s", "dragoman/fix").split() == ["two", "first"]
    assert (repository / "a.txt").read_text() == "one\n", "the main tree is outside of the boundary"
    assert git(repository, "status", "--porcelain") == ""
    assert f"git worktree remove {repository.parent / 'work-worktrees' / 'fix'}" in done.err


def test_a_conversation_in_a_worktree_says_so_and_what_became_of_it(place: Place, serve: Serve, repository: Path) -> None:
    serve("text: Hello.")
    with terminal(place, "--worktree", "talk") as shown:
        assert "working in the new worktree" in shown.prompt()
        shown.ask("hi")
        shown.expect("Hello.")
        shown.prompt()
        shown.ask("/quit")
        assert "were removed" in shown.expect("were removed")
    assert git(repository, "branch", "--format=%(refname:short)") == "main"
