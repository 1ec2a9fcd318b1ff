"""Files of the workspace that are also known outside of it, by hard links: what a command writes into one is written outside as well.

Package managers link a project's packages to a store that all projects share (uv, pnpm), and `git clone` of a local repository links
objects. A few such files are copied before the command, so that they are the workspace's alone. Many are read-only for commands, and are
copied once a command wanted to write there: copying 20,000 files of a virtual environment takes seconds, and most commands only read them.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence

from dragoman.policy.sandbox.survey import Linked

AT_ONCE_FILES = 1_000
AT_ONCE_BYTES = 32_000_000
MOST_BYTES = 4_000_000_000
MOST_COVERS = 48
"""Each is a mount, for each command."""


class SharedFiles:
    """Folder → files in it that are known outside as well, and how much that is."""

    def __init__(self, folders: Mapping[str, tuple[Linked, ...]]) -> None:
        self.folders = folders
        self.count = sum(map(len, folders.values()))
        self.size = sum(each.size for linked in folders.values() for each in linked)

    @property
    def is_small(self) -> bool:
        return self.count <= AT_ONCE_FILES and self.size <= AT_ONCE_BYTES

    @property
    def is_copyable(self) -> bool:
        """Whether a copy is neither huge nor takes more than half of what is free on the disk."""
        if self.size > MOST_BYTES:
            return False
        try:
            free = os.statvfs(next(iter(self.folders)))
        except (OSError, StopIteration):
            return False
        return self.size < free.f_bavail * free.f_frsize // 2

    @property
    def to_copy(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return tuple((path, tuple(each.name for each in linked)) for path, linked in self.folders.items())

    def covers(self, roots: Sequence[str]) -> tuple[str, ...] | None:
        """Folders, and files in the roots themselves, that must be read-only. None: they would be too many."""
        single = [os.path.join(path, each.name) for path, linked in self.folders.items() if path in roots for each in linked]
        folders = _cover([path for path in self.folders if path not in roots], roots, MOST_COVERS - len(single))
        return None if folders is None or len(single) > MOST_COVERS else (*folders, *single)


def _cover(folders: Iterable[str], roots: Sequence[str], most: int) -> list[str] | None:
    """Folders that hold all these, as deep as possible and at most so many."""
    current = _outermost(folders)
    while len(current) > most:
        deepest = max(path.count(os.sep) for path in current)
        raised = {os.path.dirname(path) if path.count(os.sep) == deepest else path for path in current}
        if raised & set(roots):
            return None
        current = _outermost(raised)
    return current


def _outermost(folders: Iterable[str]) -> list[str]:
    """Without those that lie in another, the upper ones first."""
    kept: dict[str, None] = {}
    for path in sorted(set(folders), key=lambda path: (path.count(os.sep), path)):
        if not _lies_in_any(path, kept):
            kept[path] = None
    return list(kept)


def _lies_in_any(path: str, folders: Container[str]) -> bool:
    while (above := os.path.dirname(path)) != path:
        if above in folders:
            return True
        path = above
    return False
