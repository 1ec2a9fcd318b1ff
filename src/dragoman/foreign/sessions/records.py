"""Read files that other programs wrote: records from a file, and fields from a record, whatever is really there.

A field of the wrong type reads as an empty one. Only InputError is raised, and only for a file that cannot be read at all.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.base.found_files import NotRegularFile, read_found
from dragoman.values.errors import InputError
from dragoman.words import say

Record = dict[str, Any]

MAX_IMPORT_BYTES = 512_000_000
"""A session is read whole."""
_LAST_MS = 253_402_300_799_999
"""The end of the year 9999, the last that calendars support."""
_MOST_TOKENS = 2**53


class ForeignFile(msgspec.Struct, frozen=True):
    """A file as records. A file that is a single JSON object is one record."""

    path: str
    records: tuple[Record, ...]
    unreadable: int = 0
    """Lines that are not JSON objects, including torn ones at the end."""
    changed_ms: int = 0
    """When the file was last changed."""


def read_records(path: str | os.PathLike[str]) -> ForeignFile:
    """Read JSON lines, or one JSON object over many lines. Raises InputError if the file is missing or cannot be read."""
    name = os.fspath(path)
    data, changed_ms = _read(name)
    lines = [line for line in data.split(b"\n") if line.strip()]
    if lines and _record(lines[0]) is None and (whole := _record(data)) is not None:
        return ForeignFile(name, (whole,), changed_ms=changed_ms)
    records = tuple(record for line in lines if (record := _record(line)) is not None)
    return ForeignFile(name, records, len(lines) - len(records), changed_ms)


def _read(path: str) -> tuple[bytes, int]:
    """The content, and when it was last changed."""
    try:
        return read_found(path, MAX_IMPORT_BYTES), os.stat(path).st_mtime_ns // 1_000_000
    except NotRegularFile:
        raise InputError(say("sessions.import_not_a_file", path=path)) from None
    except FileNotFoundError:
        raise InputError(say("sessions.import_missing", path=path)) from None
    except IsADirectoryError:
        raise InputError(say("sessions.import_folder", path=path)) from None
    except OSError as error:
        raise InputError(say("sessions.import_unreadable", path=path, reason=error.strerror or error)) from error


def _record(line: bytes) -> Record | None:
    if jsontext.is_too_deep(line):
        return None
    try:
        return jsontext.decode_object(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None


# --- fields ---------------------------------------------------------------------------------------------------------------


def text(record: Record, key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""


def record(holder: Record, key: str) -> Record:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def items(holder: Record, key: str) -> list[Any]:
    value = holder.get(key)
    return value if isinstance(value, list) else []


def records(holder: Record, key: str) -> list[Record]:
    return [item for item in items(holder, key) if isinstance(item, dict)]


def tokens(holder: Record, key: str) -> int:
    value = holder.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else 0


def milliseconds(value: object) -> int:
    """A time given as ISO text or as milliseconds since 1970; 0 if it is neither."""
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value)
            when = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() * 1000
        except (ValueError, OverflowError):
            return 0
        return round(when) if 0 <= when <= _LAST_MS else 0
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LAST_MS:
        return int(value)
    return 0


def json_text(value: object) -> str:
    """JSON text of a value that was parsed from JSON. Numbers beyond 64 bits are supported."""
    try:
        return jsontext.dumps(value)
    except (OverflowError, ValueError, RecursionError):
        import json  # only for values that msgspec cannot encode

        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
