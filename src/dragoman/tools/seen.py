"""Which files the model has read, and in which state: it may only edit content it has seen.

A state is a hash of the content. Times would not do: file systems keep them in steps of milliseconds to two seconds, so a change
right after a read can leave size, time and inode as they were, and tools that copy or unpack set old times on purpose; while `touch`
or switching branches back and forth changes times but no content, and would refuse edits for nothing. An edit has all bytes in memory
anyway, so hashing costs one more pass. Only files too large to edit (WHOLE_FILE_BYTES) go by size, times and inode: there the status
change time helps, which programs cannot set.
"""

from __future__ import annotations

import os
from collections.abc import Set
from hashlib import blake2b
from typing import Protocol

WHOLE_FILE_BYTES = 10_000_000
"""Files up to this size are read whole, hashed and edited. Larger ones are read in windows, and replaced but not edited."""


class Hasher(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


class SeenFiles:
    """Absolute real path → the state in which the model last saw the file. One per conversation."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}

    def note(self, path: str, state: str) -> None:
        """The model has seen this file, or written it, in this state (see `state_of`)."""
        self._states[path] = state

    def forget(self, path: str) -> None:
        """The content is no longer in the model's context."""
        self._states.pop(path, None)

    @property
    def paths(self) -> Set[str]:
        return self._states.keys()

    def has(self, path: str) -> bool:
        return path in self._states

    def problem(self, path: str, state: str) -> str:
        """Why a file that is now in `state` may not be changed; empty if it may. The text continues a sentence after the file's name."""
        known = self._states.get(path)
        if known is None:
            return "has not been read yet: read it first with read_file"
        if known != state:
            return "changed since it was read: read it again"
        return ""


def state_of(data: bytes) -> str:
    """The state of a file with this content."""
    hasher = new_hasher()
    hasher.update(data)
    return hasher.hexdigest()


def new_hasher() -> Hasher:
    """Hashes content in pieces; its hexdigest is the state."""
    return blake2b(digest_size=16)


def state_of_large(status: os.stat_result) -> str:
    """The state of a file too large to hash."""
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"
