"""Reads commits, trees and files out of a git directory, without running git: so no filter, hook or setting of the repository runs.

Loose objects and packs of version 2 are read, and each object is checked against its name. What cannot be read so (alternates, partial
clones, SHA-256 names) counts as not there.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterator
from hashlib import sha1
from typing import NamedTuple

from dragoman.base.beneath import open_directory
from dragoman.base.found_files import open_found, read_found

MAX_OBJECT_BYTES = 20_000_000
_MAX_INDEX_BYTES = 256_000_000
_MAX_REFS_BYTES = 16_000_000
_MAX_CHAIN = 4_100
"""git packs chains of at most 4095 deltas."""
_MAX_TREES = 50_000
_TYPES = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_ID = re.compile(r"[0-9a-f]{40}")


class Object(NamedTuple):
    kind: bytes
    data: bytes


class _Pack(NamedTuple):
    path: str
    index: bytes
    count: int


class GitObjects:
    """The objects of a repository. `folder`: its git directory, absolute and without links; `shared`: of a linked worktree, that of the
    main one."""

    def __init__(self, folder: str, shared: str = "") -> None:
        self._folder, self.shared = folder, shared or folder
        self._packs: dict[str, _Pack] | None = None

    def read(self, object_id: str) -> Object | None:
        """An object, checked against its name; None if it is not there, damaged or too large."""
        try:
            found = self._loose(object_id) or self._packed(object_id)
        except (OSError, ValueError, IndexError, struct.error, zlib.error):
            return None
        if found is None or sha1(b"%s %d\0" % (found.kind, len(found.data)) + found.data, usedforsecurity=False).hexdigest() != object_id:
            return None
        return found

    def head(self) -> str:
        """The id of the commit that HEAD is at; empty where there is none yet. Raises ValueError where that cannot be told."""
        return self._resolve("HEAD", 0)

    def files_at(self, commit: str) -> dict[bytes, str]:
        """The object id of each file in a commit, by its name from the top. Raises ValueError where something of it cannot be read."""
        found = self._require(commit, b"commit")
        if found[:5] != b"tree ":
            raise ValueError(commit)
        files: dict[bytes, str] = {}
        waiting, seen = [(found[5:45].decode("ascii"), b"")], 0
        while waiting:
            tree, prefix = waiting.pop()
            seen += 1
            if seen > _MAX_TREES:
                raise ValueError("too many trees")
            for mode, name, object_id in _tree_entries(self._require(tree, b"tree")):
                if mode == b"40000":
                    waiting.append((object_id, prefix + name + b"/"))
                else:
                    files[prefix + name] = object_id
        return files

    def _require(self, object_id: str, kind: bytes) -> bytes:
        found = self.read(object_id)
        if found is None or found.kind != kind:
            raise ValueError(object_id)
        return found.data

    def _resolve(self, name: str, depth: int) -> str:
        if depth > 5 or ".." in name:
            raise ValueError(name)
        text = ""
        for folder in dict.fromkeys((self._folder, self.shared)):
            try:
                text = _read(os.path.join(folder, name), 4096).decode("utf-8", "replace").strip()
                break
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                continue
            except OSError as error:
                raise ValueError(name) from error
        if text.startswith("ref:"):
            return self._resolve(text[4:].strip(), depth + 1)
        if _ID.fullmatch(text):
            return text
        if text or name == "HEAD":
            raise ValueError(text[:80])
        return self._packed_ref(name)

    def _packed_ref(self, name: str) -> str:
        try:
            data = _read(os.path.join(self.shared, "packed-refs"), _MAX_REFS_BYTES)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise ValueError(name) from error
        found = re.search(rb"^([0-9a-f]{40}) " + re.escape(name.encode()) + rb"$", data, re.MULTILINE)
        return found[1].decode("ascii") if found else ""

    # --- loose objects

    def _loose(self, object_id: str) -> Object | None:
        if not _ID.fullmatch(object_id):
            return None
        try:
            packed = _read(os.path.join(self.shared, "objects", object_id[:2], object_id[2:]), MAX_OBJECT_BYTES + 1_000_000)
        except FileNotFoundError:
            return None
        inflater = zlib.decompressobj()
        head, zero, rest = inflater.decompress(packed, 64).partition(b"\0")
        kind, _, size = head.partition(b" ")
        if not zero or not size.isdigit() or int(size) > MAX_OBJECT_BYTES:
            return None
        return Object(kind, rest + inflater.decompress(inflater.unconsumed_tail, max(int(size) - len(rest), 1)))

    # --- packs

    def _packed(self, object_id: str) -> Object | None:
        for is_fresh in (False, True):
            if self._packs is None or is_fresh:
                before, self._packs = self._packs, self._list_packs()
                if is_fresh and before is not None and before.keys() == self._packs.keys():
                    return None
            for pack in self._packs.values():
                if (offset := _find(pack, bytes.fromhex(object_id))) is not None:
                    return self._at(pack, offset)
        return None

    def _list_packs(self) -> dict[str, _Pack]:
        folder = os.path.join(self.shared, "objects", "pack")
        try:
            with open_directory(folder) as directory, directory.scan() as entries:
                names = sorted(entry.name for entry in entries if entry.name.endswith(".idx"))
        except OSError:
            return {}
        packs: dict[str, _Pack] = {}
        for name in names[:1_000]:
            if self._packs is not None and name in self._packs:
                packs[name] = self._packs[name]
                continue
            index = _read(os.path.join(folder, name), _MAX_INDEX_BYTES)
            if index[:8] == b"\xfftOc\0\0\0\2":
                (count,) = struct.unpack_from(">L", index, 8 + 255 * 4)
                packs[name] = _Pack(os.path.join(folder, name.removesuffix(".idx") + ".pack"), index, count)
        return packs

    def _at(self, pack: _Pack, offset: int) -> Object | None:
        descriptor = open_found(pack.path, follow=False)
        try:
            deltas: list[bytes] = []
            while len(deltas) < _MAX_CHAIN:
                kind, size, begin = _entry_head(descriptor, offset)
                if size > MAX_OBJECT_BYTES:
                    return None
                if kind in _TYPES:
                    data = _inflate(descriptor, begin, size)
                    for delta in reversed(deltas):
                        data = _apply(data, delta)
                    return Object(_TYPES[kind], data)
                if kind == 6:
                    distance, begin = _distance(descriptor, begin)
                    deltas.append(_inflate(descriptor, begin, size))
                    offset -= distance
                    if distance <= 0 or offset <= 0:
                        return None
                elif kind == 7:
                    base = _find(pack, os.pread(descriptor, 20, begin))
                    if base is None:
                        return None
                    deltas.append(_inflate(descriptor, begin + 20, size))
                    offset = base
                else:
                    return None
            return None
        finally:
            os.close(descriptor)


def _read(path: str, limit: int) -> bytes:
    return read_found(path, limit, follow=False)


def _tree_entries(data: bytes) -> Iterator[tuple[bytes, bytes, str]]:
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        zero = data.index(b"\0", space)
        yield data[at:space], data[space + 1 : zero], data[zero + 1 : zero + 21].hex()
        at = zero + 21


def _find(pack: _Pack, wanted: bytes) -> int | None:
    """Where an object begins in a pack, by the index of the pack."""
    first = wanted[0]
    (high,) = struct.unpack_from(">L", pack.index, 8 + first * 4)
    low = struct.unpack_from(">L", pack.index, 8 + (first - 1) * 4)[0] if first else 0
    names = 8 + 1024
    while low < high:
        middle = (low + high) // 2
        found = pack.index[names + middle * 20 : names + middle * 20 + 20]
        if found == wanted:
            (offset,) = struct.unpack_from(">L", pack.index, names + pack.count * 24 + middle * 4)
            if offset & 0x80000000:
                (offset,) = struct.unpack_from(">Q", pack.index, names + pack.count * 28 + (offset & 0x7FFFFFFF) * 8)
            return offset
        low, high = (middle + 1, high) if found < wanted else (low, middle)
    return None


def _entry_head(descriptor: int, offset: int) -> tuple[int, int, int]:
    """The type and size of an object in a pack, and where its data begins."""
    data = os.pread(descriptor, 16, offset)
    kind, size, shift, at = data[0] >> 4 & 7, data[0] & 15, 4, 1
    while data[at - 1] & 128:
        size |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
    return kind, size, offset + at


def _distance(descriptor: int, begin: int) -> tuple[int, int]:
    data = os.pread(descriptor, 12, begin)
    at, distance = 1, data[0] & 127
    while data[at - 1] & 128:
        distance = ((distance + 1) << 7) | (data[at] & 127)
        at += 1
    return distance, begin + at


def _inflate(descriptor: int, begin: int, size: int) -> bytes:
    inflater, pieces, left = zlib.decompressobj(), list[bytes](), size
    while left > 0 and (packed := os.pread(descriptor, 1 << 16, begin)):
        piece = inflater.decompress(packed, left)
        pieces.append(piece)
        left -= len(piece)
        begin += len(packed) - len(inflater.unconsumed_tail)
        if inflater.eof:
            break
    return b"".join(pieces)


def _apply(base: bytes, delta: bytes) -> bytes:
    """What a delta makes of its base. Raises ValueError or IndexError where it is damaged."""
    at, sizes = 0, list[int]()
    for _ in range(2):
        size = shift = 0
        while True:
            byte = delta[at]
            at += 1
            size |= (byte & 127) << shift
            shift += 7
            if not byte & 128:
                break
        sizes.append(size)
    if sizes[0] != len(base) or sizes[1] > MAX_OBJECT_BYTES:
        raise ValueError("damaged delta")
    pieces, made = list[bytes](), 0
    while at < len(delta):
        command = delta[at]
        at += 1
        if command & 128:
            offset = size = 0
            for bit in range(7):
                if command & 1 << bit:
                    if bit < 4:
                        offset |= delta[at] << bit * 8
                    else:
                        size |= delta[at] << (bit - 4) * 8
                    at += 1
            piece = base[offset : offset + (size or 0x10000)]
        else:
            piece = delta[at : at + command]
            at += command
        made += len(piece)
        if not piece or made > sizes[1]:
            raise ValueError("damaged delta")
        pieces.append(piece)
    return b"".join(pieces)
