"""Reads the entries of a record from their lines. Loaded when a log is first read: not before a first request."""

from __future__ import annotations

from functools import cache

import msgspec

from dragoman.base import jsontext
from dragoman.values.record import Entry, Unknown


@cache
def _decoder() -> msgspec.json.Decoder[Entry]:
    return msgspec.json.Decoder(Entry)


class _Envelope(msgspec.Struct):
    seq: int = 0
    timestamp_ms: int = 0
    kind: str = ""


def decode_entry(line: bytes) -> Entry:
    """The entry on a line. An unknown kind becomes Unknown; a line that is not an entry at all raises NotJSON."""
    try:
        return _decoder().decode(line)
    except msgspec.DecodeError as error:
        try:
            envelope = msgspec.json.decode(line, type=_Envelope)
        except msgspec.DecodeError:
            raise jsontext.NotJSON(f"not an entry: {error}") from error
        if not envelope.kind:
            raise jsontext.NotJSON(f"not an entry: {error}") from error
        return Unknown(envelope.seq, envelope.timestamp_ms, line.decode())
