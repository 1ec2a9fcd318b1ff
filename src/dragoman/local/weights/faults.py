"""Why weights could not be downloaded."""

from __future__ import annotations

import errno

from dragoman.values.errors import DragomanError
from dragoman.words import say


class NotPulled(DragomanError):
    """Weights could not be downloaded. A partial file is never taken for a model, and the next pull resumes from it.

    `can_retry`: the same source may deliver the part on a second try.
    """

    exit_code = 57

    def __init__(self, message: str, *, can_retry: bool = False) -> None:
        super().__init__(message)
        self.can_retry = can_retry


class DiskFull(NotPulled):
    """The disk is full. No other source changes that."""

    exit_code = 54


class PullStopped(Exception):
    """The pull was cancelled while a thread worked for it. It stays internal: the cancel is already under way."""


FULL = {errno.ENOSPC, errno.EDQUOT}


def disk_full(folder: object) -> DiskFull:
    return DiskFull(say("local.disk_full", folder=folder))


def disk_fault(error: OSError, folder: object) -> NotPulled:
    if error.errno in FULL:
        return disk_full(folder)
    return NotPulled(say("local.disk_fault", path=error.filename or folder, reason=error.strerror or error))
