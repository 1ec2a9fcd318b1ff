"""A file as it stands, found and changed without following a link: neither at its own name nor anywhere on the way to it.

What is in it is told by one word: nothing where there is no such file, the SHA-256 of its bytes, or `stat:…` for what is not read (files
that are too large, and what is no plain file), which says when it changed but cannot bring it back.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec

KEEP_BYTES = 20_000_000
"""Larger files are not kept."""
NOTHING = ""
BLOCKED = "error:blocked"
"""There is a link or a file where a folder should be: whatever the path led to, it is out of reach."""

_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
# Never wait for the other end of a FIFO, never take a terminal for our own.
_READ: int = os.O_RDONLY | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_CREATE: int = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | getattr(os, "O_BINARY", 0)
_STEP: int = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW
_BY_DESCRIPTOR = bool(_NOFOLLOW) and {os.open, os.mkdir, os.rename, os.stat, os.unlink} <= os.supports_dir_fd


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
        with open_place(path) as place:
            return _look(place)
    except FileNotFoundError:
        return FileState()
    except NotADirectoryError:
        return FileState(BLOCKED)
    except OSError as error:
        return FileState(f"error:{error.errno}")


def _look(place: Place) -> FileState:
    status = place.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > KEEP_BYTES:
        return _told_by(status)
    try:
        descriptor = place.open_for_reading()
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


class Place:
    """A name in a folder that is held open. What fails raises OSError."""

    def __init__(self, path: str, descriptor: int | None) -> None:
        self.path = path
        self._folder, self._name = os.path.split(path)
        self._descriptor = descriptor

    def stat(self) -> os.stat_result:
        """Of the name itself, be it a link."""
        where, keywords = self._at(self._name)
        return os.stat(where, follow_symlinks=False, **keywords)

    def open_for_reading(self) -> int:
        where, keywords = self._at(self._name)
        return os.open(where, _READ, **keywords)

    def create_beside(self, name: str) -> int:
        """A new file in the same folder, for our eyes only, opened for writing."""
        where, keywords = self._at(name)
        return os.open(where, _CREATE, 0o600, **keywords)

    def link_as(self, name: str) -> None:
        """A second name for it. Not every file system can."""
        if self._descriptor is None:
            os.link(self.path, os.path.join(self._folder, name), follow_symlinks=False)
        else:
            os.link(self._name, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor, follow_symlinks=False)

    def move_to(self, name: str) -> None:
        self._rename(self._name, name)

    def take_from(self, name: str) -> None:
        """What is called `name` in the same folder takes its place."""
        self._rename(name, self._name)

    def remove(self, name: str = "") -> None:
        where, keywords = self._at(name or self._name)
        os.unlink(where, **keywords)

    def sync(self) -> None:
        """Make what was renamed here last. Systems that cannot are left in peace."""
        try:
            descriptor = os.open(".", os.O_RDONLY, dir_fd=self._descriptor) if self._descriptor is not None else None
        except OSError:
            return
        if descriptor is None:
            return
        try:
            os.fsync(descriptor)
        except OSError:
            pass
        finally:
            os.close(descriptor)

    def _rename(self, old: str, new: str) -> None:
        if self._descriptor is None:
            os.replace(os.path.join(self._folder, old), os.path.join(self._folder, new))
        else:
            os.replace(old, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def _at(self, name: str) -> tuple[str, dict[str, Any]]:
        if self._descriptor is None:
            return os.path.join(self._folder, name), {}
        return name, {"dir_fd": self._descriptor}


@contextmanager
def open_place(path: str, *, made: list[str] | None = None) -> Generator[Place]:
    """The place of an absolute path. A link or a file among its folders raises NotADirectoryError.

    With `made`, folders that are missing are made, and their paths added to it.
    """
    folder = os.path.dirname(path)
    if not _BY_DESCRIPTOR:
        _walk_plainly(folder, made)
        yield Place(path, None)
        return
    descriptor = _walk(folder, made)
    try:
        yield Place(path, descriptor)
    finally:
        os.close(descriptor)


def _walk(folder: str, made: list[str] | None) -> int:
    parts = [part for part in folder.split("/") if part]
    descriptor = os.open("/", _STEP)
    try:
        for depth, part in enumerate(parts, 1):
            inner = _step_into(descriptor, part, "/" + "/".join(parts[:depth]), made)
            os.close(descriptor)
            descriptor = inner
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _step_into(descriptor: int, part: str, path: str, made: list[str] | None) -> int:
    try:
        return _open_folder(descriptor, part)
    except FileNotFoundError:
        if made is None:
            raise
    try:
        os.mkdir(part, dir_fd=descriptor)
        made.append(path)
    except FileExistsError:
        pass  # somebody was quicker; the next line says whether it will do
    return _open_folder(descriptor, part)


def _open_folder(descriptor: int, part: str) -> int:
    import errno

    try:
        return os.open(part, _STEP, dir_fd=descriptor)
    except OSError as error:
        if error.errno == errno.ELOOP:  # what some systems say of a link
            raise NotADirectoryError(error.errno, "is a link", part) from error
        raise


def _walk_plainly(folder: str, made: list[str] | None) -> None:
    if not os.path.isdir(folder) and made is not None:
        above = os.path.dirname(folder)
        if above != folder:
            _walk_plainly(above, made)
        os.mkdir(folder)
        made.append(folder)
    if os.path.normcase(os.path.realpath(folder)) != os.path.normcase(folder):
        raise NotADirectoryError(f"{folder} is reached through a link")
