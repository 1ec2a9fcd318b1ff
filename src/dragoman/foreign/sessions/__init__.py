"""Imports sessions of other programs: gemini-cli, Claude Code, Codex, pi and Cline.

A file in, entries out. What has no place in our record is listed, never dropped silently; the source file is only read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dragoman.base import jsontext
from dragoman.foreign.sessions import claude_code, cline, codex, gemini_cli, pi
from dragoman.foreign.sessions.draft import Draft, printable
from dragoman.foreign.sessions.records import ForeignFile, Record, read_records, text
from dragoman.values.contracts import BlobStore
from dragoman.values.errors import InputError
from dragoman.values.record import Entry
from dragoman.words import say


class Importer(Protocol):
    """A module that reads one program's sessions."""

    @property
    def NAME(self) -> str: ...  # noqa: N802

    def is_ours(self, line: Record) -> bool:
        """Whether this line could only come from that program."""
        ...

    def read(self, lines: Sequence[Record], draft: Draft) -> None:
        """Add everything that happened to the draft. Never raises, whatever the lines contain."""
        ...


IMPORTERS: tuple[Importer, ...] = (claude_code, cline, codex, gemini_cli, pi)
NAMES = ", ".join(importer.NAME for importer in IMPORTERS)


class ImportedSession(msgspec.Struct, frozen=True):
    """A session of another program, converted to ours."""

    entries: tuple[Entry, ...]
    """Numbered from 1, beginning with Started and Configured. Importing the same file again gives the same entries."""
    source: str
    """The program it came from: `claude-code`, `cline`, `codex`, `gemini-cli` or `pi`."""
    not_carried: tuple[str, ...] = ()
    """What has no place in our record, one line each with its count."""
    title: str = ""
    notices: tuple[str, ...] = ()
    """What the user should know about the state of the file."""


def detect(path: str | os.PathLike[str]) -> str:
    """Which program wrote a session file. Raises InputError if it is none that we know."""
    return _importer_of(read_records(path)).NAME


def import_session(path: str | os.PathLike[str], blobs: BlobStore | None = None, *, session_id: str = "") -> ImportedSession:
    """Import the session in a file. Images and other media go to `blobs`; without it they are listed as not carried.

    The id is made from the source's start and id, unless one is given. Raises InputError if the file is not a session.
    """
    return import_records(read_records(path), blobs, session_id=session_id)


def import_conversation(conversation: Mapping[str, Any], blobs: BlobStore | None = None) -> ImportedSession:
    """Import a ConversationRecord as gemini-cli and the founding documents have it. Raises InputError for anything else."""
    return import_records(ForeignFile("", (dict(conversation),)), blobs)


def import_records(foreign: ForeignFile, blobs: BlobStore | None = None, *, session_id: str = "") -> ImportedSession:
    """Import what was read of a file."""
    importer = _importer_of(foreign)
    draft = Draft(blobs)
    importer.read(foreign.records, draft)
    draft.leave_out(say("sessions.left_not_json"), foreign.unreadable)
    if draft.is_empty:
        raise InputError(say("sessions.import_nothing_said", path=foreign.path, program=importer.NAME))
    draft.title = printable(draft.title)
    where = jsontext.valid_unicode(os.path.abspath(foreign.path)) if foreign.path else ""
    entries = draft.entries(importer.NAME, where, session_id, foreign.changed_ms)
    return ImportedSession(entries, importer.NAME, draft.not_carried, draft.title)


def _importer_of(foreign: ForeignFile) -> Importer:
    for record in foreign.records:
        if text(record, "kind") == "started" and text(record, "session_id"):
            own_id = printable(text(record, "session_id"))
            raise InputError(say("sessions.import_own", path=foreign.path, session=own_id))
        for importer in IMPORTERS:
            if importer.is_ours(record):
                return importer
    if not foreign.records:
        raise InputError(say("sessions.import_no_json", path=foreign.path, programs=NAMES))
    raise InputError(say("sessions.import_unknown", path=foreign.path, programs=NAMES))
