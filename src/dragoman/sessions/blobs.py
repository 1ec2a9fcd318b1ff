"""Bytes by their SHA-256, in files beside the log. A blob is on disk before `put` returns, so before the entry that names it."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import Protocol

from dragoman.base.atomic import replace_file
from dragoman.base.private import make_directory, open_file, sync_directory
from dragoman.sessions.journal import OnFault
from dragoman.values.contracts import BlobStore
from dragoman.values.messages import Blob
from dragoman.words import say

_HEX = frozenset("0123456789abcdef")


class SavedBlobs(BlobStore, Protocol):
    """The bytes of a session in a store: kept when `put` returns, or `fault` says why not."""

    @property
    def fault(self) -> str: ...


class FileBlobs:
    """A contracts.BlobStore. A file appears under its name whole or not at all.

    Faults do not raise: a blob that cannot be written stays in memory for as long as this store lives, `on_fault` is called, and every
    later `put` tries again. `get` returns exactly the bytes that were put, or None: a damaged file counts as missing.
    """

    def __init__(self, directory: str | os.PathLike[str], on_fault: OnFault | None = None) -> None:
        self.directory = os.path.abspath(directory)
        self.fault = ""
        """Why blobs cannot be saved at the moment; empty while they can."""
        self._on_fault = on_fault
        self._on_disk: set[str] = set()
        self._waiting: dict[str, bytes] = {}

    def put(self, mime: str, data: bytes) -> Blob:
        digest = _sha256(data)
        if digest not in self._on_disk:
            self._waiting[digest] = bytes(data)
        self.retry()
        return Blob(mime, digest, len(data))

    def get(self, sha256: str) -> bytes | None:
        if not is_digest(sha256):
            return None
        waiting = self._waiting.get(sha256)  # looked up once: checkpoints write from another thread and may remove it in between
        if waiting is not None:
            return waiting
        data = self._read(sha256)
        return data if data is not None and _sha256(data) == sha256 else None

    def path_of(self, sha256: str) -> str:
        """The path of a blob, for callers that read it in pieces. Raises ValueError if `sha256` is not a SHA-256."""
        if not is_digest(sha256):
            raise ValueError(f"not a SHA-256: {sha256!r}")
        return os.path.join(self.directory, sha256)

    def retry(self) -> bool:
        """Write the blobs that are waiting. Returns whether everything is on disk."""
        try:
            for digest, data in list(self._waiting.items()):
                self._write(digest, data)
                self._on_disk.add(digest)
                self._waiting.pop(digest, None)
        except OSError as error:
            self._set_fault(error.strerror or str(error))
            return False
        self._set_fault("")
        return True

    def _write(self, digest: str, data: bytes) -> None:
        changed = make_directory(self.directory)
        if self._read(digest) != data:  # may exist already: from this session, or another of the same folder
            replace_file(self.path_of(digest), data)
        for directory in changed:
            sync_directory(directory)

    def _read(self, digest: str) -> bytes | None:
        try:
            with os.fdopen(open_file(self.path_of(digest)), "rb") as file:
                return file.read()
        except (OSError, ValueError):
            return None

    def _set_fault(self, fault: str) -> None:
        if fault == self.fault:
            return
        self.fault = fault
        if self._on_fault is None:
            return
        count = len(self._waiting)
        try:
            if fault:
                self._on_fault(say("sessions.files_not_saved", reason=fault, folder=self.directory, count=count))
            else:
                self._on_fault(say("sessions.files_saved_again", folder=self.directory))
        except Exception:
            pass  # a listener's error must not lose a blob


def is_digest(text: str) -> bool:
    """Whether a text can be a blob's name: 64 hexadecimal digits, and so never a path."""
    return len(text) == 64 and _HEX.issuperset(text)


def _sha256(data: bytes) -> str:
    return sha256(data).hexdigest()
