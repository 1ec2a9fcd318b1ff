"""Bytes by their SHA-256, in files beside the log. A blob is on disk before `put` returns, so before the entry that names it."""

from __future__ import annotations

import os

from dragoman.base.atomic import replace_file
from dragoman.base.private import make_directory, open_file, sync_directory
from dragoman.sessions.journal import OnFault
from dragoman.values.messages import Blob

_HEX = frozenset("0123456789abcdef")


class FileBlobs:
    """A contracts.BlobStore. A file appears under its name whole or not at all.

    Faults do not raise: what cannot be written is kept in memory for as long as this store lives, `on_fault` is told, and every later
    `put` tries again. `get` gives back the very bytes that were put, or None: a damaged file is as good as none.
    """

    def __init__(self, directory: str | os.PathLike[str], on_fault: OnFault | None = None) -> None:
        self.directory = os.path.abspath(directory)
        self.fault = ""
        """What keeps blobs from being saved; empty while nothing does."""
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
        waiting = self._waiting.get(sha256)  # asked once: checkpoints write from a thread, and may be done with it in between
        if waiting is not None:
            return waiting
        data = self._read(sha256)
        return data if data is not None and _sha256(data) == sha256 else None

    def path_of(self, sha256: str) -> str:
        """Where a blob lies, for whoever reads it in pieces. Raises ValueError for what is no SHA-256."""
        if not is_digest(sha256):
            raise ValueError(f"not a SHA-256: {sha256!r}")
        return os.path.join(self.directory, sha256)

    def retry(self) -> bool:
        """Write what is waiting. Returns whether everything is on disk."""
        try:
            for digest, data in list(self._waiting.items()):
                self._write(digest, data)
                self._on_disk.add(digest)
                self._waiting.pop(digest, None)
        except OSError as error:
            self._note(error.strerror or str(error))
            return False
        self._note("")
        return True

    def _write(self, digest: str, data: bytes) -> None:
        changed = make_directory(self.directory)
        if self._read(digest) != data:  # there already: from this session, or another of the same folder
            replace_file(self.path_of(digest), data)
        for directory in changed:
            sync_directory(directory)

    def _read(self, digest: str) -> bytes | None:
        try:
            with os.fdopen(open_file(self.path_of(digest)), "rb") as file:
                return file.read()
        except (OSError, ValueError):
            return None

    def _note(self, fault: str) -> None:
        if fault == self.fault:
            return
        self.fault = fault
        if self._on_fault is None:
            return
        count = len(self._waiting)
        try:
            self._on_fault(
                f"Files of this session (images, documents, undo) are NOT being saved: {fault} ({self.directory}). "
                f"{count} kept in memory, and written as soon as they can be."
                if fault
                else f"Files of this session are being saved again in {self.directory}."
            )
        except Exception:
            pass  # whoever listens, a blob is kept


def is_digest(text: str) -> bool:
    """Whether a text can be the name of a blob: 64 hexadecimal digits, and so never a path."""
    return len(text) == 64 and _HEX.issuperset(text)


def _sha256(data: bytes) -> str:
    from hashlib import sha256

    return sha256(data).hexdigest()
