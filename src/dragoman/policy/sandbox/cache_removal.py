"""Measures and removes folders that commands have filled: with links, pipes, folders that nobody may open, or trees without an end.

No link is followed, no file is opened, and no name is used in any folder but through its descriptor. What lies very deep is moved up before
it is emptied, so that no depth is too deep.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress

from dragoman.base.beneath import open_beneath

ASIDE = "old-"
"""How names begin of what is to be removed."""
_DEEPEST = 100
_MOST_FILES = 2_000_000
_AT_ONCE = 2000
_PAUSE_S = 0.005
_PASSES = 3
_OPEN_AT_ONCE = 32
_OPENED = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NAMED = getattr(os, "O_PATH", 0) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def set_aside(folder: str, name: str, to: str = "") -> None:
    """Rename what is to be removed, whatever it is. It need not be there. `folder`: where no command can write. `to`: another such folder
    that it is moved to."""
    with suppress(FileNotFoundError, NotADirectoryError):
        os.rename(os.path.join(folder, name), os.path.join(to or folder, _new_name()))


def measure(folder: str, name: str, most_bytes: int, is_stopped: Callable[[], bool]) -> int | None:
    """How many bytes a folder takes; more than `most_bytes` if that is plain before all is counted, or if it is too deep to tell. None:
    stopped before."""
    waiting: list[tuple[str, ...]] = [(name,)]
    total = files = 0
    while waiting:
        if is_stopped():
            return None
        parts = waiting.pop()
        if len(parts) > _DEEPEST or files > _MOST_FILES or total > most_bytes:
            return max(total, most_bytes + 1)
        try:
            with open_beneath(folder, parts) as directory, directory.scan() as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    total += status.st_blocks * 512
                    files += 1
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append((*parts, entry.name))
                    if not files % _AT_ONCE:
                        time.sleep(_PAUSE_S)
        except OSError:  # a command removes it, or has closed it to us
            continue
    return total


def remove_tree(folder: str, name: str, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Remove something in a folder, with all that is in it. What cannot be removed is left, partly under names that begin with ASIDE."""
    try:
        top = os.open(folder, _OPENED)
    except OSError:
        return
    try:
        _Removal(top, is_stopped).remove(name)
    finally:
        os.close(top)


class _Removal:
    """Empties folders from within, and moves to the top what lies too deep to hold all folders above it open."""

    def __init__(self, top: int, is_stopped: Callable[[], bool]) -> None:
        self._top = top
        self._is_stopped = is_stopped
        self._moved: list[str] = []

    def remove(self, name: str) -> None:
        self._moved.append(name)
        while self._moved and not self._is_stopped():
            name = self._moved.pop()
            try:
                self._remove_folder(self._top, name, 0)
            except OSError:  # not a folder
                with suppress(OSError):
                    os.unlink(name, dir_fd=self._top)

    def _remove_folder(self, above: int, name: str, depth: int) -> None:
        """Raises OSError if it is not a folder, or cannot be opened."""
        _open_to_us(above, name)
        if depth > _OPEN_AT_ONCE:
            aside = _new_name()
            os.rename(name, aside, src_dir_fd=above, dst_dir_fd=self._top)
            self._moved.append(aside)
            return
        inner = os.open(name, _OPENED, dir_fd=above)
        try:
            for _ in range(_PASSES):  # a folder that is changed while it is listed may be listed in part
                self._empty(inner, depth)
                with suppress(OSError):
                    os.rmdir(name, dir_fd=above)
                    break
        finally:
            os.close(inner)

    def _empty(self, folder: int, depth: int) -> None:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if self._is_stopped():
                    return
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        self._remove_folder(folder, entry.name, depth + 1)
                    else:
                        os.unlink(entry.name, dir_fd=folder)


def _open_to_us(folder: int, name: str) -> None:
    """Let us list and change a folder of ours, whatever its mode is. Raises OSError if it is not a folder."""
    named = os.open(name, _NAMED, dir_fd=folder)
    try:
        if os.fstat(named).st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{named}", 0o700)
    finally:
        os.close(named)


def _new_name() -> str:
    return f"{ASIDE}{os.urandom(8).hex()}"
