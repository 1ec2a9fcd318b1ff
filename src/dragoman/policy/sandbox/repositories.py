"""Git repositories in a workspace: what commands must not change in them, because git, or the user's next command, would run it.

`git add`, `commit` and `checkout` work: only hooks, configuration, submodules and worktrees are fixed. What can only be put right after a
command is in guard.py.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import NamedTuple

FIXED = ("hooks", "config", "config.worktree", "commondir", "modules", "worktrees")
"""Names in `.git` that make git run something, or look elsewhere."""
_NESTED_MOST = 200


class Repository(NamedTuple):
    """A git repository that commands may work in."""

    root: str
    folder: str
    """Its `.git`, if that is a folder in the workspace; else empty."""
    shared: str = ""
    """Of a linked worktree: the `.git` of the main one, which lies elsewhere."""
    own: str = ""
    """Of a linked worktree: its folder in there."""

    @property
    def fixed(self) -> list[str]:
        """What is read-only: only what is there, and no links, which cannot be covered."""
        if self.folder:
            return _plain(self.folder, FIXED)
        file = os.path.join(self.root, ".git")
        if not self.shared:
            return [file] if os.path.isfile(file) and not os.path.islink(file) else []
        others = [name for name in list_names(os.path.join(self.shared, "worktrees")) if name != os.path.basename(self.own)]
        return [
            file,
            *_plain(self.shared, [name for name in FIXED if name != "worktrees"]),
            *_plain(os.path.join(self.shared, "worktrees"), others),
            *_plain(self.own, ("gitdir", "commondir", "config.worktree")),
        ]


def find_repositories(roots: Iterable[str], deeper: Iterable[str] = ()) -> list[Repository]:
    """The repositories of the workspace's folders, of the folders directly in them, and of `deeper` folders where one was seen."""
    found = [_repository_in(place) for place in (*folders_of(roots, _NESTED_MOST), *deeper)]
    return [repository for repository in found if repository is not None]


def main_tree(root: str) -> str:
    """The folder of the main tree, if this is a linked worktree that it knows; else empty."""
    repository = _repository_in(root)
    return os.path.dirname(repository.shared) if repository is not None and repository.shared else ""


def _repository_in(root: str) -> Repository | None:
    path = os.path.join(root, ".git")
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    if stat.S_ISDIR(mode):
        return Repository(root, path)
    return read_worktree(root, path) if stat.S_ISREG(mode) else None


def read_worktree(root: str, file: str) -> Repository:
    """Where `gitdir:` leads is believed only if that place says the same of us: anybody may have written the file."""
    nothing = Repository(root, "")
    if _has_more_lines(file):
        return nothing  # which git takes for a part of the name
    own = os.path.realpath(os.path.join(root, read_line(file).removeprefix("gitdir:").strip()))
    worktrees = os.path.dirname(own)
    shared = os.path.dirname(worktrees)
    if os.path.basename(worktrees) != "worktrees" or os.path.basename(shared) != ".git":
        return nothing
    if os.path.realpath(read_line(os.path.join(own, "gitdir"))) != os.path.realpath(file):
        return nothing
    return Repository(root, "", shared, own)


def folders_of(roots: Iterable[str], most: int) -> list[str]:
    """The workspace's folders, and of the folders directly in each so many."""
    return [place for root in roots for place in (root, *_subfolders(root, most))]


def _subfolders(root: str, most: int) -> list[str]:
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


# --- small things ---------------------------------------------------------------------------------------------------------


def _plain(folder: str, names: Iterable[str]) -> list[str]:
    paths = (os.path.join(folder, name) for name in names)
    return [path for path in paths if os.path.exists(path) and not os.path.islink(path)]


def list_names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def read_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(4096).strip()
    except OSError:
        return ""


def _has_more_lines(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            data = file.read(8192)
    except OSError:
        return True
    return len(data) == 8192 or any(sign in data.rstrip(b"\r\n") for sign in (b"\n", b"\r"))
