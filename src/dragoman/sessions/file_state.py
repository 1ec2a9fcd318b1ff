"""A file as it stands, found and changed without following a link: neither at its own name nor anywhere on the way to it.

What is in it is told by one word: nothing where there is no such file, the SHA-256 of its bytes, or `stat:…` for what is not read (files
that are too large, and what is no plain file), which says when it changed but cannot bring it back.
"""

from __future__ import annotations

import os
import stat

import msgspec

from dragoman.base.beneath import Directory, open_parent

KEEP_BYTES = 20_000_000
"""Larger files are not kept."""
NOTHING = ""
BLOCKED = "error:blocked"
"""There is a link or a file where a folder should be: whatever the path led to, it is out of reach."""


class FileState(msgspec.Struct, frozen=True):
    """What is at a path."""

    content: str = NOTHING
    mode: int = 0
    """As in `stat`, with the type of the file; 0 where there is nothing."""
    data: bytes | None = None
    """The bytes, where `content` is their SHA-256."""

    @property
    def is_regular(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def permissions(self) -> int:
        """Without set-user-id and its like: those are given to a content, and not given back to another."""
        return self.mode & 0o777


def is_hash(content: str) -> bool:
    return len(content) == 64 and ":" not in content


def look_at(path: str) -> FileState:
    """Never raises for what is there, or is not."""
    if not os.path.isabs(path) or os.path.normpath(path) != path or "\0" in path:
        return FileState("error:path")  # nothing of ours: paths are kept absolute and resolved
    try:
        with open_parent(path) as directory:
            return _look(directory, os.path.basename(path))
    except FileNotFoundError:
        return FileState()
    except NotADirectoryError:
        return FileState(BLOCKED)
    except OSError as error:
        return FileState(f"error:{error.errno}")


def _look(directory: Directory, name: str) -> FileState:
    status = directory.stat(name)
    if not stat.S_ISREG(status.st_mode) or status.st_size > KEEP_BYTES:
        return _told_by(status)
    try:
        descriptor = directory.open_for_reading(name)
    except FileNotFoundError:
        raise
    except OSError:
        return _told_by(status)
    try:
        status = os.fstat(descriptor)
        data = _read(descriptor) if stat.S_ISREG(status.st_mode) else None
    finally:
        os.close(descriptor)
    if data is None:
        return _told_by(status)
    from hashlib import sha256

    return FileState(sha256(data).hexdigest(), status.st_mode, data)


def _read(descriptor: int) -> bytes | None:
    """None where it is too large, or cannot be read."""
    pieces, size = list[bytes](), 0
    try:
        while piece := os.read(descriptor, 1 << 20):
            pieces.append(piece)
            size += len(piece)
            if size > KEEP_BYTES:
                return None
    except OSError:
        return None
    return b"".join(pieces)


def _told_by(status: os.stat_result) -> FileState:
    words = [f"{stat.S_IFMT(status.st_mode):o}", str(status.st_ino)]
    if not stat.S_ISDIR(status.st_mode):  # what is put into a folder does not make it another
        words += [str(status.st_size), str(status.st_mtime_ns)]
    return FileState("stat:" + ":".join(words), status.st_mode)
