"""Signs requests to one MCP server: `contracts.Authorizer` by OAuth 2.1.

The token comes from the store, is refreshed before it ends and when it is refused, and is replaced by one with more scopes where the server
asks for them. However many requests are refused at once, one of them gets the next token.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, asynccontextmanager

import msgspec

from dragoman.base.turnstile import Turnstile
from dragoman.http.fetched_tokens import OneFetch, Tokens, is_in
from dragoman.mcp_client.contracts import HttpServer, OAuthSettings
from dragoman.mcp_client.errors import McpError
from dragoman.mcp_client.oauth.challenges import Challenge, read_challenge
from dragoman.mcp_client.oauth.discovery import Resource
from dragoman.mcp_client.oauth.flow import SignIn, SignInNeeded, TokenRefused
from dragoman.mcp_client.oauth.loopback import WAIT_S, Redirects
from dragoman.mcp_client.oauth.requests import TIMEOUT_S, Requests
from dragoman.mcp_client.oauth.tokens import Grant, TokenStore
from dragoman.values.errors import DragomanError, Unauthorized
from dragoman.words import say

log = logging.getLogger("dragoman.mcp")

MOST_STEP_UPS = 3
STEP_UPS_WITHIN_S = 600.0
"""How often a user is asked for more scopes: a server that wants another each time must not keep asking."""

EARLY_PAUSE_S = 60.0
"""An issuer that could not be reached is not asked again before each request."""


class SignInFailed(McpError):
    """Signing in to a server did not succeed, or nobody is there who could. The message says why, and what to do."""


class OAuth:
    """`contracts.Authorizer`. Without `redirects` nobody is asked: tokens are refreshed, and a sign-in that is needed is an error.

    It may be used from several event loops and threads. `refused` raises SignInFailed.
    """

    def __init__(
        self,
        name: str,
        server: HttpServer,
        store: TokenStore,
        settings: OAuthSettings | None = None,
        redirects: Redirects | None = None,
        requests: Requests | None = None,
    ) -> None:
        self._name = name
        self._url = server.url
        self._store = store
        self._sign_in = SignIn(server.url, settings or server.oauth or OAuthSettings(), store, requests or Requests(server.url), redirects)
        self._grant: Grant | None = None
        self._is_loaded = False
        self._challenge = Challenge()
        self._missing: tuple[str, ...] = ()
        self._step_ups: list[float] = []
        self._tokens = Tokens()
        self._next = OneFetch(self._get_next, WAIT_S)
        self._early = OneFetch(self._get_early, TIMEOUT_S)
        self._not_early_before = 0.0
        self._refreshing = Turnstile(1)

    def __repr__(self) -> str:
        return f"OAuth({self._name!r})"

    def secrets(self) -> tuple[str, ...]:
        """Recent tokens, to be redacted wherever something is recorded or shown."""
        return self._tokens.all()

    async def headers(self) -> Mapping[str, str]:
        if not self._is_loaded:
            await self._load()
        if self._grant is not None and self._grant.is_stale and self._grant.refresh_token:
            await self._refresh_early(self._grant)
        return _signed(self._grant)

    async def refused(self, status: int, challenges: str, sent: Mapping[str, str]) -> bool:
        challenge = read_challenge(challenges)
        if status not in (401, 403) or (status == 403 and challenge.error != "insufficient_scope"):
            return False

        def has_another() -> bool:
            return self._grant is not None and not is_in(_signed(self._grant), sent)

        # They are asked for together, whichever of several refused requests gets the token.
        self._challenge = challenge
        if status == 403:
            self._missing = tuple(dict.fromkeys([*self._missing, *challenge.scopes]))
        try:
            await self._next.unless(has_another)
        except DragomanError as error:
            raise SignInFailed(say("mcp_auth.failed", name=self._name, reason=_message(error))) from error
        return has_another()

    # --- getting the next token, one at a time

    async def _get_next(self) -> None:
        missing, self._missing = self._missing, ()
        if missing:
            await self._step_up(missing)
            return
        if await self._take_from_store():
            return
        found = None
        if self._grant is not None and self._grant.refresh_token:
            found = await self._sign_in.find(self._challenge, self._grant)
            if found[1] == self._grant.issuer and await self._refresh(self._grant):
                return
        await self._ask_user(self._challenge, found)

    async def _step_up(self, missing: tuple[str, ...]) -> None:
        grant = self._grant
        if grant is not None and set(missing) <= set(grant.requested):
            raise Unauthorized(say("mcp_auth.scope_refused", scopes=" ".join(missing)))
        now = time.monotonic()
        self._step_ups = [when for when in self._step_ups if when > now - STEP_UPS_WITHIN_S]
        if len(self._step_ups) >= MOST_STEP_UPS:
            raise Unauthorized(say("mcp_auth.too_many_scopes", count=MOST_STEP_UPS))
        self._step_ups.append(now)
        if grant is not None:
            self._grant = msgspec.structs.replace(grant, wanted=tuple(dict.fromkeys([*grant.wanted, *missing])))
        await self._ask_user(self._challenge._replace(scope=" ".join(missing)), None)

    async def _ask_user(self, challenge: Challenge, found: tuple[Resource, str] | None) -> None:
        try:
            await self._keep(await self._sign_in.run(challenge, self._grant, found))
        except SignInNeeded as error:
            if self._grant is not None and self._grant.wanted:
                await asyncio.to_thread(self._store.keep_grant, self._url, self._grant)  # the next `login` asks for them
            raise Unauthorized(say("mcp_auth.sign_in_needed", name=self._name)) from error

    async def _refresh(self, grant: Grant) -> bool:
        """Whether the issuer gave another token. Another process may have got it meanwhile."""
        async with self._refreshing.place(), self._alone():
            if self._grant is not grant or await self._take_from_store():
                return True
            try:
                await self._keep(await self._sign_in.refresh(grant))
            except TokenRefused as error:
                if error.error != "temporarily_unavailable":
                    await self._keep(msgspec.structs.replace(grant, refresh_token=""))
                return False
        return True

    async def _refresh_early(self, grant: Grant) -> None:
        """A failure is not reported: the token may still be valid, and if it is not, the server says so."""
        if time.monotonic() < self._not_early_before:
            return
        try:
            await self._early.unless(lambda: self._grant is not grant)
        except DragomanError:
            self._not_early_before = time.monotonic() + EARLY_PAUSE_S

    async def _get_early(self) -> None:
        if self._grant is not None and self._grant.refresh_token:
            await self._refresh(self._grant)

    async def _take_from_store(self) -> bool:
        """Whether the store has another token than ours: another process has refreshed, or somebody has signed in."""
        stored = await asyncio.to_thread(self._store.grant, self._url)
        if stored is None or stored.access_token in self._tokens.all():
            return False
        self._take(stored)
        return True

    async def _load(self) -> None:
        stored = await asyncio.to_thread(self._store.grant, self._url)
        if not self._is_loaded:
            self._take(stored)

    async def _keep(self, grant: Grant) -> None:
        self._take(grant)
        try:
            await asyncio.to_thread(self._store.keep_grant, self._url, grant)
        except (DragomanError, OSError) as error:
            log.warning(say("mcp_auth.not_kept", name=self._name, reason=error))

    def _take(self, grant: Grant | None) -> None:
        self._is_loaded = True
        self._grant = grant
        for secret in (grant.access_token, grant.refresh_token) if grant is not None else ():
            if secret:
                self._tokens.add(secret)

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None, None]:
        with ExitStack() as stack:
            try:
                await asyncio.to_thread(stack.enter_context, self._store.alone())
            except OSError:
                pass  # another process takes seconds for it, or files cannot be locked here: the issuer decides
            yield


def _signed(grant: Grant | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {grant.access_token}"} if grant is not None else {}


def _message(error: DragomanError) -> str:
    return getattr(error, "message", "") or error.sentence
