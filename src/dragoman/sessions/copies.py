"""Logs that are written in one go: forks of a session, and sessions that were made elsewhere. Whole, or not there at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import msgspec

from dragoman.base.atomic import write_aside
from dragoman.base.clock import now_ms
from dragoman.base.private import make_directory, sync_directory
from dragoman.sessions.log import Damaged, encode_line, read_lines
from dragoman.sessions.projects import LISTED, session_id_of
from dragoman.sessions.summary import open_log
from dragoman.values.errors import InputError
from dragoman.values.record import Entry, Started


def fork_log(path: str, target: str, upto: int | None = None) -> None:
    """Copy a log up to and including the entry `upto`, under a head of its own. What is damaged is left behind."""
    source_id = session_id_of(path)
    try:
        with open_log(path) as log:
            whole = ((line, entry) for _, _, line, entry in read_lines(log) if not isinstance(entry, Damaged))
            first = next(whole, None)
            if first is None:
                raise InputError(f"session {source_id} holds nothing that can be read: there is nothing to fork")
            if upto is not None and upto < first[1].seq:
                raise InputError(f"session {source_id} begins with entry {first[1].seq}: there is none up to {upto}")
            write_log(target, _forked(first, whole, upto, session_id_of(target), source_id))
    except FileNotFoundError as error:
        raise InputError(f"there is no session {source_id}: {LISTED}") from error
    except OSError as error:
        raise InputError(f"session {source_id} cannot be read: {error.strerror or error}") from error


def write_log(path: str, lines: Iterable[bytes]) -> None:
    """A new log with all these lines, on disk before it has its name. Raises InputError where there is one, or it cannot be written."""
    session_id = session_id_of(path)
    if os.path.lexists(path):
        raise InputError(f"session {session_id} is there already: {LISTED}")
    try:
        changed = make_directory(os.path.dirname(path))
        with write_aside(path) as descriptor, os.fdopen(descriptor, "wb", buffering=1 << 18, closefd=False) as file:
            file.writelines(lines)
        for each in changed:
            sync_directory(each)
    except OSError as error:
        raise InputError(f"the session cannot be saved in {path}: {error.strerror or error}") from error


def _forked(
    first: tuple[bytes, Entry], rest: Iterable[tuple[bytes, Entry]], upto: int | None, session_id: str, source_id: str
) -> Iterator[bytes]:
    line, head = first
    at_ms = now_ms()
    if isinstance(head, Started):
        yield encode_line(msgspec.structs.replace(head, timestamp_ms=at_ms, session_id=session_id, forked_from=source_id))
    else:  # the head was lost
        yield encode_line(Started(min(head.seq - 1, 1), at_ms, session_id, forked_from=source_id))
        yield line
    for line, entry in rest:
        if upto is not None and entry.seq > upto:
            return
        yield line
