"""Sessions in a git worktree of their own: made beside the repository, on a branch of its own, so that the main tree is not touched.

git runs here without the repository's hooks, file system monitor and filters, does not look into submodules, and fetches nothing: making
a worktree runs nothing that a repository brings. Filters that the user's own configuration has (git-lfs) work.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping

import msgspec

from dragoman.base.lock import Locked, lock, lock_with_others
from dragoman.base.words import say
from dragoman.loop.surroundings import repository_root
from dragoman.policy.sandbox.repositories import main_tree
from dragoman.values.errors import InputError

GIT_S = 300.0
"""How long git may take: a large tree is checked out."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}(?<!\.lock)(?<!\.)\Z")
_SAFE = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false")
_FILTER = re.compile(r"filter\.(.+)\.(?:clean|smudge|process|required)\Z", re.IGNORECASE | re.DOTALL)


_IN_USE = "dragoman-in-use"
_ITS_OWN = ("local", "worktree")
_ENV = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}


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
    inside = os.path.relpath(real, root)
    if os.path.lexists(path):
        if main_of(path) != main:
            raise InputError(say("worktrees.not_made", path=path, reason=os.strerror(17)))
        entered = _enter(Worktree(path, branch, main, _folder_in(path, inside)))
        if entered is not None:
            return entered
    try:
        made = _make(root, Worktree(path, branch, main, ""), inside)
    except InputError:
        if main_of(path) != main:
            raise
        made = Worktree(path, branch, main, _folder_in(path, inside))  # another session made it meanwhile
    return _enter(made) or made


def _enter(worktree: Worktree) -> Worktree | None:
    """Be counted among those who work in it. None: whoever made it was just removing it."""
    try:
        branch = _git(worktree.path, "rev-parse", "--abbrev-ref", "HEAD")
        held = os.open(os.path.join(_git(worktree.path, "rev-parse", "--absolute-git-dir"), _IN_USE), os.O_RDWR | os.O_CREAT, 0o600)
    except (InputError, OSError):
        if os.path.lexists(worktree.path):
            raise
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


def _make(root: str, wanted: Worktree, inside: str) -> Worktree:
    try:
        base = _git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except InputError as error:
        if isinstance(error.__cause__, OSError):
            raise  # git itself could not be run
        base = ""
    if not base:
        raise InputError(say("worktrees.no_commit"))
    left_behind = len(_git(root, "status", "--porcelain", "--ignore-submodules=all", env=_without_filters(root)).splitlines())
    is_new = not _git(root, "branch", "--list", wanted.branch)
    try:
        if is_new:
            _git(root, "worktree", "add", "-b", wanted.branch, wanted.path, base, env=_without_filters(root))
        else:
            _git(root, "worktree", "add", wanted.path, wanted.branch, env=_without_filters(root))
    except InputError as error:
        raise InputError(say("worktrees.not_made", path=wanted.path, reason=error)) from error
    workspace, base = _folder_in(wanted.path, inside), base if is_new else ""
    return msgspec.structs.replace(wanted, workspace=workspace, base=base, left_behind=left_behind)


def leave_worktree(worktree: Worktree) -> str:
    """Remove it if nothing was done in it. Returns what to tell the user: that, or where it is and what to do with it."""
    path, branch, quoted = worktree.path, worktree.branch, shlex.quote(worktree.path)
    try:
        if worktree.held >= 0:
            lock(worktree.held, ())
    except Locked:
        return say("worktrees.in_use", path=path, branch=branch)
    try:
        is_dirty = bool(_git(path, "status", "--porcelain", "--ignore-submodules=dirty", env=_without_filters(path)))
        if worktree.base and not is_dirty and _is_unchanged(worktree):
            _git(worktree.main, "worktree", "remove", path, env=_without_filters(worktree.main))
            _git(worktree.main, "branch", "-D", branch)
            _remove_if_empty(os.path.dirname(path))
            return say("worktrees.removed", path=path, branch=branch)
    except InputError:
        is_dirty = True  # whatever is wrong with it, it is not removed
    commit = say("worktrees.commit_first", quoted=quoted) if is_dirty else ""
    return say("worktrees.kept", path=path, branch=branch, quoted=quoted, commit=commit, force="--force " if is_dirty else "")


def _is_unchanged(worktree: Worktree) -> bool:
    return _git(worktree.path, "rev-parse", "HEAD", f"refs/heads/{worktree.branch}").split() == [worktree.base, worktree.base]


def _remove_if_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        pass  # others are in it


def _folder_in(path: str, inside: str) -> str:
    folder = os.path.normpath(os.path.join(path, inside))
    return folder if os.path.isdir(folder) else path


def _without_filters(directory: str) -> dict[str, str]:
    """Variables that switch off what the repository's own configuration would have run for each file. Reading the configuration runs
    nothing. By variables, because a name may hold what `-c` takes for the end of one. Raises InputError."""
    fields = _git(directory, "config", "--list", "--show-scope", "--includes", "--null", "--name-only").split("\0")
    scoped = zip(fields[::2], fields[1::2], strict=False)
    names = {found[1] for scope, name in scoped if scope in _ITS_OWN and (found := _FILTER.match(name))}
    values = {"clean": "", "smudge": "", "process": "", "required": "false"}
    settings = [(f"filter.{name}.{key}", value) for name in sorted(names) for key, value in values.items()]
    numbered = [{f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value} for at, (key, value) in enumerate(settings)]
    return {"GIT_CONFIG_COUNT": str(len(settings))} | {name: value for each in numbered for name, value in each.items()}


def _git(directory: str, *arguments: str, env: Mapping[str, str] = {}) -> str:
    """What git says. Raises InputError with its complaint."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _ENV | dict(env)
    command = ["git", *_SAFE, "-C", directory, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, env=env, timeout=GIT_S, check=False)
    except FileNotFoundError as error:
        raise InputError(say("worktrees.no_git")) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(str(error)) from error
    if done.returncode:
        raise InputError(done.stderr.decode("utf-8", "replace").strip() or f"git {arguments[0]}: {done.returncode}")
    return done.stdout.decode("utf-8", "replace").strip()
