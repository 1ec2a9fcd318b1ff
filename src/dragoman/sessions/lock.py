"""One writer at a time: whoever writes a session holds a lock on its log for as long as the file is open.

The system gives the lock up with the process that holds it, so one that was killed blocks nobody.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.base import lock as locks
from dragoman.base.private import open_file
from dragoman.sessions.projects import session_id_of
from dragoman.values.errors import InputError


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
    try:
        return locks.lock(descriptor)
    except locks.Locked as error:
        raise InUse(session_id, locks.holder_of(descriptor)) from error


@contextmanager
def held(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a session's lock for a moment, to delete or move it. Raises InUse where somebody writes it, OSError where it cannot be read."""
    descriptor = open_file(os.fspath(path), refuse=InputError)
    try:
        lock(descriptor, session_id_of(path))
        yield
    finally:
        os.close(descriptor)
