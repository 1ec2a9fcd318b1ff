"""Which files the model has seen, how much of them and in which state: it may only replace a whole file that it has seen as it is.

A state is a hash of the content. Times would not do: file systems keep them in steps of milliseconds to two seconds, so a change
right after a read can leave size, time and inode as they were, and tools that copy or unpack set old times on purpose; while `touch`
or switching branches back and forth changes times but no content, and would refuse writes for nothing. A write has all bytes in memory
anyway, so hashing costs one more pass. Only files too large to edit (WHOLE_FILE_BYTES) go by size, times and inode: there the status
change time helps, which programs cannot set.

An edit needs none of this: it applies where its text occurs exactly once. It is told, though, when the file holds other changes.
"""

from __future__ import annotations

import os
from collections.abc import Set
from hashlib import blake2b
from typing import Protocol

import msgspec

from dragoman.values.record import FileVersion

WHOLE_FILE_BYTES = 10_000_000
"""Files up to this size are read whole, hashed and edited. Larger ones are read in windows, and replaced but not edited."""


class Hasher(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


class Sight(msgspec.Struct, frozen=True):
    """What the model has seen of a file in one state."""

    state: str
    is_whole: bool = True
    lines: tuple[tuple[int, int], ...] = ()
    """If not the whole: the lines that were read, first and last of each run, in order."""
    is_stale: bool = False
    """It was seen in an earlier state, and edited since: what else had changed was not seen."""


class SeenFiles:
    """Absolute real path → what the model last saw of the file. One per conversation."""

    def __init__(self) -> None:
        self._sights: dict[str, Sight] = {}

    def note(self, path: str, state: str) -> None:
        """The model has seen the whole of this file, or written it, in this state (see `state_of`)."""
        self._sights[path] = Sight(state)

    def note_lines(self, path: str, state: str, first: int, last: int, total: int | None) -> None:
        """The model has seen these lines. Whoever has read all of them, in whatever order, has seen the whole."""
        known = self._sights.get(path)
        before = known.lines if known is not None and known.state == state else ()
        if known is not None and known.state == state and known.is_whole:
            return
        lines = _merge((*before, (first, last)) if first <= last else before)
        is_whole = total is not None and (lines == ((1, total),) or total == 0)
        self._sights[path] = Sight(state, is_whole, () if is_whole else lines)

    def note_edit(self, path: str, before: str, after: str) -> None:
        """The model has changed a part of the file: whatever else is in it is as well known as before."""
        known = self._sights.get(path)
        if known is not None and known.state == before:
            self._sights[path] = Sight(after, known.is_whole, is_stale=known.is_stale)
        else:
            self._sights[path] = Sight(after, is_whole=False, is_stale=known is not None)

    def note_part(self, path: str) -> None:
        """Some of the content is no longer in the model's context: what is left of it is not the whole."""
        if (known := self._sights.get(path)) is not None and known.is_whole:
            self._sights[path] = Sight(known.state, is_whole=False, is_stale=known.is_stale)

    def forget(self, path: str) -> None:
        """The content is no longer in the model's context."""
        self._sights.pop(path, None)

    @property
    def paths(self) -> Set[str]:
        return self._sights.keys()

    def has(self, path: str) -> bool:
        return path in self._sights

    def holds_unseen_changes(self, path: str, state: str) -> bool:
        """Whether a file that is now in `state` was changed by others since the model last read, wrote or edited it."""
        known = self._sights.get(path)
        return known is not None and known.state != state

    def problem(self, path: str, state: str) -> str:
        """Why a file that is now in `state` may not be replaced; empty if it may. The text continues a sentence after the file's name."""
        known = self._sights.get(path)
        if known is None:
            return "exists: read it with read_file before you replace the whole of it, or change parts of it with edit"
        if known.state != state or known.is_stale:
            return "changed since it was read: read it again before you replace the whole of it"
        if known.is_whole:
            return ""
        runs = ", ".join(f"{first}-{last}" for first, last in known.lines[:5])
        seen = f" (lines {runs}{', …' * (len(known.lines) > 5)})" if runs else ""
        return (
            f"was read only in part{seen}: change parts of it with edit; to replace the whole of it, read the rest first, "
            "or remove the file with run_shell if nothing in it matters"
        )


def _merge(lines: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Runs of lines in order, those that touch joined."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(lines):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def version_of(path: str, data: bytes) -> FileVersion:
    """A file with this content, for the record."""
    lines = None if b"\0" in data else data.count(b"\n") + (data != b"" and not data.endswith(b"\n"))
    return FileVersion(path, state_of(data), lines)


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
