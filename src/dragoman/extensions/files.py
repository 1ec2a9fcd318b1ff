"""Reads files that others wrote, with limits: regular text files up to a size, and in a project no link that leads out of it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from dragoman.base.beneath import is_inside
from dragoman.base.found_files import read_found
from dragoman.extensions.sources import ProgramFolder
from dragoman.values.origin import Origin, Program, Tier
from dragoman.words import say

MAX_DEPTH = 6
"""How deep folders are searched."""
MAX_SEEN = 20_000
"""How many names are looked at in one folder and all below it."""


class SourceProblem(msgspec.Struct, frozen=True):
    """Something that is not used, or not all of it."""

    origin: Origin
    reason: str

    def __str__(self) -> str:
        return say("skills.problem", where=str(self.origin), reason=self.reason)


class SearchFolder(msgspec.Struct, frozen=True):
    """A folder in which one kind of thing lies."""

    program: Program
    tier: Tier
    path: str
    within: str = ""
    """What links must not lead out of: the project, or the plugin. Empty: the user's own, where they may lead anywhere."""
    plugin: str = ""
    """The plugin it belongs to."""

    def origin(self, path: str, line: int = 0) -> Origin:
        return Origin(self.program, self.tier, path, line)

    def holds(self, path: str) -> bool:
        """Whether what a path leads to may be read."""
        return not self.within or is_inside(os.path.realpath(path), os.path.realpath(self.within))


def search_folder(folder: ProgramFolder, name: str) -> SearchFolder:
    """The folder of that name inside the folder of a program."""
    return SearchFolder(folder.program, folder.tier, os.path.join(folder.path, name), folder.within)


class Unreadable(Exception):
    """Why a file cannot be read, in words."""


def read_text(folder: SearchFolder, path: str, most: int, *, head: bool = False) -> str:
    """The text of a regular file of at most `most` bytes; with `head` the beginning of a longer one. Raises Unreadable."""
    if not folder.holds(path):
        raise Unreadable(say("skills.leads_out", folder=folder.within))
    try:
        data = read_found(path, most + 1, cut=True)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    if len(data) > most and not head:
        raise Unreadable(say("skills.too_long", most=f"{most:,}"))
    if b"\0" in data:
        raise Unreadable(say("skills.not_text"))
    try:
        return data[:most].decode("utf-8-sig", "ignore" if len(data) > most else "strict")
    except UnicodeDecodeError as error:
        raise Unreadable(say("skills.not_utf8", position=error.start + 1)) from error


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle: whoever reads it says so
        return False


class Walk:
    """The files below a folder, folder by folder, in the order of their names. `is_whole` says afterwards whether all were seen, and
    `left_out` which folders are links out of what may be read. What lies below a folder with a file called `last` is not looked at."""

    def __init__(self, folder: SearchFolder, last: str = "") -> None:
        self._folder = folder
        self._last = last
        self._left = MAX_SEEN
        self._entered: set[str] = set()
        self.is_whole = True
        self.left_out: list[str] = []

    @property
    def problems(self) -> list[SourceProblem]:
        """Once it is done."""
        folder = self._folder
        found = [SourceProblem(folder.origin(path), say("skills.leads_out", folder=folder.within)) for path in self.left_out]
        return found if self.is_whole else [*found, SourceProblem(folder.origin(folder.path), say("skills.not_whole"))]

    def __iter__(self) -> Iterator[tuple[str, tuple[str, ...], list[str]]]:
        """Each folder's path, its names below the first, and the names of its files."""
        yield from self._visit(self._folder.path, ())

    def _visit(self, path: str, below: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], list[str]]]:
        real = os.path.realpath(path)
        if real in self._entered:  # a link in a circle
            return
        if not self._folder.holds(path):
            self.left_out.append(path)
            return
        self._entered.add(real)
        files, folders = self._list(path)
        yield path, below, files
        if self._last in files:
            return
        if folders and len(below) >= MAX_DEPTH:
            self.is_whole = False
            return
        for name in folders:
            yield from self._visit(os.path.join(path, name), (*below, name))

    def _list(self, path: str) -> tuple[list[str], list[str]]:
        files, folders = list[str](), list[str]()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    self._left -= 1
                    if self._left < 0:
                        self.is_whole = False
                        break
                    if _is_folder(entry):
                        folders.append(entry.name)
                    else:
                        files.append(entry.name)
        except OSError:
            return [], []
        return sorted(files), sorted(name for name in folders if name not in (".git", "node_modules", "__pycache__"))
