"""Reads a git index (gitformat-index, versions 2 to 4): which files git knows, with which content, and as which state of the disk.

It is read as data: git is not run, so nothing of a repository runs. A repository may have been prepared, so every field is bounded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

MAX_INDEX_BYTES = 64_000_000
_MAX_NAME_BYTES = 4096
_ENTRY = struct.Struct(">10L20sH")


class IndexEntry(NamedTuple):
    """A file as the index has it."""

    name: bytes
    object_id: str
    """Hexadecimal: the SHA-1 of its blob."""
    stage: int
    """0, or which side of a conflict it is."""
    mode: int
    ctime_ns: int
    mtime_ns: int
    inode: int
    size: int


def read_index(data: bytes) -> Iterator[IndexEntry]:
    """The entries of an index with SHA-1 names. Raises ValueError where it is none, or is damaged."""
    try:
        yield from _entries(data)
    except (IndexError, struct.error) as error:
        raise ValueError("damaged index") from error


def _entries(data: bytes) -> Iterator[IndexEntry]:
    sign, version, count = struct.unpack_from(">4sLL", data)
    if sign != b"DIRC" or version not in (2, 3, 4):
        raise ValueError(version)
    at, name = 12, b""
    for _ in range(count):
        c_s, c_ns, m_s, m_ns, _, inode, mode, _, _, size, object_id, flags = _ENTRY.unpack_from(data, at)
        begin = at + (64 if version > 2 and flags & 0x4000 else 62)
        kept = 0
        if version == 4:  # so many bytes of the last name go, and the rest is added
            dropped, begin = _read_number(data, begin)
            kept = len(name) - dropped
        end = data.index(b"\0", begin)
        name = name[:kept] + data[begin:end]
        if len(name) > _MAX_NAME_BYTES:  # names that repeat a long one would take for ever
            raise ValueError(len(name))
        at = end + 1 if version == 4 else at + (end - at + 8) // 8 * 8
        yield IndexEntry(name, object_id.hex(), flags >> 12 & 3, mode, c_s * 1_000_000_000 + c_ns, m_s * 1_000_000_000 + m_ns, inode, size)


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """A number of any length as git writes it, and the place behind it."""
    number = data[at] & 127
    while data[at] & 128:
        at += 1
        number = ((number + 1) << 7) | (data[at] & 127)
    return number, at + 1
