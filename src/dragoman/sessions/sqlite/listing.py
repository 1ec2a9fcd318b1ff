"""Listing and searching the sessions of a database: summaries are folded from the lines that came since the last time, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from dragoman.base import jsontext
from dragoman.sessions.search_table import Hit, add_texts, find_hits, make_texts
from dragoman.sessions.search_text import words_of
from dragoman.sessions.sqlite.database import Database
from dragoman.sessions.sqlite.journal import read_lines_of
from dragoman.sessions.sqlite.opening import is_not_writable
from dragoman.sessions.summary import SpokenText, Summary, sum_up
from dragoman.values.usage import Usage

if TYPE_CHECKING:
    from sqlite3 import Connection

_AT_ONCE = 50
"""How many sessions' texts are written in one transaction: fewer are slower, more keep other processes waiting."""
_summary_decoder = msgspec.json.Decoder(Summary)


class _Row(msgspec.Struct, frozen=True):
    id: int
    lines: int
    summary: Summary
    summed: int
    """How many lines the stored summary has."""
    searched: int
    """How many lines' texts can be searched for."""


def list_sessions(database: Database, project: str | None = None, session_ids: Sequence[str] | None = None) -> list[Summary]:
    """Most recently used first: of a project, those with these ids, or all."""
    if not database.exists:
        return []
    with database.reading() as connection:
        rows = _rows(connection, database.path, project, session_ids)
    _keep_summaries(database, rows)
    kept = [row.summary for row in rows if row.summary.entries]  # without a single entry it is not a session
    return sorted(kept, key=lambda summary: (summary.updated_ms, summary.session_id), reverse=True)


def search_sessions(database: Database, query: str, project: str | None, limit: int) -> list[Hit]:
    """Sessions with a prompt, an answer or a title that contains every word of the query, most recently used first."""
    words = words_of(jsontext.valid_unicode(query))
    if not words or not database.exists:
        return []
    with database.reading() as connection:
        rows = _rows(connection, database.path, project, None)
        summaries = {row.id: row.summary for row in rows if row.summary.entries}
        try:
            _add_texts(database, rows)
        except Exception as error:
            if not is_not_writable(error.__cause__ or error):
                raise
            return _search_in_memory(connection, rows, summaries, words, limit)
        return find_hits(connection, summaries, words, limit)


def _rows(connection: Connection, path: str, project: str | None, session_ids: Sequence[str] | None) -> list[_Row]:
    """Every session with an up-to-date summary."""
    asked, values = "SELECT id, session_id, lines, bytes, summary, summed, searched FROM sessions", list[str]()
    if project is not None:
        asked, values = f"{asked} WHERE project = ?", [project]
    if session_ids is not None:
        asked, values = f"{asked} WHERE session_id IN ({', '.join('?' for _ in session_ids)})", list(session_ids)
    rows: list[_Row] = []
    for id, session_id, lines, size, stored, summed, searched in connection.execute(asked, values).fetchall():
        before = _decode(stored)
        if before is None:
            before, summed = Summary(session_id), 0
        at = f"{path}/{session_id}"
        stale = summed < lines or before.path != at  # the file was moved
        summary = sum_up(read_lines_of(connection, id, summed), before, at, size) if stale else before
        rows.append(_Row(id, lines, summary, summed, searched))
    return rows


def _decode(stored: bytes | None) -> Summary | None:
    try:
        found = _summary_decoder.decode(stored) if stored is not None else None
        return found if found is None or found.paid or found.usage == Usage() else None  # kept by an earlier version
    except (msgspec.DecodeError, TypeError, UnicodeError):
        return None  # folded again from the lines


def _keep_summaries(database: Database, rows: Sequence[_Row]) -> None:
    """For the next time. It may fail: then they are folded again."""
    stale = [row for row in rows if row.summed < row.lines]
    if not stale:
        return

    def write(connection: Connection) -> None:
        connection.executemany(
            "UPDATE sessions SET summary = ?, summed = ? WHERE id = ? AND summed < ?",
            ((msgspec.json.encode(row.summary), row.lines, row.id, row.lines) for row in stale),
        )

    try:
        database.commit(write)
    except Exception:
        pass


def _add_texts(database: Database, rows: Sequence[_Row]) -> None:
    """Bring the texts up to date. Only a search needs them, so only a search reads them."""
    unread = [row for row in rows if row.searched < row.lines]
    for start in range(0, len(unread), _AT_ONCE):
        some = unread[start : start + _AT_ONCE]
        database.commit(lambda connection, some=some: _write_texts(connection, some))


def _write_texts(connection: Connection, rows: Sequence[_Row]) -> None:
    for row in rows:
        if not connection.execute("SELECT 1 FROM sessions WHERE id = ?", (row.id,)).fetchone():
            continue  # deleted just now
        add_texts(connection, row.id, _texts_of(connection, row, row.searched))
        connection.execute("UPDATE sessions SET searched = ? WHERE id = ?", (row.lines, row.id))


def _texts_of(connection: Connection, row: _Row, first: int) -> list[SpokenText]:
    spoken: list[SpokenText] = []
    before = Summary("", imported_from=row.summary.imported_from)
    sum_up(read_lines_of(connection, row.id, first), before, "", 0, spoken)
    return spoken


def _search_in_memory(
    connection: Connection, rows: Sequence[_Row], summaries: dict[int, Summary], words: list[str], limit: int
) -> list[Hit]:
    """Where the database cannot be written: the texts are put in a table that nobody else sees."""
    import sqlite3

    with closing(sqlite3.connect(":memory:")) as table:
        make_texts(table)
        for row in rows:
            add_texts(table, row.id, _texts_of(connection, row, 0))
        return find_hits(table, summaries, words, limit)
