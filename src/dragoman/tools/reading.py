"""Reading a file: lines of text, an image or a PDF. What was read is recorded as seen."""

from __future__ import annotations

import os

from dragoman.base.visible import hidden_note
from dragoman.tools.names import format_size, truncate_path
from dragoman.tools.nearest import missing_refusal
from dragoman.tools.seen import SeenFiles, state_of
from dragoman.tools.textfile import binary_refusal
from dragoman.tools.window import CHUNK_BYTES, FileReading, read_head, read_window
from dragoman.tools.worker import Stop
from dragoman.tools.workspace import PathRefusal, ToolRefusal, Workspace
from dragoman.values.messages import Media

MAX_MEDIA_BYTES = 20_000_000


def read_path(
    workspace: Workspace, seen: SeenFiles, path: str, stop: Stop, *, first_line: int = 1, max_lines: int, max_chars: int
) -> FileReading | Media:
    """Read the file at a resolved path. Raises ToolRefusal."""
    from dragoman.values.media_types import media_type

    shown = truncate_path(workspace.display_path(path))
    try:
        with workspace.open_file(path) as (descriptor, status):
            head = read_head(descriptor)
            if mime := media_type(head):
                data = read_whole(descriptor, MAX_MEDIA_BYTES, stop)
                if data is None:
                    size = format_size(status.st_size)
                    raise ToolRefusal(
                        f"{shown} is too large to look at ({mime}, {size}): make it smaller than 20 MB with run_shell", "too_large"
                    )
                seen.note(path, state_of(data))
                return Media(data, mime)
            reading = read_window(descriptor, status, first_line, max_lines, max_chars, stop)
    except PathRefusal as refused:
        if refused.error_type == "not_found":
            raise missing_refusal(workspace, path) from refused
        raise
    if reading is None:
        raise binary_refusal(shown, head, status.st_size)
    last = reading.last_line - reading.line_is_cut  # half a line was not seen
    seen.note_lines(path, reading.state, reading.first_line, last, reading.total_lines)
    return reading


def read_whole(descriptor: int, max_bytes: int, stop: Stop) -> bytes | None:
    """Everything up to the end; None if that is more than `max_bytes`."""
    chunks: list[bytes] = []
    size = 0
    while chunk := os.read(descriptor, CHUNK_BYTES):
        stop()
        size += len(chunk)
        if size > max_bytes:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def with_notes(reading: FileReading) -> str:
    """The text followed by notes for the model: where to continue, the encoding, and which characters in it are not seen."""
    crlf = "has CRLF line endings, which edit keeps" * reading.has_crlf
    hidden = hidden_note(reading.text, reading.first_line)
    notes = [note for note in (_describe_range(reading), reading.encoding.note, crlf, hidden) if note]
    if not notes:
        return reading.text
    gap = "" if reading.text.endswith("\n") else "\n"
    return f"{reading.text}{gap}[{'; '.join(notes)}]"


def _describe_range(reading: FileReading) -> str:
    total = reading.total_lines
    if not reading.has_more and reading.first_line == 1:
        return ""
    whole = f"{total}" if total is not None else f"a file of {format_size(reading.size_bytes)}"
    place = f"lines {reading.first_line}-{reading.last_line} of {whole}"
    if reading.line_is_cut:
        place = f"the beginning of line {reading.last_line} of {whole}: see its rest with run_shell (cut -c, jq)"
    if total is None or reading.last_line < total:
        joint = ", or" if reading.line_is_cut else ":"
        return f"{place}{joint} go on with offset={reading.last_line + 1}"
    return place
