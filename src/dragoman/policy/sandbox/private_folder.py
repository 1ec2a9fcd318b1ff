"""The session's own temporary files, and what covers secrets: a folder that no command can reach by its own path."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Sequence

from dragoman.base.mounts import lies_in_any
from dragoman.words import say

_PREFIX = "dragoman-private-"
PARTS = ("tmp", "var-tmp", "reading-tmp", "reading-var-tmp", "covers", "covers/folder", "covers/file", "views")
_SYSTEM = ("/tmp", "/var/tmp")


def make_private_folder(candidates: Iterable[str], writable: Sequence[str], user: tuple[int, int]) -> str:
    """Make it in the first place that commands cannot write to. `writable`: real paths that they can. Raises OSError if there is none."""
    is_other_user = os.getuid() == 0 and user[0] != 0
    places = _SYSTEM if is_other_user else (tempfile.gettempdir(), *_SYSTEM)  # ours may be closed to that user
    for parent in map(os.path.realpath, (*candidates, *places)):
        if not is_safe(parent, writable) or not os.access(parent, os.W_OK | os.X_OK):
            continue
        try:
            return _make(parent, user if is_other_user else None)
        except OSError:
            continue
    raise OSError(errno.EACCES, say("policy.sandbox_no_private"))


def is_safe(place: str, writable: Sequence[str]) -> bool:
    """Whether a folder is none that commands write to, nor beneath one, under whatever name."""
    return os.path.isdir(place) and not lies_in_any(place, writable)


def identify(folder: str) -> tuple[tuple[int, int], ...]:
    """Which files and folders these are: another may be put in their place. Raises OSError."""
    found = [os.lstat(os.path.join(folder, name)) for name in ("", *PARTS)]
    return tuple((each.st_dev, each.st_ino) for each in found)


def remove_private_folder(folder: str) -> None:
    """Remove it with all that commands have left in it. No link is followed."""
    shutil.rmtree(folder, ignore_errors=True)


def _make(parent: str, user: tuple[int, int] | None) -> str:
    _remove_left_over(parent)
    folder = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent)
    for name in PARTS:
        path = os.path.join(folder, name)
        if name.endswith("file"):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o400))
        else:
            os.mkdir(path, 0o700)
    for path in (folder, *(os.path.join(folder, name) for name in PARTS)) if user is not None else ():
        os.chown(path, *user or (0, 0), follow_symlinks=False)
    return folder


def _remove_left_over(parent: str) -> None:
    """Folders of programs that were killed."""
    with os.scandir(parent) as entries:
        found = [entry for entry in entries if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False)]
    for entry in found:
        pid = entry.name.removeprefix(_PREFIX).partition("-")[0]
        status = entry.stat(follow_symlinks=False)
        if pid.isdigit() and not _is_alive(int(pid)) and status.st_uid == os.getuid() and stat.S_ISDIR(status.st_mode):
            remove_private_folder(entry.path)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # somebody else's
        pass
    return True
