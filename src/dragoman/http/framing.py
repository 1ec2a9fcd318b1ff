"""HTTP/1.1 framing, sans-IO: writes requests, and finds where the head and body of an answer end.

It is strict, so that nothing can be read in two ways: two lengths, a length together with chunks, a bare line feed or an endless head
are rejected. Bytes are fed as they arrive; any chunking of them gives the same answer.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from dragoman import __version__
from dragoman.values.errors import ConfigError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.http.route import Route

BODY_LENGTH = frozenset({b"content-length", b"transfer-encoding"})
"""Headers that say where a body ends. Only the transport sets them."""

MAX_HEAD_BYTES = 64 * 1024
MAX_INFORMATIONAL = 32
"""How many informational answers (100, 103) are skipped. A server that sends more is not going to answer."""
MAX_SIZE_LINE_BYTES = 4096
"""Longest line with a chunk's size and its extensions."""

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: ([^\x00\n\v\f\r]*))?")
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([^\x00\n\v\f\r]*)")
_FIELD_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FIELD_VALUE = re.compile(rb"[^\x00\n\v\f\r]*")
_TARGET = re.compile(rb"[\x21-\x7e]+")
_LENGTH = re.compile(r"[0-9]{1,18}")
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;[^\r\n]*|[ \t]*)\r\n")
_SIZE_LINE_SO_FAR = re.compile(rb"[0-9A-Fa-f]{1,15}(?:;[^\r\n]*|[ \t]*)\r?")


class NotHTTP(Exception):
    """The bytes are not an HTTP/1.1 answer, or an ambiguous one."""


class Unsendable(ValueError):
    """A request that is not valid HTTP. The message does not quote it: a header may contain a key."""


# --- requests ---------------------------------------------------------------------------------------------------------------


def request_head(method: str, target: str, fields: Sequence[tuple[bytes, bytes]]) -> bytes:
    line = [method.encode("ascii", "replace"), target.encode("ascii", "replace")]
    if not _FIELD_NAME.fullmatch(line[0]) or not _TARGET.fullmatch(line[1]):
        raise Unsendable
    lines = [b"%b %b HTTP/1.1" % tuple(line)]
    for name, value in fields:
        if not _FIELD_NAME.fullmatch(name) or not _FIELD_VALUE.fullmatch(value):
            raise Unsendable
        lines.append(b"%b: %b" % (name, value.strip(b" \t")))
    return b"\r\n".join([*lines, b"", b""])


def request_fields(method: str, headers: Mapping[str, str], body: bytes, route: Route) -> list[tuple[bytes, bytes]]:
    """The header fields of a request: the caller's override ours, except those that say where the body ends."""
    fields = {
        b"host": route.host.encode("latin-1"),
        b"accept": b"*/*",
        # identity: events are small and arrive one by one, so compression saves little, costs a flush per event
        # and lets servers and proxies hold them back until a block is full. A compressed answer is still decompressed.
        b"accept-encoding": b"identity",
        b"user-agent": f"Dragoman/{__version__}".encode(),
    }
    if route.login:
        fields[b"authorization"] = route.login.encode("latin-1")
    if route.is_forwarded and route.proxy_login:
        fields[b"proxy-authorization"] = route.proxy_login.encode("latin-1")
    for name, value in headers.items():
        try:
            fields[name.lower().encode("ascii")] = value.encode("latin-1")
        except UnicodeEncodeError:
            raise ConfigError(say("http.header_character", name=name)) from None
    for name in BODY_LENGTH & fields.keys():
        del fields[name]
    if body or method in {"POST", "PUT", "PATCH"}:
        fields[b"content-length"] = b"%d" % len(body)
    return list(fields.items())


def request_target(path: str) -> str:
    """The path and query, quoted for a request line."""
    path = path if path.startswith("/") else f"/{path}"
    if path.isascii() and path.isprintable() and " " not in path:
        return path

    return quote(path, safe="/?:@!$&'()*+,;=%[]|~")


# --- heads ------------------------------------------------------------------------------------------------------------------


class Head:
    """An answer's status and headers."""

    __slots__ = ("headers", "minor", "reason", "status")

    def __init__(self, status: int, reason: str, minor: int, headers: dict[str, str]) -> None:
        self.status = status
        self.reason = reason
        self.minor = minor
        """The x of HTTP/1.x."""
        self.headers = headers
        """Names in lower case; repeated headers are joined with commas."""

    @property
    def stays_open(self) -> bool:
        """Whether the server keeps the connection open for more requests (keep-alive)."""
        wishes = {wish.strip().lower() for wish in self.headers.get("connection", "").split(",")}
        return "close" not in wishes and (self.minor == 1 or "keep-alive" in wishes)


def read_head(data: bytes) -> tuple[Head, int] | None:
    """The head at the start of `data` and where it ends; None while it is incomplete."""
    if not data.startswith(b"HTTP/1.") and not b"HTTP/1.".startswith(data):
        raise NotHTTP("the answer does not begin with HTTP/1.x")
    end = data.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES)
    if end < 0:
        if len(data) >= MAX_HEAD_BYTES:
            raise NotHTTP(f"the answer's head is longer than {MAX_HEAD_BYTES:,} bytes")
        return None
    first, _, rest = data[:end].partition(b"\r\n")
    status = _STATUS_LINE.fullmatch(first)
    if status is None:
        raise NotHTTP("the answer's status line is malformed")
    reason = (status[3] or b"").decode("latin-1")
    return Head(int(status[2]), reason, int(status[1]), _parse_fields(rest)), end + 4


def _parse_fields(block: bytes) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in block.split(b"\r\n") if block else ():
        field = _FIELD.fullmatch(line)
        if field is None:
            raise NotHTTP("a header of the answer is malformed")
        name, value = field[1].decode("ascii").lower(), field[2].strip(b" \t").decode("latin-1")
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


# --- bodies -----------------------------------------------------------------------------------------------------------------


class Sized:
    """A body with a Content-Length. An answer that cannot have a body has the length 0."""

    ends_with_connection = False

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0
        self.excess = b""
        """Bytes after the body. There should be none."""

    def feed(self, data: bytes) -> bytes:
        self.excess = data[self._left :]
        data = data[: self._left]
        self._left -= len(data)
        self.done = self._left == 0
        return data


class Unsized:
    """A body that ends when the connection does."""

    ends_with_connection = True
    done = False
    excess = b""

    def feed(self, data: bytes) -> bytes:
        return data


class Chunked:
    """A body in chunks: each is preceded by its size, and the last has size 0. Trailers are checked and dropped."""

    ends_with_connection = False

    def __init__(self) -> None:
        self.done = False
        self.excess = b""
        self._left = 0
        """Bytes still to come of the chunk and the line break after it."""
        self._held = b""
        """The start of an incomplete line or line break."""
        self._in_trailers = False

    def feed(self, data: bytes) -> bytes:
        if self._held:
            data = self._held + data
            self._held = b""
        if self._in_trailers:
            self._read_trailers(data)
            return b""
        pieces: list[bytes] = []
        at, left = 0, self._left
        while True:
            if left:
                end = at + left
                if end > len(data):
                    payload = data[at : end - 2]
                    pieces.append(payload)
                    left -= len(payload)
                    self._hold(data[at + len(payload) :], b"\r")
                    break
                if data[end - 2 : end] != b"\r\n":
                    raise NotHTTP("a chunk of the body is longer than its size says")
                pieces.append(data[at : end - 2])
                at, left = end, 0
            if at == len(data):
                break
            line = _SIZE_LINE.match(data, at)
            if line is None:
                self._hold_size_line(data[at:])
                break
            at, left = line.end(), int(line[1], 16)
            if not left:
                self._in_trailers = True
                self._read_trailers(data[at:])
                break
            left += 2
        self._left = left
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _hold(self, rest: bytes, may_be: bytes) -> None:
        if rest and rest != may_be:
            raise NotHTTP("a chunk of the body is longer than its size says")
        self._held = rest

    def _hold_size_line(self, rest: bytes) -> None:
        if len(rest) > MAX_SIZE_LINE_BYTES or not _SIZE_LINE_SO_FAR.fullmatch(rest):
            raise NotHTTP("a chunk of the body has a malformed size")
        self._held = rest

    def _read_trailers(self, data: bytes) -> None:
        if data.startswith(b"\r\n"):
            end = 2
        elif (found := data.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES)) >= 0:
            _parse_fields(data[:found])
            end = found + 4
        elif len(data) >= MAX_HEAD_BYTES:
            raise NotHTTP(f"the answer's trailers are longer than {MAX_HEAD_BYTES:,} bytes")
        else:
            self._held = data
            return
        self.done = True
        self.excess = data[end:]


Body = Sized | Unsized | Chunked


def body_of(head: Head, method: str) -> Body:
    """The reader for the body that follows a head (RFC 9112, section 6.3)."""
    if method == "HEAD" or head.status in {204, 304} or (method == "CONNECT" and head.status < 300):
        return Sized(0)
    coding, lengths = head.headers.get("transfer-encoding"), head.headers.get("content-length")
    if coding is not None:
        if lengths is not None:
            raise NotHTTP("the answer has both a length and a transfer encoding")
        if coding.lower() != "chunked" or head.minor == 0:
            raise NotHTTP(f"the answer has the transfer encoding {coding[:40]!r}")
        return Chunked()
    if lengths is None:
        return Unsized()
    values = {length.strip(" \t") for length in lengths.split(",")}
    if len(values) != 1 or not _LENGTH.fullmatch(length := values.pop()):
        raise NotHTTP(f"the answer has the length {lengths[:40]!r}")
    return Sized(int(length))


# --- content encodings ------------------------------------------------------------------------------------------------------

COMPRESSIONS = frozenset({"gzip", "x-gzip", "deflate"})
"""Content encodings we can decompress. We do not ask for them."""
DECOMPRESSED_BYTES = 256 * 1024
"""Most bytes decompressed at once: a small body may decompress to a huge one."""


class Decompressor:
    """Decompresses a body as the bytes arrive."""

    def __init__(self, encoding: str) -> None:
        self._deflate = encoding == "deflate"
        self._stream: zlib._Decompress | None = None
        self._held = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The pieces that `data` decompresses to, each of bounded size. Raises zlib.error."""
        data = self._held + data
        self._held = b""
        piece = b""
        while data or len(piece) == DECOMPRESSED_BYTES:
            if self._stream is None:
                if self._deflate and len(data) < 2:
                    self._held = data
                    return
                self._stream = self._new_stream(data)
            piece = self._stream.decompress(data, DECOMPRESSED_BYTES)
            data = self._stream.unconsumed_tail
            if self._stream.eof:  # another gzip member may follow
                data, self._stream = self._stream.unused_data, None
            if piece:
                yield piece

    @property
    def done(self) -> bool:
        """Whether the compressed stream is complete."""
        return self._stream is None and not self._held

    def _new_stream(self, start: bytes) -> zlib._Decompress:
        if not self._deflate:
            return zlib.decompressobj(31)
        # Servers call both the zlib format and a raw deflate stream "deflate".
        is_zlib = start[0] & 15 == 8 and int.from_bytes(start[:2], "big") % 31 == 0
        return zlib.decompressobj(15 if is_zlib else -15)
