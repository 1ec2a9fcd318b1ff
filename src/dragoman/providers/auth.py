"""Authentication: API keys, token commands, Google credentials, or a custom token source.

Secrets go into headers only: never into URLs, messages or repr(). One Auth serves many requests at once, from several event loops and
threads.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from dragoman.base.turnstile import Turnstile
from dragoman.base.words import say
from dragoman.providers.redact import redact
from dragoman.values.contracts import HttpRequest
from dragoman.values.errors import ConfigError, Unauthorized
from dragoman.values.profile import Deployment

COMMAND_TIMEOUT_S = 30.0
GOOGLE_TIMEOUT_S = 20.0
GOOGLE_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
GOOGLE_CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS"
_FRAMING = {"host", "content-length", "transfer-encoding", "connection"}
"""Headers that are the HTTP client's own."""
REMEMBERED = 32
"""How many recent tokens are remembered, so that they can be redacted."""


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


def auth_for(deployment: Deployment, env: Mapping[str, str], key: str | None = None) -> Auth:
    """The authentication a deployment asks for. `key` takes precedence over the environment, the environment over a command.

    With it go the headers that the environment has for this deployment. Raises ConfigError if one of them cannot be sent.
    """
    return with_env_headers(_credentials(deployment, env, key), deployment, env)


def _credentials(deployment: Deployment, env: Mapping[str, str], key: str | None) -> Auth:
    title = deployment.title or deployment.name
    if deployment.auth == "none":
        return NoAuth()
    header = "Authorization" if deployment.auth in {"bearer", "vertex"} else deployment.auth
    if key is not None and key.strip():
        return KeyAuth(header, key, lambda: say("providers.key_given", title=title))
    for name in deployment.key_env:
        if env.get(name, "").strip():
            return KeyAuth(header, env[name], lambda name=name: say("providers.key_in_variable", name=name))
    for name in deployment.token_env:
        if env.get(name, "").strip():
            return KeyAuth("Authorization", env[name], lambda name=name: say("providers.key_in_variable", name=name))
    if deployment.auth == "vertex":
        return _google_auth(deployment, env)
    if deployment.key_command:
        return CommandAuth(deployment.key_command, header, env)
    if deployment.key_optional or not deployment.key_env:
        return NoAuth()

    from dragoman.base.text import either

    raise Unauthorized(say("providers.no_key", title=title, names=either((*deployment.key_env, *deployment.token_env))))


# --- no key, a key ------------------------------------------------------------------------------------------------------------


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
        return _in_header(self._header, self._key)

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
    return WithHeaders(auth, named | written, tuple(written.values())) if named or written else auth


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


def _in_header(header: str, key: str) -> dict[str, str]:
    return {header: f"Bearer {key}" if header.lower() == "authorization" else key}


# --- tokens that are fetched ----------------------------------------------------------------------------------------------------


class CommandAuth:
    """A user's command that prints a token. It runs without a shell, once, and again when the token is rejected."""

    def __init__(
        self, argv: Sequence[str], header: str = "Authorization", env: Mapping[str, str] | None = None, timeout_s: float = COMMAND_TIMEOUT_S
    ) -> None:
        if not argv:
            raise ConfigError(say("providers.key_command_empty"))
        self._argv = tuple(argv)
        self._header = header
        self._env = env
        self._timeout_s = timeout_s
        self._token = ""
        self._tokens = _Tokens()
        self._fetching = _OneFetch(self._fetch, timeout_s)

    async def headers(self, request: HttpRequest | None = None) -> dict[str, str]:
        if not self._token:
            await self._fetching.unless(lambda: bool(self._token))
        return _in_header(self._header, self._token)

    async def refresh(self, refused: Mapping[str, str]) -> bool:
        def has_another() -> bool:
            return bool(self._token) and not _is_in(_in_header(self._header, self._token), refused)

        await self._fetching.unless(has_another)
        return has_another()

    def secrets(self) -> tuple[str, ...]:
        return self._tokens.all()

    def __repr__(self) -> str:
        return f"CommandAuth({self._shown!r}, {self._header!r})"

    @property
    def _shown(self) -> str:
        """The program and its first plain arguments: what follows an option may be a secret."""
        words = [self._argv[0]]
        for word in self._argv[1:]:
            if not word.replace("-", "").isalpha() or word.startswith("-"):
                return " ".join([*words, "…"])
            words.append(word)
        return " ".join(words)

    async def _fetch(self) -> None:
        token = await self._run()
        self._tokens.add(token)
        self._token = token

    async def _run(self) -> str:
        try:
            # A session of its own: the command cannot fight over the terminal, and whatever it starts can be ended with it.
            process = await asyncio.create_subprocess_exec(
                *self._argv, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=self._env, start_new_session=True
            )
        except (OSError, ValueError) as error:
            why = say("providers.no_such_program") if isinstance(error, FileNotFoundError) else str(error)
            raise Unauthorized(say("providers.key_command_not_run", command=self._shown, reason=why)) from error
        try:
            async with asyncio.timeout(self._timeout_s):
                output, complaint = await process.communicate()
        except TimeoutError as error:
            await _end(process)
            raise Unauthorized(say("providers.key_command_slow", command=self._shown, seconds=self._timeout_s)) from error
        except asyncio.CancelledError:
            await _end(process)
            raise
        return self._read(process.returncode, output.decode("utf-8", "replace"), complaint.decode("utf-8", "replace"))

    def _read(self, status: int | None, output: str, complaint: str) -> str:
        lines = complaint.strip().splitlines()
        last = redact(lines[-1].strip(), (output.strip(), *self.secrets()))[:300] if lines else ""
        detail = say("providers.key_command_detail", text=last) if last else ""
        if status:
            raise Unauthorized(say("providers.key_command_failed", command=self._shown, status=status, detail=detail))
        if not output.strip():
            raise Unauthorized(say("providers.key_command_silent", command=self._shown, detail=detail))
        return checked_key(output, lambda: say("providers.key_printed", command=self._shown))


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a command that did not end by itself, with everything it started, and reap it."""
    # The group may outlive its leader: a child in the background can hold the pipe open.
    from dragoman.base.processes import kill_group

    kill_group(process.pid)
    try:
        async with asyncio.timeout(1):
            await process.communicate()  # not wait: the pipes are to be closed too
    except TimeoutError:
        pass


class InjectedAuth:
    """A custom token source: a function, sync or async, called before every request. It does its own caching.

    It is called from every event loop and thread that makes requests, possibly concurrently.
    """

    def __init__(self, source: Callable[[], str | Awaitable[str]], header: str = "Authorization") -> None:
        self._source = source
        self._header = header
        self._tokens = _Tokens()

    async def headers(self, request: HttpRequest | None = None) -> dict[str, str]:
        token = self._source()
        if not isinstance(token, str):
            token = await token
        token = checked_key(token, lambda: say("providers.key_of_program"))
        self._tokens.add(token)
        return _in_header(self._header, token)

    async def refresh(self, refused: Mapping[str, str]) -> bool:
        return not _is_in(await self.headers(), refused)

    def secrets(self) -> tuple[str, ...]:
        return self._tokens.all()

    def __repr__(self) -> str:
        return f"InjectedAuth({self._header!r})"


# --- Google -------------------------------------------------------------------------------------------------------------------


class VertexAuth:
    """Google credentials: the given file, else the application default credentials. Uses google-auth, in a thread because it blocks."""

    def __init__(self, file: str = "", timeout_s: float = GOOGLE_TIMEOUT_S) -> None:
        self._file = file
        self._timeout_s = timeout_s
        self._credentials: Any = None
        self._tokens = _Tokens()
        self._lock = threading.Lock()
        self._fetching = _OneFetch(self._fetch, timeout_s)

    async def headers(self, request: HttpRequest | None = None) -> dict[str, str]:
        if not self._is_valid():
            await self._fetching.unless(self._is_valid)
        return self._applied()

    async def refresh(self, refused: Mapping[str, str]) -> bool:
        def has_another() -> bool:
            return self._is_valid() and not _is_in({"authorization": self._applied()["authorization"]}, refused)

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


def _google_auth(deployment: Deployment, env: Mapping[str, str]) -> Auth:
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


# --- small things ---------------------------------------------------------------------------------------------------------------


class _OneFetch:
    """Shares one fetch between concurrent callers from any event loop or thread. They share a failure too."""

    def __init__(self, fetch: Callable[[], Awaitable[None]], timeout_s: float) -> None:
        self._fetch = fetch
        # Longer than any fetch takes: only an event loop that was stopped in the middle of one makes the others wait that long.
        self._turnstile = Turnstile(1, patience_s=2 * timeout_s + 5)
        self._done = 0
        self._failure = ""

    async def unless(self, is_there: Callable[[], bool]) -> None:
        done_before = self._done
        try:
            place = await self._turnstile.enter()
        except TimeoutError as error:
            raise Unauthorized(say("providers.token_stuck")) from error
        try:
            if is_there():
                return
            if self._done == done_before:
                await self._fetch_once()
            elif self._failure:
                raise Unauthorized(self._failure)
        finally:
            self._turnstile.leave(place)

    async def _fetch_once(self) -> None:
        """If it is cancelled it does not count, and the next in the queue fetches."""
        try:
            await self._fetch()
        except Unauthorized as error:
            self._failure = error.message
            self._done += 1
            raise
        self._failure = ""
        self._done += 1


class _Tokens:
    """The most recent tokens. A source may give a new one for each request, so not all are kept."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._values: dict[str, None] = {}

    def add(self, token: str) -> None:
        with self._lock:
            self._values.pop(token, None)
            self._values[token] = None
            while len(self._values) > REMEMBERED:
                del self._values[next(iter(self._values))]

    def all(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._values)


def _is_in(headers: Mapping[str, str], sent: Mapping[str, str]) -> bool:
    """Whether these were among the headers sent. Header names are case-insensitive."""
    values = {name.lower(): value for name, value in sent.items()}
    return all(values.get(name.lower()) == value for name, value in headers.items())


def _first_words(error: BaseException, secrets: tuple[str, ...] = ()) -> str:
    text = redact(" ".join(str(error.args[0] if error.args else error).split()), secrets)
    return text[:300].rstrip(".") or type(error).__name__
