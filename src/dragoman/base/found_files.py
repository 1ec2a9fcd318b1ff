"""Opens and reads files that a folder, a repository, an archive or a command may have prepared: the one door to all of them.

A name in a folder may be a named pipe that nobody writes to, a device without an end, a socket, or a file of many gigabytes. Whoever opens
it by name alone waits for ever or fills the memory. Here only regular files are opened, nothing waits, and each reader names its limit.

Every failure is an OSError whose `strerror` can be told to a person, as the end of a sentence.
"""

from __future__ import annotations

import codecs
import errno
import os
import stat
from typing import Literal, NoReturn

from dragoman.words import say

_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# Never wait for the other end of a pipe or the holder of a lease, never acquire a controlling terminal.
_NEVER_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CHUNK_BYTES = 1 << 20


class NotRegularFile(OSError):
    """A named pipe, a socket, a device, or a file whose content would have to be waited for."""


class TooLargeFile(OSError):
    """A file with more bytes than its reader takes."""


class NotUtf8File(OSError):
    """A file that is not text in UTF-8."""


def open_found(path: str, *, dir_fd: int | None = None, follow: bool = True) -> int:
    """Open a regular file to read, and return its descriptor. Never waits.

    Links are followed unless `follow` is false. Raises OSError: IsADirectoryError for a directory, NotRegularFile for anything else that is
    not a regular file.
    """
    try:
        # Looked at before it is opened, because opening a device may already do something; and after, because it may have been replaced.
        _require_regular(os.stat(path, dir_fd=dir_fd, follow_symlinks=follow), path)
        descriptor = os.open(path, _READ | _NEVER_WAIT | (0 if follow else _NOFOLLOW), dir_fd=dir_fd)
    except BlockingIOError as error:
        raise _would_wait(path) from error
    except ValueError as error:  # a NUL or a lone surrogate in the name
        raise OSError(errno.EINVAL, say("files.no_valid_name"), path) from error
    try:
        _require_regular(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_found(path: str, limit: int, *, cut: bool = False, dir_fd: int | None = None, follow: bool = True) -> bytes:
    """Read a regular file of at most `limit` bytes. A larger one raises TooLargeFile; with `cut` its first `limit` bytes are returned.

    Raises OSError as `open_found` does.
    """
    descriptor = open_found(path, dir_fd=dir_fd, follow=follow)
    try:
        if not cut and os.fstat(descriptor).st_size > limit:
            _refuse_size(path, limit)
        data = read_opened(descriptor, limit + 1)
    except BlockingIOError as error:  # files of the kernel that are regular by name, as /proc/kmsg
        raise _would_wait(path) from error
    finally:
        os.close(descriptor)
    if len(data) > limit and not cut:
        _refuse_size(path, limit)
    return data[:limit]


def read_found_text(
    path: str,
    limit: int,
    *,
    cut: bool = False,
    dir_fd: int | None = None,
    follow: bool = True,
    errors: Literal["strict", "replace"] = "strict",
) -> str:
    """Read a regular file as UTF-8, without its byte order mark. What is not UTF-8 raises NotUtf8File, or is replaced.

    With `cut`, a character that the limit parts is left out. Raises OSError as `read_found` does.
    """
    data = read_found(path, limit, cut=cut, dir_fd=dir_fd, follow=follow)
    is_cut = cut and len(data) == limit
    try:
        text = codecs.getincrementaldecoder("utf-8")(errors).decode(data, final=not is_cut)
    except UnicodeDecodeError as error:
        raise NotUtf8File(errno.EILSEQ, say("files.is_not_utf8", position=error.start), path) from error
    return text.removeprefix("\ufeff")


def read_opened(descriptor: int, limit: int) -> bytes:
    """Read on from a descriptor, to the end of the file or `limit` bytes. Takes no more memory than there is content."""
    chunks: list[bytes] = []
    while limit > 0 and (chunk := os.read(descriptor, min(limit, _CHUNK_BYTES))):
        chunks.append(chunk)
        limit -= len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _require_regular(status: os.stat_result, path: str) -> None:
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, say("files.is_a_directory"), path)
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, say("files.is_a_link"), path)
    if stat.S_ISFIFO(mode):
        raise NotRegularFile(errno.EINVAL, say("files.is_a_pipe"), path)
    if stat.S_ISSOCK(mode):
        raise NotRegularFile(errno.EINVAL, say("files.is_a_socket"), path)
    raise NotRegularFile(errno.EINVAL, say("files.is_a_device"), path)


def _would_wait(path: str) -> NotRegularFile:
    return NotRegularFile(errno.EAGAIN, say("files.would_wait"), path)


def _refuse_size(path: str, limit: int) -> NoReturn:
    raise TooLargeFile(errno.EFBIG, say("files.is_too_large", most=f"{limit:,}"), path)
