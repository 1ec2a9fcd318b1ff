"""Requests to authorization servers and for metadata: bounded in size and time, and no secret follows a redirect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urljoin

import msgspec

from dragoman.http.clients import open_transport
from dragoman.mcp_client.oauth.urls import check_url, find_address, is_server_inside, origin_of, show
from dragoman.values.contracts import Transport
from dragoman.values.errors import ConnectionFailed, Unauthorized
from dragoman.words import say

MOST_BYTES = 256 * 1024
TIMEOUT_S = 20.0
MOST_REDIRECTS = 3
REDIRECTS = frozenset({301, 302, 303, 307, 308})


class IssuerAnswer(msgspec.Struct, frozen=True):
    """The HTTP response of an authorization server. Its body may hold a token, so it is not in the repr."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"IssuerAnswer({self.status})"

    def json(self) -> dict[str, Any] | None:
        """The object it holds; None if it holds something else."""
        try:
            read = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return read if isinstance(read, dict) else None


class Requests:
    """Requests in signing in to one server. Where that server is itself inside a network, what it names may be inside too."""

    def __init__(self, server_url: str, pin: Callable[[str], Transport] | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self._server_url = server_url
        self._inside: bool | None = None
        self._pin = pin or _open_pinned
        self._timeout_s = timeout_s

    async def get(self, url: str, *, what: str) -> IssuerAnswer:
        """Metadata, which is public. Redirects are followed within one origin: the document is what that origin says."""
        redirects = 0
        while True:
            answer = await self._send("GET", url, {"accept": "application/json"}, b"", what)
            target = urljoin(url, answer.headers.get("location", ""))
            if answer.status not in REDIRECTS or redirects == MOST_REDIRECTS or origin_of(target) != origin_of(url):
                return answer
            url, redirects = target, redirects + 1

    async def post_form(self, url: str, fields: Mapping[str, str], headers: Mapping[str, str], *, what: str) -> IssuerAnswer:
        sent = {"accept": "application/json", "content-type": "application/x-www-form-urlencoded", **headers}
        return await self._send("POST", url, sent, urlencode(fields).encode(), what)

    async def post_json(self, url: str, body: Mapping[str, Any], *, what: str) -> IssuerAnswer:
        sent = {"accept": "application/json", "content-type": "application/json"}
        return await self._send("POST", url, sent, msgspec.json.encode(body), what)

    async def probe(self, url: str, headers: Mapping[str, str], body: bytes) -> IssuerAnswer:
        """The server itself, without a token, to hear its challenge. Its answer may be a stream: only the head is waited for."""
        return await self._send("POST", url, headers, body, say("mcp_auth.the_server"), wants_body=False)

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, what: str, wants_body: bool = True
    ) -> IssuerAnswer:
        check_url(url, what=what)
        try:
            async with asyncio.timeout(self._timeout_s):
                if self._inside is None:
                    self._inside = await is_server_inside(self._server_url)
                transport = self._pin(await find_address(url, inside=self._inside))
                try:
                    async with transport.send(method, url, headers, body) as response:
                        read = await _read(response.chunks(), what, url) if wants_body else b""
                        return IssuerAnswer(response.status, dict(response.headers), read)
                finally:
                    await transport.aclose()
        except TimeoutError as error:
            raise ConnectionFailed(say("mcp_auth.slow", what=what, url=show(url), seconds=round(self._timeout_s))) from error


async def _read(chunks: Any, what: str, url: str) -> bytes:
    parts: list[bytes] = []
    length = 0
    async for chunk in chunks:
        length += len(chunk)
        if length > MOST_BYTES:
            raise Unauthorized(say("mcp_auth.too_long", what=what, url=show(url), kilobytes=MOST_BYTES // 1024))
        parts.append(chunk)
    return b"".join(parts)


def _open_pinned(address: str) -> Transport:
    return open_transport(address=address)
