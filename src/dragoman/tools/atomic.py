"""Replacing a file so that at every moment there is the old one or the new one, whole; and never a trace of the attempt."""

from __future__ import annotations

import os
import stat

from dragoman.tools.beneath import Directory
from dragoman.tools.worker import Stop
from dragoman.tools.workspace import PathRefused

CHUNK_BYTES = 1 << 20


def write_atomically(directory: Directory, name: str, data: bytes, old: os.stat_result | None, stop: Stop, shown: str) -> None:
    """Make `data` the content of `name`: a file with status `old`, or none so far.

    Raises OSError or PathRefused, and then nothing has changed. The new file is written beside the old one and takes its place by being
    renamed, once it is on disk. It keeps the old one's owner, permissions and attributes.
    """
    temporary = f".dragoman-{os.urandom(6).hex()}.tmp"
    descriptor = directory.create(temporary, 0o666 if old is None else 0o600)
    try:
        try:
            _write(descriptor, data, stop)
            if old is not None:
                _keep_attributes(directory, name, descriptor, old, shown)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _require_unchanged(directory, name, old, shown)
        stop()
        directory.replace(temporary, name)
    except BaseException:
        _remove(directory, temporary)
        raise
    directory.sync()


def _write(descriptor: int, data: bytes, stop: Stop) -> None:
    rest = memoryview(data)
    while rest:
        stop()
        rest = rest[os.write(descriptor, rest[:CHUNK_BYTES]) :]


def _keep_attributes(directory: Directory, name: str, descriptor: int, old: os.stat_result, shown: str) -> None:
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except PermissionError as error:
            message = f"{shown} belongs to another user or group and would change hands: change it with run_shell, or ask the user"
            raise PathRefused(message, "permission") from error
    _copy_extended_attributes(directory, name, descriptor)
    if hasattr(os, "fchmod"):
        # As when a program writes to a file, set-user-id and its like are lost: they were given to the old content.
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode) & 0o777)


def _copy_extended_attributes(directory: Directory, name: str, descriptor: int) -> None:
    """Access lists and labels, as far as the system lets us. Without its access list a file's mode would mean something else."""
    if not hasattr(os, "listxattr"):
        return
    try:
        source = directory.open_for_reading(name)
    except OSError:
        return
    try:
        for attribute in os.listxattr(source):
            if attribute != "security.capability":  # given to the old content
                _copy_attribute(source, descriptor, attribute)
    except OSError:
        pass
    finally:
        os.close(source)


def _copy_attribute(source: int, descriptor: int, attribute: str) -> None:
    try:
        os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
    except OSError:
        pass


def _require_unchanged(directory: Directory, name: str, old: os.stat_result | None, shown: str) -> None:
    """A last look before the old file is gone. The rest of the risk is the moment between this and the renaming."""
    try:
        now = directory.stat(name)
    except FileNotFoundError:
        now = None
    if (now and _identity(now)) != (old and _identity(old)):
        raise PathRefused(f"{shown} changed while it was being written: read it again", "stale")


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _remove(directory: Directory, temporary: str) -> None:
    for _ in range(2):  # a passing fault must not leave it behind
        try:
            directory.unlink(temporary)
        except FileNotFoundError:
            return
        except OSError:
            continue
        return
