"""Files and directories that are the user's alone: 0600 and 0700 whatever the umask, no link followed, and on disk when we say so."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable

_OPENED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# A pipe planted in a file's place must not hold us up.
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)


class NotRegularFile(OSError):
    """A pipe, a socket or a device."""


def create_file(path: str, mode: int = 0o600) -> int:
    """A new, empty file to read and to append to. Raises FileExistsError where there is anything at all, a dangling link included."""
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | _OPENED, mode)


def open_file(path: str, *, writing: bool = False, refuse: Callable[[str], Exception] = ValueError) -> int:
    """An existing file, to read, or to read and append to. Raises OSError, or what `refuse` makes of a sentence where it is no ordinary
    file."""
    access = os.O_RDWR | os.O_APPEND if writing else os.O_RDONLY
    try:
        descriptor = os.open(path, access | _OPENED | _NO_WAITING)
    except OSError as error:
        if os.path.islink(path):
            raise refuse(f"{path} is a symbolic link, and those are not followed here: open the file it points to") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise refuse(f"{path} is not an ordinary file")
    return descriptor


def open_named_file(path: str) -> int:
    """A file that the user named, to read. Links are followed; a pipe or a device is not waited for.

    Raises OSError: IsADirectoryError for a directory, NotRegularFile for what else is no file.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | _NO_WAITING)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise NotRegularFile(errno.EINVAL, "it is not a regular file", path)


def make_directory(path: str) -> tuple[str, ...]:
    """Make a directory, and what is missing above it, for the user alone. What is there already stays as it is. Raises OSError.

    Returns the directories that must be synced for a new file in it to be found after a crash: it, and where it was made, those above.
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
            pass  # somebody was quicker
        changed.append(os.path.dirname(each))
    if not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return tuple(changed)


def require_unshared(path: str) -> None:
    """Raises PermissionError where others own a directory or can put files into it."""
    found = os.stat(path)
    if not hasattr(os, "geteuid"):
        return
    shared = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
    if shared or not {found.st_uid, os.lstat(path).st_uid} <= {0, os.geteuid()}:
        raise PermissionError(errno.EACCES, "its directory belongs to others or is open to them", path)


def sync_file(descriptor: int) -> None:
    """Returns when what was written to a file is on disk."""
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # there, fsync does not empty the drive's own cache
            return
        except OSError:
            pass  # a file system without it
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def sync_directory(path: str) -> None:
    """Returns when the names in a directory are on disk."""
    if os.name == "nt":
        return  # directories cannot be opened there; names are journalled
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(descriptor: int, data: bytes) -> None:
    """One write; more only where the system takes less than it was given. Raises OSError, and then part of it may be there."""
    written = os.write(descriptor, data)
    while written < len(data):
        more = os.write(descriptor, memoryview(data)[written : written + (1 << 20)])
        if not more:
            raise OSError("nothing more could be written")
        written += more
