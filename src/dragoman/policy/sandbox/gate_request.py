"""What a command asks of the gate: the head of an HTTP request to a proxy, read strictly.

Whatever two programs could read differently (folded lines, two lengths, control characters) is refused and not repaired.
"""

from __future__ import annotations

import base64
import hmac
import re

import msgspec

from dragoman.policy.sandbox.environment import GATE_USER

MAX_HEADERS = 100
_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([\x21-\x7e]+) HTTP/1\.([01])")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_AUTHORITY = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+):[0-9]{1,5}")
_ABSOLUTE = re.compile(rb"(?i:http)://([^/?#\\@]+)(/[^#\\]*|\?[^#\\]*)?")
_LENGTH = re.compile(rb"[0-9]{1,18}")
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t\x20-\x7e]*)?\r\n")
_HOP_BY_HOP = frozenset({
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te", b"trailer", b"upgrade",
    b"host",
})  # fmt: skip
"""What concerns us and not the server; `Host` is written anew."""


class UnclearRequest(ValueError):
    """The request cannot be read, or can be read in two ways."""


class ProxyRequest(msgspec.Struct, frozen=True):
    """A request to a proxy."""

    url: str
    """Whom it is for: what is to be checked. The path is only the client's business."""
    is_tunnel: bool
    """CONNECT: bytes in both directions, which nobody reads on the way."""
    method: bytes = b""
    path: bytes = b""
    version: bytes = b"1"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """For the server, without those that are for us."""
    length: int = 0
    """Bytes of the body."""
    is_chunked: bool = False
    """The body comes in chunks; then `length` is 0."""
    credentials: bytes = b""
    """What the client shows to be served."""

    def head_for(self, host: str) -> bytes:
        """The head that the server gets. One request for each connection: what follows the body is never taken for another."""
        lines = [b"%b %b HTTP/1.%b" % (self.method, self.path, self.version), b"Host: " + host.encode("ascii")]
        lines += [b"%b: %b" % each for each in self.headers]
        return b"\r\n".join([*lines, b"Connection: close", b"", b""])


def read_request(head: bytes) -> ProxyRequest:
    """`head`: up to and with the empty line. Raises UnclearRequest."""
    if not head.endswith(b"\r\n\r\n"):
        raise UnclearRequest("the head does not end")
    first, *lines = head[:-4].split(b"\r\n")
    line = _LINE.fullmatch(first)
    if line is None:
        raise UnclearRequest("the first line cannot be read")
    method, target, version = line.groups()
    headers = _read_headers(lines)
    credentials = _read_credentials(headers)
    length, is_chunked = _read_framing(headers, version)
    if method == b"CONNECT":
        if not _AUTHORITY.fullmatch(target):
            raise UnclearRequest("CONNECT takes a host and a port")
        if length or is_chunked:
            raise UnclearRequest("CONNECT has no body")
        return ProxyRequest(f"https://{target.decode()}/", is_tunnel=True, credentials=credentials)
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None:
        raise UnclearRequest("only CONNECT and whole http:// URLs are served")
    authority, path = absolute.groups()
    _check_host(headers, authority)
    path = path or b"/"
    return ProxyRequest(
        f"http://{authority.decode()}/",
        is_tunnel=False,
        method=method,
        path=path if path.startswith(b"/") else b"/" + path,
        version=version,
        headers=_for_server(headers),
        length=length,
        is_chunked=is_chunked,
        credentials=credentials,
    )


def _read_headers(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    if len(lines) > MAX_HEADERS:
        raise UnclearRequest("there are too many headers")
    headers: list[tuple[bytes, bytes]] = []
    for line in lines:
        header = _HEADER.fullmatch(line)
        if header is None:  # folded lines too: programs disagree on them
            raise UnclearRequest("a header cannot be read")
        headers.append((header[1], header[2].strip(b" \t")))
    return headers


def _read_credentials(headers: list[tuple[bytes, bytes]]) -> bytes:
    shown = [value for name, value in headers if name.lower() == b"proxy-authorization"]
    if len(shown) > 1:
        raise UnclearRequest("the credentials are given more than once")
    return shown[0] if shown else b""


def proves(request: ProxyRequest, secret: str) -> bool:
    """Whether whoever sent it knows the secret of the gate."""
    scheme, _, token = request.credentials.partition(b" ")
    known = base64.b64encode(f"{GATE_USER}:{secret}".encode())
    return scheme.lower() == b"basic" and hmac.compare_digest(token.strip(b" "), known)


def _read_framing(headers: list[tuple[bytes, bytes]], version: bytes) -> tuple[int, bool]:
    """The length of the body, and whether it comes in chunks. Both at once is how a request is smuggled in another."""
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    codings = [value for name, value in headers if name.lower() == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise UnclearRequest("the length of the body is given more than once")
    if codings:
        if codings[0].lower() != b"chunked" or version != b"1":
            raise UnclearRequest("the body comes in a form that is not served")
        return 0, True
    if lengths and not _LENGTH.fullmatch(lengths[0]):
        raise UnclearRequest("the length of the body is no number")
    return int(lengths[0]) if lengths else 0, False


def _check_host(headers: list[tuple[bytes, bytes]], authority: bytes) -> None:
    """The header must name whom the URL names: some clients leave the port out, or write it."""
    hosts = [value.lower() for name, value in headers if name.lower() == b"host"]
    if len(hosts) > 1 or (hosts and hosts[0].removesuffix(b":80") != authority.lower().removesuffix(b":80")):
        raise UnclearRequest("Host and URL name different hosts")


def _for_server(headers: list[tuple[bytes, bytes]]) -> tuple[tuple[bytes, bytes], ...]:
    named = {
        word.strip().lower()
        for name, value in headers
        if name.lower() in (b"connection", b"proxy-connection")
        for word in value.split(b",")
    }
    dropped = _HOP_BY_HOP | (named - {b"content-length", b"transfer-encoding"})
    return tuple((name, value) for name, value in headers if name.lower() not in dropped)
