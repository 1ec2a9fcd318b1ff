"""Deleting sessions from a database: their lines, texts and output, and the blobs that no other session uses, in one transaction each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dragoman.sessions.projects import OUTPUTS
from dragoman.sessions.removal import Removal, remove_outputs
from dragoman.sessions.search_table import merge_texts, remove_texts
from dragoman.sessions.sqlite.database import Database
from dragoman.sessions.sqlite.lock import SessionLock
from dragoman.sessions.sqlite.opening import MAX_LINES, refusal
from dragoman.values.errors import InUse

if TYPE_CHECKING:
    from sqlite3 import Connection


def remove(database: Database, session_ids: Iterable[str], *, skip_open: bool = False) -> Removal:
    """An open one is skipped, or raises InUse before any of it is touched."""
    import sqlite3

    removed: list[str] = []
    blobs = freed = 0
    try:
        for session_id in session_ids:
            try:
                lock = SessionLock(database.files, session_id)
            except InUse:
                if not skip_open:
                    raise
                continue
            try:
                blobs_gone, bytes_gone = database.commit(lambda connection, which=session_id: _remove_rows(connection, which))
                outputs = remove_outputs(os.path.join(database.files, OUTPUTS, session_id))
            finally:
                lock.release()
            removed.append(session_id)
            blobs, freed = blobs + blobs_gone, freed + bytes_gone + outputs
        if removed:
            database.give_back_space()
    except (sqlite3.Error, OSError) as error:
        raise refusal(error, database.path) from error
    return Removal(tuple(removed), blobs, freed)


def _remove_rows(connection: Connection, session_id: str) -> tuple[int, int]:
    """Returns how many blobs went, and how many bytes in all."""
    freed = 0
    for id, size in connection.execute("SELECT id, bytes FROM sessions WHERE session_id = ?", (session_id,)).fetchall():
        connection.execute("DELETE FROM entries WHERE place >= ? AND place < ?", (id * MAX_LINES, (id + 1) * MAX_LINES))
        remove_texts(connection, id)
        merge_texts(connection)
        connection.execute("DELETE FROM sessions WHERE id = ?", (id,))
        freed += size
    named = [digest for (digest,) in connection.execute("SELECT sha256 FROM uses WHERE session_id = ?", (session_id,))]
    connection.execute("DELETE FROM uses WHERE session_id = ?", (session_id,))
    blobs = 0
    for digest in named:
        if connection.execute("SELECT 1 FROM uses WHERE sha256 = ?", (digest,)).fetchone():
            continue
        size = connection.execute("SELECT length(data) FROM blobs WHERE sha256 = ?", (digest,)).fetchone()
        connection.execute("DELETE FROM blobs WHERE sha256 = ?", (digest,))
        blobs, freed = blobs + 1, freed + (size[0] if size is not None else 0)
    return blobs, freed
