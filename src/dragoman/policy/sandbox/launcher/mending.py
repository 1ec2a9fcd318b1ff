"""Mends what a command must not leave behind, inside the boundary that the command had: links lead it nowhere the command could not go.

It follows none all the same: every folder is reached step by step from the root, each by the descriptor of the one before. It writes new
files and renames them into place, so it neither writes through a hard link nor waits for a FIFO.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Windows lacks all of these and macOS O_PATH. Nothing is mended there, but others name the type below.
_HELD = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_STEP = getattr(os, "O_PATH", 0) | getattr(os, "O_DIRECTORY", 0) | _HELD
_LIST = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _HELD
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | _HELD
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _HELD
_MOST_REMOVED = 100_000
_DEEPEST_REMOVED = 200
_CHUNK = 1 << 24


class Repairs:
    """What is to be done, in this order. All paths are absolute."""

    def __init__(
        self,
        remove: tuple[str, ...] = (),
        write: tuple[tuple[str, int, bytes], ...] = (),
        copy: tuple[tuple[str, tuple[str, ...]], ...] = (),
    ) -> None:
        self.remove = remove
        """Files, links and whole folders."""
        self.write = write
        """Path, mode as `lstat` has it, and content: of a file, or where a link leads. A folder before what lies in it."""
        self.copy = copy
        """Folder, and names in it of files that get a copy of their own in the place of one that is shared by hard links."""


def mend(repairs: Repairs, is_over: Callable[[], bool]) -> int:
    """Do all of it, as far as it can be done. Returns how much could not. `is_over`: whether nobody waits for it any more."""
    failures = 0
    for path in repairs.remove:
        failures += _try(lambda path=path: _remove_at(path))
    for path, mode, content in repairs.write:
        failures += _try(lambda path=path, mode=mode, content=content: _write_at(path, mode, content))
    for folder, names in repairs.copy:
        if is_over():
            return failures + 1
        failures += _copy_in(folder, names, is_over)
    return failures


def _try(action: Callable[[], None]) -> int:
    try:
        action()
    except OSError:
        return 1
    return 0


def _open_folder(path: str) -> int:
    """Raises OSError where a step is a link or no folder."""
    at = os.open("/", _STEP)
    try:
        for part in path.split("/"):
            if part:
                inner = os.open(part, _STEP, dir_fd=at)
                os.close(at)
                at = inner
    except OSError:
        os.close(at)
        raise
    return at


# --- removing -------------------------------------------------------------------------------------------------------------


def _remove_at(path: str) -> None:
    folder = _open_folder(os.path.dirname(path))
    try:
        # Under another name it has no effect any more, though it may be too deep or too large to be removed.
        aside = _new_name(os.path.basename(path))
        os.rename(os.path.basename(path), aside, src_dir_fd=folder, dst_dir_fd=folder)
        _remove(folder, aside, [_MOST_REMOVED])
    except FileNotFoundError:
        pass
    finally:
        os.close(folder)


def _remove(folder: int, name: str, left: list[int], depth: int = 0) -> None:
    left[0] -= 1
    if left[0] < 0 or depth > _DEEPEST_REMOVED:
        raise OSError(errno.E2BIG, "too much to remove")
    if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=folder)
        return
    inner = _open_to_empty(folder, name)
    try:
        for each in os.listdir(inner):
            _remove(inner, each, left, depth + 1)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)


def _open_to_empty(folder: int, name: str) -> int:
    """A folder whose rights were taken away gets them back: it is the one behind the descriptor, whatever stands at its name."""
    held = os.open(name, _STEP, dir_fd=folder)
    try:
        if os.fstat(held).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(f"/proc/self/fd/{held}", stat.S_IRWXU)
        return os.open(".", _LIST, dir_fd=held)
    finally:
        os.close(held)


# --- writing --------------------------------------------------------------------------------------------------------------


def _write_at(path: str, mode: int, content: bytes) -> None:
    folder = _open_folder(os.path.dirname(path))
    name = os.path.basename(path)
    try:
        if stat.S_ISDIR(mode):
            _make_folder(folder, name, mode)
            return
        temporary = _new_name(name)
        if stat.S_ISLNK(mode):
            os.symlink(content, temporary, dir_fd=folder)
        else:
            _make_file(folder, temporary, mode, content)
        _put(folder, temporary, name)
    finally:
        os.close(folder)


def _make_folder(folder: int, name: str, mode: int) -> None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISDIR(found):
            return
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass
    os.mkdir(name, stat.S_IMODE(mode) & 0o777, dir_fd=folder)


def _make_file(folder: int, name: str, mode: int, content: bytes) -> None:
    made = os.open(name, _MAKE, 0o600, dir_fd=folder)
    try:
        while content:
            content = content[os.write(made, content) :]
        os.fchmod(made, stat.S_IMODE(mode) & 0o777)
    except OSError:
        os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(made)


def _put(folder: int, temporary: str, name: str) -> None:
    """Rename it into place. A folder that stands there goes."""
    try:
        try:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except IsADirectoryError:
            _remove(folder, name, [_MOST_REMOVED])
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(temporary, dir_fd=folder)
        raise


def _new_name(name: str) -> str:
    return f".{name[:80]}.{os.urandom(6).hex()}"


# --- copying --------------------------------------------------------------------------------------------------------------


def _copy_in(path: str, names: tuple[str, ...], is_over: Callable[[], bool]) -> int:
    """Returns how many were not copied. Stops when the disk is full."""
    try:
        folder = _open_folder(path)
    except OSError:
        return len(names)
    failures = 0
    try:
        for at, name in enumerate(names):
            if is_over():
                return len(names) - at + failures
            try:
                _copy(folder, name)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    return len(names) - at + failures
                failures += 1
    finally:
        os.close(folder)
    return failures


def _copy(folder: int, name: str) -> None:
    source = os.open(name, _READ, dir_fd=folder)
    try:
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink < 2:
            return
        temporary = _new_name(name)
        made = os.open(temporary, _MAKE, 0o600, dir_fd=folder)
        try:
            left = status.st_size
            while left > 0 and (moved := os.sendfile(made, source, None, min(left, _CHUNK))):
                left -= moved
            os.fchmod(made, stat.S_IMODE(status.st_mode) & 0o777)
            # Compiled Python and build tools go by the time.
            os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns))
        except OSError:
            os.unlink(temporary, dir_fd=folder)
            raise
        finally:
            os.close(made)
        _put(folder, temporary, name)
    finally:
        os.close(source)
