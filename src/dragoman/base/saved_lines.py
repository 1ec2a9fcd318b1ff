"""Files of decisions the user has made: one JSON object a line, appended under a lock, readable by the user alone."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from dragoman.base.atomic import replace_file
from dragoman.base.found_files import TooLargeFile, read_found
from dragoman.base.lock import hold
from dragoman.base.private import make_directory, write_whole

Line = TypeVar("Line", bound=msgspec.Struct)
MAX_FILE_BYTES = 16_000_000
"""A longer file counts as empty."""
_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_APPENDING |= getattr(os, "O_NONBLOCK", 0)  # a pipe in its place is an error, and no wait for whoever reads it


def read_lines(file: str, line_type: type[Line]) -> list[Line]:
    """All lines, oldest first; none if there is no file. Torn and damaged lines are left out. Raises OSError if it cannot be read."""
    try:
        data = read_found(file, MAX_FILE_BYTES)
    except (FileNotFoundError, TooLargeFile):
        return []
    found: list[Line] = []
    for line in data.splitlines():
        try:
            found.append(msgspec.json.decode(line, type=line_type))
        except (msgspec.DecodeError, UnicodeError):  # of text that is not UTF-8
            continue
    return found


def append_line(file: str, line: msgspec.Struct) -> None:
    """Add a line, and make the file and its folder if they are missing. Raises OSError."""
    append_lines(file, (line,))


def append_lines(file: str, lines: Iterable[msgspec.Struct]) -> None:
    """Add several at once."""
    data = b"\n" + b"".join(map(_encode, lines))  # a leading newline, so that it never joins a torn line
    make_directory(os.path.dirname(file))
    with hold(file):
        descriptor = os.open(file, _APPENDING, 0o600)
        try:
            write_whole(descriptor, data)
        finally:
            os.close(descriptor)


def replace_lines(file: str, lines: Iterable[msgspec.Struct]) -> None:
    """Write the file anew with these lines. The caller holds its lock. Raises OSError, and then nothing has changed."""
    replace_file(file, b"".join(map(_encode, lines)))


def _encode(line: msgspec.Struct) -> bytes:
    try:
        return msgspec.json.encode(line) + b"\n"
    except UnicodeEncodeError as error:  # a name that is not UTF-8: JSON has no form for it
        raise OSError(errno.EILSEQ, os.strerror(errno.EILSEQ)) from error
