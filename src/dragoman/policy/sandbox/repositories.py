"""Git repositories in a workspace: what commands must not change in them, because git, or the user's next command, would run it.

`git add`, `commit`, `stash` and `rebase` work: only hooks, configuration, submodules and worktrees are fixed. What cannot be fixed, because
it is not there yet, is looked at after each command: guard.py.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dragoman.base.beneath import is_inside
from dragoman.base.found_files import read_found

FIXED = ("hooks", "config", "config.worktree", "commondir", "modules", "worktrees")
"""Names in a git directory that make git run something, or look elsewhere."""
_OF_WORKTREE = ("gitdir", "commondir", "config.worktree")
_NESTED_MOST = 200
_LINE_BYTES = 4096


class Repository(NamedTuple):
    """A git repository that commands may work in."""

    root: str
    folder: str = ""
    """Its git directory, if that is a folder that commands write: `.git`, or where a `.git` that is a file or a link leads."""
    pointer: str = ""
    """Its `.git`, where that is a file or a link."""
    shared: str = ""
    """Of a linked worktree: the git directory of the main one."""
    own: str = ""
    """Of a linked worktree: its folder in there."""
    is_bare: bool = False
    """Whether the git directory is the folder itself: then other files may lie in it."""

    @property
    def git_folders(self) -> list[str]:
        """Where git keeps what it believes."""
        return [path for path in (self.folder, self.shared, self.own) if path]

    @property
    def pinned(self) -> list[str]:
        """What commands write in and cannot move: with it, what is fixed in it could be moved away."""
        folder = [self.folder] if self.folder and not self.is_bare else []
        return [*folder, os.path.dirname(self.own), self.own] if self.shared else folder

    @property
    def fixed(self) -> list[str]:
        """What is read-only: only what is there, and no links, which cannot be covered."""
        fixed = _plain(os.path.dirname(self.pointer), [os.path.basename(self.pointer)]) if self.pointer else []
        if self.folder:
            fixed += _plain(self.folder, FIXED)
        if self.shared:
            others = [name for name in list_names(os.path.join(self.shared, "worktrees")) if name != os.path.basename(self.own)]
            fixed += _plain(self.shared, [name for name in FIXED if name != "worktrees"])
            fixed += _plain(os.path.join(self.shared, "worktrees"), others)
            fixed += _plain(self.own, _OF_WORKTREE)
        return fixed


def find_repositories(roots: Sequence[str], deeper: Iterable[str] = ()) -> list[Repository]:
    """The repositories of the workspace's own folders first, then of the folders directly in them, and of `deeper` ones."""
    own = [_repository_in(root, roots, is_own=True) for root in roots]
    nested = dict.fromkeys(place for root in roots for place in list_folders(root, _NESTED_MOST))
    nested |= dict.fromkeys(place for place in deeper if place not in roots)
    # Where a link has taken the place of a folder meanwhile, what lies behind it is not ours to look at.
    found = [*own, *(_repository_in(place, roots) for place in nested if os.path.realpath(place) == place)]
    return [repository for repository in found if repository is not None]


def main_folders(roots: Sequence[str]) -> list[str]:
    """Git directories outside of the roots in which commands write, because a root is a linked worktree."""
    found = [repository.shared for root in roots if (repository := _repository_in(root, roots, is_own=True)) is not None]
    return [path for path in found if path and not any(is_inside(path, root) for root in roots)]


def main_tree(root: str) -> str:
    """The folder of the main tree, if this is a linked worktree that it knows; else empty."""
    repository = _repository_in(root, (), is_own=True)
    return os.path.dirname(repository.shared) if repository is not None and repository.shared else ""


def worktree_behind(file: str) -> tuple[str, str]:
    """Of a `.git` file: the folder it leads to and the main git directory, if both say that this is a linked worktree; else empty."""
    own = _led_by(os.path.dirname(file), file)
    shared = _main_of(own, file)
    return (own, shared) if shared else ("", "")


def read_by_git(root: str, homes: Sequence[str]) -> list[str]:
    """What git reads of a workspace's repository that lies elsewhere: the main tree's git directory, a submodule's, or the whole repository
    if the workspace is a folder in it. Not where that is a home, or above one."""
    repository = _repository_in(root, (), is_own=True)
    if repository is None:
        return _repository_around(root, homes)
    if repository.shared:
        return [repository.shared]
    led = _led_by(root, repository.pointer) if repository.pointer and not os.path.islink(repository.pointer) else ""
    around, is_module, _ = led.partition("/.git/modules/")
    return [led] if is_module and is_inside(root, around) else []


def _repository_around(root: str, homes: Sequence[str]) -> list[str]:
    path = os.path.dirname(root)
    while path.count("/") > 1 and not any(is_inside(home, path) for home in homes):
        if os.path.lexists(os.path.join(path, ".git")):
            return [path]
        path = os.path.dirname(path)
    return []


def list_folders(root: str, most: int) -> list[str]:
    """So many of the folders directly in a folder."""
    found: list[str] = []
    try:
        with os.scandir(root) as entries:
            for entry in entries:
                if entry.name != ".git" and entry.is_dir(follow_symlinks=False):
                    found.append(entry.path)
                    if len(found) >= most:
                        break
    except OSError:
        pass
    return found


def _repository_in(root: str, roots: Sequence[str], *, is_own: bool = False) -> Repository | None:
    """`is_own`: it is the repository of the workspace, so that commands write in its main tree's git directory, wherever that is."""
    path = os.path.join(root, ".git")
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return _bare_in(root)
    if stat.S_ISDIR(mode):
        return Repository(root, path)
    if stat.S_ISLNK(mode):
        return Repository(root, _in_any(os.path.realpath(path), roots), pointer=path)
    if not stat.S_ISREG(mode):
        return None
    own = _led_by(root, path)
    shared = _main_of(own, path)
    if shared and (is_own or _in_any(shared, roots)):
        return Repository(root, pointer=path, shared=shared, own=own)
    return Repository(root, "" if shared else _in_any(own, roots), pointer=path)


def _bare_in(root: str) -> Repository | None:
    is_bare = all(os.path.lexists(os.path.join(root, name)) for name in ("HEAD", "objects", "refs"))
    return Repository(root, root, is_bare=True) if is_bare else None


def _led_by(root: str, file: str) -> str:
    """Where the file leads: the real path of a folder, or empty."""
    line = read_line(file)
    if not line.startswith("gitdir:"):
        return ""
    path = os.path.realpath(os.path.join(root, line.removeprefix("gitdir:").strip()))
    return path if os.path.isdir(path) else ""


def _main_of(own: str, file: str) -> str:
    """The main git directory of a linked worktree. It is believed only if that place says the same of us: anybody may write the file."""
    worktrees = os.path.dirname(own)
    shared = os.path.dirname(worktrees)
    if not own or os.path.basename(worktrees) != "worktrees" or os.path.basename(shared) != ".git":
        return ""
    back = read_line(os.path.join(own, "gitdir"))
    if not back or os.path.realpath(os.path.join(own, back)) != os.path.realpath(file):
        return ""
    return shared


# --- small things ---------------------------------------------------------------------------------------------------------


def _in_any(path: str, roots: Iterable[str]) -> str:
    """The path if it is a folder in one of the roots, and not one of them; else empty."""
    return path if os.path.isdir(path) and any(is_inside(path, root) and path != root for root in roots) else ""


def _plain(folder: str, names: Iterable[str]) -> list[str]:
    paths = (os.path.join(folder, name) for name in names)
    return [path for path in paths if os.path.exists(path) and not os.path.islink(path)]


def list_names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def read_line(path: str) -> str:
    """The only line of a file of git's; empty if there are more, which git takes for a part of the name, or if it cannot be read."""
    try:
        data = read_found(path, _LINE_BYTES)
    except OSError:
        return ""
    text = data.decode("utf-8", "surrogateescape").rstrip("\r\n")
    return "" if "\n" in text or "\r" in text else text.strip()
