"""Decodes server-sent events from bytes, however they are chunked.

Lines end at \\n, \\r\\n or \\r and nowhere else: U+2028 and U+0085 inside data are data. Comments are dropped. Several `data:` lines are
joined. The last event counts even without a blank line after it: only the terminal event says whether the stream was complete.
"""

from __future__ import annotations

from typing import NamedTuple

from dragoman.values.errors import StreamBroken
from dragoman.words import say

MAX_EVENT_BYTES = 256 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    name: str
    data: bytes


class SSEDecoder:
    """Sans-IO: feed bytes, get events."""

    max_event_bytes = MAX_EVENT_BYTES

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._after_cr = False
        self._at_start = True
        self.heartbeats = 0
        """How many chunks brought a comment: services send one now and then to say that they are at work."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        if self._after_cr or b"\r" in chunk:
            chunk = self._with_plain_newlines(chunk)
        buffer = self._buffer
        search_from = max(len(buffer) - 1, 0)
        if b"\n:" in chunk or (chunk.startswith(b":") and (not buffer or buffer.endswith(b"\n"))):
            self.heartbeats += 1
        buffer += chunk
        events: list[ServerEvent] = []
        begin = 0
        while (end := buffer.find(b"\n\n", search_from)) >= 0:
            if event := self._parse(bytes(buffer[begin:end])):
                events.append(event)
            begin = search_from = end + 2
        if begin:
            del buffer[:begin]
        elif len(buffer) > self.max_event_bytes:
            raise StreamBroken(say("http.event_too_long", most=self.max_event_bytes), retryable=False)
        return events

    def close(self) -> list[ServerEvent]:
        """The last event, at the end of the body."""
        event = self._parse(bytes(self._buffer))
        self._buffer.clear()
        return [event] if event else []

    def _with_plain_newlines(self, chunk: bytes) -> bytes:
        if not chunk:
            return chunk
        if self._after_cr and chunk.startswith(b"\n"):
            chunk, ended = chunk[1:], chunk.endswith(b"\r")
        else:
            ended = chunk.endswith(b"\r")
        self._after_cr = ended
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _parse(self, block: bytes) -> ServerEvent | None:
        if self._at_start:
            self._at_start = False
            block = block.removeprefix(_BOM)
        if block.startswith(b"data: ") and b"\n" not in block:
            return ServerEvent("", block[6:])
        name = ""
        data: list[bytes] = []
        for line in block.split(b"\n"):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value.decode(errors="replace")
            elif field == b"error" and value.startswith(b"{"):  # not in the standard: llama.cpp and servers around it end a stream so
                return ServerEvent("error", b'{"error":' + value + b"}")
        return ServerEvent(name, b"\n".join(data)) if data else None
