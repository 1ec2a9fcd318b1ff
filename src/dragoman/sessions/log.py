"""The lines of a session's log: one entry each, with a checksum, readable even if the file is damaged.

A line is the entry's JSON with `,"crc":"xxxxxxxx"` before its last brace and a newline after it; the checksum is the CRC-32 of the
bytes before that comma. Only newline bytes separate lines.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import msgspec

from dragoman.base import jsontext
from dragoman.base.private import open_file
from dragoman.values.errors import InputError
from dragoman.values.record import Entry, Unknown, encode_entry
from dragoman.words import say

_CRC = b',"crc":"'
_NAMED_LINES = 5
"""How many damaged lines are named one by one."""
_CRC_BYTES = len(_CRC) + 8 + len(b'"}\n')


class Damaged(ValueError):
    """A line that does not hold the entry that was written to it. Its message is the reason, in a few words."""


class Damage(msgspec.Struct, frozen=True):
    """A line that could not be read. It stays in the file unchanged."""

    line_number: int
    """Counted from 1."""
    offset: int
    """Where it begins, in bytes."""
    reason: str


class LoadedLog(msgspec.Struct, frozen=True):
    """What a log holds."""

    entries: tuple[Entry, ...]
    damage: tuple[Damage, ...] = ()
    """Lines in the middle that could not be read: their entries are missing."""
    torn: bytes = b""
    """The bytes after the last whole line: a line that was being written, or what a crash left of it."""
    size: int = 0
    """Bytes up to the end of the last whole line."""
    torn_file: str = ""
    """Where the torn tail was saved, once it has been set aside."""
    crlf: int = 0
    """Lines that end in CRLF: something converted the file. They are read as if it had not."""
    access: str = ""
    """What the user should know of who may write the file; empty if only they may."""

    def notices(self) -> tuple[str, ...]:
        """What the user should know about the state of the log."""
        named = self.damage[:_NAMED_LINES]
        lines = [say("sessions.line_unreadable", line=each.line_number, offset=each.offset, reason=each.reason) for each in named]
        if more := len(self.damage) - len(named):
            lines.append(say("sessions.lines_unreadable", count=more, last=self.damage[-1].line_number))
        if self.crlf:
            lines.append(say("sessions.crlf", count=self.crlf))
        if self.access:
            lines.append(self.access)
        if strange := sum(isinstance(entry, Unknown) for entry in self.entries):
            lines.append(say("sessions.unknown_entries", count=strange))
        if self.torn:
            size = len(self.torn)
            kept_in = self.torn_file
            lines.append(say("sessions.torn_set_aside", bytes=size, file=kept_in) if kept_in else say("sessions.torn_left", bytes=size))
        return tuple(lines)


def encode_body(entry: Entry) -> bytes:
    """The JSON object of an entry, on one line, as a log has it before its checksum."""
    try:
        body = encode_entry(entry)
    except UnicodeEncodeError:  # half a surrogate pair in the text of an Unknown
        body = jsontext.valid_unicode(entry.json).encode() if isinstance(entry, Unknown) else jsontext.encode(entry)
    if isinstance(entry, Unknown) and (b"\n" in body or not body.endswith(b"}")):
        body = jsontext.encode(jsontext.decode(body))
    return body


def encode_line(entry: Entry) -> bytes:
    """The line for an entry, newline included."""
    checked = encode_body(entry)[:-1]
    return b'%b,"crc":"%08x"}\n' % (checked, zlib.crc32(checked))


def decode_line(line: bytes) -> Entry:
    """The entry on a line. Raises Damaged."""
    if not line.endswith(b"\n"):
        raise Damaged("incomplete")
    if line.endswith(b"\r\n"):  # a copy that something converted
        line = line[:-2] + b"\n"
    if len(line) < _CRC_BYTES or not line.startswith(_CRC, len(line) - _CRC_BYTES) or not line.endswith(b'"}\n'):
        raise Damaged("no checksum")
    from dragoman.values.record_reading import decode_entry

    checked = line[:-_CRC_BYTES]
    if b"%08x" % zlib.crc32(checked) != line[-11:-3]:
        raise Damaged("its checksum does not match")
    try:
        return decode_entry(checked + b"}")
    except (jsontext.NotJSON, UnicodeError, RecursionError) as error:
        raise Damaged(str(error)) from error


def read_lines(file: Iterable[bytes]) -> Iterator[tuple[int, int, bytes, Entry | Damaged]]:
    """Each line as (line number, offset, its bytes, the entry or what is wrong with it)."""
    offset = 0
    last_seq = 0
    from dragoman.sessions.upgrade import Upgrader

    upgrading = Upgrader()
    for number, line in enumerate(file, 1):
        try:
            entry: Entry | Damaged = upgrading.take(decode_line(line))
        except Damaged as damaged:
            entry = damaged
        if not isinstance(entry, Damaged):
            if number > 1 and entry.seq <= last_seq:
                # A whole line in the wrong place: two writers, or a bad copy. Using it would corrupt the history.
                entry = Misplaced(f"entry {entry.seq} after entry {last_seq}")
            else:
                last_seq = entry.seq
        yield number, offset, line, entry
        offset += len(line)


class Misplaced(Damaged):
    """A whole line whose number is out of order."""


def read_log(path: str | os.PathLike[str]) -> LoadedLog:
    """Everything that can be read. Raises OSError, or InputError if it is a link or not a regular file."""
    with os.fdopen(open_file(os.fspath(path), refuse=InputError), "rb", buffering=1 << 18) as file:
        loaded = read_file(file)
        mode = loose_mode(os.fstat(file.fileno()))
    if not mode:
        return loaded
    return msgspec.structs.replace(loaded, access=say("sessions.others_can_write", mode=f"{mode:04o}", path=os.fspath(path)))


def loose_mode(status: os.stat_result) -> int:
    """The mode of a file that others may write; 0 if only its owner may, or the system has no such modes. That others may read it does not
    count: they cannot enter its directory."""
    return stat.S_IMODE(status.st_mode) if os.name != "nt" and status.st_mode & 0o022 else 0


def read_file(file: BinaryIO) -> LoadedLog:
    """Read a log from an open file, from its current position."""
    entries: list[Entry] = []
    damage: list[Damage] = []
    unread: list[tuple[Damage, bytes]] = []
    size = crlf = 0
    for number, offset, line, entry in read_lines(file):
        if isinstance(entry, Damaged):
            unread.append((Damage(number, offset, str(entry)), line))
            if not isinstance(entry, Misplaced):
                continue
        else:
            entries.append(entry)
            crlf += line.endswith(b"\r\n")
        # Unreadable lines before a whole line are damage; only those that no whole line follows are a torn tail.
        damage.extend(each for each, _ in unread)
        unread.clear()
        size = offset + len(line)
    return LoadedLog(tuple(entries), tuple(damage), b"".join(line for _, line in unread), size, crlf=crlf)


def read_rows(rows: Iterable[bytes]) -> LoadedLog:
    """Read a log that is kept in a table, a line in each row: a row is there or it is not, so none of them is torn."""
    entries: list[Entry] = []
    damage: list[Damage] = []
    size = 0
    for number, offset, line, entry in read_lines(rows):
        size = offset + len(line)
        if isinstance(entry, Damaged):
            damage.append(Damage(number, offset, str(entry)))
        else:
            entries.append(entry)
    return LoadedLog(tuple(entries), tuple(damage), size=size)
