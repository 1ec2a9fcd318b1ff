"""One writer at a time: the process that writes a session holds a lock on its log for as long as the file is open.

The system releases the lock when the process ends, so a killed process blocks nobody.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.base import lock as locks
from dragoman.base.private import open_file
from dragoman.sessions.projects import session_id_of
from dragoman.values.errors import InputError, InUse


def lock(descriptor: int, session_id: str) -> bool:
    """Lock an open log until it is closed. Raises InUse. False if the file system has no locks: then no other writer is kept out."""
    try:
        return locks.lock(descriptor)
    except locks.Locked as error:
        raise InUse(session_id, locks.holder_of(descriptor)) from error


@contextmanager
def hold_lock(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a session's lock briefly, to delete or move it. Raises InUse if another process writes it, OSError if it cannot be read."""
    descriptor = open_file(os.fspath(path), refuse=InputError)
    try:
        lock(descriptor, session_id_of(path))
        yield
    finally:
        os.close(descriptor)
