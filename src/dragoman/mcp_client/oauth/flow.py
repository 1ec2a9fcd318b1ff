"""One sign-in, from finding the issuer to the token: the authorization code flow of OAuth 2.1 with PKCE, or client credentials."""

from __future__ import annotations

import asyncio
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import AsyncExitStack
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any
from urllib.parse import urlencode

import msgspec

from dragoman.base.clock import now_ms
from dragoman.mcp_client.contracts import OAuthSettings
from dragoman.mcp_client.oauth.challenges import Challenge
from dragoman.mcp_client.oauth.clients import Client, known_client, proof, reason_of, register
from dragoman.mcp_client.oauth.discovery import Issuer, Resource, find_issuer, find_resource
from dragoman.mcp_client.oauth.loopback import AwaitedRedirect, Redirects
from dragoman.mcp_client.oauth.requests import IssuerAnswer, Requests
from dragoman.mcp_client.oauth.tokens import Grant, TokenStore
from dragoman.mcp_client.oauth.urls import show
from dragoman.values.errors import ConfigError, Unauthorized
from dragoman.words import say

_HEADER_SAFE = re.compile(r"[\x21-\x7e]+")
_MOST_LIFETIME_S = 10 * 365 * 86_400


class SignInNeeded(Unauthorized):
    """A user has to sign in, and nobody is there to be asked."""


class TokenRefused(Unauthorized):
    """The token endpoint said no. `.error` is its code."""

    error: str = ""


class SignIn:
    """Signs in to one server."""

    def __init__(self, url: str, settings: OAuthSettings, store: TokenStore, requests: Requests, redirects: Redirects | None) -> None:
        self.url = url
        self._settings = settings
        self._store = store
        self._requests = requests
        self._redirects = redirects

    async def find(self, challenge: Challenge, earlier: Grant | None) -> tuple[Resource, str]:
        """What the server says of itself, and which of its issuers is used: the one that is set, the earlier one, or the first."""
        resource = await find_resource(self._requests, self.url, challenge.resource_metadata)
        for issuer in (self._settings.issuer, earlier.issuer if earlier is not None else ""):
            if issuer in resource.issuers:
                return resource, issuer
        return resource, resource.issuers[0]

    async def run(self, challenge: Challenge, earlier: Grant | None, found: tuple[Resource, str] | None = None) -> Grant:
        """A new grant. Raises Unauthorized: SignInNeeded if a user is needed and nobody can be asked."""
        is_own = self._settings.grant == "client_credentials"
        if self._redirects is None and not is_own:
            raise SignInNeeded(say("mcp_auth.nobody_to_ask", url=show(self.url)))
        resource, name = found or await self.find(challenge, earlier)
        issuer = await find_issuer(self._requests, name, is_guessed=resource.is_guessed)
        self._check_client_is_his(issuer, earlier)
        scopes = choose_scopes(challenge, resource, issuer, self._settings, earlier)
        if is_own:
            return await self._for_ourselves(resource, issuer, scopes)
        assert self._redirects is not None
        return await self._by_browser(self._redirects, resource, issuer, scopes)

    async def refresh(self, grant: Grant) -> Grant:
        """The next token. Raises TokenRefused if the issuer takes the refresh token no more."""
        issuer = Issuer(grant.issuer, "", grant.token_endpoint, revocation_endpoint=grant.revocation_endpoint)
        client = await self._client_of(grant, issuer)
        fields = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token, "resource": grant.resource}
        answer = await self._ask_token(issuer, client, fields)
        # Rotation: the old one is spent where a new one comes, and goes on where none does.
        fresh = _read_token(answer, issuer, grant.resource, client.client_id, grant.requested)
        return msgspec.structs.replace(fresh, refresh_token=fresh.refresh_token or grant.refresh_token, wanted=grant.wanted)

    # --- the ways

    async def _for_ourselves(self, resource: Resource, issuer: Issuer, scopes: tuple[str, ...]) -> Grant:
        client = known_client(issuer, self._settings)
        if client is None:
            raise Unauthorized(say("mcp_auth.no_client_id"))
        fields = {"grant_type": "client_credentials", "resource": resource.resource}
        if scopes:
            fields["scope"] = " ".join(scopes)
        return _read_token(await self._ask_token(issuer, client, fields), issuer, resource.resource, client.client_id, scopes)

    async def _by_browser(self, redirects: Redirects, resource: Resource, issuer: Issuer, scopes: tuple[str, ...]) -> Grant:
        if not issuer.has_pkce:
            raise Unauthorized(say("mcp_auth.no_pkce", issuer=show(issuer.issuer)))
        if not issuer.authorization_endpoint:
            raise Unauthorized(say("mcp_auth.no_endpoint", issuer=show(issuer.issuer)))
        async with AsyncExitStack() as stack:
            client, waiting = await self._open_place(stack, redirects, issuer, scopes)
            verifier, state = token_urlsafe(64), token_urlsafe(32)
            asked = {
                "response_type": "code",
                "client_id": client.client_id,
                "redirect_uri": waiting.redirect_uri,
                "state": state,
                "code_challenge": challenge_of(verifier),
                "code_challenge_method": "S256",
                "resource": resource.resource,
            }
            if scopes:
                asked["scope"] = " ".join(scopes)
            if "offline_access" in scopes:
                asked["prompt"] = "consent"  # OpenID: without it no refresh token is given
            joint = "&" if "?" in issuer.authorization_endpoint else "?"
            redirected = await waiting.answer(f"{issuer.authorization_endpoint}{joint}{urlencode(asked)}", state)
            code = check_redirect(redirected, issuer)
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": asked["redirect_uri"],
            "code_verifier": verifier,
            "resource": resource.resource,
        }
        return _read_token(await self._ask_token(issuer, client, fields), issuer, resource.resource, client.client_id, scopes)

    async def _open_place(
        self, stack: AsyncExitStack, redirects: Redirects, issuer: Issuer, scopes: tuple[str, ...]
    ) -> tuple[Client, AwaitedRedirect]:
        """A place to come back to, and a client that may name it: many issuers take only the very redirect that was registered."""
        known = known_client(issuer, self._settings)
        if known is not None:
            try:
                return known, await stack.enter_async_context(redirects.open(known.redirect_uri))
            except OSError as error:
                raise ConfigError(say("mcp_auth.port_taken", uri=known.redirect_uri, reason=error.strerror or str(error))) from error
        stored = await asyncio.to_thread(self._store.client, issuer.issuer)
        if stored is not None and not stored.is_expired:
            try:
                return stored, await stack.enter_async_context(redirects.open(stored.redirect_uri))
            except OSError:
                pass  # something else listens there now: register again, with another port
        waiting = await stack.enter_async_context(redirects.open(self._settings.redirect_uri))
        client = await register(self._requests, issuer, waiting.redirect_uri, scopes)
        await asyncio.to_thread(self._store.keep_client, issuer.issuer, client)
        return client, waiting

    # --- the token endpoint

    async def _ask_token(self, issuer: Issuer, client: Client, fields: Mapping[str, str]) -> IssuerAnswer:
        headers, more = proof(client, issuer, self._settings)
        answer = await self._requests.post_form(issuer.token_endpoint, {**fields, **more}, headers, what=say("mcp_auth.token_endpoint"))
        if answer.status == 200:
            return answer
        refused = TokenRefused(say("mcp_auth.no_token", issuer=show(issuer.issuer), reason=reason_of(answer, {**fields, **more})))
        refused.error = str((answer.json() or {}).get("error", ""))
        if refused.error == "invalid_client" and not self._settings.client_id:
            await asyncio.to_thread(self._store.drop_client, issuer.issuer)  # it has forgotten us: the next sign-in registers again
        raise refused

    async def _client_of(self, grant: Grant, issuer: Issuer) -> Client:
        """The client that a grant was given to. Raises TokenRefused if it is no longer available."""
        stored = await asyncio.to_thread(self._store.client, grant.issuer)
        for client in (known_client(msgspec.structs.replace(issuer, takes_documents=True), self._settings), stored):
            if client is not None and client.client_id == grant.client_id:
                return client
        raise TokenRefused(say("mcp_auth.no_client_id"))

    def _check_client_is_his(self, issuer: Issuer, earlier: Grant | None) -> None:
        """A client id that was registered by hand stays with the issuer it was first used with."""
        client_id = self._settings.client_id
        if not client_id or self._settings.issuer or earlier is None or earlier.client_id != client_id:
            return
        if earlier.issuer != issuer.issuer:
            raise Unauthorized(say("mcp_auth.client_of_other", issuer=show(issuer.issuer), expected=show(earlier.issuer)))


def choose_scopes(
    challenge: Challenge, resource: Resource, issuer: Issuer, settings: OAuthSettings, earlier: Grant | None
) -> tuple[str, ...]:
    """What the challenge names, else all that the resource names; with those that were asked for before, so that nothing is lost."""
    scopes = [*(challenge.scopes or resource.scopes), *settings.scopes]
    if earlier is not None and earlier.issuer == issuer.issuer:
        scopes += [*earlier.requested, *earlier.wanted]
    if "offline_access" in issuer.scopes:
        scopes.append("offline_access")
    else:
        scopes = [scope for scope in scopes if scope != "offline_access" or scope in settings.scopes]
    return tuple(dict.fromkeys(scopes))


def check_redirect(parameters: Mapping[str, str], issuer: Issuer) -> str:
    """The code. The state was checked when the redirect came. Raises Unauthorized.

    The issuer is compared letter by letter, and before anything else: of another's answer not even its error is believed (RFC 9207).
    """
    given = parameters.get("iss")
    if (given is None and issuer.sends_issuer) or (given is not None and given != issuer.issuer):
        raise Unauthorized(say("mcp_auth.mixed_up", issuer=show(issuer.issuer)))
    if error := parameters.get("error"):
        reason = ": ".join(each for each in (error, parameters.get("error_description", "")) if each)
        raise Unauthorized(say("mcp_auth.denied", issuer=show(issuer.issuer), reason=show(reason, 300)))
    if not (code := parameters.get("code", "")):
        raise Unauthorized(say("mcp_auth.denied", issuer=show(issuer.issuer), reason=say("mcp_auth.no_code")))
    return code


def challenge_of(verifier: str) -> str:
    """PKCE, S256."""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _read_token(answer: IssuerAnswer, issuer: Issuer, resource: str, client_id: str, requested: tuple[str, ...]) -> Grant:
    read: dict[str, Any] = answer.json() or {}
    token, kind, fresh = read.get("access_token"), read.get("token_type"), read.get("refresh_token")
    usable = isinstance(token, str) and _HEADER_SAFE.fullmatch(token) and isinstance(kind, str) and kind.lower() == "bearer"
    if not usable or not isinstance(token, str):
        raise TokenRefused(say("mcp_auth.no_token", issuer=show(issuer.issuer), reason=say("mcp_auth.odd_token")))
    scope = read.get("scope")
    return Grant(
        issuer=issuer.issuer,
        resource=resource,
        access_token=token,
        token_endpoint=issuer.token_endpoint,
        client_id=client_id,
        refresh_token=fresh if isinstance(fresh, str) else "",
        expires_ms=_expires_ms(read.get("expires_in")),
        requested=requested,
        granted=tuple(scope.split()) if isinstance(scope, str) else requested,
        revocation_endpoint=issuer.revocation_endpoint,
    )


def _expires_ms(lifetime_s: Any) -> int:
    try:
        seconds = int(lifetime_s)
    except (TypeError, ValueError, OverflowError):
        return 0
    return now_ms() + min(seconds, _MOST_LIFETIME_S) * 1000 if seconds > 0 else 0
