"""Bytes by their SHA-256 in the database of a store: saved when `put` returns, so before the entry that names them.

In the database and not beside it: one file is all there is to copy, a session goes with its bytes in one transaction, and sessions share
what is the same. Only what the model's tools read by a path (long tool output) has to be a file.
"""

from __future__ import annotations

import threading
from hashlib import sha256
from typing import TYPE_CHECKING

from dragoman.sessions.blobs import is_digest
from dragoman.sessions.journal import OnFault
from dragoman.sessions.sqlite.database import Database
from dragoman.sessions.sqlite.opening import reason_of
from dragoman.values.errors import InputError
from dragoman.values.messages import Blob
from dragoman.words import say

if TYPE_CHECKING:
    from sqlite3 import Connection


class SqliteBlobs:
    """A contracts.BlobStore for one session. Bytes that another session of the store has put are found as well.

    Faults do not raise: what cannot be saved stays in memory for as long as this object lives, `on_fault` is called, and every later
    `put` tries again. `get` returns exactly the bytes that were put, or None.
    """

    def __init__(self, database: Database, session_id: str, on_fault: OnFault | None = None) -> None:
        self.fault = ""
        """Why blobs cannot be saved at the moment; empty while they can."""
        self._database = database
        self._session_id = session_id
        self._on_fault = on_fault
        self._saved: set[str] = set()
        self._waiting: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def put(self, mime: str, data: bytes) -> Blob:
        digest = sha256(data).hexdigest()
        with self._lock:
            if digest not in self._saved:
                self._waiting[digest] = bytes(data)
        self.retry()
        return Blob(mime, digest, len(data))

    def get(self, sha256: str) -> bytes | None:
        if not is_digest(sha256):
            return None
        waiting = self._waiting.get(sha256)
        if waiting is not None:
            return waiting
        return self._read(sha256)

    def retry(self) -> bool:
        """Save the blobs that are waiting. Returns whether everything is saved."""
        with self._lock:
            waiting = dict(self._waiting)
        try:
            if waiting:
                self._database.commit(lambda connection: self._write(connection, waiting))
        except Exception as error:
            self._set_fault(reason_of(error))
            return False
        with self._lock:
            self._saved.update(waiting)
            for digest in waiting:
                self._waiting.pop(digest, None)
        self._set_fault("")
        return True

    def _write(self, connection: Connection, blobs: dict[str, bytes]) -> None:
        for digest, data in blobs.items():
            found = connection.execute("SELECT data FROM blobs WHERE sha256 = ?", (digest,)).fetchone()
            if found is None or found[0] != data:
                connection.execute("INSERT OR REPLACE INTO blobs (sha256, data) VALUES (?, ?)", (digest, data))
            connection.execute("INSERT OR IGNORE INTO uses (sha256, session_id) VALUES (?, ?)", (digest, self._session_id))

    def _read(self, digest: str) -> bytes | None:
        if not self._database.exists:
            return None
        try:
            with self._database.reading() as connection:
                found = connection.execute("SELECT data FROM blobs WHERE sha256 = ?", (digest,)).fetchone()
        except InputError:
            return None
        return found[0] if found is not None and sha256(found[0]).hexdigest() == digest else None

    def _set_fault(self, fault: str) -> None:
        if fault == self.fault:
            return
        self.fault = fault
        if self._on_fault is None:
            return
        path = self._database.path
        try:
            if fault:
                self._on_fault(say("sessions.files_not_saved", reason=fault, folder=path, count=len(self._waiting)))
            else:
                self._on_fault(say("sessions.files_saved_again", folder=path))
        except Exception:
            pass  # a listener's error must not lose a blob
