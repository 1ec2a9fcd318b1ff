"""Where tools may read and write: the workspace and what was added to it. Every path of the model's passes here first."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dragoman.base.atomic import FileChanged, WouldChangeOwner
from dragoman.base.beneath import Directory, is_inside, open_beneath
from dragoman.base.jsontext import valid_unicode
from dragoman.tools.names import as_path, clipped, escaped, unescaped
from dragoman.values.contracts import ToolOutput
from dragoman.values.messages import Text


class Refused(Exception):
    """It cannot be done, and the message says what to do instead: one line, for the model and for people."""

    def __init__(self, message: str, error_type: str) -> None:
        super().__init__(message)
        self.message = valid_unicode(message)
        self.error_type = error_type

    def output(self) -> ToolOutput:
        return ToolOutput((Text(self.message),), display=self.message, is_error=True, error_type=self.error_type)


class PathRefused(Refused):
    """A path that may not be used, or cannot be."""


class Workspace:
    """A directory in which the model works, with others it may use as well.

    Paths are compared as they really are, symbolic links resolved, and by whole components: `/w-evil` is not in `/w`. What `resolve`
    returns is only a name; `directory` and `open_file` reach it without following a link that came in between.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        include: Sequence[str | os.PathLike[str]] = (),
        readable: Sequence[str | os.PathLike[str]] = (),
    ) -> None:
        """`include`: further directories to read and write in. `readable`: directories only to read in."""
        self.root = os.path.realpath(root)
        writable = [self.root, *(os.path.realpath(path) for path in include)]
        # The outermost comes first: from there on no part of a path is followed, so the fewer parts are taken on trust the better.
        self._writable: tuple[str, ...] = tuple(sorted(set(writable), key=len))
        self._readable: tuple[str, ...] = tuple(sorted({*writable, *(os.path.realpath(path) for path in readable)}, key=len))

    def add(self, path: str | os.PathLike[str]) -> str:
        """One more directory to read and write in, from now on. Returns where it really lies."""
        real = os.path.realpath(path)
        self._writable = tuple(sorted({*self._writable, real}, key=len))
        self._readable = tuple(sorted({*self._readable, real}, key=len))
        return real

    def resolve(self, path: str, *, writing: bool = False) -> str:
        """The absolute path that `path` really leads to, be there a file or not. Raises PathRefused where that is not ours to use.

        Relative paths are relative to the root, `~/` is the user's home, and names are taken as `shown` wrote them, too.
        """
        if not path:
            raise PathRefused("the path is empty: name a file or directory", "invalid")
        if "\0" in path or not _is_encodable(path):
            raise PathRefused(f"{_told(path)} is not a path: it holds characters that no file name has", "invalid")
        try:
            real = os.path.realpath(self._spelled(path))
        except OSError as error:  # a link that was there is gone
            raise refusal(error, _told(path)) from error
        if self._base(real, writing):
            return real
        if writing and self._base(real, False):
            raise PathRefused(f"{_told(path)} may be read but not written: write inside {_told(self.root)}", "read_only")
        leads = "" if real == os.path.normpath(os.path.join(self.root, path)) else f" leads to {_told(real)}, which"
        raise PathRefused(
            f"{_told(path)}{leads} is outside the workspace {_told(self.root)}: stay inside, or ask the user to start with --include DIR",
            "outside",
        )

    def shown(self, path: str) -> str:
        """A path as the model is told it: relative to the root where inside, one line, odd characters escaped. `resolve` takes it back."""
        if path == self.root:
            return "."
        if is_inside(path, self.root):
            return as_path(os.path.relpath(path, self.root))
        return escaped(path)

    def directory(self, path: str, *, create: bool = False) -> Directory:
        """The directory at a resolved path, opened without following links; created with its parents if asked for. Raises PathRefused."""
        base = self._base(path, writing=create)
        if not base:
            raise PathRefused(f"{_told(path)} is outside the workspace {_told(self.root)}", "outside")
        parts = [] if path == base else os.path.relpath(path, base).split(os.sep)
        with self.refusing(path):
            return open_beneath(base, parts, create=create)

    @contextmanager
    def open_file(self, path: str) -> Iterator[tuple[int, os.stat_result]]:
        """The regular file at a resolved path, open for reading. Opening never waits and never follows a link. Raises PathRefused."""
        if path in self._readable:  # its parent is not ours to open
            raise PathRefused(f"{clipped(self.shown(path))} is a directory: list it with list_directory", "is_directory")
        with self.directory(os.path.dirname(path)) as directory, self.refusing(path):
            name = os.path.basename(path)
            # A FIFO or a device is not even opened: that alone can wake its other end or move a tape.
            self.require_regular(path, directory.stat(name))
            descriptor = directory.open_for_reading(name)
            try:
                status = os.fstat(descriptor)
                self.require_regular(path, status)
                yield descriptor, status
            finally:
                os.close(descriptor)

    def require_regular(self, path: str, status: os.stat_result) -> None:
        """Raises PathRefused for anything but a regular file."""
        if stat.S_ISREG(status.st_mode):
            return
        shown = clipped(self.shown(path))
        if stat.S_ISDIR(status.st_mode):
            raise PathRefused(f"{shown} is a directory: list it with list_directory", "is_directory")
        if stat.S_ISLNK(status.st_mode):
            raise PathRefused(f"{shown} is a symbolic link that leads in a circle or was put there just now: use the real path", "symlink")
        raise PathRefused(f"{shown} is {file_kind(status.st_mode)}, not a regular file: it cannot be read or written here", "not_regular")

    @contextmanager
    def refusing(self, path: str) -> Iterator[None]:
        """Turns what the operating system says of a path into PathRefused."""
        try:
            yield
        except OSError as error:
            raise refusal(error, clipped(self.shown(path))) from error

    def _spelled(self, path: str) -> str:
        """The absolute path meant by what the model wrote, links not resolved."""
        if path == "~" or path.startswith("~/"):
            return os.path.expanduser(path)
        literal = os.path.join(self.root, path)
        plain = os.path.join(self.root, unescaped(path))
        if plain == literal or "\0" in plain:
            return literal
        # A name of backslashes may be meant as it stands or as `shown` writes it: what exists decides, then whose directory exists.
        for candidate in (literal, plain):
            if os.path.lexists(candidate):
                return candidate
        parents = os.path.dirname(literal), os.path.dirname(plain)
        return plain if os.path.isdir(parents[1]) and not os.path.isdir(parents[0]) else literal

    def _base(self, path: str, writing: bool) -> str:
        """The outermost directory of ours that holds an absolute path; empty where none does."""
        return next((base for base in (self._writable if writing else self._readable) if is_inside(path, base)), "")


def refusal(error: OSError, shown: str) -> PathRefused:
    """What an error of the operating system means for the one who named the path."""
    if isinstance(error, FileChanged):
        return PathRefused(f"{shown} changed while it was being written: read it again", "stale")
    if isinstance(error, WouldChangeOwner):
        message = f"{shown} belongs to another user or group and would change hands: change it with run_shell, or ask the user"
        return PathRefused(message, "permission")
    match error.errno:
        case errno.ENOENT:
            return PathRefused(f"{shown} does not exist", "not_found")
        case errno.EACCES | errno.EPERM:
            return PathRefused(f"{shown}: permission denied: use another file, or ask the user for access", "permission")
        case errno.EISDIR:
            return PathRefused(f"{shown} is a directory: list it with list_directory", "is_directory")
        case errno.ENOTDIR:
            return PathRefused(f"{shown}: a part of this path is not a directory: look with list_directory", "not_directory")
        case errno.ELOOP:
            return PathRefused(f"{shown}: a symbolic link leads in a circle or was put there just now: use the real path", "symlink")
        case errno.ENAMETOOLONG:
            return PathRefused(f"{shown}: the name is too long for this file system: use a shorter one", "invalid")
        case errno.ENXIO | errno.ENODEV:
            return PathRefused(f"{shown} is not a regular file: it cannot be read or written here", "not_regular")
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG | errno.EROFS | errno.EIO:
            return PathRefused(f"{shown}: {error.strerror or error}: the disk did not take it, nothing was changed; tell the user", "disk")
        case _:
            return PathRefused(f"{shown}: {error.strerror or error}", "io")


def file_kind(mode: int) -> str:
    """What a file that is neither regular nor a directory is."""
    kinds = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    return kinds.get(stat.S_IFMT(mode), "a special file")


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _told(path: str) -> str:
    return clipped(escaped(path))
