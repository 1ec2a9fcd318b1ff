"""`dragoman sessions export` and `import`: a session to a file for others, and one from elsewhere to ours."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.base import jsontext
from dragoman.base.ids import new_session_id
from dragoman.base.text import harmless, one_line, size
from dragoman.base.words import say
from dragoman.sessions.projects import session_id_of
from dragoman.values.errors import InputError

if TYPE_CHECKING:
    from dragoman.cli.sessions import Desk
    from dragoman.sessions.importers import Imported
    from dragoman.values.contracts import BlobStore
    from dragoman.values.record import Entry

_LOG_BEGINS = b'{"kind":"started",'
_BY_ENDING = {".html": "html", ".htm": "html", ".json": "json"}


# --- out


def export_session(desk: Desk, path: str) -> str:
    """The text itself, or, with -o, a line that says where it is."""
    output = desk.options.output
    form = desk.options.form or _BY_ENDING.get(os.path.splitext(output)[1].lower(), "markdown")
    text = exported(desk.read(path).entries, form, desk.store.blobs_beside(path))
    if output in ("", "-"):
        return harmless(text) if form == "markdown" else text
    target = os.path.join(desk.workspace, output)
    data = text.encode("utf-8", "replace")
    try:
        _write(target, data, over=desk.options.yes)
    except FileExistsError as error:
        raise InputError(say("export_exists", path=one_line(output, 200))) from error
    except (OSError, ValueError) as error:
        raise InputError(say("export_failed", path=one_line(output, 200), reason=getattr(error, "strerror", "") or error)) from error
    return say("exported", path=one_line(output, 200), size=size(len(data))) + "\n"


def exported(entries: Sequence[Entry], form: str, blobs: BlobStore | None = None) -> str:
    from dragoman.sessions.export import to_conversation_record, to_html, to_json, to_markdown

    match form:
        case "html":
            return to_html(entries, blobs)
        case "json":
            return to_json(entries, blobs)
        case "record":
            return jsontext.dumps(to_conversation_record(entries, blobs)) + "\n"
        case _:
            return to_markdown(entries)


def _write(path: str, data: bytes, *, over: bool) -> None:
    """For the user's eyes alone. Written aside and put in its place at once: nothing half is ever there, and no link is followed."""
    from dragoman.base.atomic import replace_file

    if os.path.isdir(path):
        raise IsADirectoryError(None, say("is_a_directory"))
    if not over and os.path.lexists(path):
        raise FileExistsError
    replace_file(path, data, over=over)


# --- in


def import_file(desk: Desk) -> str:
    """A session of ours in this folder, and on standard error what could not be carried over."""
    from dragoman.cli.sessions import tell

    path = os.path.join(desk.workspace, desk.operand)
    blobs = desk.store.blobs_beside(desk.store.path_of(new_session_id(), desk.workspace))
    imported = _read(path, blobs)
    kept = desk.store.keep(desk.workspace, _at_home(imported.entries, desk.workspace))
    if not blobs.retry():
        raise InputError(say("session_not_saved", path=blobs.directory, reason=blobs.fault))
    tell(tuple(say("import_not_carried", what=each) for each in imported.not_carried))
    return say("imported", id=session_id_of(kept), entries=len(imported.entries), source=imported.source) + "\n"


def _read(path: str, blobs: BlobStore) -> Imported:
    from dragoman.sessions.export import from_json, is_json_export
    from dragoman.sessions.importers import import_session

    beginning = _peek(path)
    if is_json_export(beginning):
        with open(path, "rb") as file:
            package = from_json(file.read())
        for mime, data in package.blobs.values():
            blobs.put(mime, data)
        return _own(path, package.entries, ())
    if beginning.startswith(_LOG_BEGINS):
        return _read_log(path)
    return import_session(path, blobs)


def _read_log(path: str) -> Imported:
    """A log of ours that was copied here. The attachments it names stayed where it came from."""
    from dragoman.sessions.log import read_log

    try:
        loaded = read_log(path)
    except OSError as error:
        raise _unreadable(path, error) from error
    return _own(path, loaded.entries, loaded.notices())


def _own(path: str, entries: tuple[Entry, ...], notices: tuple[str, ...]) -> Imported:
    """A session of ours from elsewhere, under an id of its own: the one it is of may be here too."""
    import msgspec

    from dragoman.sessions.importers import Imported
    from dragoman.values.record import Configured, Started

    if not entries:
        raise InputError(say("import_empty", path=one_line(path, 200)))
    session_id = new_session_id()
    first, *rest = entries
    if not isinstance(first, Started):
        rest = list(entries)
        first = Started(first.seq - 1, first.timestamp_ms, "")
    head = msgspec.structs.replace(first, session_id=session_id, imported_from=f"dragoman {first.session_id} {path}")
    renamed = (
        msgspec.structs.replace(each, session_id=session_id) if isinstance(each, Configured) and each.session_id else each for each in rest
    )
    return Imported((head, *renamed), "dragoman", notices)


def _at_home(entries: tuple[Entry, ...], workspace: str) -> tuple[Entry, ...]:
    """From here on it is a session of this folder."""
    import msgspec

    from dragoman.values.record import Started

    first, *rest = entries
    if not isinstance(first, Started):
        return entries
    return (msgspec.structs.replace(first, directories=(os.path.realpath(workspace),)), *rest)


def _peek(path: str) -> bytes:
    """How a file begins. A pipe or a device is not waited for."""
    from dragoman.base.private import NotRegularFile, open_named_file

    try:
        with open(open_named_file(path), "rb", buffering=0) as file:
            return file.read(4_096)
    except (IsADirectoryError, NotRegularFile) as error:
        raise InputError(say("import_unreadable", path=one_line(path, 200), reason=say("is_no_file"))) from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: Exception) -> InputError:
    return InputError(say("import_unreadable", path=one_line(path, 200), reason=getattr(error, "strerror", "") or error))
