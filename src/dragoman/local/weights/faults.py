"""Why weights are not there."""

from __future__ import annotations

import errno

from dragoman.values.errors import DragomanError


class NotPulled(DragomanError):
    """Weights could not be had. Nothing half-done is ever taken for a model, and the next pull goes on from what is there.

    `again`: the same source may give the same part on a second try.
    """

    exit_code = 57

    def __init__(self, message: str, *, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


class DiskFull(NotPulled):
    """There is no room. No other source changes that."""

    exit_code = 54


class Stopped(Exception):
    """The pull was cancelled while a thread worked for it. Nobody sees it: the cancel is already under way."""


FULL = {errno.ENOSPC, errno.EDQUOT}


def disk_full(folder: object) -> DiskFull:
    return DiskFull(f"the disk is full: make room where {folder} lies, then pull again; what has come so far is kept")


def disk_fault(error: OSError, folder: object) -> NotPulled:
    if error.errno in FULL:
        return disk_full(folder)
    return NotPulled(f"{error.filename or folder}: {error.strerror or error}")
