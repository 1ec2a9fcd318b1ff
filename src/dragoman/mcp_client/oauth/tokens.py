"""Keeps tokens and registrations: by issuer, in the system's keyring, or in a file for the user alone.

A token's name has both the server that it is for and the issuer that it is from; a registration's has the issuer. Neither is ever used
with another.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from dragoman.base.clock import now_ms
from dragoman.base.lock import hold
from dragoman.base.private import make_directory
from dragoman.base.stored_secrets import FileDamaged, FileUnreadable, NoKeyring, SecretLost, SecretStored, StoredIn, StoredSecrets
from dragoman.mcp_client.oauth.clients import Client
from dragoman.mcp_client.oauth.urls import canonical
from dragoman.values.errors import ConfigError, Unauthorized
from dragoman.words import say

log = logging.getLogger("dragoman.mcp")

EARLY_MS = 30_000
"""A token that ends in less than this is refreshed before it is used."""


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a sign-in has brought: a token, whose it is, and how to get the next."""

    issuer: str
    resource: str
    access_token: str
    token_endpoint: str
    client_id: str
    refresh_token: str = ""
    expires_ms: int = 0
    """0: not known."""
    requested: tuple[str, ...] = ()
    """Scopes that were asked for."""
    granted: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    """Scopes that the server has since said are missing: the next sign-in asks for them."""
    revocation_endpoint: str = ""

    def __repr__(self) -> str:
        return f"Grant(issuer={self.issuer!r}, resource={self.resource!r}, …)"

    @property
    def is_stale(self) -> bool:
        return 0 < self.expires_ms <= now_ms() + EARLY_MS


T = TypeVar("T", Grant, Client)


class TokenStore:
    """Tokens and registrations of one user. Without a file they are kept in memory, and end with this process.

    Its methods block for as long as a keyring takes: they are called in a thread.
    """

    def __init__(self, file: str = "", tell: Callable[[str], None] = log.warning) -> None:
        self.file = file
        self._stored = StoredSecrets(file, tell) if file else None
        self._memory: dict[str, str] = {}

    def grant(self, server_url: str) -> Grant | None:
        """The token for a server; None if nobody has signed in. Raises ConfigError or Unauthorized if it cannot be read."""
        for name in self._names():
            if name.startswith(f"token {canonical(server_url)} "):
                grant = self._find(name, Grant)
                if grant is not None and name == _token_name(server_url, grant.issuer):
                    return grant
        return None

    def keep_grant(self, server_url: str, grant: Grant) -> StoredIn | None:
        """Instead of every earlier one for this server, whoever issued it. None: in memory."""
        stored = self._add(_token_name(server_url, grant.issuer), grant)
        self._remove_tokens(server_url, keep=grant.issuer)
        return stored.stored_in if stored is not None else None

    def drop_grant(self, server_url: str) -> bool:
        return self._remove_tokens(server_url)

    def client(self, issuer: str) -> Client | None:
        return self._find(f"client {issuer}", Client)

    def keep_client(self, issuer: str, client: Client) -> None:
        self._add(f"client {issuer}", client)

    def drop_client(self, issuer: str) -> None:
        with self._in_our_words():
            self._remove(f"client {issuer}")

    def signed_in(self) -> dict[str, str]:
        """Every server that somebody has signed in to, and its issuer. No keyring is loaded."""
        tokens = [name.split(" ") for name in self._names() if name.startswith("token ")]
        return {parts[1]: parts[2] for parts in tokens if len(parts) == 3}

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other process refreshes meanwhile: an issuer takes a refresh token once. Raises OSError if another does for seconds."""
        if not self.file:
            yield
            return
        make_directory(os.path.dirname(self.file))
        with hold(f"{self.file}.refresh"):
            yield

    def _remove_tokens(self, server_url: str, keep: str = "") -> bool:
        names = [name for name in self._names() if name.startswith(f"token {canonical(server_url)} ")]
        removed = [name for name in names if not keep or name != _token_name(server_url, keep)]
        with self._in_our_words():
            for name in removed:
                self._remove(name)
        return bool(removed)

    # --- rows

    def _names(self) -> tuple[str, ...]:
        if self._stored is None:
            return tuple(self._memory)
        with self._in_our_words():
            return tuple(self._stored.names)

    def _find(self, name: str, kind: type[T]) -> T | None:
        with self._in_our_words():
            try:
                text = self._memory.get(name, "") if self._stored is None else self._stored.find(name)
            except SecretLost:
                return None  # deleted from the keyring by its owner
        try:
            return msgspec.json.decode(text, type=kind) if text else None
        except msgspec.DecodeError:
            return None  # of another release; one signs in again

    def _add(self, name: str, value: Grant | Client) -> SecretStored | None:
        text = msgspec.json.encode(value).decode()
        if self._stored is None:
            self._memory[name] = text
            return None
        with self._in_our_words():
            return self._stored.add(name, text)

    def _remove(self, name: str) -> None:
        if self._stored is None:
            self._memory.pop(name, None)
        else:
            self._stored.remove(name)

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        try:
            yield
        except FileUnreadable as error:
            raise ConfigError(say("mcp_auth.tokens_unreadable", path=self.file, reason=str(error))) from error
        except FileDamaged:
            raise ConfigError(say("mcp_auth.tokens_damaged", path=self.file)) from None
        except NoKeyring as error:
            raise Unauthorized(say("mcp_auth.keyring_closed", reason=str(error))) from error


def _token_name(server_url: str, issuer: str) -> str:
    return f"token {canonical(server_url)} {issuer}"
