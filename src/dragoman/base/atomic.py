"""Replacing a file so that at every moment there is the old one or the new one, whole; and never a trace of the attempt."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager

from dragoman.base.beneath import Directory
from dragoman.base.private import create_file, sync_file, write_whole

CHUNK_BYTES = 1 << 20


class FileChanged(OSError):
    """Somebody else changed the file, made it or removed it while its new content was being written. Nothing was replaced."""


class WouldChangeOwner(PermissionError):
    """The file belongs to another user or group, and what would take its place cannot. Nothing was replaced."""


def write_atomically(directory: Directory, name: str, data: bytes, old: os.stat_result | None, stop: Callable[[], None]) -> None:
    """Make `data` the content of `name`: a file with status `old`, or none so far.

    Raises OSError (FileChanged, WouldChangeOwner) or what `stop` raises, and then nothing has changed. The new file is written beside the
    old one and takes its place by being renamed, once it is on disk. It keeps the old one's owner, permissions and attributes.
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
        remove_surely(lambda: directory.unlink(temporary))
        raise
    directory.sync()


def replace_file(path: str, data: bytes, *, mode: int = 0o600, over: bool = True) -> None:
    """Make `data` the content of a file of ours, whatever there was. See `write_aside`."""
    with write_aside(path, mode=mode, over=over) as descriptor:
        write_whole(descriptor, data)


@contextmanager
def write_aside(path: str, *, mode: int = 0o600, over: bool = True) -> Generator[int]:
    """A descriptor to write the new content of `path` to. What was written takes that name, whole and on disk, when the block ends; a
    block that raises leaves no trace. A link at `path` is replaced, not followed. The folder is not synced.

    Without `over`, whatever has the name by then is left as it is, and FileExistsError raised.
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
            _put_in_place(aside, path)
    except BaseException:
        remove_surely(lambda: os.unlink(aside))
        raise


def temporary_name() -> str:
    """For a file that is about to take another's place, or has just given it up."""
    return f".dragoman-{os.urandom(6).hex()}.tmp"


def keep_attributes(directory: Directory, name: str, descriptor: int, old: os.stat_result) -> None:
    """Give a new file the owner of `name`, whose status is `old`, and its access lists and labels, as far as the system lets us: without
    its access list a file's mode would mean something else. Raises WouldChangeOwner."""
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
            if attribute != "security.capability":  # given to the old content
                _copy_attribute(source, descriptor, attribute)
    except OSError:
        pass
    finally:
        os.close(source)


def change_mode(descriptor: int, mode: int) -> None:
    """The permissions of an open file, where the system has them. As when a program writes to a file, set-user-id and its like are lost:
    they were given to the old content."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, stat.S_IMODE(mode) & 0o777)


def require_unchanged(directory: Directory, name: str, old: os.stat_result | None) -> None:
    """A last look before the old file is gone. The rest of the risk is the moment between this and the renaming. Raises FileChanged."""
    try:
        now = directory.stat(name)
    except FileNotFoundError:
        now = None
    if (now and _identity(now)) != (old and _identity(old)):
        raise FileChanged(errno.ESTALE, "it was changed by somebody else just now", name)


def remove_surely(remove: Callable[[], None]) -> None:
    """Remove a file, once more where that fails: a passing fault must not leave it behind."""
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


def _put_in_place(aside: str, path: str) -> None:
    """Never over what has come to be there meanwhile."""
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
