"""Parsers for ripgrep's output: incremental and bounded in memory, whatever the files' names and contents."""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Callable
from typing import Literal

import msgspec

from dragoman.tools.ripgrep import Enough

MAX_LINE_CHARS = 400
"""A longer line is truncated around its match."""
_BEFORE_MATCH_CHARS = 100
_MAX_RECORD_BYTES = 2_000_000
"""A longer record is skipped: some files are one huge line."""

Wanted = Callable[[str], bool]


class Line(msgspec.Struct, frozen=True):
    number: int
    text: str
    is_match: bool


class Paths:
    """Paths, each terminated by NUL (`--null`)."""

    def __init__(self, wanted: Wanted, most: int) -> None:
        self.found: list[str] = []
        self._wanted = wanted
        self._most = most
        self._rest = b""

    def take(self, data: bytes) -> None:
        *names, self._rest = (self._rest + data).split(b"\0")
        self.found += filter(self._wanted, map(os.fsdecode, names))
        if len(self.found) > self._most:
            raise Enough


class Counts:
    """Paths with their number of matching lines: path, NUL, number, newline (`--count --null`)."""

    def __init__(self, wanted: Wanted, most: int) -> None:
        self.found: dict[str, int] = {}
        self._wanted = wanted
        self._most = most
        self._rest = b""

    def take(self, data: bytes) -> None:
        self._rest += data
        while True:
            name, nul, after = self._rest.partition(b"\0")
            number, line_break, rest = after.partition(b"\n")
            if not nul or not line_break:
                return
            self._rest = rest
            path = os.fsdecode(name)
            if self._wanted(path):
                self.found[path] = int(number)
                if len(self.found) > self._most:
                    raise Enough


class Matches:
    """Lines, as JSON records (`--json`). Stops after more than `most` matches, or ten times as many lines in all."""

    def __init__(self, wanted: Wanted, most: int) -> None:
        self.found: dict[str, list[Line]] = {}
        self.count = 0
        self.passed_over = 0
        """Records that were too long and skipped."""
        self._wanted = wanted
        self._most = most
        self._lines_left = 10 * most
        self._rest = bytearray()
        self._is_too_long = False
        self._decode = msgspec.json.Decoder(_Record).decode

    def take(self, data: bytes) -> None:
        first, *others = data.split(b"\n")
        self._append(first)
        for each in others:
            self._end_record()
            self._append(each)

    def _append(self, data: bytes) -> None:
        if len(self._rest) + len(data) > _MAX_RECORD_BYTES:
            self._is_too_long = True
            self._rest.clear()
        if not self._is_too_long:
            self._rest += data

    def _end_record(self) -> None:
        record = bytes(self._rest)
        self._rest.clear()
        if self._is_too_long:
            self._is_too_long = False
            self.passed_over += 1
        elif record:
            self._read(record)

    def _read(self, record: bytes) -> None:
        try:
            read = self._decode(record)
        except msgspec.DecodeError:
            return
        if read.type not in ("match", "context") or read.data.line_number is None:
            return
        path = os.fsdecode(read.data.path.raw())
        if not self._wanted(path):
            return
        is_match = read.type == "match"
        self.count += is_match
        self._lines_left -= 1
        if self.count > self._most or self._lines_left < 0:
            raise Enough
        starts = read.data.submatches
        text = _truncate_line(read.data.lines.raw(), starts[0].start if starts else 0)
        self.found.setdefault(path, []).append(Line(read.data.line_number, text, is_match))


class _Bytes(msgspec.Struct, frozen=True):
    """Text, or base64 if it is not UTF-8."""

    text: str | None = None
    base64: str = msgspec.field(default="", name="bytes")

    def raw(self) -> bytes:
        return b64decode(self.base64) if self.text is None else self.text.encode()


class _Place(msgspec.Struct, frozen=True):
    start: int


class _Data(msgspec.Struct, frozen=True):
    path: _Bytes = _Bytes()
    lines: _Bytes = _Bytes()
    line_number: int | None = None
    submatches: tuple[_Place, ...] = ()


class _Record(msgspec.Struct, frozen=True):
    type: Literal["begin", "match", "context", "end", "summary"]
    data: _Data = _Data()


def _truncate_line(line: bytes, match_at: int) -> str:
    """The line without its newline; a long one is truncated around the match."""
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    if len(text) <= MAX_LINE_CHARS:
        return text
    start = max(0, len(line[:match_at].decode("utf-8", "replace")) - _BEFORE_MATCH_CHARS)
    start = min(start, len(text) - MAX_LINE_CHARS) if start > 0 else 0
    end = start + MAX_LINE_CHARS
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
