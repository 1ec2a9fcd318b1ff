"""A little authorization server and an MCP server that trusts it, on real sockets: strict where real ones are, and able to misbehave."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

from dragoman.http.clients import open_transport
from loopback_http import Received, answer, serving

SCOPE = "notes:read"


@dataclass
class Issuer:
    """Keeps to the specification, but for what a test changes in it before it is asked."""

    url: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Added to its metadata; a value of None takes the field out."""
    redirected: dict[str, str | None] = field(default_factory=dict)
    """The same for the parameters of its redirects."""
    token_answer: bytes | None = None
    """What its token endpoint says instead."""
    lifetime_s: int = 3600
    gives_refresh: bool = True
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    tokens: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Those that are good, with their scopes."""
    refreshers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    revoked: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """Paths, in order."""
    authorizations: list[dict[str, str]] = field(default_factory=list)
    token_requests: list[dict[str, str]] = field(default_factory=list)
    pause_s: float = 0.0
    number: int = 0

    def next(self, kind: str) -> str:
        self.number += 1
        return f"{kind}-secret-{self.number}"

    async def handle(self, request: Received, writer: asyncio.StreamWriter) -> None:
        parts = urlsplit(request.target)
        self.asked.append(parts.path)
        await asyncio.sleep(self.pause_s)
        match request.method, parts.path:
            case "GET", "/.well-known/oauth-authorization-server":
                said = self._described()
            case "POST", "/register":
                said = self._register(json.loads(request.body))
            case "GET", "/authorize":
                said = self._authorize(dict(parse_qsl(parts.query)))
            case "POST", "/token":
                said = self.token_answer or self._token(request)
            case "POST", "/revoke":
                self.revoked.append(dict(parse_qsl(request.body.decode()))["token"])
                said = answer(b"")
            case _:
                said = answer(b"nothing here", "404 Not Found")
        writer.write(said)
        await writer.drain()

    def _described(self) -> bytes:
        described = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "revocation_endpoint": f"{self.url}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
        }
        return _json({name: value for name, value in (described | self.metadata).items() if value is not None})

    def _register(self, body: dict[str, Any]) -> bytes:
        if body.get("application_type") != "native":
            return _json({"error": "invalid_redirect_uri"}, "400 Bad Request")
        client_id = self.next("client")
        self.clients[client_id] = body
        return _json({"client_id": client_id, **body}, "201 Created")

    def _authorize(self, asked: dict[str, str]) -> bytes:
        self.authorizations.append(asked)
        client = self.clients.get(asked["client_id"])
        if client is None or asked["redirect_uri"] not in client["redirect_uris"] or asked.get("code_challenge_method") != "S256":
            return answer(b"no", "400 Bad Request")
        code = self.next("code")
        self.codes[code] = asked
        given = {"code": code, "state": asked["state"], "iss": self.url, **self.redirected}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        return answer(b"", "302 Found", f"Location: {asked['redirect_uri']}?{query}\r\n")

    def _token(self, request: Received) -> bytes:
        fields = dict(parse_qsl(request.body.decode()))
        self.token_requests.append(fields)
        client_id = fields.get("client_id") or _basic(request.headers.get("authorization", ""))
        if client_id not in self.clients:
            return _json({"error": "invalid_client"}, "401 Unauthorized")
        if fields["grant_type"] == "refresh_token":
            scopes = self.refreshers.pop(fields["refresh_token"], None)
            return self._give(scopes) if scopes is not None else _json({"error": "invalid_grant"}, "400 Bad Request")
        asked = self.codes.pop(fields.get("code", ""), None)
        challenge = urlsafe_b64encode(sha256(fields.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        if asked is None or asked["code_challenge"] != challenge or asked["client_id"] != client_id:
            described = f"this is not right: {fields.get('code')} {fields.get('code_verifier')}"
            return _json({"error": "invalid_grant", "error_description": described}, "400 Bad Request")
        if any(asked.get(name) != fields.get(name) for name in ("redirect_uri", "resource")):
            return _json({"error": "invalid_target"}, "400 Bad Request")
        return self._give(tuple(asked.get("scope", "").split()))

    def _give(self, scopes: tuple[str, ...]) -> bytes:
        token = self.next("token")
        self.tokens[token] = scopes
        given: dict[str, Any] = {"access_token": token, "token_type": "Bearer", "expires_in": self.lifetime_s, "scope": " ".join(scopes)}
        if self.gives_refresh:
            given["refresh_token"] = self.next("refresh")
            self.refreshers[given["refresh_token"]] = scopes
        return _json(given)


@dataclass
class Guarded:
    """An MCP server that lets in who has a token of its issuer."""

    issuer: Issuer
    url: str = ""
    needs: str = SCOPE
    metadata: dict[str, Any] = field(default_factory=dict)
    resource_metadata: str = ""
    raw_metadata: bytes | None = None
    authorized: list[str] = field(default_factory=list)
    """The Authorization header of each request to it; empty where there was none."""

    async def handle(self, request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(self._respond(request))
        await writer.drain()

    def _respond(self, request: Received) -> bytes:
        root = self.url.removesuffix("/mcp")
        if request.target == "/.well-known/oauth-protected-resource/mcp":
            if self.raw_metadata is not None:
                return self.raw_metadata
            described = {"resource": self.url, "authorization_servers": [self.issuer.url], "scopes_supported": [SCOPE]}
            return _json(described | self.metadata)
        if request.target != "/mcp":
            return answer(b"", "404 Not Found")
        given = request.headers.get("authorization", "")
        self.authorized.append(given)
        scopes = self.issuer.tokens.get(given.removeprefix("Bearer "))
        place = self.resource_metadata or f"{root}/.well-known/oauth-protected-resource/mcp"
        if scopes is None:
            header = f'WWW-Authenticate: Bearer resource_metadata="{place}", scope="{SCOPE}"\r\n'
            return answer(b"", "401 Unauthorized", header)
        if self.needs not in scopes:
            header = f'WWW-Authenticate: Bearer error="insufficient_scope", scope="{self.needs}", resource_metadata="{place}"\r\n'
            return answer(b"", "403 Forbidden", header)
        return _json({"jsonrpc": "2.0", "id": 0, "result": {}})


@asynccontextmanager
async def issuing(issuer: Issuer | None = None) -> AsyncIterator[Issuer]:
    issuer = issuer or Issuer()
    async with serving(issuer.handle) as server:
        issuer.url = server.url
        yield issuer


@asynccontextmanager
async def guarding(issuer: Issuer | None = None) -> AsyncIterator[Guarded]:
    """An MCP server at `.url`, and its issuer."""
    async with issuing(issuer) as opened:
        guarded = Guarded(opened)
        async with serving(guarded.handle) as server:
            guarded.url = f"{server.url}/mcp"
            yield guarded


async def ask(guarded: Guarded, headers: dict[str, str]) -> tuple[int, str]:
    """One request to the MCP server: its status and its challenge."""
    transport = open_transport()
    try:
        async with transport.send("POST", guarded.url, headers, b"{}") as response:
            return response.status, response.headers.get("www-authenticate", "")
    finally:
        await transport.aclose()


def _json(body: dict[str, Any], status: str = "200 OK") -> bytes:
    return answer(json.dumps(body).encode(), status, "Content-Type: application/json\r\n")


def _basic(header: str) -> str:
    return unquote_plus(b64decode(header.removeprefix("Basic ")).decode().partition(":")[0]) if header.startswith("Basic ") else ""
