"""Sessions in a git worktree of their own: made beside the repository, on a branch of its own, so that the main tree is not touched.

Making and removing one runs nothing that a repository names (safe_git.py), and writes nowhere else than in the repository's own `.git` and
in the folder of the worktree: where a link leads elsewhere, nothing is done.
"""

from __future__ import annotations

import os
import re
import shlex

import msgspec

from dragoman.app.safe_git import SafeGit, require_plain_repository
from dragoman.base.beneath import open_directory, rmdir_beneath
from dragoman.base.lock import Locked, lock, lock_with_others
from dragoman.loop.surroundings import repository_root
from dragoman.policy.sandbox.repositories import main_tree
from dragoman.values.errors import InputError
from dragoman.words import say

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}(?<!\.lock)(?<!\.)\Z")
_IN_USE = "dragoman-in-use"


class Worktree(msgspec.Struct, frozen=True):
    """A git worktree that a session works in."""

    path: str
    branch: str
    main: str
    """The folder of the main tree."""
    workspace: str
    """The folder in it that the session works in."""
    base: str = ""
    """The commit it was made at; empty: it was there before, and is not removed."""
    left_behind: int = 0
    """How many uncommitted changes the tree has that it was made from."""
    held: int = -1
    """An open file: its lock, shared by all who work in the worktree, says that somebody does."""
    unfiltered: str = ""
    """The setting of the repository because of which the user's own filters did not run."""


def worktrees_folder(main: str) -> str:
    """Beside the repository: in it, git would list the worktrees as untracked."""
    return f"{main}-worktrees"


def main_of(root: str) -> str:
    """The main tree, if a real path is that of a worktree that was made here; else empty."""
    main = main_tree(root)
    return main if main and os.path.dirname(root) == worktrees_folder(main) else ""


def open_worktree(directory: str, name: str) -> Worktree:
    """Make a worktree at the last commit, or go into the one of this name that was made before. Raises InputError."""
    real = os.path.realpath(directory)
    root = repository_root(real)
    if not root:
        raise InputError(say("worktrees.no_repository", path=directory))
    if not _NAME.match(name) or ".." in name:
        raise InputError(say("worktrees.bad_name", name=name[:80]))
    main = main_tree(root) or root
    outer = repository_root(os.path.dirname(root)) if main == root and os.path.isfile(os.path.join(root, ".git")) else ""
    if outer:  # beside a submodule is inside of the tree around it
        raise InputError(say("worktrees.submodule", path=root, outer=outer))
    path, branch = os.path.join(worktrees_folder(main), name), f"dragoman/{name}"
    require_plain_repository(main, branch, name)
    if os.path.realpath(os.path.dirname(path)) != os.path.dirname(path):
        raise InputError(say("worktrees.not_made", path=path, reason=say("worktrees.git_elsewhere", path=os.path.dirname(path))))
    git = SafeGit((root, main, worktrees_folder(main)))
    inside = os.path.relpath(real, root)
    if os.path.lexists(path):
        if main_of(path) != main:
            raise InputError(say("worktrees.not_made", path=path, reason=os.strerror(17)))
        entered = _enter(git, Worktree(path, branch, main, _folder_in(path, inside)))
        if entered is not None:
            return entered
    try:
        made = _make(git, root, Worktree(path, branch, main, ""), inside)
    except InputError:
        if main_of(path) != main:
            raise
        made = Worktree(path, branch, main, _folder_in(path, inside))  # another session made it meanwhile
    return _enter(git, made) or made


def _enter(git: SafeGit, worktree: Worktree) -> Worktree | None:
    """Be counted among those who work in it. None: whoever made it was just removing it."""
    try:
        branch = git.ask(worktree.path, "rev-parse", "--abbrev-ref", "HEAD")
        own = git.ask(worktree.path, "rev-parse", "--absolute-git-dir")
        if os.path.dirname(own) != os.path.join(worktree.main, ".git", "worktrees"):
            raise InputError(say("worktrees.git_elsewhere", path=own))
        with open_directory(own) as directory:
            held = directory.open_or_create(_IN_USE, 0o600)
    except (InputError, OSError) as error:
        if os.path.lexists(worktree.path):
            raise InputError(say("worktrees.not_made", path=worktree.path, reason=error)) from error
        return None
    try:
        lock_with_others(held)
        is_there = os.path.isdir(worktree.path)
    except Locked:
        is_there = False
    if not is_there:
        os.close(held)
        return None
    return msgspec.structs.replace(worktree, branch=branch, held=held)


def _make(git: SafeGit, root: str, wanted: Worktree, inside: str) -> Worktree:
    try:
        base = git.ask(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except InputError as error:
        if isinstance(error.__cause__, OSError):
            raise  # git itself could not be run
        base = ""
    if not base:
        raise InputError(say("worktrees.no_commit"))
    left_behind = len(git.work(root, "status", "--porcelain", "--ignore-submodules=all").splitlines())
    is_new = not git.ask(root, "branch", "--list", wanted.branch)
    where = ("-b", wanted.branch, wanted.path, base) if is_new else (wanted.path, wanted.branch)
    try:
        git.work(root, "worktree", "add", *where)
    except InputError as error:
        raise InputError(say("worktrees.not_made", path=wanted.path, reason=error)) from error
    return msgspec.structs.replace(
        wanted,
        workspace=_folder_in(wanted.path, inside),
        base=base if is_new else "",
        left_behind=left_behind,
        unfiltered=git.unfiltered,
    )


def leave_worktree(worktree: Worktree) -> str:
    """Remove it if nothing was done in it. Returns what to tell the user: that, or where it is and what to do with it."""
    path, branch, quoted = worktree.path, worktree.branch, shlex.quote(worktree.path)
    try:
        if worktree.held >= 0:
            lock(worktree.held, ())
    except Locked:
        return say("worktrees.in_use", path=path, branch=branch)
    is_dirty, main = True, worktree.main
    try:
        require_plain_repository(main, branch, os.path.basename(path))
        git = SafeGit((path, main))
        is_dirty = bool(git.look(path, "status", "--porcelain", "--ignore-submodules=dirty"))
        if worktree.base and not is_dirty and _is_unchanged(git, worktree):
            git.work(main, "worktree", "remove", path, trees=(path,))
            git.ask(main, "branch", "-D", branch)
            _remove_if_empty(os.path.dirname(path))
            return say("worktrees.removed", path=path, branch=branch)
    except InputError:
        is_dirty = True  # whatever is wrong with it, it is not removed
    commit = say("worktrees.commit_first", quoted=quoted) if is_dirty else ""
    return say("worktrees.kept", path=path, branch=branch, quoted=quoted, commit=commit, force="--force " if is_dirty else "")


def _is_unchanged(git: SafeGit, worktree: Worktree) -> bool:
    return git.ask(worktree.path, "rev-parse", "HEAD", f"refs/heads/{worktree.branch}").split() == [worktree.base, worktree.base]


def _remove_if_empty(folder: str) -> None:
    try:
        rmdir_beneath(folder)
    except OSError:
        pass  # others are in it


def _folder_in(path: str, inside: str) -> str:
    folder = os.path.normpath(os.path.join(path, inside))
    return folder if os.path.isdir(folder) else path
