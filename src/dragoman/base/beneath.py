"""Opens files beneath a directory so that no symbolic link leads out of it, not even one created meanwhile.

Each part of the path is opened relative to the descriptor of the previous part, without following links. Checking a path and then
opening it by name would leave a race in which a link can replace a directory. Systems without such calls (Windows) use plain paths.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dragoman.base.found_files import open_found

BY_DESCRIPTOR = (
    hasattr(os, "O_NOFOLLOW") and {*(os.open, os.mkdir, os.rename, os.stat, os.unlink, os.rmdir, os.readlink)} <= os.supports_dir_fd
)

_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
# O_PATH needs no permission to list a directory, only to traverse it.
_STEP: int = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW

# Never wait for the other end of a FIFO, never acquire a controlling terminal.
_NEVER_WAIT: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


class Directory:
    """An open directory, for use in a `with` statement. Names in it are accessed through its descriptor, and no link is followed.

    Failures raise OSError.
    """

    def __init__(self, path: str, descriptor: int | None) -> None:
        self.path = path
        self._descriptor = descriptor

    def open_for_reading(self, name: str) -> int:
        """Open a regular file. Raises OSError as `open_found` does."""
        where, keywords = self._at(name)
        return open_found(where, follow=False, **keywords)

    def create(self, name: str, mode: int) -> int:
        """Create a file and open it for writing. Fails if the name exists."""
        where, keywords = self._at(name)
        return os.open(where, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | _NOFOLLOW, mode, **keywords)

    def stat(self, name: str) -> os.stat_result:
        """The status of the name itself, even if it is a link."""
        where, keywords = self._at(name)
        return os.stat(where, follow_symlinks=False, **keywords)

    def is_writable(self, name: str) -> bool:
        where, keywords = self._at(name)
        return os.access(where, os.W_OK, **keywords)

    def readlink(self, name: str) -> str:
        where, keywords = self._at(name)
        return os.readlink(where, **keywords)

    def status(self) -> os.stat_result:
        """The status of the directory itself."""
        return os.stat(self.path if self._descriptor is None else self._descriptor)

    def open_or_create(self, name: str, mode: int, *, append: bool = False) -> int:
        """Open a regular file to read and write, and make it if it is missing. `append`: every write goes to its end."""
        where, keywords = self._at(name)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | _NOFOLLOW | _NEVER_WAIT
        flags |= os.O_APPEND if append else 0
        descriptor = os.open(where, flags, mode, **keywords)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            _close(descriptor)
            raise OSError(errno.EINVAL, "it is not a regular file", os.path.join(self.path, name))
        return descriptor

    def unlink(self, name: str) -> None:
        where, keywords = self._at(name)
        os.unlink(where, **keywords)

    def rmdir(self, name: str) -> None:
        """Remove an empty directory. A link to one is not removed."""
        where, keywords = self._at(name)
        os.rmdir(where, **keywords)

    def link(self, old: str, new: str) -> None:
        """Make a hard link to a file, or to a link itself. Not every file system supports it."""
        if self._descriptor is None:
            os.link(os.path.join(self.path, old), os.path.join(self.path, new), follow_symlinks=False)
        else:
            os.link(old, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor, follow_symlinks=False)

    def link_to(self, name: str, other: Directory, new: str) -> None:
        """The same under a name in another directory."""
        if self._descriptor is None or other._descriptor is None:
            os.link(os.path.join(self.path, name), os.path.join(other.path, new), follow_symlinks=False)
        else:
            os.link(name, new, src_dir_fd=self._descriptor, dst_dir_fd=other._descriptor, follow_symlinks=False)

    def replace(self, old: str, new: str) -> None:
        if self._descriptor is None:
            os.replace(os.path.join(self.path, old), os.path.join(self.path, new))
        else:
            os.replace(old, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def sync(self) -> None:
        """Make renames in this directory durable. Does nothing on systems that cannot."""
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
        """The entries, unsorted. They can be queried further only while this is open."""
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


def open_beneath(base: str, parts: Sequence[str], *, create: bool = False, made: list[str] | None = None, mode: int = 0o777) -> Directory:
    """Open the directory `base/parts…`, each part a plain name, and `base` an absolute path without links. A part of either that is a link,
    or not a directory, raises NotADirectoryError.

    With `create`, missing directories are created beneath `base`, with this mode; their paths are added to `made`.
    """
    made = [] if made is None else made
    if not BY_DESCRIPTOR:
        return _open_by_path(os.path.join(base, *parts), made if create else None, mode)
    path, above = _where_to_begin(base)
    descriptor = _open_step(path)
    try:
        for place, part in enumerate((*above, *parts)):
            path = os.path.join(path, part)
            inner = _step_into(descriptor, part, path, made if create and place >= len(above) else None, mode)
            outer, descriptor = descriptor, inner
            _close(outer)
    except BaseException:
        _close(descriptor)
        raise
    return Directory(path, descriptor)


def open_directory(path: str, *, create: bool = False, made: list[str] | None = None, mode: int = 0o777) -> Directory:
    """Open the directory at an absolute path, without following any link from the root down. See `open_beneath`."""
    if not os.path.isabs(path):
        raise NotADirectoryError(errno.ENOTDIR, "is not an absolute path", path)
    drive, folder = os.path.splitdrive(path)
    return open_beneath(drive + os.sep, [part for part in folder.split(os.sep) if part], create=create, made=made, mode=mode)


def open_parent(path: str, *, create: bool = False, made: list[str] | None = None) -> Directory:
    """Open the parent directory of an absolute path, without following any link from the root down. See `open_beneath`."""
    return open_directory(os.path.dirname(path), create=create, made=made)


def unlink_beneath(path: str) -> None:
    """Remove the file at an absolute path, reached without following a link. Raises OSError."""
    with open_parent(path) as directory:
        directory.unlink(os.path.basename(path))


def rmdir_beneath(path: str) -> None:
    """Remove the empty directory at an absolute path, reached without following a link. Raises OSError."""
    with open_parent(path) as directory:
        directory.rmdir(os.path.basename(path))


def remove_flat_folder(path: str) -> int:
    """Remove the files in a folder, and the folder if it is empty then. Links on the way raise OSError; those in it are removed themselves.

    Returns how many bytes the files had. A folder that is not there has none.
    """
    freed = 0
    try:
        with open_directory(path) as directory:
            with directory.scan() as entries:
                found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
            for name, status in found:
                if not stat.S_ISDIR(status.st_mode):
                    directory.unlink(name)
                    freed += status.st_size
    except FileNotFoundError:
        return freed
    try:
        rmdir_beneath(path)
    except OSError:
        pass  # somebody has put something else there
    return freed


def is_inside(path: str, base: str) -> bool:
    """Whether an absolute path is `base` or beneath it, by whole components: `/w-evil` is not in `/w`. Neither path is resolved."""
    return path == base or path.startswith(base if base.endswith(os.sep) else base + os.sep)


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Without those that lie in another; the shortest first."""
    kept: list[str] = []
    for path in sorted(set(paths), key=len):
        if not any(is_inside(path, each) for each in kept):
            kept.append(path)
    return tuple(kept)


def _where_to_begin(base: str) -> tuple[str, list[str]]:
    """The directory that is opened by its path, and the names from there to `base`. From the root, where walking through a directory needs
    no permission to list it."""
    if not hasattr(os, "O_PATH"):
        return base, []
    return os.sep, [part for part in base.split(os.sep) if part]


def _step_into(descriptor: int, part: str, path: str, made: list[str] | None, mode: int) -> int:
    try:
        return _open_step(part, dir_fd=descriptor)
    except FileNotFoundError:
        if made is None:
            raise
    try:
        os.mkdir(part, mode, dir_fd=descriptor)
        made.append(path)
    except FileExistsError:
        pass  # created concurrently; the next line checks it
    return _open_step(part, dir_fd=descriptor)


def _open_step(name: str, *, dir_fd: int | None = None) -> int:
    try:
        return os.open(name, _STEP, dir_fd=dir_fd)
    except OSError as error:
        if error.errno == errno.ELOOP:  # what some systems report for a link; others report that it is not a directory
            raise NotADirectoryError(errno.ENOTDIR, "is a link", name) from error
        raise


def _open_by_path(path: str, made: list[str] | None, mode: int) -> Directory:
    _require_plain(path)
    if made is not None:
        _make_by_path(path, made, mode)
        _require_plain(path)
    if not stat.S_ISDIR(os.stat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return Directory(path, None)


def _require_plain(path: str) -> None:
    if os.path.normcase(os.path.realpath(path)) != os.path.normcase(path):
        raise NotADirectoryError(errno.ENOTDIR, "is reached through a link", path)


def _make_by_path(path: str, made: list[str], mode: int) -> None:
    if os.path.isdir(path):
        return
    _make_by_path(os.path.dirname(path), made, mode)
    try:
        os.mkdir(path, mode)
        made.append(path)
    except FileExistsError:
        pass  # created concurrently, or not a directory: the caller checks


def _close(descriptor: int) -> None:
    """Close a descriptor, ignoring errors: it was only used for reading, so no data can be lost."""
    try:
        os.close(descriptor)
    except OSError:
        pass
