"""Changes of files, computed and not yet made: what a file is now, and what exactly it would hold."""

from __future__ import annotations

import os

import msgspec

from dragoman.tools.diff import Diff, diff_texts
from dragoman.tools.names import format_size, truncate_path
from dragoman.tools.reading import read_whole
from dragoman.tools.seen import WHOLE_FILE_BYTES, state_of, state_of_large
from dragoman.tools.textfile import TextFile, binary_refusal, decode, is_crlf, to_lf
from dragoman.tools.worker import Stop
from dragoman.tools.workspace import PathRefusal, ToolRefusal, Workspace


class ExistingFile(msgspec.Struct, frozen=True):
    """A file before the change."""

    status: os.stat_result
    state: str
    data: bytes | None
    """None if it is larger than WHOLE_FILE_BYTES."""


class PlannedChange(msgspec.Struct, frozen=True):
    """A computed change of a file, with its exact new content."""

    path: str
    shown: str
    old: ExistingFile | None
    data: bytes
    diff: Diff
    notes: tuple[str, ...] = ()


def read_existing(workspace: Workspace, path: str, stop: Stop) -> ExistingFile | None:
    """The file to be changed; None if it does not exist yet. Raises PathRefusal if it cannot be written."""
    try:
        with workspace.open_file(path) as (descriptor, status):
            data = read_whole(descriptor, WHOLE_FILE_BYTES, stop) if status.st_size <= WHOLE_FILE_BYTES else None
        with workspace.directory(os.path.dirname(path)) as directory, workspace.refusing(path):
            is_writable = directory.is_writable(os.path.basename(path))
    except PathRefusal as refused:
        if refused.error_type == "not_found":
            return None
        raise
    # Replacing by rename would bypass the write protection, and root passes every permission check.
    if not is_writable or not status.st_mode & 0o222:
        shown = truncate_path(workspace.display_path(path))
        raise PathRefusal(f"{shown} is write-protected: leave it, or ask the user to change its permissions", "permission")
    return ExistingFile(status, state_of_large(status) if data is None else state_of(data), data)


def plan_creation(path: str, shown: str, content: str) -> PlannedChange:
    return PlannedChange(path, shown, None, content.encode(), diff_texts("", to_lf(content), shown, is_new=True))


def plan_rewrite(path: str, shown: str, old: ExistingFile, content: str) -> PlannedChange:
    """Replace a file's whole content, keeping its encoding and line endings."""
    notes = link_notes(old)
    if old.data is None or (before := decode(old.data)) is None:
        note = f"replaces a large file of {format_size(old.status.st_size)}"
        return PlannedChange(path, shown, old, content.encode(), diff_texts("", to_lf(content), shown), (*notes, note))
    text = content.replace("\n", "\r\n") if is_crlf(before.text) and "\r\n" not in content else content
    try:
        data = before.encode(text)
    except UnicodeEncodeError:
        notes = (*notes, f"was encoded in {before.encoding.codec}, is now UTF-8")
        data = text.encode()
    return PlannedChange(path, shown, old, data, diff_ignoring_line_ends(before.text, text, shown), notes)


def diff_ignoring_line_ends(old: str, new: str, shown: str) -> Diff:
    """The diff without line endings, unless nothing else changes."""
    if to_lf(old) == to_lf(new):
        return diff_texts(old, new, shown)
    return diff_texts(to_lf(old), to_lf(new), shown)


def text_of(old: ExistingFile, shown: str) -> TextFile:
    if old.data is None:
        raise ToolRefusal(f"{shown} is too large to edit ({format_size(old.status.st_size)}): use run_shell (sed)", "too_large")
    text = decode(old.data)
    if text is None:
        raise binary_refusal(shown, old.data, len(old.data))
    return text


def encode(before: TextFile, text: str, shown: str) -> bytes:
    try:
        return before.encode(text)
    except UnicodeEncodeError as error:
        odd, codec = text[error.start], before.encoding.codec
        message = f"{shown} is encoded in {codec}, which has no {odd!r}: write it another way, or convert the file first"
        raise ToolRefusal(message, "encoding") from error


def link_notes(old: ExistingFile) -> tuple[str, ...]:
    links = old.status.st_nlink
    return (f"it had {links} hard links: the other names keep the old content",) if links > 1 else ()


def require_valid(text: str, argument: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ToolRefusal(
            f"{argument} holds half a surrogate pair at character {error.start}: write the character itself", "invalid"
        ) from error
