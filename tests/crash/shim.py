"""A disk that can be watched, made to fail, and crashed: it stands in for `os` in the modules that write sessions.

`Disk` passes every call on to the real system, notes what changes files, and fails the calls it is told to fail. From what it noted,
`crashes` works out what a power cut could have left: whatever was not synced may be there, in part, in another order, or not at all.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest

from dragoman.base import atomic, private
from dragoman.sessions import blobs, journal, opening

WATCHED = ("write", "fdatasync", "ftruncate", "fsync", "open", "mkdir", "replace")
"""The calls that can be made to fail."""


@dataclass(frozen=True)
class Write:
    path: str
    offset: int
    data: bytes


@dataclass(frozen=True)
class Truncate:
    path: str
    size: int


@dataclass(frozen=True)
class Sync:
    path: str


@dataclass(frozen=True)
class Create:
    path: str


@dataclass(frozen=True)
class Rename:
    path: str
    to: str


@dataclass(frozen=True)
class Acknowledge:
    """Somebody was told that everything up to here is safe."""

    upto: int


Call = Write | Truncate | Sync | Create | Rename | Acknowledge


@dataclass
class Disk:
    """The system as the sessions see it."""

    calls: list[Call] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    fails: Callable[[str, int], int] = lambda name, number: 0
    """The errno with which the n-th call (from 1) of this name fails; 0: it does not."""
    part: float = 0.0
    """How much of its data a failing write leaves behind, as the share of a line."""

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Disk:
        for module in (private, atomic, journal, opening, blobs):
            monkeypatch.setattr(module, "os", self)
        return self

    def acknowledge(self, upto: int) -> None:
        self.calls.append(Acknowledge(upto))

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self._watch(name, real) if name in WATCHED else real

    def _watch(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            number = self.counts[name] = self.counts.get(name, 0) + 1
            code = self.fails(name, number)
            if not code:
                before = self._before(name, args)
                result = real(*args)
                self._note(name, args, result, before)
                return result
            if name == "write" and self.part:
                some = bytes(args[1])[: int(len(args[1]) * self.part)]
                before = self._before(name, args)
                self._note(name, args, real(args[0], some), before)
            raise OSError(code, os.strerror(code))

        return call

    def _before(self, name: str, args: tuple[Any, ...]) -> int:
        return os.fstat(args[0]).st_size if name == "write" else 0

    def _note(self, name: str, args: tuple[Any, ...], result: Any, before: int) -> None:
        match name:
            case "write":
                self.calls.append(Write(_path(args[0]), before, bytes(args[1])[:result]))
            case "ftruncate":
                self.calls.append(Truncate(_path(args[0]), args[1]))
            case "fdatasync" | "fsync":
                self.calls.append(Sync(_path(args[0])))
            case "replace":
                self.calls.append(Rename(*args))
            case "open" if args[1] & os.O_CREAT:
                self.calls.append(Create(args[0]))


def _path(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}")


# --- what a power cut leaves

Files = dict[str, bytes]


def crashes(calls: list[Call], start: Files, offsets: int = 0) -> Iterator[tuple[int, Files]]:
    """Every state a crash could leave, with how much had been acknowledged by then.

    After each call: any subset of what was not synced reached the disk, and one of those writes only in part, cut at every byte offset
    (or at `offsets` of them), the rest of it missing or zeros. A name that was not synced with its directory may be missing.
    """
    for end in range(len(calls) + 1):
        done = calls[:end]
        acknowledged = max((call.upto for call in done if isinstance(call, Acknowledge)), default=0)
        for files in _states(done, start, offsets):
            yield acknowledged, files


def _states(done: list[Call], start: Files, offsets: int) -> Iterator[Files]:
    settled, pending = _settle(done, start)
    for kept in product((True, False), repeat=len(pending)):
        chosen = [call for call, keep in zip(pending, kept, strict=True) if keep]
        yield _after(chosen, settled)
        for index, call in enumerate(chosen):
            if not isinstance(call, Write):
                continue
            step = max(1, len(call.data) // offsets) if offsets else 1
            for cut in range(0, len(call.data), step):
                zeros = bytes(len(call.data) - cut)
                for rest in (b"", zeros):
                    torn = Write(call.path, call.offset, call.data[:cut] + rest)
                    yield _after([*chosen[:index], torn, *chosen[index + 1 :]], settled)


def _settle(done: list[Call], start: Files) -> tuple[Files, list[Call]]:
    """What is certainly on disk, and the calls whose effect is not."""
    files = dict(start)
    pending: list[Call] = []
    for call in done:
        match call:
            case Sync(path):
                settled = [each for each in pending if _settled_by(each, path)]
                pending = [each for each in pending if not _settled_by(each, path)]
                files = _after(settled, files)
            case Acknowledge():
                pass
            case _:
                pending.append(call)
    return files, pending


def _settled_by(call: Call, path: str) -> bool:
    """A file's sync settles its content; its directory's, the names in it."""
    match call:
        case Write() | Truncate():
            return call.path == path
        case Create() | Rename():
            return os.path.dirname(call.path) == path
        case _:
            return False


def _after(calls: list[Call], files: Files) -> Files:
    """Files with the effects of calls. Content lives apart from names: what was written to a file that has no name yet is not lost."""
    files = dict(files)
    for call in calls:
        match call:
            case Create(path):
                files.setdefault(path, b"")
            case Write(path, offset, data):
                old = files.get(path, b"").ljust(offset, b"\0")
                files[path] = old[:offset] + data + old[offset + len(data) :]
            case Truncate(path, size):
                files[path] = files.get(path, b"")[:size].ljust(size, b"\0")
            case Rename(path, to):
                if path in files:
                    files[to] = files.pop(path)
    return files


FAULTS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EROFS": errno.EROFS}
