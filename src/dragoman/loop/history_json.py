"""A history as JSON text, for a database column, a queue or another machine: an array of entries as a session's log has them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.base import jsontext
from dragoman.sessions.log import encode_body
from dragoman.sessions.upgrade import upgrade
from dragoman.values.errors import InputError
from dragoman.values.record import Entry
from dragoman.values.record_reading import decode_entry
from dragoman.words import say


def to_json(entries: Sequence[Entry]) -> str:
    return "[" + ",\n".join(encode_body(entry).decode() for entry in entries) + "]"


def from_json(text: str | bytes) -> list[Entry]:
    """Raises InputError where it is not what `to_json` writes. An entry of a kind that a later version has is kept as it is."""
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    try:
        return upgrade(decode_entry(bytes(each)) for each in msgspec.json.decode(data, type=list[msgspec.Raw]))
    except (msgspec.DecodeError, jsontext.NotJSON, UnicodeError, RecursionError) as error:
        raise InputError(say("loop.not_a_history", reason=error)) from error
