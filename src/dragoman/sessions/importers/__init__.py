"""Sessions of other programs as records of ours: gemini-cli, Claude Code, Codex and pi.

A file in, entries out. What has no place in our record is listed, never dropped in silence; the source file is only read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

import msgspec

from dragoman.base import jsontext
from dragoman.sessions.importers import claude_code, codex, gemini_cli, pi
from dragoman.sessions.importers.draft import Draft, printable
from dragoman.sessions.importers.foreign import Foreign, Record, read_records, text
from dragoman.values.contracts import BlobStore
from dragoman.values.errors import InputError
from dragoman.values.record import Entry


class Importer(Protocol):
    """A module that reads one program's sessions."""

    @property
    def NAME(self) -> str: ...  # noqa: N802

    def is_ours(self, line: Record) -> bool:
        """Whether this line could only be that program's."""
        ...

    def read(self, lines: Sequence[Record], draft: Draft) -> None:
        """Tell the draft what happened. Never raises, whatever the lines hold."""
        ...


IMPORTERS: tuple[Importer, ...] = (claude_code, codex, gemini_cli, pi)
NAMES = ", ".join(importer.NAME for importer in IMPORTERS)


class Imported(msgspec.Struct, frozen=True):
    """A session of another program, as ours."""

    entries: tuple[Entry, ...]
    """Numbered from 1, beginning with Started and Configured. Importing the same file again gives the same entries."""
    source: str
    """Whose it was: `claude-code`, `codex`, `gemini-cli` or `pi`."""
    not_carried: tuple[str, ...] = ()
    """What has no place in our record, one line each with its count."""
    title: str = ""


def detect(path: str | os.PathLike[str]) -> str:
    """Whose session a file is. Raises InputError where it is nobody's we know."""
    return _importer_of(read_records(path)).NAME


def import_session(path: str | os.PathLike[str], blobs: BlobStore | None = None, *, session_id: str = "") -> Imported:
    """The session in a file. Images and the like go to `blobs`; without it they are listed as not carried.

    The id is made from the source's start and id, unless another is given. Raises InputError where the file is no session.
    """
    foreign = read_records(path)
    importer = _importer_of(foreign)
    draft = Draft(blobs)
    importer.read(foreign.records, draft)
    draft.leave("a line that is not JSON", foreign.unreadable)
    if draft.is_empty:
        raise InputError(f"{foreign.path} is a session of {importer.NAME} in which nothing was said: there is nothing to import")
    draft.title = printable(draft.title)
    where = jsontext.valid_unicode(os.path.abspath(foreign.path))
    entries = draft.entries(importer.NAME, where, session_id)
    return Imported(entries, importer.NAME, draft.not_carried, draft.title)


def _importer_of(foreign: Foreign) -> Importer:
    for record in foreign.records:
        if text(record, "kind") == "started" and text(record, "session_id"):
            own_id = printable(text(record, "session_id"))
            raise InputError(f"{foreign.path} is a session of Dragoman already: resume it with --resume {own_id}")
        for importer in IMPORTERS:
            if importer.is_ours(record):
                return importer
    if not foreign.records:
        raise InputError(f"{foreign.path} holds no JSON: name a session file of one of {NAMES}")
    raise InputError(f"{foreign.path} is no session that can be imported: the programs known are {NAMES}")
