"""One writer at a time: whoever writes a session holds a lock on its log for as long as the file is open.

The system gives the lock up with the process that holds it, so one that was killed blocks nobody.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.sessions.private import open_file
from dragoman.values.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: files are not locked there
    fcntl = None

_PATIENCE_S = (0.02, 0.08)
"""A process that was killed while it started another leaves the lock with that one for a moment."""
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


class InUse(InputError):
    """Another process writes this session. `.pid` says which, 0 where the system does not tell."""

    def __init__(self, session_id: str, pid: int) -> None:
        who = f"process {pid}" if pid else "another process"
        super().__init__(
            f"session {session_id} is in use by {who} (pid {pid or 'unknown'}): end that one first, "
            f"look at it with `dragoman sessions show {session_id}`, or go on in a copy with `dragoman sessions fork {session_id}`"
        )
        self.session_id = session_id
        self.pid = pid


def lock(descriptor: int, session_id: str) -> bool:
    """Lock an open log until it is closed. Raises InUse. False where the file system knows no locks: then nobody is kept out."""
    if fcntl is None:
        return False
    for pause_s in (*_PATIENCE_S, None):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError as error:
            if pause_s is None:
                raise InUse(session_id, holder_of(descriptor)) from error
            time.sleep(pause_s)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return False
            raise
    return False


@contextmanager
def held(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a session's lock for a moment, to delete or move it. Raises InUse where somebody writes it, OSError where it cannot be read."""
    descriptor = open_file(os.fspath(path))
    try:
        lock(descriptor, session_id_of(path))
        yield
    finally:
        os.close(descriptor)


def session_id_of(path: str | os.PathLike[str]) -> str:
    return os.path.basename(path).removesuffix(".jsonl")


def holder_of(descriptor: int) -> int:
    """The process that holds the lock on an open file, or 0 where nobody does or the system does not tell."""
    status = os.fstat(descriptor)
    exact = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    same_number = f":{status.st_ino}"  # a subvolume's device is not the one the kernel lists
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
