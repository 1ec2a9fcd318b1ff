"""Logs written in one go: forks of a session, and imported sessions. Either the whole log exists or none of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import msgspec

from dragoman.base.atomic import write_aside
from dragoman.base.clock import now_ms
from dragoman.base.private import make_directory, sync_directory
from dragoman.sessions.log import Damaged, encode_line, read_lines
from dragoman.sessions.projects import session_id_of
from dragoman.sessions.summary import open_log
from dragoman.values.errors import InputError, NoSession
from dragoman.values.record import Entry, Started
from dragoman.words import say


def fork_log(path: str, target: str, upto: int | None = None) -> None:
    """Copy a log up to and including the entry `upto`, with a new head. Damaged lines are not copied."""
    source_id = session_id_of(path)
    try:
        with open_log(path) as log:
            write_log(target, fork_lines(log, source_id, session_id_of(target), upto))
    except FileNotFoundError as error:
        raise NoSession(say("sessions.not_found", session=source_id)) from error
    except OSError as error:
        raise InputError(say("sessions.fork_unreadable", session=source_id, reason=error.strerror or error)) from error


def write_log(path: str, lines: Iterable[bytes]) -> None:
    """Write a new log with all these lines; it is on disk before it gets its name. Raises InputError if it exists or cannot be written."""
    session_id = session_id_of(path)
    if os.path.lexists(path):
        raise InputError(say("sessions.id_taken", session=session_id))
    try:
        changed = make_directory(os.path.dirname(path))
        with write_aside(path) as descriptor, os.fdopen(descriptor, "wb", buffering=1 << 18, closefd=False) as file:
            file.writelines(lines)
        for each in changed:
            sync_directory(each)
    except OSError as error:
        raise InputError(say("sessions.not_saved", path=path, reason=error.strerror or error)) from error


def fork_lines(log: Iterable[bytes], source_id: str, session_id: str, upto: int | None = None) -> Iterator[bytes]:
    """The lines of a copy of a log. Raises InputError, before there is a line, if there is nothing to copy."""
    whole = ((line, entry) for _, _, line, entry in read_lines(log) if not isinstance(entry, Damaged))
    first = next(whole, None)
    if first is None:
        raise InputError(say("sessions.nothing_to_fork", session=source_id))
    if upto is not None and upto < first[1].seq:
        raise InputError(say("sessions.fork_before_start", session=source_id, first=first[1].seq, upto=upto))
    return _fork_lines(first, whole, upto, session_id, source_id)


def _fork_lines(
    first: tuple[bytes, Entry], rest: Iterable[tuple[bytes, Entry]], upto: int | None, session_id: str, source_id: str
) -> Iterator[bytes]:
    line, head = first
    at_ms = now_ms()
    if isinstance(head, Started):
        yield encode_line(
            msgspec.structs.replace(
                head, timestamp_ms=at_ms, session_id=session_id, forked_from=source_id, key="", parent="", parent_call=""
            )
        )
    else:  # the head is missing
        yield encode_line(Started(min(head.seq - 1, 1), at_ms, session_id, forked_from=source_id))
        yield line
    for line, entry in rest:
        if upto is not None and entry.seq > upto:
            return
        yield line


def added_entries(entries: Iterable[Entry], project: str) -> tuple[Started, tuple[Entry, ...]]:
    """A session made elsewhere as it is added to a store: its head, and all of it. What it says about files is never undone: it may be
    forged. Raises InputError if it does not begin with its head."""
    head, *rest = entries
    if not isinstance(head, Started):
        raise InputError(say("sessions.no_head"))
    imported_through = max(entry.seq for entry in (head, *rest))
    head = msgspec.structs.replace(head, project=project, imported_through=imported_through, key="", parent="", parent_call="")
    return head, (head, *rest)
