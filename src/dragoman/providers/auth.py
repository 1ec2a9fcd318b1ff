"""Authentication: what goes into a request's headers, by a key or by nothing. Tokens that are fetched: fetched_auth.py, google_auth.py.

Secrets go into headers only: never into URLs, messages or repr(). One Auth serves many requests at once, from several event loops and
threads. `connect.auth_for` chooses the authentication of a deployment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from dragoman.values.contracts import HttpRequest
from dragoman.values.errors import ConfigError, Unauthorized
from dragoman.values.profile import Deployment
from dragoman.words import say

_FRAMING = {"host", "content-length", "transfer-encoding", "connection"}
"""Headers that are the HTTP client's own."""
_SECRET_WORDS = ("auth", "key", "token", "secret", "password", "credential", "cookie", "signature")
"""What is in the name of a header that holds a secret."""


class Auth(Protocol):
    """The credentials of a request. Failures are Unauthorized, or ConfigError if something is not installed.

    All methods may be called concurrently, from several event loops and threads.
    """

    async def headers(self, request: HttpRequest | None = None) -> dict[str, str]:
        """`request` is what they will go with, for services that want it signed."""
        ...

    async def refresh(self, refused: Mapping[str, str]) -> bool:
        """Renew the credentials after the service rejected the headers `refused`: True if there are other headers now, so that a retry
        makes sense. A credential that another caller has renewed meanwhile is not renewed again."""
        ...

    def secrets(self) -> tuple[str, ...]:
        """The secret values known so far (the most recent ones), for redaction."""
        ...


class NoAuth:
    """For servers that need no credentials."""

    async def headers(self, request: HttpRequest | None = None) -> dict[str, str]:
        return {}

    async def refresh(self, refused: Mapping[str, str]) -> bool:
        return False

    def secrets(self) -> tuple[str, ...]:
        return ()

    def __repr__(self) -> str:
        return "NoAuth()"


class KeyAuth:
    """A key in a header; in `Authorization`, as a bearer token. `origin` names it in error messages."""

    def __init__(self, header: str, key: str, origin: Callable[[], str] = lambda: say("providers.the_key")) -> None:
        self._header = header
        self._key = checked_key(key, origin)

    async def headers(self, request: HttpRequest | None = None) -> dict[str, str]:
        return in_header(self._header, self._key)

    async def refresh(self, refused: Mapping[str, str]) -> bool:
        return False

    def secrets(self) -> tuple[str, ...]:
        return (self._key,)

    def __repr__(self) -> str:
        return f"KeyAuth({self._header!r}, …)"


class WithHeaders:
    """Credentials, and other headers that the environment has for a service. What the user wrote himself may be secret."""

    def __init__(self, auth: Auth, headers: Mapping[str, str], secrets: Sequence[str] = ()) -> None:
        self._auth = auth
        self._headers = dict(headers)
        self._secrets = tuple(secrets)

    async def headers(self, request: HttpRequest | None = None) -> dict[str, str]:
        given = {name.lower() for name in self._headers}
        credentials = await self._auth.headers(request)
        return {name: value for name, value in credentials.items() if name.lower() not in given} | self._headers

    async def refresh(self, refused: Mapping[str, str]) -> bool:
        return await self._auth.refresh(refused)

    def secrets(self) -> tuple[str, ...]:
        return (*self._auth.secrets(), *self._secrets)

    def __repr__(self) -> str:
        return f"WithHeaders({self._auth!r}, {sorted(self._headers)})"


def with_env_headers(auth: Auth, deployment: Deployment, env: Mapping[str, str]) -> Auth:
    """The same authentication, with the headers that the environment has for the deployment. Raises ConfigError if one cannot be sent."""
    if isinstance(auth, WithHeaders):
        return auth
    named = {
        header: checked_header(env[variable].strip(), variable)
        for header, variable in deployment.env_headers.items()
        if env.get(variable, "").strip()
    }
    written = _written_headers(env.get(deployment.headers_env, ""), deployment.headers_env)
    secrets = (*_secret_values({**deployment.headers, **named}), *written.values())
    return WithHeaders(auth, named | written, secrets) if named or written or secrets else auth


def _secret_values(headers: Mapping[str, str]) -> Iterator[str]:
    """Of headers whose names say so: the value, and what follows `Bearer` or the like in it."""
    for name, value in headers.items():
        if any(word in name.lower() for word in _SECRET_WORDS):
            yield value
            yield value.rpartition(" ")[2]


def _written_headers(text: str, variable: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not colon or not _is_header_name(name.strip()):
            raise ConfigError(say("providers.header_line", variable=variable, line=number))
        headers[name.strip()] = checked_header(value.strip(), variable)
    return headers


def _is_header_name(name: str) -> bool:
    if not name or not name.isascii() or name.lower() in _FRAMING:
        return False
    return all(character.isalnum() or character in "!#$%&'*+-.^_`|~" for character in name)


def checked_header(value: str, origin: str) -> str:
    """A header's value, if it can be sent. Error messages never show it."""
    for position, character in enumerate(value, 1):
        if character != "\t" and (ord(character) > 255 or not character.isprintable()):
            problem = "providers.header_line_break" if character in "\r\n" else "providers.header_character"
            raise ConfigError(say(problem, origin=origin, position=position, length=len(value)))
    return value


def checked_key(key: str, origin: Callable[[], str]) -> str:
    """The key without the surrounding white space of a copy and paste. Error messages never show it."""
    key = key.strip()
    if not key:
        raise Unauthorized(say("providers.key_empty", origin=origin()))
    for position, character in enumerate(key, 1):
        if ord(character) > 255 or not character.isprintable():
            problem = "providers.key_line_break" if character in "\r\n" else "providers.key_character"
            raise Unauthorized(say(problem, origin=origin(), position=position, length=len(key)))
    return key


def in_header(header: str, key: str) -> dict[str, str]:
    return {header: f"Bearer {key}" if header.lower() == "authorization" else key}
