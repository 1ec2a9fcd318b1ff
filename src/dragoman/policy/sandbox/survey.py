"""Surveys the folders that commands may write: repositories, files that rules keep from being read, and files shared by hard links.

Every file is looked at once; after that only folders, and in them only what has changed since. A file can also gain a hard link without
its folder changing, so from time to time everything is looked at again. The look is bounded: behind the first MAX_FOLDERS folders nothing
is found.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from dragoman.policy.guarded_files import is_guarded

MAX_FOLDERS = 100_000
MAX_REPOSITORIES = 200
AGAIN_S = 5.0
"""Looked again no sooner than this, nor before twenty times the time has passed that the last look took."""
WHOLLY_AGAIN_S = 600.0
_PASSED_BY = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Packages that others made: many folders, and nobody works on a repository in them."""
_NEAR = 300


class Linked(NamedTuple):
    """A file with more than one name."""

    name: str
    identity: tuple[int, int]
    count: int
    size: int


class Seen(NamedTuple):
    """What lies in the folders."""

    repositories: tuple[str, ...] = ()
    """Folders with a `.git`, of whatever kind, and bare repositories; the upper ones first."""
    denied: tuple[str, ...] = ()
    """Files and folders that must not be read; of a folder, not what is in it."""
    shared: Mapping[str, tuple[Linked, ...]] = {}
    """Folder → files in it that have another name outside of all these folders."""
    near: Mapping[str, tuple[str, ...]] = {}
    """The first folders, so many that they can be looked at after each command, and in each the files that are notable."""
    inodes: Mapping[str, int] = {}
    """Of these folders."""
    is_whole: bool = True
    """False: there were more folders than are looked at."""


class _Folder(NamedTuple):
    """What is known of one folder as long as its times stay the same."""

    times: tuple[int, int, int]
    inner: tuple[str, ...]
    linked: tuple[Linked, ...]
    is_repository: bool
    denied: tuple[str, ...]
    notable: tuple[str, ...]


class Survey:
    """What is remembered of the last look. Any thread may ask."""

    def __init__(
        self,
        roots: Sequence[str],
        is_denied: Callable[[str], bool] | None = None,
        *,
        also: Callable[[], Sequence[str]] = lambda: (),
        most: int = MAX_FOLDERS,
    ) -> None:
        """`is_denied`: whether a rule keeps this path from being read. `also`: further folders, as of now."""
        self._roots = tuple(roots)
        self._also = also
        self._most = most
        self._is_denied = is_denied
        self._lock = threading.Lock()
        self._folders: dict[str, _Folder] = {}
        self._seen = Seen()
        self._due_s = 0.0
        self._wholly_due_s = 0.0

    @property
    def is_due(self) -> bool:
        """Whether the next look takes longer than a moment."""
        return time.monotonic() >= self._due_s

    def look(self, *, at_once: bool = False) -> Seen:
        """What is there, as of the last look if that was a moment ago."""
        with self._lock:
            now = time.monotonic()
            if at_once or now >= self._due_s:
                if now >= self._wholly_due_s:
                    self._folders.clear()
                    self._wholly_due_s = now + WHOLLY_AGAIN_S
                self._seen = self._look_at((*self._roots, *self._also()))
                took_s = time.monotonic() - now
                self._due_s = now + took_s + max(AGAIN_S, 20 * took_s)
            return self._seen

    def _look_at(self, roots: Sequence[str]) -> Seen:
        found: dict[str, _Folder] = {}
        repositories: list[str] = []
        waiting = deque((root, False) for root in roots)
        while waiting and len(found) < self._most:
            path, is_passed_by = waiting.popleft()
            if path in found:
                continue
            folder = self._folder(path, is_near=len(found) < _NEAR)
            if folder is None:
                continue
            found[path] = folder
            if folder.is_repository and not is_passed_by:
                repositories.append(path)
            waiting.extend((f"{path}/{name}", is_passed_by or name in _PASSED_BY or name == ".git") for name in folder.inner)
        self._folders = found
        denied = [path for folder in found.values() for path in folder.denied]
        near = [path for path in list(found)[:_NEAR] if "/.git/" not in f"{path}/"]
        return Seen(
            repositories=tuple(repositories[:MAX_REPOSITORIES]),
            denied=tuple(dict.fromkeys((*denied, *_other_names(denied, found)))),
            shared=_shared(found),
            near={path: found[path].notable for path in near},
            inodes={path: found[path].times[0] for path in near},
            is_whole=not waiting,
        )

    def _folder(self, path: str, *, is_near: bool) -> _Folder | None:
        """None if it cannot be looked into."""
        try:
            status = os.lstat(path)
            if not stat.S_ISDIR(status.st_mode):
                return None
            times = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
            known = self._folders.get(path)
            if known is not None and known.times == times:
                return known
            with os.scandir(path) as entries:
                return self._read(path, times, entries, is_near=is_near)
        except OSError:
            return None

    def _read(self, path: str, times: tuple[int, int, int], entries: Iterable[os.DirEntry[str]], *, is_near: bool) -> _Folder:
        inner: list[str] = []
        linked: list[Linked] = []
        names: set[str] = set()
        for entry in entries:
            names.add(entry.name)
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                if status.st_nlink > 1:
                    linked.append(Linked(entry.name, (status.st_dev, status.st_ino), status.st_nlink, status.st_size))
        is_repository = ".git" in names or ("HEAD" in names and "objects" in names and os.path.basename(path) != ".git")
        denied = filter(self._is_denied, (f"{path}/{name}" for name in names)) if self._is_denied is not None else ()
        notable = (name for name in names.difference(inner) if is_notable(f"{path}/{name}", self._roots)) if is_near else ()
        return _Folder(times, tuple(inner), tuple(linked), is_repository, tuple(denied), tuple(notable))


def is_notable(path: str, roots: Sequence[str]) -> bool:
    """Whether other programs run something by this file, or agents believe it. Where the folders themselves lie does not count."""
    root = next((root for root in roots if path.startswith(f"{root}/")), "")
    return is_guarded(path[len(root) :])


def _shared(folders: Mapping[str, _Folder]) -> dict[str, tuple[Linked, ...]]:
    """Files with more names than were found in here. What is remembered of a folder may be older than a name in another."""
    names: dict[tuple[int, int], int] = {}
    counts: dict[tuple[int, int], int] = {}
    holding = {path: folder.linked for path, folder in folders.items() if folder.linked}
    for linked in holding.values():
        for each in linked:
            names[each.identity] = names.get(each.identity, 0) + 1
            counts[each.identity] = max(counts.get(each.identity, 0), each.count)
    outside = {path: tuple(each for each in linked if names[each.identity] < counts[each.identity]) for path, linked in holding.items()}
    return {path: linked for path, linked in outside.items() if linked}


def _other_names(denied: Iterable[str], folders: Mapping[str, _Folder]) -> list[str]:
    """Other names of files that must not be read."""
    identities: set[tuple[int, int]] = set()
    for path in denied:
        try:
            status = os.lstat(path)
        except OSError:
            continue
        if status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
            identities.add((status.st_dev, status.st_ino))
    if not identities:
        return []
    return [f"{path}/{each.name}" for path, folder in folders.items() for each in folder.linked if each.identity in identities]
