"""Authentication by Google credentials (Vertex AI): a file, the application default credentials, or the user's own command."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

from dragoman.http.fetched_tokens import OneFetch, Tokens, is_in
from dragoman.providers.auth import Auth
from dragoman.providers.fetched_auth import CommandAuth
from dragoman.providers.redact import redact
from dragoman.values.contracts import HttpRequest
from dragoman.values.errors import ConfigError, Unauthorized
from dragoman.values.profile import Deployment
from dragoman.words import say

GOOGLE_TIMEOUT_S = 20.0
GOOGLE_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
GOOGLE_CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS"


class VertexAuth:
    """Google credentials: the given file, else the application default credentials. Uses google-auth, in a thread because it blocks."""

    def __init__(self, file: str = "", timeout_s: float = GOOGLE_TIMEOUT_S) -> None:
        self._file = file
        self._timeout_s = timeout_s
        self._credentials: Any = None
        self._tokens = Tokens()
        self._lock = threading.Lock()
        self._fetching = OneFetch(self._fetch, timeout_s)

    async def headers(self, request: HttpRequest | None = None) -> dict[str, str]:
        if not self._is_valid():
            await self._fetching.unless(self._is_valid)
        return self._applied()

    async def refresh(self, refused: Mapping[str, str]) -> bool:
        def has_another() -> bool:
            return self._is_valid() and not is_in({"authorization": self._applied()["authorization"]}, refused)

        await self._fetching.unless(has_another)
        return has_another()

    def secrets(self) -> tuple[str, ...]:
        return self._tokens.all()

    def __repr__(self) -> str:
        return f"VertexAuth({self._file!r})"

    def _is_valid(self) -> bool:
        return self._credentials is not None and self._credentials.valid

    def _applied(self) -> dict[str, str]:
        """The headers with the token, and with the quota project if the credentials name one."""
        headers: dict[str, str] = {}
        self._credentials.apply(headers)
        return headers

    async def _fetch(self) -> None:
        await asyncio.to_thread(self._fetch_blocking)

    def _fetch_blocking(self) -> None:
        with self._lock:  # a fetch that nobody waits for any more may still be under way
            credentials = self._credentials or self._load()
            from google.auth.exceptions import GoogleAuthError
            from google.auth.transport.requests import Request

            try:
                credentials.refresh(partial(Request(), timeout=self._timeout_s))
            except GoogleAuthError as error:
                reason = _first_words(error, self.secrets())
                raise Unauthorized(say("providers.google_no_token", reason=reason, remedy=self._remedy)) from error
            self._tokens.add(credentials.token)
            self._credentials = credentials

    def _load(self) -> Any:
        try:
            import google.auth
            import google.auth.transport.requests
            from google.auth.exceptions import GoogleAuthError
        except ImportError as error:
            raise ConfigError(say("providers.vertex_missing")) from error
        try:
            if not self._file:
                return google.auth.default(scopes=[GOOGLE_SCOPE])[0]
            with warnings.catch_warnings():
                # It warns of files from strangers; this one the user has named.
                warnings.simplefilter("ignore", DeprecationWarning)
                return google.auth.load_credentials_from_file(self._file, scopes=[GOOGLE_SCOPE])[0]
        except (GoogleAuthError, OSError, ValueError) as error:
            raise Unauthorized(say("providers.google_no_credentials", reason=_first_words(error), remedy=self._remedy)) from error

    @property
    def _remedy(self) -> str:
        if self._file:
            return say("providers.google_check_file", variable=GOOGLE_CREDENTIALS)
        return say("providers.google_log_in", variable=GOOGLE_CREDENTIALS)


def google_auth(deployment: Deployment, env: Mapping[str, str]) -> Auth:
    """Credentials the user named are used or fail: we never fall back to another identity.

    Without any, a runnable key command takes precedence over google-auth's own search, which ends in waiting for a metadata server.
    """
    if env.get(GOOGLE_CREDENTIALS):
        return VertexAuth(env[GOOGLE_CREDENTIALS])
    import shutil

    command = deployment.key_command and shutil.which(deployment.key_command[0], path=env.get("PATH"))
    if command and not (_default_credentials_exist(env) and _google_auth_installed()):
        return CommandAuth(deployment.key_command, "Authorization", env)
    return VertexAuth()


def _default_credentials_exist(env: Mapping[str, str]) -> bool:
    from pathlib import Path

    folder = env.get("CLOUDSDK_CONFIG") or (Path(env["APPDATA"], "gcloud") if env.get("APPDATA") else Path.home() / ".config" / "gcloud")
    return Path(folder, "application_default_credentials.json").is_file()


def _google_auth_installed() -> bool:
    from importlib.util import find_spec

    try:
        return find_spec("google.auth") is not None
    except ModuleNotFoundError:
        return False


def _first_words(error: BaseException, secrets: tuple[str, ...] = ()) -> str:
    text = redact(" ".join(str(error.args[0] if error.args else error).split()), secrets)
    return text[:300].rstrip(".") or type(error).__name__
