"""The state of a file, read and changed without following links: neither at its own name nor anywhere on the way to it.

`content` identifies what is in it: empty if there is no such file, the SHA-256 of its bytes, or `stat:…` for files that are not read (too
large, or not regular), which shows that the file changed but cannot restore it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from hashlib import sha256

import msgspec

from dragoman.base.beneath import Directory, open_directory, open_parent

KEEP_BYTES = 20_000_000
"""Larger files are not saved."""
NOTHING = ""
BLOCKED = "error:blocked"
"""A link or a file is where a folder should be: the path can no longer be reached."""


class FileState(msgspec.Struct, frozen=True):
    """What is at a path."""

    content: str = NOTHING
    mode: int = 0
    """As in `stat`, with the file type; 0 if nothing is there."""
    data: bytes | None = None
    """The bytes, if `content` is their SHA-256."""

    @property
    def is_regular(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def permissions(self) -> int:
        """Without set-user-id and the like: those were granted to one content and must not pass to another."""
        return self.mode & 0o777


def is_hash(content: str) -> bool:
    return len(content) == 64 and ":" not in content


def read_file_state(path: str) -> FileState:
    """Read the state of a path. Never raises, whatever is or is not there."""
    if not os.path.isabs(path) or os.path.normpath(path) != path or "\0" in path:
        return FileState("error:path")  # not written by us: recorded paths are absolute and resolved
    try:
        with open_parent(path) as directory:
            return _read_state(directory, os.path.basename(path))
    except FileNotFoundError:
        return FileState()
    except NotADirectoryError:
        return FileState(BLOCKED)
    except OSError as error:
        return FileState(f"error:{error.errno}")


def read_file_states(folder: str, names: Iterable[str]) -> Iterator[FileState]:
    """Read the states of several names in one folder, reached without following links. Never raises."""
    names = tuple(names)
    try:
        with open_directory(folder) as directory:
            for name in names:
                try:
                    yield _read_state(directory, name)
                except FileNotFoundError:
                    yield FileState()
                except OSError as error:
                    yield FileState(f"error:{error.errno}")
    except OSError:
        for name in names:
            yield read_file_state(os.path.join(folder, name))


def _read_state(directory: Directory, name: str) -> FileState:
    status = directory.stat(name)
    if not stat.S_ISREG(status.st_mode) or status.st_size > KEEP_BYTES:
        return _state_from_stat(status)
    try:
        descriptor = directory.open_for_reading(name)
    except FileNotFoundError:
        raise
    except OSError:
        return _state_from_stat(status)
    try:
        status = os.fstat(descriptor)
        data = _read(descriptor) if stat.S_ISREG(status.st_mode) else None
    finally:
        os.close(descriptor)
    if data is None:
        return _state_from_stat(status)

    return FileState(sha256(data).hexdigest(), status.st_mode, data)


def _read(descriptor: int) -> bytes | None:
    """The bytes of an open file; None if it is too large or cannot be read."""
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


def _state_from_stat(status: os.stat_result) -> FileState:
    words = [f"{stat.S_IFMT(status.st_mode):o}", str(status.st_ino)]
    if not stat.S_ISDIR(status.st_mode):  # adding files to a folder does not make it a different one
        words += [str(status.st_size), str(status.st_mtime_ns)]
    return FileState("stat:" + ":".join(words), status.st_mode)
