"""Advisory locks on open files. The system releases a lock when its process ends, so a killed process blocks no other."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

try:
    import fcntl
except ImportError:  # Windows: files are not locked
    fcntl = None

PATIENCE_S = (0.02, 0.08)
"""Waits between attempts. A process that was killed while it started another leaves the lock with that one for a moment."""
LONG_PATIENCE_S = (0.01,) * 500
"""For changes that take milliseconds."""
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


class Locked(BlockingIOError):
    """Another process holds the lock."""


def lock(descriptor: int, patience_s: tuple[float, ...] = PATIENCE_S) -> bool:
    """Lock an open file until it is closed. Raises Locked if another process still holds it after `patience_s`; OSError if locking fails.

    Returns False if the file system does not support locks: then no other process is kept out.
    """
    return _flock(descriptor, patience_s, with_others=False)


def lock_with_others(descriptor: int, patience_s: tuple[float, ...] = LONG_PATIENCE_S) -> None:
    """The same for a lock that several may have at once, and that keeps out whoever wants it alone."""
    _flock(descriptor, patience_s, with_others=True)


def _flock(descriptor: int, patience_s: tuple[float, ...], *, with_others: bool) -> bool:
    if fcntl is None:
        return False
    kind = fcntl.LOCK_SH if with_others else fcntl.LOCK_EX
    for pause_s in (*patience_s, None):
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError as error:
            if pause_s is None:
                raise Locked(error.errno, error.strerror) from error
            time.sleep(pause_s)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return False
            raise
    return False


@contextmanager
def hold(path: str) -> Iterator[None]:
    """Let nobody else change a file of ours meanwhile. The lock is on a file beside it, because this one may be replaced as a whole.

    Raises OSError; Locked if somebody else holds it for seconds.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(f"{path}.lock", flags, 0o600)
    try:
        lock(descriptor, LONG_PATIENCE_S)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def hold_folder(path: str) -> Iterator[None]:
    """The same for a file in a folder where no further file of ours should lie: the lock is on the folder."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        lock(descriptor, LONG_PATIENCE_S)
        yield
    finally:
        os.close(descriptor)


def files_held_by_others() -> frozenset[int]:
    """The inodes of files that other processes hold locks on; empty where the system does not say."""
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as locks:
            rows = [line.split() for line in locks]
    except OSError:
        return frozenset()
    ours = str(os.getpid())
    held = [fields[5].rpartition(":")[2] for fields in rows if len(fields) >= 6 and fields[1] == "FLOCK" and fields[4] != ours]
    return frozenset(int(inode) for inode in held if inode.isdigit())


def holder_of(descriptor: int) -> int:
    """The id of the process that holds the lock on an open file, or 0 if there is none or the system does not say."""
    status = os.fstat(descriptor)
    exact = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    same_number = f":{status.st_ino}"  # for a subvolume the kernel lists another device
    likely = 0
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as locks:
            for line in locks:
                # 1: FLOCK  ADVISORY  WRITE 4242 fe:00:131 0 EOF
                fields = line.split()
                if len(fields) < 6 or fields[1] != "FLOCK" or not fields[4].isdigit():
                    continue
                if fields[5] == exact:
                    return int(fields[4])
                if fields[5].endswith(same_number):
                    likely = int(fields[4])
    except OSError:
        pass  # no such list on this system
    return likely
