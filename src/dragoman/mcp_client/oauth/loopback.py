"""Waits for the browser's redirect on this machine, or for the address that the user pastes where no browser can reach it."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from dragoman.http.route import is_loopback
from dragoman.mcp_client.oauth.page import page
from dragoman.values.errors import ConfigError, Unauthorized
from dragoman.words import say

WAIT_S = 600.0
HOST = "127.0.0.1"
PATH = "/callback"
_HEAD_BYTES = 32_768
_HEAD_S = 10.0


class AwaitedRedirect(Protocol):
    """A place that the browser can be sent back to."""

    @property
    def redirect_uri(self) -> str: ...

    async def answer(self, url: str, state: str) -> Mapping[str, str]:
        """Send the user to `url`, and return the parameters of the redirect that carries this `state`. Raises Unauthorized."""
        ...


class Redirects(Protocol):
    """How a user is asked to sign in."""

    def open(self, redirect_uri: str) -> AbstractAsyncContextManager[AwaitedRedirect]:
        """A place at this URI; at any, if it is empty; at any port, if it names none. Raises OSError if the port is taken."""
        ...


class Browser:
    """Sends the user's browser to the sign-in, and waits on the loopback interface for it to come back.

    `tell` shows a line; `open_url` opens a browser and says whether there is one; `read_line` reads a line that the user pastes, with its
    end; it is empty at the end of input. Cancelling (Ctrl-C) ends the waiting and closes the port.
    """

    def __init__(
        self,
        tell: Callable[[str], None],
        open_url: Callable[[str], Awaitable[bool]],
        read_line: Callable[[], Awaitable[str]] | None = None,
        wait_s: float = WAIT_S,
    ) -> None:
        self._tell = tell
        self._open_url = open_url
        self._read_line = read_line
        self._wait_s = wait_s

    @asynccontextmanager
    async def open(self, redirect_uri: str) -> AsyncGenerator[AwaitedRedirect, None]:
        host, port, path = read_redirect_uri(redirect_uri)
        place = _Place(host, path)
        server = await asyncio.start_server(place.converse, host, port, limit=_HEAD_BYTES)
        place.port = server.sockets[0].getsockname()[1]
        place.answered_by = self._ask
        try:
            yield place
        finally:
            server.close()
            await place.end()

    async def _ask(self, url: str, place: _Place) -> Mapping[str, str]:
        self._tell(say("mcp_auth.open_this", url=url))
        has_browser = await self._open_url(url)
        self._tell(say("mcp_auth.waiting") if has_browser else say("mcp_auth.paste"))
        pasted = asyncio.create_task(self._read_pasted(place)) if self._read_line is not None else None
        try:
            async with asyncio.timeout(self._wait_s):
                return await place.arrived
        except TimeoutError as error:
            raise Unauthorized(say("mcp_auth.nobody_came", minutes=round(self._wait_s / 60))) from error
        finally:
            if pasted is not None:
                pasted.cancel()
                await asyncio.gather(pasted, return_exceptions=True)

    async def _read_pasted(self, place: _Place) -> None:
        assert self._read_line is not None
        while line := await self._read_line():
            if place.take(_query(line.strip())):
                return
            self._tell(say("mcp_auth.pasted_wrong"))


class _Place:
    """One redirect that is waited for. What does not carry its state is answered and forgotten: any web page can send us that."""

    def __init__(self, host: str, path: str) -> None:
        self._host = host
        self._path = path
        self._state = ""
        self.port = 0
        self.arrived: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self.answered_by: Callable[[str, _Place], Awaitable[Mapping[str, str]]]
        self._conversations: set[asyncio.Task[None]] = set()

    @property
    def redirect_uri(self) -> str:
        return f"http://{self._authority}{self._path}"

    @property
    def _authority(self) -> str:
        return f"[{self._host}]:{self.port}" if ":" in self._host else f"{self._host}:{self.port}"

    async def answer(self, url: str, state: str) -> Mapping[str, str]:
        self._state = state
        return await self.answered_by(url, self)

    def take(self, query: str) -> bool:
        """Whether these are the parameters that are waited for."""
        try:
            pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=50)
        except ValueError:
            return False
        parameters = dict(pairs)
        is_ours = bool(self._state) and hmac.compare_digest(parameters.get("state", "").encode(), self._state.encode())
        # A parameter that comes twice is one that somebody has added.
        if not is_ours or len(parameters) != len(pairs) or not ("code" in parameters or "error" in parameters):
            return False
        if not self.arrived.done():
            self.arrived.set_result(parameters)
        return True

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._conversations.add(task)
        try:
            async with asyncio.timeout(_HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._respond(head.decode("latin-1")))
                await writer.drain()
        except (TimeoutError, OSError, EOFError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()
            self._conversations.discard(task)

    async def end(self) -> None:
        """The browser gets its page; who has not said anything by then is not waited for."""
        await asyncio.sleep(0)
        for task in list(self._conversations):
            task.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    def _respond(self, head: str) -> bytes:
        lines = head.split("\r\n")
        method, _, rest = lines[0].partition(" ")
        target = rest.partition(" ")[0]
        hosts = [line.partition(":")[2].strip().lower() for line in lines[1:] if line.lower().startswith("host:")]
        path, _, query = target.partition("?")
        # A page elsewhere can make the browser ask us by a name of its own (DNS rebinding): the Host header shows it.
        if method != "GET" or path != self._path or hosts != [self._authority.lower()]:
            return page("mcp_auth.page_unknown", "404 Not Found")
        if not self.take(query):
            return page("mcp_auth.page_unknown", "400 Bad Request")
        return page("mcp_auth.page_done", "200 OK")


def _query(url: str) -> str:
    try:
        return urlsplit(url).query
    except ValueError:
        return ""


def read_redirect_uri(redirect_uri: str) -> tuple[str, int, str]:
    """Host, port (0: any) and path. Raises ConfigError if it does not lead to this machine."""
    if not redirect_uri:
        return HOST, 0, PATH
    try:
        parts = urlsplit(redirect_uri)
        host, port = parts.hostname or "", parts.port or 0
    except ValueError:
        host, port, parts = "", 0, urlsplit("")
    if parts.scheme != "http" or not is_loopback(host) or parts.query or parts.fragment:
        raise ConfigError(say("mcp_auth.bad_redirect", uri=redirect_uri))
    return host, port, parts.path or "/"
