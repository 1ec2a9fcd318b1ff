"""Where tools may read and write: the workspace and added directories. Every path from the model is checked here first."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from dragoman.base.beneath import Directory, is_inside, open_beneath
from dragoman.base.jsontext import valid_unicode
from dragoman.tools.names import escape_name, escape_relative_path, truncate_path, unescape_name
from dragoman.values.calls import ToolOutput
from dragoman.values.messages import Text
from dragoman.words import say


class ToolRefusal(Exception):
    """A tool cannot do it; the one-line message says what to do instead, for the model and for users."""

    def __init__(self, message: str, error_type: str) -> None:
        super().__init__(message)
        self.message = valid_unicode(message)
        self.error_type = error_type

    def output(self) -> ToolOutput:
        return ToolOutput((Text(self.message),), display=self.message, is_error=True, error_type=self.error_type)


class PathRefusal(ToolRefusal):
    """A path that may not or cannot be used."""


class Workspace:
    """The directory in which the model works, and others it may use.

    Paths are compared with symbolic links resolved, by whole components: `/w-evil` is not in `/w`. What `resolve` returns is only a
    name; `directory` and `open_file` open it without following a link created in between (TOCTOU).
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        include: Sequence[str | os.PathLike[str]] = (),
        readable: Sequence[str | os.PathLike[str]] = (),
        secret: Sequence[str | os.PathLike[str]] = (),
        is_denied: Callable[[str, os.stat_result], bool] | None = None,
        hides: Callable[[str, Sequence[str]], bool] | None = None,
    ) -> None:
        """`include`: further directories to read and write. `readable`: read-only directories. `secret`: files that hold keys, which no
        tool reads or writes. `is_denied`: whether the user's rules keep a file from being read, by its real path and status. `hides`:
        whether a real path is kept from commands too, for these folders."""
        self.root = os.path.realpath(root)
        writable = [self.root, *(os.path.realpath(path) for path in include)]
        # Outermost first: links are not followed below it, so the fewer components are trusted the better.
        self._writable: tuple[str, ...] = tuple(sorted(set(writable), key=len))
        self._readable: tuple[str, ...] = tuple(sorted({*writable, *(os.path.realpath(path) for path in readable)}, key=len))
        self._secret: frozenset[str] = frozenset(os.path.realpath(path) for path in secret)
        self._is_denied, self._hides = is_denied, hides
        self.was_judged: Callable[[str], bool] = lambda path: True
        """Whether the call at work was allowed for this real path."""
        self.was_shown: Callable[[str], bool] = lambda preview: True
        """Whether a person who allowed the call at work was shown this change, if one did."""

    def add(self, path: str | os.PathLike[str]) -> str:
        """Add a directory to read and write. Returns its real path."""
        real = os.path.realpath(path)
        self._writable = tuple(sorted({*self._writable, real}, key=len))
        self._readable = tuple(sorted({*self._readable, real}, key=len))
        return real

    def add_readable(self, path: str | os.PathLike[str]) -> None:
        """Add a directory to read."""
        self._readable = tuple(sorted({*self._readable, os.path.realpath(path)}, key=len))

    def resolve(self, path: str, *, writing: bool = False) -> str:
        """The real absolute path of `path`, whether it exists or not. Raises PathRefusal if it may not be used.

        Relative paths are relative to the root, `~/` is the user's home, and escapes written by `display_path` are understood.
        """
        if not path:
            raise PathRefusal("the path is empty: name a file or directory", "invalid")
        if "\0" in path or not _is_encodable(path):
            raise PathRefusal(f"{_show(path)} is not a path: it holds characters that no file name has", "invalid")
        try:
            real = os.path.realpath(self._to_absolute(path))
        except OSError as error:  # a link was removed in the meantime
            raise self._refusal(error, _show(path)) from error
        if self.hides(real):
            raise secret_refusal(path)
        if self._base(real, writing):
            return real
        if writing and self._base(real, False):
            raise PathRefusal(f"{_show(path)} may be read but not written: write inside {_show(self.root)}", "read_only")
        leads = "" if real == os.path.normpath(os.path.join(self.root, path)) else f" leads to {_show(real)}, which"
        raise PathRefusal(
            f"{_show(path)}{leads} is outside the workspace {_show(self.root)}: stay inside, or {say('tools.outside_remedy')}",
            "outside",
        )

    def display_path(self, path: str) -> str:
        """A path as shown to the model: relative to the root if inside, one line, odd characters escaped. `resolve` accepts it."""
        if path == self.root:
            return "."
        if is_inside(path, self.root):
            return escape_relative_path(os.path.relpath(path, self.root))
        return escape_name(path)

    def directory(self, path: str, *, create: bool = False) -> Directory:
        """Open the directory at a resolved path without following links; `create` also creates its parents. Raises PathRefusal."""
        if self.hides(path):
            raise secret_refusal(self.display_path(path))
        base = self._base(path, writing=create)
        if not base:
            raise PathRefusal(f"{_show(path)} is outside the workspace {_show(self.root)}", "outside")
        parts = [] if path == base else os.path.relpath(path, base).split(os.sep)
        with self.refusing(path):
            return open_beneath(base, parts, create=create)

    @contextmanager
    def open_file(self, path: str) -> Iterator[tuple[int, os.stat_result]]:
        """Open the regular file at a resolved path for reading. Never blocks and never follows a link. Raises PathRefusal."""
        if path in self._readable:  # its parent is outside the workspace
            raise PathRefusal(f"{truncate_path(self.display_path(path))} is a directory: list it with list_directory", "is_directory")
        with self.directory(os.path.dirname(path)) as directory, self.refusing(path):
            name = os.path.basename(path)
            # Never open a FIFO or a device: opening alone can wake the other end or move a tape.
            self.require_regular(path, directory.stat(name))
            descriptor = directory.open_for_reading(name)
            try:
                status = os.fstat(descriptor)
                self.require_regular(path, status)
                if self.is_secret(path, status):
                    raise secret_refusal(self.display_path(path))
                if self._is_denied is not None and self._is_denied(path, status):
                    raise PathRefusal(f"{truncate_path(self.display_path(path))} may not be read: a rule of the user's denies it", "denied")
                yield descriptor, status
            finally:
                os.close(descriptor)

    def may_read(self, path: str) -> bool:
        """Whether what is in the file at a resolved path may be shown: it holds no keys, and no rule denies it."""
        if self.is_secret(path):
            return False
        try:
            return self._is_denied is None or not self._is_denied(path, os.stat(path))
        except OSError:  # it was removed meanwhile
            return False

    def may_look_at(self, path: str) -> bool:
        """Whether a file that the model knew may be compared with what it is now, or found removed."""
        return bool(self._base(path, False)) and (not os.path.lexists(path) or self.may_read(path))

    def hides(self, path: str) -> bool:
        """Whether a resolved path is a file of keys, or lies where people keep keys and passwords: commands do not see that either."""
        return path in self._secret or (self._hides is not None and self._hides(path, self._writable))

    def is_secret(self, path: str, status: os.stat_result | None = None) -> bool:
        """Whether a resolved path is a file with keys, or such a file by another name (a hard link). `status` is its status, if known."""
        if self.hides(path):
            return True
        for each in self._secret:
            try:
                if os.path.samestat(os.stat(each), status or os.stat(path)):
                    return True
            except OSError:
                continue  # one of them is not there
        return False

    def require_judged(self, path: str, preview: str = "") -> None:
        """Raises PathRefusal if a call was allowed for another path than the one that it has come to, or for another change of the file
        than this one."""
        if not self.was_judged(path):
            message = f"{truncate_path(self.display_path(path))} is not what was allowed: a link was put in the way meanwhile; try again"
            raise PathRefusal(message, "symlink")
        if preview and not self.was_shown(preview):
            shown = truncate_path(self.display_path(path))
            raise PathRefusal(
                f"{shown} changed after the user was shown this change, so nothing was written: make the call again", "unapproved"
            )

    def require_regular(self, path: str, status: os.stat_result) -> None:
        """Raises PathRefusal for anything but a regular file."""
        if stat.S_ISREG(status.st_mode):
            return
        from dragoman.tools.path_refusals import refusal_of_kind  # only where it is something else

        raise PathRefusal(*refusal_of_kind(status.st_mode, truncate_path(self.display_path(path))))

    @contextmanager
    def refusing(self, path: str) -> Iterator[None]:
        """Turns OSError into PathRefusal for this path."""
        try:
            yield
        except OSError as error:
            raise self._refusal(error, truncate_path(self.display_path(path))) from error

    def _refusal(self, error: OSError, shown: str) -> PathRefusal:
        from dragoman.tools.path_refusals import refusal_of  # only where something fails

        return PathRefusal(*refusal_of(error, shown))

    def _to_absolute(self, path: str) -> str:
        """The absolute path the model means, links not resolved."""
        if path == "~" or path.startswith("~/"):
            return os.path.expanduser(path)
        literal = os.path.join(self.root, path)
        plain = os.path.join(self.root, unescape_name(path))
        if plain == literal or "\0" in plain:
            return literal
        # A name with backslashes may be literal or escaped by `display_path`: use the one that exists, then the one whose directory exists.
        for candidate in (literal, plain):
            if os.path.lexists(candidate):
                return candidate
        parents = os.path.dirname(literal), os.path.dirname(plain)
        return plain if os.path.isdir(parents[1]) and not os.path.isdir(parents[0]) else literal

    def _base(self, path: str, writing: bool) -> str:
        """The outermost allowed directory that contains an absolute path; empty if none does."""
        return next((base for base in (self._writable if writing else self._readable) if is_inside(path, base)), "")


def secret_refusal(path: str) -> PathRefusal:
    return PathRefusal(f"{_show(path)} holds the user's keys or passwords: no tool reads or writes it", "secret")


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _show(path: str) -> str:
    return truncate_path(escape_name(path))
