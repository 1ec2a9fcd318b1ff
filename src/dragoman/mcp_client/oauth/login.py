"""`login` and `logout`: what a front end calls for `dragoman mcp login NAME`, and how it opens a browser."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping

import msgspec

from dragoman.base.stored_secrets import StoredIn
from dragoman.mcp_client.contracts import HttpServer, OAuthSettings
from dragoman.mcp_client.oauth.challenges import Challenge, read_challenge
from dragoman.mcp_client.oauth.flow import SignIn
from dragoman.mcp_client.oauth.loopback import Redirects
from dragoman.mcp_client.oauth.requests import Requests
from dragoman.mcp_client.oauth.tokens import Grant, TokenStore
from dragoman.values.errors import DragomanError
from dragoman.words import say

_PROBE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"Dragoman","version":"1"}}}'
)


class SignedIn(msgspec.Struct, frozen=True):
    """What a sign-in has brought, without its secrets."""

    issuer: str
    scopes: tuple[str, ...]
    stored_in: StoredIn | None


class SignedOut(msgspec.Struct, frozen=True):
    """The end of a sign-in."""

    issuer: str
    is_revoked: bool
    """Whether the issuer has revoked the token. If not, the token expires by itself."""


async def login(
    server: HttpServer,
    store: TokenStore,
    redirects: Redirects,
    settings: OAuthSettings | None = None,
    *,
    scopes: tuple[str, ...] = (),
    requests: Requests | None = None,
) -> SignedIn:
    """Sign in to a server, whether or not somebody has before. Raises Unauthorized, ConnectionFailed, ConfigError or OSError."""
    requests, settings = requests or Requests(server.url), settings or server.oauth or OAuthSettings()
    if scopes:
        settings = msgspec.structs.replace(settings, scopes=tuple(dict.fromkeys([*settings.scopes, *scopes])))
    challenge = await _ask_challenge(requests, server)
    earlier = await asyncio.to_thread(store.grant, server.url)
    grant = await SignIn(server.url, settings, store, requests, redirects).run(challenge, earlier)
    stored_in = await asyncio.to_thread(store.keep_grant, server.url, grant)
    return SignedIn(grant.issuer, grant.granted, stored_in)


async def logout(server: HttpServer, store: TokenStore, *, requests: Requests | None = None) -> SignedOut | None:
    """Forget a server's token and tell its issuer; None if nobody was signed in. Raises ConfigError, Unauthorized or OSError."""
    grant = await asyncio.to_thread(store.grant, server.url)
    is_revoked = grant is not None and await _revoke(grant, requests or Requests(server.url))
    dropped = await asyncio.to_thread(store.drop_grant, server.url)
    if grant is None:
        return SignedOut("", False) if dropped else None
    if grant.issuer not in store.signed_in().values():
        await asyncio.to_thread(store.drop_client, grant.issuer)
    return SignedOut(grant.issuer, is_revoked)


async def open_browser(url: str, env: Mapping[str, str] | None = None) -> bool:
    """Open the user's browser; False if there is none (a machine without a screen). A browser in the terminal does not count."""
    env = os.environ if env is None else env
    if sys.platform not in ("darwin", "win32") and not (env.get("DISPLAY") or env.get("WAYLAND_DISPLAY") or env.get("BROWSER")):
        return False
    import webbrowser

    try:
        return await asyncio.to_thread(webbrowser.open, url)
    except (webbrowser.Error, OSError):
        return False


async def _ask_challenge(requests: Requests, server: HttpServer) -> Challenge:
    """What the server says to one without a token. One that lets everybody in may still say more in its metadata."""
    accepts = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    answer = await requests.probe(server.url, {**accepts, **server.headers}, _PROBE)
    return read_challenge(answer.headers.get("www-authenticate", "")) if answer.status in (401, 403) else Challenge()


async def _revoke(grant: Grant, requests: Requests) -> bool:
    """RFC 7009. Whatever goes wrong: signing out goes on."""
    if not grant.revocation_endpoint:
        return False
    kind, token = ("refresh_token", grant.refresh_token) if grant.refresh_token else ("access_token", grant.access_token)
    fields = {"token": token, "token_type_hint": kind, "client_id": grant.client_id}
    try:
        answer = await requests.post_form(grant.revocation_endpoint, fields, {}, what=say("mcp_auth.endpoint"))
    except (DragomanError, OSError):
        return False
    return answer.status == 200
