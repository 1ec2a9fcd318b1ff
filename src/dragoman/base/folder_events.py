"""Tells in which folders something has changed, by inotify: without looking at every file in them. Linux alone.

The kernel notes a change before the call that made it returns, so whoever asks afterwards hears of it. Not noted are writes through a
memory map, through another name of the file elsewhere, and by other machines on a network file system: for the last, nothing is watched.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Collection
from typing import Any
from weakref import finalize

from dragoman.base.beneath import is_inside
from dragoman.base.found_files import read_found

MAX_FOLDERS = 4_000
"""Users have a limit for all their programs together, on small machines of 8,192."""
_MASK = 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800 | 0x1000000 | 0x2000000
"""Changed, attributes, moved from and to, made, deleted, itself deleted or moved; folders alone, and no links."""
_MOUNTS_BYTES = 1_000_000
_OVERFLOW, _IGNORED = 0x4000, 0x8000
_EVENT = struct.Struct("iIII")
_LOCAL = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs", "bcachefs", "jfs", "reiserfs"})


class FolderEvents:
    """Folders that are watched. Where the system gives no watches, none is, and each counts as changed."""

    def __init__(self) -> None:
        self._descriptor = -1
        self._paths: dict[int, str] = {}
        self._watched: dict[str, int] = {}
        self._libc: Any = None
        if sys.platform == "linux":
            try:
                self._libc = ctypes.CDLL(None, use_errno=True)
                self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            except (OSError, AttributeError):
                pass
        self._close = finalize(self, _close, self._descriptor)

    def close(self) -> None:
        self._close()
        self._descriptor = -1
        self._paths.clear()
        self._watched.clear()

    def watch(self, folder: str) -> None:
        """Watch a folder from now on, if that is possible."""
        if self._descriptor < 0 or self._libc is None or len(self._paths) >= MAX_FOLDERS:
            return
        watch = self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _MASK)
        if watch >= 0:
            if (before := self._paths.get(watch)) is not None:
                self._watched.pop(before, None)
            self._paths[watch], self._watched[folder] = folder, watch

    def unchanged(self) -> Collection[str]:
        """The watched folders in which nothing has changed since this was last asked, or since they are watched."""
        changed = set[str]()
        while data := self._read():
            at = 0
            while at + _EVENT.size <= len(data):
                watch, mask, _, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size + length
                if mask & _OVERFLOW:
                    changed.update(self._watched)
                elif (path := self._paths.get(watch)) is not None:
                    changed.add(path)
                    if mask & _IGNORED:
                        del self._paths[watch]
                        self._watched.pop(path, None)
        return self._watched.keys() - changed if changed else self._watched.keys()

    def _read(self) -> bytes:
        if self._descriptor < 0:
            return b""
        try:
            return os.read(self._descriptor, 1 << 16)
        except OSError:  # nothing more, for now
            return b""


def is_local(path: str) -> bool:
    """Whether a path lies on a file system that no other machine writes to, as far as is known."""
    try:
        lines = read_found("/proc/self/mounts", _MOUNTS_BYTES, cut=True).decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return False
    mounts = [line.split(" ") for line in lines]
    around = [(len(mount[1]), mount[2]) for mount in mounts if len(mount) > 2 and is_inside(path, mount[1])]
    return bool(around) and max(around)[1] in _LOCAL


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)
