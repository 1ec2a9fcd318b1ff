"""Searches the whole workspace for protected files: once at first and again after a while, as it takes too long for each command.

Found are repositories deeper than those that each command looks for, and files that the user's rules keep from being read. The look is
bounded: what lies deeper than MAX_DEPTH, or behind the first MAX_FOLDERS folders, is not found.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

MAX_DEPTH = 6
MAX_FOLDERS = 2_000
AGAIN_S = 60.0
_PASSED_BY = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Packages that others made: many folders, and nobody works on a repository in them."""


class Depths:
    """What is remembered of the last look. `is_denied`: whether a rule keeps this path from being read; None: no rule does."""

    def __init__(self, roots: Sequence[str], is_denied: Callable[[str], bool] | None = None) -> None:
        self._roots = tuple(roots)
        self._is_denied = is_denied
        self._looked_s = 0.0
        self._repositories: tuple[str, ...] = ()
        self._denied: tuple[str, ...] = ()

    @property
    def repositories(self) -> tuple[str, ...]:
        """Folders with a `.git`, of whatever kind, below the first folders of the workspace."""
        self._look()
        return self._repositories

    @property
    def denied(self) -> tuple[str, ...]:
        """Files and folders that are there and must not be read; of a folder, not what is in it."""
        self._look()
        return self._denied

    def _look(self) -> None:
        now = time.monotonic()
        if self._looked_s and now - self._looked_s < AGAIN_S:
            return
        repositories: list[str] = []
        denied: list[str] = []
        for path, depth, names in _walk(self._roots):
            if depth > 1 and ".git" in names:
                repositories.append(path)
            if self._is_denied is not None:
                denied += filter(self._is_denied, (os.path.join(path, name) for name in names))
        self._repositories, self._denied, self._looked_s = tuple(repositories), tuple(denied), now


def _walk(roots: Iterable[str]) -> Iterator[tuple[str, int, list[str]]]:
    """Each folder with its depth and the names in it, the upper ones first."""
    waiting = deque((root, 0) for root in roots)
    count = 0
    while waiting and count < MAX_FOLDERS:
        path, depth = waiting.popleft()
        count += 1
        names: list[str] = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    names.append(entry.name)
                    is_passed_by = entry.name in _PASSED_BY or entry.name == ".git"
                    if depth < MAX_DEPTH and not is_passed_by and entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth + 1))
        except OSError:
            continue
        yield path, depth, names
