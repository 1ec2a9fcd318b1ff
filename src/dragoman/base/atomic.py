"""Replaces files atomically: there is always either the old or the new file, complete, and a failed attempt leaves nothing behind."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache

from dragoman.base.beneath import Directory
from dragoman.base.private import create_file, sync_file, write_whole

CHUNK_BYTES = 1 << 20


class FileChanged(OSError):
    """Another process changed, created or removed the file while its new content was being written. Nothing was replaced."""


class WouldChangeOwner(PermissionError):
    """The file belongs to another user or group, and the new file could not. Nothing was replaced."""


def write_atomically(directory: Directory, name: str, data: bytes, old: os.stat_result | None, stop: Callable[[], None]) -> None:
    """Make `data` the content of `name`: a file with status `old`, or a new file if that is None.

    Raises OSError (FileChanged, WouldChangeOwner) or what `stop` raises, and then nothing has changed. The new file is written next to the
    old one and renamed over it once it is on disk. It keeps the old one's owner, permissions and attributes.
    """
    temporary = temporary_name()
    descriptor = directory.create(temporary, 0o666 if old is None else 0o600)
    try:
        try:
            _write(descriptor, data, stop)
            if old is not None:
                keep_attributes(directory, name, descriptor, old)
                change_mode(descriptor, old.st_mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        require_unchanged(directory, name, old)
        stop()
        directory.replace(temporary, name)
    except BaseException:
        remove_with_retry(lambda: directory.unlink(temporary))
        raise
    directory.sync()


def replace_file(path: str, data: bytes, *, mode: int = 0o600, over: bool = True) -> None:
    """Make `data` the content of one of our own files, whatever was there. See `write_aside`."""
    with write_aside(path, mode=mode, over=over) as descriptor:
        write_whole(descriptor, data)


@contextmanager
def write_aside(path: str, *, mode: int = 0o600, over: bool = True) -> Generator[int]:
    """A descriptor to write the new content of `path` to. When the block ends, it is synced and renamed to `path`; a block that raises
    leaves nothing behind. A link at `path` is replaced, not followed. The folder is not synced.

    Without `over`, an existing file is left as it is, and FileExistsError is raised.
    """
    aside = os.path.join(os.path.dirname(path), temporary_name())
    descriptor = create_file(aside, mode)
    try:
        try:
            yield descriptor
            sync_file(descriptor)
        finally:
            os.close(descriptor)
        if over:
            os.replace(aside, path)
        else:
            _link_into_place(aside, path)
    except BaseException:
        remove_with_retry(lambda: os.unlink(aside))
        raise


def temporary_name() -> str:
    """A name for a file that is about to replace another, or was just replaced. It has the mark of this process in it."""
    return f"{temporary_prefix(process_mark())}{os.urandom(6).hex()}.tmp"


def temporary_prefix(mark: str) -> str:
    """How the temporary files of the process with this mark begin."""
    return f".dragoman-{mark}-"


def process_mark() -> str:
    """Eight random digits that no other process has: a forked child has its own."""
    return _mark_of(os.getpid())


@cache
def _mark_of(pid: int) -> str:
    return os.urandom(4).hex()


def keep_attributes(directory: Directory, name: str, descriptor: int, old: os.stat_result) -> None:
    """Give a new file the owner of `name`, whose status is `old`, and its extended attributes (ACLs, labels) as far as the system allows:
    without its ACL a file's mode would mean something else. Raises WouldChangeOwner."""
    new = os.fstat(descriptor)
    if hasattr(os, "fchown") and (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except PermissionError as error:
            raise WouldChangeOwner(error.errno, "it belongs to another user or group", name) from error
    if not hasattr(os, "listxattr"):
        return
    try:
        source = directory.open_for_reading(name)
    except OSError:
        return
    try:
        if not stat.S_ISREG(os.fstat(source).st_mode):
            return
        for attribute in os.listxattr(source):
            if attribute != "security.capability":  # granted to the old content
                _copy_attribute(source, descriptor, attribute)
    except OSError:
        pass
    finally:
        os.close(source)


def change_mode(descriptor: int, mode: int) -> None:
    """Set the permissions of an open file, if the system has them. As when a program writes to a file, set-user-id and the like are
    dropped: they were granted to the old content."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, stat.S_IMODE(mode) & 0o777)


def require_unchanged(directory: Directory, name: str, old: os.stat_result | None) -> None:
    """A last check before the old file is replaced. A race remains between this and the rename. Raises FileChanged."""
    try:
        now = directory.stat(name)
    except FileNotFoundError:
        now = None
    if (now and _identity(now)) != (old and _identity(old)):
        raise FileChanged(errno.ESTALE, "it was changed by somebody else just now", name)


def remove_with_retry(remove: Callable[[], None]) -> None:
    """Remove a file, with one retry: a temporary fault must not leave it behind."""
    for _ in range(2):
        try:
            return remove()
        except FileNotFoundError:
            return
        except OSError:
            continue


def _write(descriptor: int, data: bytes, stop: Callable[[], None]) -> None:
    rest = memoryview(data)
    while rest:
        stop()
        rest = rest[os.write(descriptor, rest[:CHUNK_BYTES]) :]


def _copy_attribute(source: int, descriptor: int, attribute: str) -> None:
    try:
        os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
    except OSError:
        pass


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _link_into_place(aside: str, path: str) -> None:
    """Rename a file, but never over one that was created meanwhile."""
    try:
        os.link(aside, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from None
        os.rename(aside, path)
        return
    os.unlink(aside)
