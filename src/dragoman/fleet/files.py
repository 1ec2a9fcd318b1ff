"""Reads and writes the files of a fleet. A repository, an archive or a command may have prepared every one of them.

Paths are absolute. A link on the way, or in a file's place, is an OSError; so is what is no regular file, and a file with more bytes than
its reader takes. Nothing waits for a pipe.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec

from dragoman.base.atomic import remove_with_retry, temporary_name
from dragoman.base.beneath import Directory, open_directory, open_parent
from dragoman.base.found_files import TooLargeFile, read_opened
from dragoman.base.private import sync_file
from dragoman.words import say

MOST_LINE_BYTES = 64_000_000
"""A task is one line, which may have grown as it was written again."""
Value = TypeVar("Value")


def decode(data: bytes, kind: type[Value]) -> Value:
    """The value that this JSON holds. Raises msgspec.MsgspecError whatever is wrong with it."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (RecursionError, UnicodeError, ValueError, OverflowError) as error:
        if isinstance(error, msgspec.MsgspecError):
            raise
        raise msgspec.DecodeError(str(error)) from error


def read_file(path: str, most: int) -> bytes:
    """The content of a file of at most `most` bytes. Raises OSError."""
    with open_parent(path) as folder:
        descriptor = folder.open_for_reading(os.path.basename(path))
    try:
        if os.fstat(descriptor).st_size > most:
            raise _too_large(path, most)
        data = read_opened(descriptor, most + 1)
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise _too_large(path, most)
    return data


def read_tail(path: str, most: int) -> bytes:
    """The last bytes of a file, at most so many. Raises OSError."""
    with open_parent(path) as folder:
        descriptor = folder.open_for_reading(os.path.basename(path))
    try:
        os.lseek(descriptor, max(os.fstat(descriptor).st_size - most, 0), os.SEEK_SET)
        return read_opened(descriptor, most)
    finally:
        os.close(descriptor)


@contextmanager
def open_file(path: str) -> Generator[BinaryIO]:
    """A file to read from, piece by piece. Raises OSError."""
    with open_parent(path) as folder:
        descriptor = folder.open_for_reading(os.path.basename(path))
    with os.fdopen(descriptor, "rb") as file:
        yield file


def lines_of(file: BinaryIO, most: int = MOST_LINE_BYTES, name: str = "") -> Iterator[bytes]:
    """The lines of an open file. Raises TooLargeFile for one with more than `most` bytes, which is never in memory as a whole."""
    while line := file.readline(most + 1):
        if len(line) > most:
            raise TooLargeFile(errno.EFBIG, say("fleet.line_too_long", most=f"{most:,}"), name)
        yield line


def open_to_append(path: str, mode: int = 0o600) -> int:
    """A descriptor of a regular file to read and append to, which is made if it is missing. Raises OSError."""
    with open_parent(path) as folder:
        return folder.open_or_create(os.path.basename(path), mode, append=True)


def append(path: str, data: bytes) -> None:
    """Add to a file, in one write. Raises OSError."""
    descriptor = open_to_append(path)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def rewrite(path: str, data: bytes) -> None:
    """Make this the content of a file where it lies: for a few bytes that are written often. Raises OSError."""
    descriptor = open_to_append(path)
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


@contextmanager
def write_aside(path: str, *, over: bool = True) -> Generator[int]:
    """A descriptor to write the new content of `path` to: when the block ends, it is synced and put in place; a block that raises leaves
    nothing behind. Without `over`, what is there already stays, and FileExistsError is raised."""
    name, aside = os.path.basename(path), temporary_name()
    with open_parent(path) as folder:
        descriptor = folder.create(aside, 0o600)
        try:
            try:
                yield descriptor
                sync_file(descriptor)
            finally:
                os.close(descriptor)
            if over:
                folder.replace(aside, name)
            else:
                _link_into_place(folder, aside, name)
        except BaseException:
            remove_with_retry(lambda: folder.unlink(aside))
            raise


def link_file(source: str, path: str) -> None:
    """Give a file a second name. Raises FileExistsError where that name is taken, and OSError."""
    with open_parent(source) as theirs, open_parent(path) as ours:
        if not stat.S_ISREG(theirs.stat(os.path.basename(source)).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), source)
        theirs.link_to(os.path.basename(source), ours, os.path.basename(path))


def remove_file(path: str) -> None:
    """Remove a file, if it is there. Raises OSError."""
    with suppress(FileNotFoundError), open_parent(path) as folder:
        folder.unlink(os.path.basename(path))


def make_folder(path: str) -> bool:
    """Make a private folder and those above it. Returns False where it was there already. Raises OSError, for a link as well."""
    made: list[str] = []
    try:
        with open_directory(path, create=True, made=made, mode=0o700):
            return path in made
    except NotADirectoryError as error:
        raise NotADirectoryError(errno.ENOTDIR, say("fleet.link_on_the_way"), path) from error


class FolderEntry(NamedTuple):
    """An entry of a folder."""

    name: str
    is_folder: bool


def list_folder(path: str) -> list[FolderEntry]:
    """What a folder holds; nothing where there is none, or a link leads to it."""
    try:
        with open_directory(path) as folder, folder.scan() as entries:
            return [FolderEntry(each.name, each.is_dir(follow_symlinks=False)) for each in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []


def is_there(path: str) -> bool:
    """Whether something has this name, and no link leads to it."""
    try:
        with open_parent(path) as folder:
            folder.stat(os.path.basename(path))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _link_into_place(folder: Directory, aside: str, name: str) -> None:
    """Rename a file, but never over one that was created meanwhile."""
    try:
        folder.link(aside, name)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        try:
            folder.stat(name)
        except FileNotFoundError:
            folder.replace(aside, name)
            return
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
    folder.unlink(aside)


def _too_large(path: str, most: int) -> TooLargeFile:
    return TooLargeFile(errno.EFBIG, say("files.is_too_large", most=f"{most:,}"), path)
