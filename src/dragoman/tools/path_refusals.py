"""What a tool says of a path that the system did not let it use, with what to do instead."""

from __future__ import annotations

import errno
import stat

from dragoman.base.atomic import FileChanged, WouldChangeOwner
from dragoman.base.found_files import NotRegularFile


def refusal_of(error: OSError, shown: str) -> tuple[str, str]:
    """Return what is said of an error of the operating system, with advice, and the type of the refusal."""
    if isinstance(error, FileChanged):
        return (f"{shown} changed while it was being written: read it again", "stale")
    if isinstance(error, WouldChangeOwner):
        message = f"{shown} belongs to another user or group and would change hands: change it with run_shell, or ask the user"
        return (message, "permission")
    if isinstance(error, NotRegularFile):
        return (f"{shown} cannot be read or written here: {error.strerror}", "not_regular")
    match error.errno:
        case errno.ENOENT:
            return (f"{shown} does not exist", "not_found")
        case errno.EACCES | errno.EPERM:
            return (f"{shown}: permission denied: use another file, or ask the user for access", "permission")
        case errno.EISDIR:
            return (f"{shown} is a directory: list it with list_directory", "is_directory")
        case errno.ENOTDIR:
            return (f"{shown}: a part of this path is not a directory: look with list_directory", "not_directory")
        case errno.ELOOP:
            return (f"{shown}: a symbolic link leads in a circle or was put there just now: use the real path", "symlink")
        case errno.ENAMETOOLONG:
            return (f"{shown}: the name is too long for this file system: use a shorter one", "invalid")
        case errno.ENXIO | errno.ENODEV:
            return (f"{shown} is not a regular file: it cannot be read or written here", "not_regular")
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG | errno.EROFS | errno.EIO:
            return (f"{shown}: {error.strerror or error}: the disk did not take it, nothing was changed; tell the user", "disk")
        case _:
            return (f"{shown}: {error.strerror or error}", "io")


def refusal_of_kind(mode: int, shown: str) -> tuple[str, str]:
    """Return what is said of something that is no regular file, and the type of the refusal."""
    if stat.S_ISDIR(mode):
        return (f"{shown} is a directory: list it with list_directory", "is_directory")
    if stat.S_ISLNK(mode):
        return (f"{shown} is a symbolic link that leads in a circle or was put there just now: use the real path", "symlink")
    return (f"{shown} is {file_kind(mode)}, not a regular file: it cannot be read or written here", "not_regular")


def file_kind(mode: int) -> str:
    """Return the kind of a file that is neither regular nor a directory."""
    kinds = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    return kinds.get(stat.S_IFMT(mode), "a special file")
