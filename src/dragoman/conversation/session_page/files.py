"""The files that a session changed: by call, as they were before and after, as far as their bytes were kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from dragoman.base import jsontext
from dragoman.sessions.file_state import is_hash, read_file_state
from dragoman.sessions.undo import file_changes, is_written_ahead
from dragoman.values.contracts import BlobStore
from dragoman.values.record import Entry, FileChange, Said, ToolStarted

SHOWN_BYTES = 400_000
"""Longer files are not shown side by side."""


def changed_files(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Every change that was not undone, in order. `before` and `after` are SHA-256s, empty where there was no file."""
    return [
        {"seq": change.seq, "call_id": change.call_id, "path": file.path, "before": file.before, "after": file.after}
        for change in file_changes(entries)
        for file in change.files
        if not is_written_ahead(change)
    ]


def file_texts(entries: Sequence[Entry], blobs: BlobStore, seq: int, path: str) -> dict[str, Any]:
    """The text of a changed file before and after the change at `seq`: null where its bytes were not kept, or are no text."""
    for change in file_changes(entries):
        for file in change.files:
            if change.seq == seq and file.path == path:
                wanted = _wanted_content(entries, change.call_id)
                return {"before": _text(file.before, blobs, file, ""), "after": _text(file.after, blobs, file, wanted)}
    return {"before": None, "after": None}


def _text(content: str, blobs: BlobStore, file: FileChange, written: str) -> str | None:
    if not content:
        return ""
    if not is_hash(content):
        return None
    data = next(_bytes_with(content, blobs, file, written), None)
    if data is None or len(data) > SHOWN_BYTES or b"\0" in data:
        return None
    return data.decode("utf-8", "replace")


def _bytes_with(content: str, blobs: BlobStore, file: FileChange, written: str) -> Iterator[bytes]:
    """Only what was replaced later is kept as bytes; what came of the last change is the file itself, or what the call wrote."""
    if (kept := blobs.get(content)) is not None:
        yield kept
    if written and sha256(data := written.encode("utf-8", "surrogateescape")).hexdigest() == content:
        yield data
    state = read_file_state(file.path)
    if state.content == content and state.data is not None:
        yield state.data


def _wanted_content(entries: Sequence[Entry], call_id: str) -> str:
    """What a call that writes whole files wrote."""
    arguments = ""
    for entry in entries:
        if isinstance(entry, Said):
            arguments = next((call.arguments for call in entry.message.calls if call.id == call_id), arguments)
        elif isinstance(entry, ToolStarted) and entry.call_id == call_id:
            arguments = entry.arguments or arguments
    content = (jsontext.decode_object(arguments or "{}") or {}).get("content")
    return content if isinstance(content, str) else ""
