"""The table that searches are made in: what was said and the titles, folded, by trigrams where SQLite has them.

It is in the index beside the logs of files, and in the database of a store in SQLite. Whoever has a session in a row numbered `id` puts its
texts at the row ids from `id * MAX_SEQ`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from dragoman.base import jsontext
from dragoman.sessions.search_text import excerpt, fold, trigrams
from dragoman.sessions.summary import SpokenRole, SpokenText, Summary

if TYPE_CHECKING:
    from sqlite3 import Connection

MAX_SEQ = 1 << 32
_MAX_TEXT_CHARS = 1_000_000


class Hit(msgspec.Struct, frozen=True):
    """A session that matches a search."""

    summary: Summary
    matches: int
    """In how many of its prompts, answers and titles it matches."""
    seq: int
    """The entry of the last match."""
    role: SpokenRole
    excerpt: str


def make_texts(table: Connection) -> None:
    """Within a transaction of the caller."""
    import sqlite3

    try:  # trigrams without positions: a third of the size, and every match is checked anyway
        table.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5(folded, original UNINDEXED, role UNINDEXED,"
            " tokenize='trigram', detail=none)"
        )
    except sqlite3.OperationalError:  # an SQLite without trigrams: every search reads every text
        table.execute("CREATE TABLE IF NOT EXISTS texts (rowid INTEGER PRIMARY KEY, folded TEXT, original TEXT, role TEXT)")


def add_texts(table: Connection, id: int, spoken: Iterable[SpokenText]) -> None:
    table.executemany(
        "INSERT OR REPLACE INTO texts (rowid, folded, original, role) VALUES (?, ?, ?, ?)",
        ((id * MAX_SEQ + each.seq, *_texts(each), each.role) for each in spoken if 0 <= each.seq < MAX_SEQ),
    )


def remove_texts(table: Connection, id: int) -> None:
    table.execute("DELETE FROM texts WHERE rowid >= ? AND rowid < ?", (id * MAX_SEQ, (id + 1) * MAX_SEQ))


def merge_texts(table: Connection) -> None:
    """Deleted text stays in old segments until they are merged."""
    import sqlite3

    try:
        table.execute("INSERT INTO texts (texts) VALUES ('optimize')")
    except sqlite3.OperationalError:
        pass  # a plain table has no segments


def find_hits(table: Connection, summaries: dict[int, Summary], words: list[str], limit: int) -> list[Hit]:
    """The sessions, of those given by id, that match every word, most recently used first."""
    conditions = ["instr(folded, ?)" for _ in words]
    values: list[str] = list(words)
    if (grams := trigrams(words)) and _has_trigrams(table):
        conditions.insert(0, "texts MATCH ?")
        values.insert(0, " AND ".join('"{}"'.format(gram.replace('"', '""')) for gram in grams))
    matches: dict[int, list[int]] = {}
    for (rowid,) in table.execute(f"SELECT rowid FROM texts WHERE {' AND '.join(conditions)} ORDER BY rowid", values):
        matches.setdefault(rowid // MAX_SEQ, []).append(rowid)
    found = {id: summary for id, summary in summaries.items() if id in matches}
    ids = sorted(found, key=lambda id: (found[id].updated_ms, found[id].session_id), reverse=True)[:limit]
    return [_hit(table, found[id], matches[id], words) for id in ids]


def _texts(spoken: SpokenText) -> tuple[str, str]:
    text = jsontext.valid_unicode(spoken.text[:_MAX_TEXT_CHARS])
    return fold(text), text


def _hit(table: Connection, summary: Summary, rowids: list[int], words: list[str]) -> Hit:
    role, original = table.execute("SELECT role, original FROM texts WHERE rowid = ?", (rowids[-1],)).fetchone()
    return Hit(summary, len(rowids), rowids[-1] % MAX_SEQ, role, excerpt(original, words))


def _has_trigrams(table: Connection) -> bool:
    (made,) = table.execute("SELECT sql FROM sqlite_master WHERE name = 'texts'").fetchone()
    return "fts5" in made
