"""Authentication by tokens that are fetched: a command of the user's that prints one, or a function of the embedder's."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Awaitable, Callable, Mapping, Sequence

from dragoman.http.fetched_tokens import OneFetch, Tokens, is_in
from dragoman.providers.auth import checked_key, in_header
from dragoman.providers.redact import redact
from dragoman.values.contracts import HttpRequest
from dragoman.values.errors import ConfigError, Unauthorized
from dragoman.words import say

COMMAND_TIMEOUT_S = 30.0


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
        self._tokens = Tokens()
        self._fetching = OneFetch(self._fetch, timeout_s)

    async def headers(self, request: HttpRequest | None = None) -> dict[str, str]:
        if not self._token:
            await self._fetching.unless(lambda: bool(self._token))
        return in_header(self._header, self._token)

    async def refresh(self, refused: Mapping[str, str]) -> bool:
        def has_another() -> bool:
            return bool(self._token) and not is_in(in_header(self._header, self._token), refused)

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
        self._tokens = Tokens()

    async def headers(self, request: HttpRequest | None = None) -> dict[str, str]:
        token = self._source()
        if not isinstance(token, str):
            token = await token
        token = checked_key(token, lambda: say("providers.key_of_program"))
        self._tokens.add(token)
        return in_header(self._header, token)

    async def refresh(self, refused: Mapping[str, str]) -> bool:
        return not is_in(await self.headers(), refused)

    def secrets(self) -> tuple[str, ...]:
        return self._tokens.all()

    def __repr__(self) -> str:
        return f"InjectedAuth({self._header!r})"
