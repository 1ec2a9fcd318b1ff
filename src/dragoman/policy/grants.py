"""What the user has allowed from now on: for this session, or permanently for this folder."""

from __future__ import annotations

import os

import msgspec

from dragoman.base.private import make_directory

_MAX_FILE_BYTES = 1_000_000


class _SavedGrant(msgspec.Struct, frozen=True):
    folder: str
    key: str


class Grants:
    """Keys of calls that run without asking. With a file, saved grants also apply to later sessions in the folder."""

    def __init__(self, file: str = "", folder: str = "") -> None:
        self._file = file
        self._folder = folder
        self.keys: frozenset[str] = frozenset(self._load())

    def add(self, key: str, *, saved: bool = False) -> None:
        self.keys |= {key}
        if saved and self._file:
            self._save(key)

    def _load(self) -> list[str]:
        if not self._file or not os.path.exists(self._file):
            return []
        try:
            with open(self._file, "rb") as file:
                lines = file.read(_MAX_FILE_BYTES).splitlines()
        except OSError:
            return []  # the user is asked again
        found: list[str] = []
        for line in lines:
            try:
                grant = msgspec.json.decode(line, type=_SavedGrant)
            except msgspec.DecodeError:
                continue  # a torn line grants nothing
            if grant.folder == self._folder:
                found.append(grant.key)
        return found

    def _save(self, key: str) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        line = b"\n" + msgspec.json.encode(_SavedGrant(self._folder, key)) + b"\n"  # a leading newline, so that it never joins a torn line
        try:
            make_directory(os.path.dirname(self._file))
            descriptor = os.open(self._file, flags, 0o600)
        except OSError:
            return  # the grant still applies to this session
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
