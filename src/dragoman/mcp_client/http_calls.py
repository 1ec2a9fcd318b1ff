"""One HTTP request to an MCP server: signed, repeated if a new token may help, redirected within its host only, errors read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urljoin, urlsplit

from dragoman import __version__
from dragoman.mcp_client.contracts import Authorizer, HttpServer
from dragoman.mcp_client.errors import ServerGarbled, ServerRefused
from dragoman.values.contracts import HttpResponse, Transport
from dragoman.words import say

MOST_BODY_BYTES = 64 * 1024 * 1024
MOST_SIGN_INS = 4
"""How often one request is repeated with another token: one that was refused, then one for want of a scope, and again."""
MOST_REDIRECTS = 3
_REFUSAL_BYTES = 64 * 1024
_SHOWN_BODY = 300


class HttpCalls:
    """Sends requests to one server."""

    def __init__(self, server: HttpServer, transport: Transport, authorizer: Authorizer | None) -> None:
        self.url = server.url
        self._given = {name.lower(): value for name, value in server.headers.items()}
        self._transport = transport
        self._authorizer = authorizer

    @asynccontextmanager
    async def send(
        self, method: str, headers: Mapping[str, str], body: bytes = b"", *, url: str = "", accepts: frozenset[int] = frozenset()
    ) -> AsyncGenerator[HttpResponse, None]:
        """A response of 2xx, or of a status in `accepts`. Raises ServerRefused for another, ConnectionFailed if there is no response."""
        target, redirects, sign_ins = url or self.url, 0, 0
        while True:
            signed = dict(await self._authorizer.headers()) if self._authorizer is not None else {}
            own = {name.lower(): value for name, value in {**headers, **signed}.items()}
            sent = {"user-agent": f"Dragoman/{__version__}", **self._given, **own}
            async with self._transport.send(method, target, sent, body) as response:
                status = response.status
                if 200 <= status < 300 or status in accepts:
                    yield response
                    return
                refusal = await _refusal(response, target)
            if status in {307, 308} and redirects < MOST_REDIRECTS:
                target, redirects = self._redirected(target, response, refusal), redirects + 1
                continue
            if sign_ins == MOST_SIGN_INS or not await self._has_other_token(refusal, signed):
                raise refusal
            sign_ins += 1

    async def _has_other_token(self, refusal: ServerRefused, sent: Mapping[str, str]) -> bool:
        if self._authorizer is None or refusal.status not in {401, 403}:
            return False
        return await self._authorizer.refused(refusal.status, refusal.challenges, sent)

    def _redirected(self, url: str, response: HttpResponse, refusal: ServerRefused) -> str:
        """Within the same host alone: a token must not go elsewhere."""
        target = urljoin(url, response.headers.get("location", ""))
        old, new = urlsplit(url), urlsplit(target)
        if (old.scheme, old.netloc) != (new.scheme, new.netloc) or target == url:
            raise refusal
        return target


async def read_body(response: HttpResponse, most_bytes: int = MOST_BODY_BYTES) -> bytes:
    parts: list[bytes] = []
    length = 0
    async for chunk in response.chunks():
        length += len(chunk)
        if length > most_bytes:
            raise ServerGarbled(say("mcp.too_long", most=most_bytes))
        parts.append(chunk)
    return b"".join(parts)


async def _refusal(response: HttpResponse, url: str) -> ServerRefused:
    """The beginning of its body is kept: it may be a message."""
    parts: list[bytes] = []
    length = 0
    async for chunk in response.chunks():
        parts.append(chunk[: _REFUSAL_BYTES - length])
        length += len(parts[-1])
        if length >= _REFUSAL_BYTES:
            break
    body = b"".join(parts).decode("utf-8", "replace")
    shown = " ".join(body[:_SHOWN_BODY].split())
    host = urlsplit(url).netloc.rpartition("@")[2]
    key = {401: "mcp.sign_in", 403: "mcp.forbidden"}.get(response.status, "mcp.refused")
    message = say(key, host=host, status=response.status, body=f": {shown}" if shown else "")
    return ServerRefused(message, response.status, body, response.headers.get("www-authenticate", ""))
