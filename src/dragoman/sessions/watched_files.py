"""Files that a command may change without a question, though a tool would always be asked: instructions for agents, tasks of editors, CI.

They are looked at before a command and after it, so that what became of them can be undone. Looking is cheap: a folder is listed again, and
a file read again, only if it has changed since. It is bounded: the folders of the workspace, what lies directly in them, and folders all of
whose files count, up to so many files and bytes. No link is followed, and nothing but regular files is opened.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence

import msgspec

from dragoman.sessions.file_state import FileState, is_hash, read_file_state

MAX_FOLDERS = 200
MAX_FILES = 200
MAX_FILE_BYTES = 256_000
MAX_BYTES = 4_000_000
_NEVER_ENTERED = frozenset({".git", ".hg", ".jj", "node_modules", "__pycache__", ".venv", "venv"})
_TICK_NS = 100_000_000
"""File systems count time in ticks, of up to ten milliseconds."""
_Identity = tuple[int, ...]


class SeenAtOnce(msgspec.Struct, frozen=True):
    """What was seen at one moment."""

    files: dict[str, FileState]
    not_read: frozenset[str]
    """What was there too, and is too large, or not a regular file."""
    is_whole: bool
    """Whether all of it was looked at: otherwise nobody knows whether a file that is seen later was there."""


class WatchedFiles:
    """`folders`: of the workspace, resolved. `is_watched`: whether a path is that of such a file."""

    def __init__(self, folders: Callable[[], Sequence[str]], is_watched: Callable[[str], bool]) -> None:
        self._folders = folders
        self._is_watched = is_watched
        self._listed: dict[str, tuple[_Identity, list[str], list[str]]] = {}
        self._read: dict[str, tuple[_Identity, FileState]] = {}

    def look(self) -> SeenAtOnce:
        """The files as they are now. Never raises."""
        waiting = [(folder, 0) for folder in self._folders()]
        listed, found = dict[str, tuple[_Identity, list[str], list[str]]](), list[str]()
        for folder, depth in waiting:
            if len(listed) >= MAX_FOLDERS or len(found) >= MAX_FILES:
                break
            names = listed[folder] = self._list(folder, is_top=depth == 0)
            found += names[1]
            waiting += [(inner, depth + 1) for inner in names[2]]
        self._listed = listed
        return self._states_of(found[:MAX_FILES], is_whole=len(listed) == len(waiting) and len(found) <= MAX_FILES)

    def _list(self, folder: str, *, is_top: bool) -> tuple[_Identity, list[str], list[str]]:
        """The watched files in a folder, and the folders in it to look into: of the workspace's own folder all, else those that count."""
        identity = _identity(folder, stat.S_ISDIR)
        known = self._listed.get(folder)
        if known is not None and identity and _is_known(known[0], identity):
            return known
        files, folders = list[str](), list[str]()
        try:
            with os.scandir(folder) as entries:
                for entry in entries if identity else ():
                    if entry.is_dir(follow_symlinks=False):
                        is_entered = is_top or self._is_watched(os.path.join(entry.path, "any"))
                        folders += [entry.path] if is_entered and entry.name not in _NEVER_ENTERED else []
                    elif self._is_watched(entry.path) and _is_utf8(entry.path):
                        files.append(entry.path)
        except OSError:
            pass
        return identity, sorted(files), sorted(folders)

    def _states_of(self, paths: Sequence[str], *, is_whole: bool) -> SeenAtOnce:
        read, total = dict[str, tuple[_Identity, FileState]](), 0
        for path in paths:
            identity = _identity(path, stat.S_ISREG)
            if not identity or identity[2] > MAX_FILE_BYTES or total + identity[2] > MAX_BYTES:
                continue
            known = self._read.get(path)
            state = known[1] if known is not None and _is_known(known[0], identity) else read_file_state(path)
            if is_hash(state.content):
                read[path] = (identity, state)
                total += identity[2]
        self._read = read
        return SeenAtOnce({path: state for path, (_, state) in read.items()}, frozenset(paths) - read.keys(), is_whole)


def _is_known(known: _Identity, now: _Identity) -> bool:
    """Whether it is as it was. One that had just changed when it was looked at may have changed again at the same tick of the clock."""
    return known == now and known[-1] == 0


def _identity(path: str, is_kind: Callable[[int], bool]) -> _Identity:
    """What changes with a file or a folder, and whether that was just now; empty if it is not one."""
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    kind, is_new = status.st_mode, time.time_ns() - status.st_ctime_ns < _TICK_NS
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, kind, is_new) if is_kind(kind) else ()


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
