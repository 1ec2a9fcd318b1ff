"""HTTP/1.1 as bytes, without a network: how a request is written, and where an answer's head and body end.

It is strict, so that what is read is what was meant: two lengths, a length beside chunks, a bare line feed or a head without end
are refused. Bytes go in as they arrive; any way of cutting them gives the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dragoman import __version__
from dragoman.values.errors import ConfigError

if TYPE_CHECKING:
    import zlib

    from dragoman.http.route import Route

BODY_LENGTH = frozenset({b"content-length", b"transfer-encoding"})
"""Headers that say where a body ends. The transport alone knows."""

MAX_HEAD_BYTES = 64 * 1024
MAX_INFORMATIONAL = 32
"""Answers before the answer (100, 103) that are passed over. A server that sends more is not going to answer."""
MAX_SIZE_LINE_BYTES = 4096
"""A chunk's size with its extensions."""

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: ([^\x00\n\v\f\r]*))?")
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([^\x00\n\v\f\r]*)")
_FIELD_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FIELD_VALUE = re.compile(rb"[^\x00\n\v\f\r]*")
_TARGET = re.compile(rb"[\x21-\x7e]+")
_LENGTH = re.compile(r"[0-9]{1,18}")
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;[^\r\n]*|[ \t]*)\r\n")
_SIZE_LINE_SO_FAR = re.compile(rb"[0-9A-Fa-f]{1,15}(?:;[^\r\n]*|[ \t]*)\r?")


class NotHTTP(Exception):
    """The bytes are not an HTTP/1.1 answer, or could be read as more than one."""


class Unsendable(ValueError):
    """A request that is not valid HTTP. It says nothing of the request: a header may hold a key."""


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
    """The header fields of a request: a caller's own go before ours, but for those that say where the body ends."""
    fields = {
        b"host": route.host.encode("latin-1"),
        b"accept": b"*/*",
        # identity: events are small and arrive one by one, so compression saves little, costs a flush per event
        # and lets servers and proxies sit on them until a block is full. What is sent compressed is still undone.
        b"accept-encoding": b"identity",
        b"user-agent": f"Dragoman/{__version__}".encode(),
    }
    if route.login:
        fields[b"authorization"] = route.login.encode("latin-1")
    if route.forwarded and route.proxy_login:
        fields[b"proxy-authorization"] = route.proxy_login.encode("latin-1")
    for name, value in headers.items():
        try:
            fields[name.lower().encode("ascii")] = value.encode("latin-1")
        except UnicodeEncodeError:
            raise ConfigError(f"the header {name!r} holds a character that cannot travel in a header") from None
    for name in BODY_LENGTH & fields.keys():
        del fields[name]
    if body or method in {"POST", "PUT", "PATCH"}:
        fields[b"content-length"] = b"%d" % len(body)
    return list(fields.items())


def request_target(path: str) -> str:
    """What is asked for, as a request line says it."""
    path = path if path.startswith("/") else f"/{path}"
    if path.isascii() and path.isprintable() and " " not in path:
        return path
    from urllib.parse import quote

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
        """Names in lower case; what came more than once is joined with commas."""

    @property
    def stays_open(self) -> bool:
        """Whether the server means to answer more requests on the same connection."""
        wishes = {wish.strip().lower() for wish in self.headers.get("connection", "").split(",")}
        return "close" not in wishes and (self.minor == 1 or "keep-alive" in wishes)


def read_head(data: bytes) -> tuple[Head, int] | None:
    """The head at the start of `data` and where it ends; None while it has not arrived in full."""
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
    return Head(int(status[2]), reason, int(status[1]), _fields(rest)), end + 4


def _fields(block: bytes) -> dict[str, str]:
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
    """A body of a length told beforehand. A body that may not be there at all has the length 0."""

    to_the_end = False

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0
        self.excess = b""
        """What came behind the body. Nothing should."""

    def feed(self, data: bytes) -> bytes:
        self.excess = data[self._left :]
        data = data[: self._left]
        self._left -= len(data)
        self.done = self._left == 0
        return data


class Unsized:
    """A body that ends with the connection."""

    to_the_end = True
    done = False
    excess = b""

    def feed(self, data: bytes) -> bytes:
        return data


class Chunked:
    """A body in chunks, each with its size before it, and a last one of size 0. Trailers are checked and dropped."""

    to_the_end = False

    def __init__(self) -> None:
        self.done = False
        self.excess = b""
        self._left = 0
        """Bytes still to come of the chunk and of the line break behind it."""
        self._held = b""
        """The start of a line, or of a line break, whose rest has not arrived."""
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
            _fields(data[:found])
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
    """How the body behind a head is to be read (RFC 9112, section 6.3)."""
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
    told = {length.strip(" \t") for length in lengths.split(",")}
    if len(told) != 1 or not _LENGTH.fullmatch(length := told.pop()):
        raise NotHTTP(f"the answer has the length {lengths[:40]!r}")
    return Sized(int(length))


# --- content encodings ------------------------------------------------------------------------------------------------------

PACKED = frozenset({"gzip", "x-gzip", "deflate"})
"""Content encodings that can be undone. They are not asked for."""
UNPACKED_BYTES = 256 * 1024
"""What comes out at once: a small body may unpack to a huge one."""


class Unpacker:
    """Undoes a content encoding as the bytes arrive."""

    def __init__(self, encoding: str) -> None:
        self._deflate = encoding == "deflate"
        self._stream: zlib._Decompress | None = None
        self._held = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The pieces that `data` unpacks to, each of a bounded size. Raises zlib.error."""
        data = self._held + data
        self._held = b""
        piece = b""
        while data or len(piece) == UNPACKED_BYTES:
            if self._stream is None:
                if self._deflate and len(data) < 2:
                    self._held = data
                    return
                self._stream = self._new_stream(data)
            piece = self._stream.decompress(data, UNPACKED_BYTES)
            data = self._stream.unconsumed_tail
            if self._stream.eof:  # gzip may go on with another member
                data, self._stream = self._stream.unused_data, None
            if piece:
                yield piece

    @property
    def done(self) -> bool:
        """Whether the packed stream has come to its own end."""
        return self._stream is None and not self._held

    def _new_stream(self, start: bytes) -> zlib._Decompress:
        import zlib

        if not self._deflate:
            return zlib.decompressobj(31)
        # Servers call both the zlib format and the bare stream inside it "deflate".
        is_zlib = start[0] & 15 == 8 and int.from_bytes(start[:2], "big") % 31 == 0
        return zlib.decompressobj(15 if is_zlib else -15)
