"""An index of all sessions, so that listing them does not read every log: an SQLite table beside the logs that may be deleted at any time.

A row is valid while its file has the same inode, size and time; a file that grew is read from where the last read ended. If anything is
wrong with the table (missing, damaged, of another version, locked, on a full disk), the answer comes from the files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

import msgspec

from dragoman.base import jsontext
from dragoman.sessions.projects import is_log_name, scan_directory
from dragoman.sessions.search_table import Hit, add_texts, find_hits, make_texts, merge_texts, remove_texts
from dragoman.sessions.search_text import words_of
from dragoman.sessions.summary import LogScan, SpokenText, Summary, open_log, scan

if TYPE_CHECKING:
    from sqlite3 import Connection

VERSION = 6
"""The table's version. A table of another version is deleted."""
_LOCKED_FOR_S = 2.0
_AT_ONCE = 50
"""How many logs' texts are written in one transaction: fewer are slower, more keep other processes waiting."""

_T = TypeVar("_T")
_summary_decoder = msgspec.json.Decoder(Summary)
_summaries_decoder = msgspec.json.Decoder(list[Summary])


class _File(msgspec.Struct, frozen=True, gc=False):
    """A log file as the directory lists it."""

    place: str
    """`<project>/<name>`: the key of its row."""
    path: str
    version: tuple[int, int, int]
    """Inode, size and time of the last change in nanoseconds: while they are the same, so is what was read of it."""


class _Row(msgspec.Struct, gc=False):
    id: int
    version: tuple[int, int, int]
    summary: Summary
    offset: int
    tail: bytes
    searched: int
    """Up to which byte its texts were indexed for searching."""

    @property
    def scanned(self) -> LogScan:
        return LogScan(self.summary, self.offset, self.tail)


class Index:
    def __init__(self, root: str) -> None:
        self._root = root
        self.path = os.path.join(root, "index.sqlite")

    def summaries(self, project: str | None = None) -> list[Summary]:
        """Every session of a project, or of all projects, most recently used first."""
        files = self._files(project)
        if not files:
            return []
        rows = self._with_table(lambda table: _refresh_rows(table, files, project))
        return _newest_first(rows.values())

    def search(self, query: str, project: str | None = None, limit: int = 50) -> list[Hit]:
        """Sessions with a prompt, an answer or a title that contains every word of the query, most recently used first."""
        words, files = words_of(jsontext.valid_unicode(query)), self._files(project)
        if not words or not files:
            return []

        def work(table: Connection) -> list[Hit]:
            rows = _refresh_rows(table, files, project)
            _read_texts(table, files, rows)
            return find_hits(table, {row.id: row.summary for row in rows.values()}, words, limit)

        return self._with_table(work)

    def forget(self, paths: Iterable[str]) -> None:
        """Remove these sessions from the table: when a session is deleted its text must go too."""
        places = [os.path.relpath(path, self._root) for path in paths]
        if places and os.path.lexists(self.path):
            self._with_table(lambda table: _forget(table, places))

    # --- the files

    def _files(self, project: str | None) -> dict[str, _File]:
        projects = (
            [project]
            if project is not None
            else sorted(entry.name for entry in scan_directory(self._root) if entry.is_dir(follow_symlinks=False))
        )
        return {file.place: file for name in projects for file in self._files_of(name)}

    def _files_of(self, project: str) -> list[_File]:
        found: list[_File] = []
        before = os.path.join(project, "")
        for entry in scan_directory(os.path.join(self._root, project)):
            if not is_log_name(entry.name):
                continue
            try:
                about = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # deleted while we were listing
            if stat.S_ISREG(about.st_mode):
                found.append(_File(before + entry.name, entry.path, (about.st_ino, about.st_size, about.st_mtime_ns)))
        return found

    # --- the table

    def _with_table(self, work: Callable[[Connection], _T]) -> _T:
        """Run `work` on the table on disk; on a new one if that is damaged; on one in memory if neither works."""
        import sqlite3

        for throw_away in (False, True):
            try:
                if throw_away:
                    self._delete_table()
                with closing(self._open_table()) as table:
                    return work(table)
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    break
            except (OSError, ValueError):
                break
        with closing(sqlite3.connect(":memory:")) as table:
            _make_tables(table)
            return work(table)

    def _open_table(self) -> Connection:
        import sqlite3

        # Created here so that only the user can read it; the files SQLite puts beside it inherit its mode.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        table = sqlite3.connect(self.path, timeout=_LOCKED_FOR_S)
        try:
            (version,) = table.execute("PRAGMA user_version").fetchone()
            if version != VERSION:
                if table.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    raise sqlite3.DatabaseError("another version")
                table.execute("PRAGMA journal_mode=WAL")
                _make_tables(table)
            table.execute("PRAGMA synchronous=NORMAL")
            table.execute("PRAGMA secure_delete=ON")
        except BaseException:
            table.close()
            raise
        return table

    def _delete_table(self) -> None:
        for end in ("", "-wal", "-shm", "-journal"):
            try:
                os.unlink(self.path + end)
            except FileNotFoundError:
                pass


def _newest_first(rows: Iterable[_Row]) -> list[Summary]:
    """A file without a single entry is not a session. Where no entry has a time, that of the file counts."""
    kept = [row for row in rows if row.summary.entries]
    kept.sort(key=lambda row: (row.summary.updated_ms or row.version[2] // 1_000_000, row.summary.session_id), reverse=True)
    return [row.summary for row in kept]


# --- the table ----------------------------------------------------------------------------------------------------------


def _make_tables(table: Connection) -> None:
    with table:
        table.execute("BEGIN IMMEDIATE")
        table.execute(
            "CREATE TABLE IF NOT EXISTS sessions (id INTEGER PRIMARY KEY, place TEXT UNIQUE NOT NULL, inode INTEGER, size INTEGER,"
            " mtime_ns INTEGER, offset INTEGER, tail BLOB, searched INTEGER NOT NULL DEFAULT 0, summary BLOB)"
        )
        make_texts(table)
        table.execute(f"PRAGMA user_version={VERSION}")


def _is_damage(error: Exception) -> bool:
    """Whether a new table would help: not if this one is locked, or the disk is full or read-only."""
    code = getattr(error, "sqlite_errorcode", 1) & 0xFF
    return code in (1, 11, 17, 20, 24, 25, 26)  # ERROR, CORRUPT, SCHEMA, MISMATCH, FORMAT, RANGE, NOTADB


def _refresh_rows(table: Connection, files: dict[str, _File], project: str | None) -> dict[str, _Row]:
    """An up-to-date row for every file; the table is updated to match."""
    rows = _rows(table, project)
    stale = [file for file in files.values() if file.place not in rows or rows[file.place].version != file.version]
    gone = rows.keys() - files.keys()
    if not stale and not gone:
        return rows
    read = [(file, scanned) for file in stale if (scanned := _scan(file, rows.get(file.place))) is not None]
    with table:
        table.execute("BEGIN IMMEDIATE")
        _remove(table, gone)
        for file, (scanned, is_anew) in read:
            _write(table, file, scanned, is_anew)
    unreadable = {file.place for file in stale} - {file.place for file, _ in read}
    return {place: row for place, row in _rows(table, project).items() if place in files and place not in unreadable}


def _rows(table: Connection, project: str | None) -> dict[str, _Row]:
    where, values = ("", ())
    if project is not None:  # a range and not LIKE: a folder may have any name
        where, values = " WHERE place >= ? AND place < ?", (f"{project}/", f"{project}0")
    found = table.execute(
        f"SELECT place, id, inode, size, mtime_ns, searched, offset, tail, summary FROM sessions{where}", values
    ).fetchall()
    return {
        place: _Row(id, (inode, size, mtime_ns), summary, offset, tail, searched)
        for (place, id, inode, size, mtime_ns, searched, offset, tail, _), summary in zip(
            found, _read_summaries([row[-1] for row in found]), strict=True
        )
        if summary is not None
    }


def _read_summaries(written: list[bytes]) -> Sequence[Summary | None]:
    """All in one go; if that fails, one by one. None for one that cannot be read: it is written again as if it were missing."""
    read: list[Summary] = []
    try:
        read = _summaries_decoder.decode(b"[%s]" % b",".join(written))
    except (msgspec.DecodeError, TypeError, UnicodeError):
        pass
    return read if len(read) == len(written) else [_read_summary(each) for each in written]


def _read_summary(written: bytes) -> Summary | None:
    try:
        return _summary_decoder.decode(written)
    except (msgspec.DecodeError, TypeError, UnicodeError):
        return None


def _scan(file: _File, row: _Row | None) -> tuple[LogScan, bool] | None:
    """Read the log, from where the last read ended if it is the same file; and whether it was read from the start. None: unreadable."""
    try:
        with open_log(file.path) as log:
            if row is not None and row.version[0] == file.version[0]:
                try:
                    return scan(log, file.path, row.scanned), False
                except ValueError:
                    pass
            return scan(log, file.path), True
    except OSError:
        return None


def _write(table: Connection, file: _File, scanned: LogScan, is_anew: bool) -> None:
    if is_anew:
        _remove(table, [file.place])
    table.execute(
        "INSERT INTO sessions (place, inode, size, mtime_ns, offset, tail, summary) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (place) DO"
        " UPDATE SET inode=excluded.inode, size=excluded.size, mtime_ns=excluded.mtime_ns, offset=excluded.offset, tail=excluded.tail,"
        " summary=excluded.summary",
        (file.place, *file.version, scanned.offset, scanned.tail, msgspec.json.encode(scanned.summary)),
    )


def _remove(table: Connection, places: Iterable[str]) -> None:
    for place in places:
        for (id,) in table.execute("SELECT id FROM sessions WHERE place = ?", (place,)).fetchall():
            remove_texts(table, id)
            table.execute("DELETE FROM sessions WHERE id = ?", (id,))


def _forget(table: Connection, places: list[str]) -> None:
    with table:
        table.execute("BEGIN IMMEDIATE")
        _remove(table, places)
        merge_texts(table)
    table.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


# --- searching ----------------------------------------------------------------------------------------------------------


def _read_texts(table: Connection, files: dict[str, _File], rows: dict[str, _Row]) -> None:
    """Bring the indexed texts up to date with the rows. Only a search needs them, so only a search reads them."""
    unread = [(files[place], row) for place, row in rows.items() if row.searched < row.offset]
    for start in range(0, len(unread), _AT_ONCE):
        with table:
            table.execute("BEGIN IMMEDIATE")
            for file, row in unread[start : start + _AT_ONCE]:
                _add_texts(table, file, row)


def _add_texts(table: Connection, file: _File, row: _Row) -> None:
    spoken: list[SpokenText] = []
    try:
        with open_log(file.path) as log:
            end = scan(log, file.path, LogScan(Summary("", imported_from=row.summary.imported_from), row.searched), spoken).offset
    except OSError:
        return
    add_texts(table, row.id, spoken)
    table.execute("UPDATE sessions SET searched = ? WHERE id = ?", (end, row.id))
