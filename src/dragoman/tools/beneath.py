"""Opening what lies beneath a directory so that no symbolic link leads out of it, not even one that is put there meanwhile.

Each part of the path is opened relative to the descriptor of the part before, and never followed. Checking a path and then opening it
by name would leave a moment between the two in which a link can take a directory's place. Systems without such calls (Windows) get
plain paths.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

BY_DESCRIPTOR = hasattr(os, "O_NOFOLLOW") and {os.open, os.mkdir, os.rename, os.stat, os.unlink, os.readlink} <= os.supports_dir_fd

_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_READ: int = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_DIRECTORY: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
# O_PATH needs no right to list a directory, only to pass through it.
_STEP: int = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW
# Never wait for the other end of a FIFO, never take a terminal for our own.
_NEVER_WAIT: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


class Directory:
    """A directory held open, to be used in a `with` statement. Names in it are reached through its descriptor, and no link is followed.

    What fails raises OSError.
    """

    def __init__(self, path: str, descriptor: int | None) -> None:
        self.path = path
        self._descriptor = descriptor

    def open_for_reading(self, name: str) -> int:
        where, keywords = self._at(name)
        return os.open(where, _READ | _NOFOLLOW | _NEVER_WAIT, **keywords)

    def create(self, name: str, mode: int) -> int:
        """A new file, opened for writing. Whatever has that name already makes it fail."""
        where, keywords = self._at(name)
        return os.open(where, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | _NOFOLLOW, mode, **keywords)

    def stat(self, name: str) -> os.stat_result:
        """Of the name itself, be it a link."""
        where, keywords = self._at(name)
        return os.stat(where, follow_symlinks=False, **keywords)

    def is_writable(self, name: str) -> bool:
        where, keywords = self._at(name)
        return os.access(where, os.W_OK, **keywords)

    def readlink(self, name: str) -> str:
        where, keywords = self._at(name)
        return os.readlink(where, **keywords)

    def unlink(self, name: str) -> None:
        where, keywords = self._at(name)
        os.unlink(where, **keywords)

    def replace(self, old: str, new: str) -> None:
        if self._descriptor is None:
            os.replace(os.path.join(self.path, old), os.path.join(self.path, new))
        else:
            os.replace(old, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def sync(self) -> None:
        """Make what was renamed here last. Systems that cannot are left in peace."""
        if self._descriptor is None:
            return
        try:
            descriptor = os.open(".", _DIRECTORY, dir_fd=self._descriptor)
        except OSError:
            return
        try:
            os.fsync(descriptor)
        except OSError:
            pass
        finally:
            _close(descriptor)

    @contextmanager
    def scan(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """What is in it, unsorted. Entries can tell more of themselves only while this is open."""
        if self._descriptor is None:
            with os.scandir(self.path) as entries:
                yield entries
            return
        descriptor = os.open(".", _DIRECTORY, dir_fd=self._descriptor)
        try:
            with os.scandir(descriptor) as entries:
                yield entries
        finally:
            _close(descriptor)

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            _close(self._descriptor)
            self._descriptor = None

    def _at(self, name: str) -> tuple[str, dict[str, Any]]:
        if self._descriptor is None:
            return os.path.join(self.path, name), {}
        return name, {"dir_fd": self._descriptor}


def open_beneath(base: str, parts: Sequence[str], *, create: bool = False) -> Directory:
    """The directory `base/parts…`, each part a plain name. A part that is a link, or no directory, raises OSError."""
    return _open_by_descriptor(base, parts, create) if BY_DESCRIPTOR else _open_plainly(base, parts, create)


def _open_by_descriptor(base: str, parts: Sequence[str], create: bool) -> Directory:
    descriptor = os.open(base, _STEP)
    try:
        for part in parts:
            inner = _step_into(descriptor, part, create)
            outer, descriptor = descriptor, inner
            _close(outer)
    except BaseException:
        _close(descriptor)
        raise
    return Directory(os.path.join(base, *parts), descriptor)


def _step_into(descriptor: int, part: str, create: bool) -> int:
    try:
        return os.open(part, _STEP, dir_fd=descriptor)
    except FileNotFoundError:
        if not create:
            raise
    try:
        os.mkdir(part, dir_fd=descriptor)
    except FileExistsError:
        pass  # somebody was quicker; the next line says whether it will do
    return os.open(part, _STEP, dir_fd=descriptor)


def _open_plainly(base: str, parts: Sequence[str], create: bool) -> Directory:
    path = os.path.join(base, *parts)
    if create:
        os.makedirs(path, exist_ok=True)
    if os.path.realpath(path) != path:
        raise NotADirectoryError(f"{path} is a link")
    return Directory(path, None)


def _close(descriptor: int) -> None:
    """Closing what was only read or passed through cannot lose anything."""
    try:
        os.close(descriptor)
    except OSError:
        pass
