"""Private files and directories: 0600 and 0700 whatever the umask, links are not followed, and synced to disk on request."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Sequence

from dragoman.base.places import temporary_folders
from dragoman.words import say

_OPENED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# A pipe planted in a file's place must not block us.
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)


def create_file(path: str, mode: int = 0o600) -> int:
    """Create an empty file to read and append to. Raises FileExistsError if the path exists, even as a dangling link."""
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | _OPENED, mode)


def open_file(path: str, *, writing: bool = False, refuse: Callable[[str], Exception] = ValueError) -> int:
    """Open an existing file to read, or to read and append to. Raises OSError, or the error that `refuse` makes from a message if it is
    not a regular file."""
    access = os.O_RDWR | os.O_APPEND if writing else os.O_RDONLY
    try:
        descriptor = os.open(path, access | _OPENED | _NO_WAITING)
    except OSError as error:
        if os.path.islink(path):
            raise refuse(say("sessions.is_a_link", path=path)) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise refuse(say("sessions.not_a_file", path=path))
    return descriptor


def make_directory(path: str) -> tuple[str, ...]:
    """Make a private directory and its missing parents. Existing ones are not changed. Raises OSError.

    Returns the directories to sync so that a new file in it survives a crash: itself, and the parents of those that were created.
    """
    changed: list[str] = [path]
    missing: list[str] = []
    above = os.path.abspath(path)
    while not os.path.lexists(above):
        missing.append(above)
        above = os.path.dirname(above)
    for each in reversed(missing):
        try:
            os.mkdir(each, 0o700)
        except FileExistsError:
            pass  # created concurrently
        changed.append(os.path.dirname(each))
    if not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return tuple(changed)


def require_unshared(path: str, found: os.stat_result) -> None:
    """Raises PermissionError if other users own a directory with this status, or can create files in it."""
    if not hasattr(os, "geteuid"):
        return
    is_open = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
    if is_open or found.st_uid not in (0, os.geteuid()):
        raise PermissionError(errno.EACCES, "its directory belongs to others or is open to them", path)


def find_safe_folder(candidates: Iterable[str], writable_roots: Sequence[str]) -> str | None:
    """Find the first folder for our own files that lies in none of the folders commands may write to, under whatever name, and that we can
    write to. None if there is no such folder.

    The folder need not exist. The path returned has no links in it: only that one may be used, because a command may change a link on the
    way of the other. Candidates that are empty or not absolute are left out.
    """
    from dragoman.base.mounts import lies_in_any, nearest_existing

    for candidate in candidates:
        if not os.path.isabs(candidate):
            continue
        real = os.path.realpath(candidate)
        existing = nearest_existing(real)
        if os.path.isdir(existing) and os.access(existing, os.W_OK | os.X_OK) and not lies_in_any(real, writable_roots):
            return real
    return None


def make_temporary_folder(prefix: str, within_reach: Sequence[str]) -> str:
    """Make a private folder for temporary files of ours, where commands cannot write; in the usual place if they can write everywhere.

    `within_reach`: the folders that commands may write to. Raises OSError.
    """
    from tempfile import gettempdir, mkdtemp

    return mkdtemp(prefix=prefix, dir=find_safe_folder(temporary_folders(), within_reach) or os.path.realpath(gettempdir()))


def sync_file(descriptor: int) -> None:
    """Sync a file: returns when its content is on disk."""
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # on macOS, fsync does not flush the drive's own cache
            return
        except OSError:
            pass  # a file system without it
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def sync_directory(path: str) -> None:
    """Sync a directory: returns when the names in it are on disk."""
    if os.name == "nt":
        return  # directories cannot be opened on Windows; names are journalled
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(descriptor: int, data: bytes) -> None:
    """Write everything, in one write if the system takes it at once. Raises OSError, and then part of it may be written."""
    written = os.write(descriptor, data)
    while written < len(data):
        more = os.write(descriptor, memoryview(data)[written : written + (1 << 20)])
        if not more:
            raise OSError("nothing more could be written")
        written += more
