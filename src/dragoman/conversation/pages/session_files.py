"""`dragoman sessions export` and `import`: writes a session to a file, and reads one from a file."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dragoman.app.setup import Setup, catalog_of
from dragoman.base import jsontext
from dragoman.base.atomic import replace_file
from dragoman.base.found_files import TooLargeFile, read_found
from dragoman.base.text import one_line, size, strip_controls
from dragoman.foreign.sessions.records import MAX_IMPORT_BYTES
from dragoman.sessions.last_run import is_held
from dragoman.sessions.log import read_log
from dragoman.sessions.projects import session_id_of
from dragoman.sessions.titles import title_of
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.errors import InputError
from dragoman.values.record import Configured, FilesChanged, Started
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.conversation.pages.sessions_command import SessionsCommand
    from dragoman.foreign.sessions import ImportedSession
    from dragoman.sessions.store import FileStore
    from dragoman.sessions.summary import Summary
    from dragoman.values.contracts import BlobStore
    from dragoman.values.record import Entry

_LOG_BEGINS = b'{"kind":"started",'
_OWN_LINE = re.compile(rb',"crc":"[0-9a-f]{8}"\}\r?\n')
"""How lines of our logs end: one whose head is damaged is known by them."""
_BY_ENDING = {".html": "html", ".htm": "html", ".json": "json"}


# --- export


def export_session(command: SessionsCommand, found: Summary) -> str:
    """The exported text, or with -o a line that says where it was written."""
    output, form = command.options.output, command.options.form
    entries, blobs = command.read(found.path).entries, command.store.blobs_beside(found.path)
    sources = ExportSources(command.setup, command.store, is_held(found.path))
    if output in ("", "-"):
        text = export_text(entries, form, blobs, sources)
        return strip_controls(text) if form in ("", "markdown") else text
    written = export_to(os.path.join(command.workspace, output), entries, form, blobs, sources, over=command.options.yes, name=output)
    return say("exported", session=command.name(found), path=one_line(output, 200), size=size(written)) + "\n"


class ExportSources(NamedTuple):
    """Where to look up what a session's own entries do not say: prices, and the sessions of agents that were called in it."""

    setup: Setup
    store: FileStore
    is_held: bool
    """Whether a process has the session open, so that a run without an end is under way."""

    def trajectory(self, entries: Sequence[Entry]) -> dict[str, Any]:
        from dragoman.conversation.pages.context_command import find_model
        from dragoman.sessions.atif import to_atif

        catalog = catalog_of(self.setup)
        return to_atif(
            entries,
            prices_of=lambda deployment, model: find_model(catalog, deployment, model)[1].prices,
            called=self._called,
            is_held=self.is_held,
        )

    def page(self, entries: Sequence[Entry], blobs: BlobStore | None) -> str:
        """The page of the viewer with this session in it."""
        from dragoman.conversation.pages.context_command import ContextCommand
        from dragoman.conversation.session_page.one_file import write_page
        from dragoman.sessions.summary import Summary
        from dragoman.sessions.transcript import read_transcript

        transcript = read_transcript(entries)
        path = self.store.path_of(transcript.session_id or self.store.new_id(), self.setup.workspace)
        title = transcript.title or title_of(transcript.first_prompt)
        command = ContextCommand(self.setup, self.store, Summary(transcript.session_id, path, title=title), catalog_of(self.setup))
        return write_page(command, entries, blobs if blobs is not None else MemoryBlobs(), is_held=self.is_held)

    def _called(self, session_id: str) -> list[tuple[Entry, ...]]:
        return [self.store.read(each.path).entries for each in reversed(self.store.list()) if each.parent == session_id]


def export_to(
    path: str,
    entries: Sequence[Entry],
    form: str,
    blobs: BlobStore | None,
    sources: ExportSources,
    *,
    over: bool,
    name: str = "",
) -> int:
    """Returns how many bytes were written. Without a format the ending of the file has it. `name`: what the user calls the file."""
    form = form or _BY_ENDING.get(os.path.splitext(path)[1].lower(), "markdown")
    data = export_text(entries, form, blobs, sources).encode("utf-8", "replace")
    name = one_line(name or path, 200)
    try:
        _write(path, data, over=over)
    except FileExistsError as error:
        raise InputError(say("export_exists", path=name)) from error
    except (OSError, ValueError) as error:
        raise InputError(say("export_failed", path=name, reason=getattr(error, "strerror", "") or error)) from error
    return len(data)


def export_text(entries: Sequence[Entry], form: str, blobs: BlobStore | None, sources: ExportSources) -> str:
    from dragoman.sessions.export import to_conversation_record, to_json, to_markdown

    match form:
        case "html":
            return sources.page(entries, blobs)
        case "json":
            return to_json(entries, blobs)
        case "record":
            return jsontext.dumps(to_conversation_record(entries, blobs, is_held=sources.is_held)) + "\n"
        case "atif":
            return jsontext.dumps(sources.trajectory(entries)) + "\n"
        case _:
            return to_markdown(entries, is_held=sources.is_held)


def _write(path: str, data: bytes, *, over: bool) -> None:
    """Readable by the user only. Written to a temporary file and renamed: never half-written, and no symlink is followed."""
    if os.path.isdir(path):
        raise IsADirectoryError(None, say("files.is_a_directory"))
    if not over and os.path.lexists(path):
        raise FileExistsError
    replace_file(path, data, over=over)


# --- import


def import_file(command: SessionsCommand) -> str:
    """Import a session into this folder. What could not be imported is told beside it."""
    from dragoman.conversation.pages.sessions_command import print_notices

    kept, imported = import_into(command.store, command.workspace, os.path.join(command.workspace, command.operand))
    print_notices((*imported.notices, *(say("import_not_carried", what=each) for each in imported.not_carried)))
    if changed := sum(len(entry.files) for entry in imported.entries if isinstance(entry, FilesChanged)):
        print_notices((say("import_not_undone", count=changed),))
    found = command.store.find(session_id_of(kept), command.workspace)
    entries, short = len(imported.entries), command.store.short_id(found.session_id)
    words = say("imported", session=command.name(found), entries=entries, source=imported.source, path=kept, id=short)
    return f"{words}\n"


def import_into(store: FileStore, workspace: str, path: str) -> tuple[str, ImportedSession]:
    """Import the session in a file into this folder. Returns the path of the new session, and what was read."""
    blobs = store.blobs_beside(store.path_of(store.new_id(), workspace))
    imported = _read(path, blobs, store)
    kept = store.add(workspace, _move_to_workspace(imported.entries, workspace))
    if not blobs.retry():
        raise InputError(say("session_not_saved", path=blobs.directory, reason=blobs.fault))
    return kept, imported


def _read(path: str, blobs: BlobStore, store: FileStore) -> ImportedSession:
    from dragoman.foreign.sessions import import_session
    from dragoman.sessions.export import from_json, is_json_export

    beginning = _read_beginning(path)
    if is_json_export(beginning):
        package = from_json(read_found(path, MAX_IMPORT_BYTES))
        for mime, data in package.blobs.values():
            blobs.put(mime, data)
        return _with_new_id(path, package.entries, (), store)
    if beginning.startswith(_LOG_BEGINS) or _OWN_LINE.search(beginning):
        return _read_log(path, store)
    return import_session(path, blobs)


def _read_log(path: str, store: FileStore) -> ImportedSession:
    """A copied log file of ours. The attachments it refers to are not part of it."""
    try:
        loaded = read_log(path)
    except OSError as error:
        raise _unreadable_error(path, error) from error
    # Whoever may write a file that was copied here is the user's business.
    return _with_new_id(path, loaded.entries, msgspec.structs.replace(loaded, access="").notices(), store)


def _with_new_id(path: str, entries: tuple[Entry, ...], notices: tuple[str, ...], store: FileStore) -> ImportedSession:
    """Our own session under a new id, because the original may be in the store too."""
    from dragoman.foreign.sessions import ImportedSession

    if not entries:
        raise InputError(say("import_empty", path=one_line(path, 200)))
    session_id = store.new_id()
    first, *rest = entries
    if not isinstance(first, Started):
        rest = list(entries)
        first = Started(first.seq - 1, first.timestamp_ms, "")
    head = msgspec.structs.replace(first, session_id=session_id, imported_from=f"dragoman {first.session_id} {path}")
    renamed = (
        msgspec.structs.replace(each, session_id=session_id) if isinstance(each, Configured) and each.session_id else each for each in rest
    )
    return ImportedSession((head, *renamed), "dragoman", notices=notices)


def _move_to_workspace(entries: tuple[Entry, ...], workspace: str) -> tuple[Entry, ...]:
    """Make it a session of this folder."""
    first, *rest = entries
    if not isinstance(first, Started):
        return entries
    return (msgspec.structs.replace(first, directories=(os.path.realpath(workspace),)), *rest)


def _read_beginning(path: str) -> bytes:
    """The first bytes of a regular file that is not too large. A pipe or device is refused, because reading it might block."""
    try:
        beginning = read_found(path, 4_096, cut=True)
        if os.path.getsize(path) > MAX_IMPORT_BYTES:
            raise TooLargeFile(errno.EFBIG, say("files.is_too_large", most=f"{MAX_IMPORT_BYTES:,}"), path)
    except OSError as error:
        raise _unreadable_error(path, error) from error
    return beginning


def _unreadable_error(path: str, error: Exception) -> InputError:
    return InputError(say("import_unreadable", path=one_line(path, 200), reason=getattr(error, "strerror", "") or error))
