"""Reading a range of lines in bounded memory, however large the file or its lines are."""

from __future__ import annotations

import codecs
import os

import msgspec

from dragoman.tools.seen import WHOLE_FILE_BYTES, new_hasher, state_of_large
from dragoman.tools.textfile import SNIFFED_BYTES, Encoding, encodings_of
from dragoman.tools.worker import Stop
from dragoman.values.record import FileVersion

CHUNK_BYTES = 256 * 1024


class FileReading(msgspec.Struct, frozen=True):
    """What was read of a text file."""

    text: str
    """Whole lines separated by LF; only the start of a line if that alone is too long."""
    first_line: int
    last_line: int
    """Less than first_line if nothing was read: the file ends earlier."""
    total_lines: int | None
    """None if the file is too large to be read to its end."""
    line_is_cut: bool
    encoding: Encoding
    has_crlf: bool
    state: str
    """For SeenFiles."""
    size_bytes: int

    def version(self, path: str) -> tuple[FileVersion, ...]:
        """The file, for the record. Empty where it is too large to be compared later."""
        return (FileVersion(path, self.state, self.total_lines),) if self.size_bytes <= WHOLE_FILE_BYTES else ()

    @property
    def has_more(self) -> bool:
        return self.line_is_cut or self.total_lines is None or self.last_line < self.total_lines


def read_head(descriptor: int) -> bytes:
    """The head of a file, to detect its type. Rewinds the file afterwards."""
    head = os.read(descriptor, SNIFFED_BYTES)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return head


def read_window(descriptor: int, status: os.stat_result, first_line: int, max_lines: int, max_chars: int, stop: Stop) -> FileReading | None:
    """Lines of a text file from `first_line` (counted from 1). None if it is not text.

    Up to WHOLE_FILE_BYTES the file is read to its end, so that encoding and state are those of the whole.
    """
    for encoding in encodings_of(read_head(descriptor)):
        try:
            return _read_as(encoding, descriptor, status, LineWindow(first_line, max_lines, max_chars), stop)
        except UnicodeDecodeError:
            os.lseek(descriptor, 0, os.SEEK_SET)
    return None


def _read_as(encoding: Encoding, descriptor: int, status: os.stat_result, window: LineWindow, stop: Stop) -> FileReading:
    # With a byte order mark, invalid bytes are damage; without one the encoding is a guess that may fail.
    decoder = codecs.getincrementaldecoder(encoding.codec)("replace" if encoding.codec.startswith("utf-") and encoding.bom else "strict")
    hasher = new_hasher()
    hasher.update(encoding.bom)
    os.lseek(descriptor, len(encoding.bom), os.SEEK_SET)
    size_bytes = len(encoding.bom)
    held = ""
    has_crlf = False
    at_end = False
    while not at_end and not (window.is_full and max(status.st_size, size_bytes) > WHOLE_FILE_BYTES):
        stop()
        chunk = os.read(descriptor, CHUNK_BYTES)
        at_end = not chunk
        size_bytes += len(chunk)
        if max(status.st_size, size_bytes) <= WHOLE_FILE_BYTES:
            hasher.update(chunk)
        text = held + decoder.decode(chunk, at_end)
        held = "\r" if text.endswith("\r") and not at_end else ""  # maybe half of a CRLF
        text = text[: len(text) - len(held)]
        if "\r\n" in text:
            has_crlf = True
            text = text.replace("\r\n", "\n")
        window.feed(text)
    shown, last_line, line_is_cut = window.lines()
    return FileReading(
        shown.replace("\0", "␀"),  # some services drop or refuse NUL
        window.first_line,
        last_line,
        window.lines_fed if at_end else None,
        line_is_cut,
        encoding,
        has_crlf,
        hasher.hexdigest() if at_end and max(status.st_size, size_bytes) <= WHOLE_FILE_BYTES else state_of_large(status),
        max(size_bytes, status.st_size),
    )


class LineWindow:
    """A range of lines from text that arrives in pieces. Stores no more than it returns."""

    def __init__(self, first_line: int, max_lines: int, max_chars: int) -> None:
        self.first_line = first_line
        self._max_lines = max_lines
        self._max_chars = max_chars
        self._to_skip = first_line - 1
        self._kept: list[str] = []
        self._kept_chars = 0
        self._kept_newlines = 0
        self._newlines_fed = 0
        self._ends_in_newline = True

    @property
    def is_full(self) -> bool:
        return self._kept_chars > self._max_chars or self._kept_newlines >= self._max_lines

    @property
    def lines_fed(self) -> int:
        """The total number of lines, including a last one without newline."""
        return self._newlines_fed + (not self._ends_in_newline)

    def feed(self, text: str) -> None:
        if not text:
            return
        newlines = text.count("\n")
        self._newlines_fed += newlines
        self._ends_in_newline = text.endswith("\n")
        if self.is_full:
            return
        if self._to_skip > newlines:
            self._to_skip -= newlines
            return
        start = 0
        for _ in range(self._to_skip):
            start = text.index("\n", start) + 1
        self._to_skip = 0
        # One extra character shows that there is more.
        kept = text[start : start + self._max_chars + 1 - self._kept_chars]
        self._kept.append(kept)
        self._kept_chars += len(kept)
        self._kept_newlines += kept.count("\n")

    def lines(self) -> tuple[str, int, bool]:
        """The text, the number of its last line, and whether that line is truncated."""
        text = "".join(self._kept)
        if self._kept_newlines >= self._max_lines:
            end = 0
            for _ in range(self._max_lines):
                end = text.index("\n", end) + 1
            text = text[:end]
        line_is_cut = False
        if len(text) > self._max_chars:
            end = text.rfind("\n", 0, self._max_chars + 1) + 1  # the newline itself does not make a line too long
            line_is_cut = end == 0
            text = text[: end or self._max_chars]
        lines = text.count("\n") + (text != "" and not text.endswith("\n"))
        return text, self.first_line + lines - 1, line_is_cut
