"""One writer of a session in SQLite: a lock on a small file beside the database, for as long as the session is open.

A lock of the system and not a row in the database: a row would outlive a process that is killed, and whether its owner lives cannot be told
from a process id alone, which another process may have by now or, in another container, have at the same time. The file goes when the
session is closed; one that a killed process left is locked by nobody, and used again.
"""

from __future__ import annotations

import os

from dragoman.base import lock as locks
from dragoman.base.private import make_directory
from dragoman.sessions.projects import WRITING
from dragoman.values.errors import InputError, InUse
from dragoman.words import say

_LOCKS = "locks"


def lock_path(files: str, session_id: str) -> str:
    return os.path.join(files, _LOCKS, session_id)


class SessionLock:
    """Held from the start. Raises InUse; InputError if there can be no such file."""

    def __init__(self, files: str, session_id: str) -> None:
        self.path = lock_path(files, session_id)
        self._descriptor = -1
        try:
            make_directory(os.path.dirname(self.path))
            while not self._take(session_id):
                pass
        except OSError as error:
            raise InputError(say("sessions.not_saved", path=self.path, reason=error.strerror or error)) from error

    def release(self) -> None:
        """The file goes first: whoever has opened it meanwhile sees that, and makes another."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        try:
            os.unlink(self.path)
        except OSError:
            pass
        os.close(descriptor)

    def leave_to_parent(self) -> None:
        """In a forked child: the parent keeps it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _take(self, session_id: str) -> bool:
        """False if the file that was locked is no longer the one of that name."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(self.path, flags, 0o600)
        try:
            try:
                locks.lock(descriptor)
            except locks.Locked as error:
                raise InUse(session_id, locks.holder_of(descriptor)) from error
            if _is_at(self.path, descriptor):
                self._descriptor = descriptor
                return True
        finally:
            if self._descriptor != descriptor:
                os.close(descriptor)
        return False


def sweep(files: str) -> None:
    """What a killed process left in the folders it wrote in. Where none was, this is one look at a folder that is not there."""
    if os.path.isdir(os.path.join(files, WRITING)):
        from dragoman.sessions.leftovers import sweep_leftovers

        sweep_leftovers(files, lambda session_id: lock_path(files, session_id))


def _is_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
