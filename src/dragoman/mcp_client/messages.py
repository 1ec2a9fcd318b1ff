"""Messages of JSON-RPC as MCP has them: to bytes, from bytes, and cut out of a stream of lines. Pure: nothing here reads or writes."""

from __future__ import annotations

import re
from typing import Any

import msgspec

Id = int | str
MOST_LINE_BYTES = 64 * 1024 * 1024
MOST_IN_BATCH = 10_000
_END_BYTES = 200
_FIRST_ID = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_LAST_ID = re.compile(rb',\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


class RpcResult(msgspec.Struct, frozen=True):
    """The result of a request of ours."""

    id: Id
    result: dict[str, Any]


class RpcError(msgspec.Struct, frozen=True):
    """A request of ours failed. Without an id: the server could not read it."""

    id: Id | None
    code: int
    message: str
    data: Any = None


class RpcRequest(msgspec.Struct, frozen=True):
    """A request of the server."""

    id: Id
    method: str
    params: dict[str, Any]


class RpcNotification(msgspec.Struct, frozen=True):
    """A notification."""

    method: str
    params: dict[str, Any]


Incoming = RpcResult | RpcError | RpcRequest | RpcNotification


class NotAMessage(ValueError):
    """Bytes that are not JSON, or JSON that is not a message."""


def to_wire(message: dict[str, Any]) -> bytes:
    """One line, without its end: JSON escapes line ends inside texts."""
    return _ENCODER.encode({"jsonrpc": "2.0", **message})


def from_wire(data: bytes) -> list[Incoming]:
    """The messages in a body or line: one, or several where the server sends them in a list (revision 2025-03-26)."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotAMessage(str(error)) from None
    if isinstance(value, list):
        if not value or len(value) > MOST_IN_BATCH:
            raise NotAMessage("a list of no or too many messages")
        return [_read(each) for each in value]
    return [_read(value)]


def _read(value: Any) -> Incoming:
    if not isinstance(value, dict):
        raise NotAMessage("not an object")
    identity = _id_of(value)
    if "method" in value:
        method, params = value["method"], value.get("params")
        if not isinstance(method, str):
            raise NotAMessage("a method that is no text")
        params = params if isinstance(params, dict) else {}
        return RpcNotification(method, params) if identity is None else RpcRequest(identity, method, params)
    if value.get("error") is not None:  # some send both, and one of them empty
        return _read_fault(identity, value["error"])
    result = value.get("result")
    if identity is None:
        raise NotAMessage("neither a request, a notification, a result nor an error")
    if isinstance(result, dict):
        return RpcResult(identity, result)
    # Whoever waits for this answer gets no other one.
    return RpcResult(identity, {}) if "result" in value and result is None else RpcError(identity, 0, "an answer without a result")


def _id_of(value: dict[str, Any]) -> Id | None:
    identity = value.get("id")
    if isinstance(identity, float) and identity.is_integer():
        return int(identity)  # some servers count in floating point
    if identity is None or (isinstance(identity, int | str) and not isinstance(identity, bool)):
        return identity
    raise NotAMessage("an id that is neither a number nor a text")


def _read_fault(identity: Id | None, error: Any) -> RpcError:
    if isinstance(error, str):
        return RpcError(identity, 0, error)
    if not isinstance(error, dict):
        return RpcError(identity, 0, "")
    code, message = error.get("code"), error.get("message")
    return RpcError(
        identity,
        code if isinstance(code, int) and not isinstance(code, bool) else 0,
        message if isinstance(message, str) else "",
        error.get("data"),
    )


class LineCutter:
    """Cuts a stream of bytes into lines, however it is chunked. A line over the limit is dropped and counted, and the next one is read."""

    def __init__(self, most_bytes: int = MOST_LINE_BYTES) -> None:
        self.dropped = 0
        """How many lines were too long."""
        self.unread: list[Id] = []
        """The ids of the answers that were among them, as far as they can be seen."""
        self._most = most_bytes
        self._parts: list[bytes] = []
        self._length = 0
        self._is_dropping = False
        self._ends = (b"", b"")
        """How a line that is dropped began, and the last of it."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that are complete, without their ends and without empty ones."""
        *ended, rest = chunk.split(b"\n")
        lines: list[bytes] = []
        for piece in ended:
            self._keep(piece)
            if line := self._take():
                lines.append(line)
        if rest:
            self._keep(rest)
        return lines

    def close(self) -> list[bytes]:
        """What is left at the end of the stream: a line whose end was never written."""
        line = self._take()
        return [line] if line else []

    def _keep(self, piece: bytes) -> None:
        if self._is_dropping:
            self._ends = (self._ends[0], (self._ends[1] + piece[-_END_BYTES:])[-_END_BYTES:])
            return
        self._length += len(piece)
        if self._length > self._most:
            self._is_dropping = True
            self.dropped += 1
            start = b"".join(part[:_END_BYTES] for part in (*self._parts, piece)[:_END_BYTES])
            self._ends = (start[:_END_BYTES], piece[-_END_BYTES:])
            self._parts.clear()
        elif piece:
            self._parts.append(piece)

    def _take(self) -> bytes:
        line = b"" if self._is_dropping else b"".join(self._parts).strip(b" \t\r")
        if self._is_dropping and (found := _FIRST_ID.match(self._ends[0]) or _LAST_ID.search(self._ends[1])):
            self.unread.append(int(found[1]))
        self._parts.clear()
        self._length = 0
        self._is_dropping = False
        return line


_ENCODER = msgspec.json.Encoder()
