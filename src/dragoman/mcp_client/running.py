"""Running servers: each is started when needed, restarted once if it dies, and ended with us.

What a server offers is asked for when it was started, and kept for the next conversation: this one goes on with what the model was told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal, Protocol

from dragoman.base.clock import now_ms
from dragoman.mcp_client.configured import ConfiguredServer
from dragoman.mcp_client.contracts import CallResult, HttpServer, Offered, Progress, ServerInfo, StdioServer
from dragoman.mcp_client.known import KnownList, KnownLists
from dragoman.values.errors import DragomanError
from dragoman.words import change_values, say

State = Literal["configured", "known", "started", "called"]
MAX_STARTS = 2
"""The first start, and one after the server has died."""
LOOKING_S = 2.0
"""How long is waited before a list is asked for again: a server may say with every list that it has changed."""
LAST_LOOK_S = 0.5
"""How long an end waits for a list that was asked for."""
MORE_LISTS_S = 5.0
"""How long a list of prompts, or of resources, may take."""
TRY_AGAIN_MS = 600_000
_SECRET_CHARS = 6
"""Shorter values are not taken for secrets: `1` and `true` stand in many messages."""


class ServerFailed(DragomanError):
    """A server could not be started or asked. The message has no secret of its configuration."""


class ServerClient(Protocol):
    """What is used of client.McpClient."""

    @property
    def is_connected(self) -> bool: ...

    async def connect(self) -> ServerInfo: ...

    async def list_tools(self) -> Any: ...

    async def list_prompts(self) -> Any: ...

    async def list_resources(self) -> Any: ...

    def remember(self, tools: Any) -> None: ...

    def secrets(self) -> tuple[str, ...]: ...

    async def call_tool(self, name: str, args: Mapping[str, Any], *, progress: Progress | None = None) -> CallResult: ...

    async def read_resource(self, uri: str) -> tuple[dict[str, Any], ...]: ...

    async def get_prompt(self, name: str, args: Mapping[str, str]) -> tuple[dict[str, Any], ...]: ...

    async def aclose(self) -> None: ...


MakeClient = Callable[[ConfiguredServer, KnownList | None, Callable[[str], None]], ServerClient]
"""Makes the client of a server; the last argument is called when a list has changed."""


class ServerAtWork:
    """One server. Belongs to one event loop."""

    def __init__(
        self, server: ConfiguredServer, lists: KnownLists, make: MakeClient, on_list: Callable[[ConfiguredServer, KnownList], None]
    ):
        self.server = server
        self.known = lists.get(server)
        """As this conversation knows it."""
        self.newer: KnownList | None = None
        """What it offers by now, if that is something else: it holds from the next conversation on."""
        self.starts = 0
        self.was_called = False
        self.problem = ""
        """Why it could not be started, the last time it was tried."""
        self._lists = lists
        self._make = make
        self._on_list = on_list
        self._client: ServerClient | None = None
        self._starting = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None
        self._is_asking = False
        self._not_before = 0.0

    @property
    def state(self) -> State:
        if self._client is not None and self._client.is_connected:
            return "called" if self.was_called else "started"
        return "known" if self.known is not None else "configured"

    async def learn(self) -> KnownList:
        """What it offers, asked of the server itself. Raises ServerFailed."""
        try:
            async with asyncio.timeout(self.server.startup_timeout_s):
                client = await self._ensure_started()
                known = await self._ask(client)
        except TimeoutError as error:
            raise self._failed(say("mcp_servers.too_slow", server=self.server.name, seconds=self.server.startup_timeout_s)) from error
        except DragomanError as error:
            raise self._failed(error) from error
        self._keep(known)
        if self.known is None:
            self.known, self.newer = known, None
        return known

    async def call(self, tool: str, args: Mapping[str, Any], progress: Progress | None, tell: Callable[[str], None]) -> CallResult:
        """Raises ServerFailed. `tell` is called with what the user should know."""
        client = await self._ready(tell)
        self.was_called = True
        try:
            return await client.call_tool(tool, args, progress=progress)
        except DragomanError as error:
            if client.is_connected:
                raise self._failed(error) from error
            raise self._failed(say("mcp_servers.died_in_call", server=self.server.name, reason=error)) from error

    async def read(self, uri: str) -> tuple[dict[str, Any], ...]:
        """The contents of a resource. Raises ServerFailed."""
        client = await self._ready(lambda text: None)
        try:
            return await client.read_resource(uri)
        except DragomanError as error:
            raise self._failed(error) from error

    async def prompt(self, name: str, args: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
        """The messages of a prompt. Raises ServerFailed."""
        client = await self._ready(lambda text: None)
        try:
            return await client.get_prompt(name, args)
        except DragomanError as error:
            raise self._failed(error) from error

    async def aclose(self) -> None:
        if self._looking is not None:
            # A short run ends before the answer: without it, it would never be known that the server has changed.
            if self._is_asking and self._client is not None and self._client.is_connected:
                await asyncio.wait([self._looking], timeout=LAST_LOOK_S)
            self._looking.cancel()
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    # --- starting

    async def _ready(self, tell: Callable[[str], None]) -> ServerClient:
        before = self.starts
        try:
            async with asyncio.timeout(self.server.startup_timeout_s):
                client = await self._ensure_started()
        except TimeoutError as error:
            raise self._failed(say("mcp_servers.too_slow", server=self.server.name, seconds=self.server.startup_timeout_s)) from error
        except DragomanError as error:
            raise self._failed(error) from error
        if before and self.starts > before:
            tell(say("mcp_servers.started_again", server=self.server.name))
        return client

    async def _ensure_started(self) -> ServerClient:
        async with self._starting:
            if self._client is not None and self._client.is_connected:
                return self._client
            if self.starts >= MAX_STARTS and isinstance(self.server.server, StdioServer):
                raise ServerFailed(say("mcp_servers.died_again", server=self.server.name))
            if self._client is not None:
                await self._client.aclose()
            self._client = client = self._make(self.server, self.known, self._look_again)
            self.starts += 1
            try:
                await client.connect()
            except BaseException:
                self._client = None
                await client.aclose()
                raise
            self.problem = ""
            if self.known is not None:
                client.remember(self.known.tools)
                self._look_now()
            return client

    # --- what it offers

    def _look_again(self, kind: str) -> None:
        """In the background: nobody waits for it, and a change holds from the next conversation on."""
        if self.known is None or (self._looking is not None and not self._looking.done()):
            return
        loop = asyncio.get_running_loop()
        pause = max(0.0, self._not_before - loop.time())
        self._not_before = loop.time() + pause + LOOKING_S
        self._looking = asyncio.ensure_future(self._look(pause))

    def _look_now(self) -> None:
        """After a start: what is under way asked the one that has ended, or waits for no reason."""
        if self._looking is not None:
            self._looking.cancel()
        self._not_before = asyncio.get_running_loop().time() + LOOKING_S
        self._is_asking = True  # also where it is closed before the task has begun
        self._looking = asyncio.ensure_future(self._look(0.0))

    async def _look(self, pause: float) -> None:
        await asyncio.sleep(pause)
        client = self._client
        if client is None or not client.is_connected:  # asking would start it again, behind the back of the next call
            return
        self._is_asking = True
        try:
            self._keep(await self._ask(client))
        except (DragomanError, OSError):
            return  # the next start asks again
        finally:
            if self._looking is asyncio.current_task():
                self._is_asking = False

    async def _ask(self, client: ServerClient) -> KnownList:
        info = await client.connect()
        can = info.capabilities
        tools = await client.list_tools() if "tools" in can or not can else None
        prompts = await _tried(client, client.list_prompts) if "prompts" in can else None
        resources = await _tried(client, client.list_resources) if "resources" in can else None
        ttls = [each.ttl_ms for each in (tools, prompts, resources) if each is not None and each.ttl_ms is not None]
        return KnownList(
            hash=self.server.hash,
            saved_ms=now_ms(),
            ttl_ms=min(ttls, default=None),
            era=info.era,
            protocol=info.version,
            instructions=info.instructions,
            tools=tools.items if tools is not None else (),
            prompts=prompts.items if prompts is not None else (),
            resources=resources.items if resources is not None else (),
        )

    def _keep(self, known: KnownList) -> None:
        is_new = self.known is None or _offered(known) != _offered(self.known)
        self.newer = known if is_new and self.known is not None else None
        self._lists.put(self.server, known)
        self._on_list(self.server, known)

    # --- failing

    def _failed(self, reason: BaseException | str) -> ServerFailed:
        said = reason.sentence if isinstance(reason, DragomanError) else str(reason)
        self.problem = without_secrets(self.server, said, self._client.secrets() if self._client is not None else ())
        return ServerFailed(self.problem)


async def _tried(client: ServerClient, listing: Callable[[], Awaitable[Offered[Any]]]) -> Offered[Any]:
    """Its tools are of use without this: a list that fails, or takes long, is empty for now. A server that has ended is not started."""
    if not client.is_connected:
        return Offered(items=(), ttl_ms=TRY_AGAIN_MS)
    try:
        async with asyncio.timeout(MORE_LISTS_S):
            return await listing()
    except (TimeoutError, DragomanError):
        return Offered(items=(), ttl_ms=TRY_AGAIN_MS)


def _offered(known: KnownList) -> object:
    return known.tools, known.prompts, known.resources


def without_secrets(server: ConfiguredServer, text: str, tokens: Iterable[str] = ()) -> str:
    """A message without the values of the environment and the headers that the server was given, and without its tokens."""
    named = server.server.headers if isinstance(server.server, HttpServer) else server.server.env
    given = (*named.values(), *(value.removeprefix("Bearer ") for value in named.values()), *tokens)
    values = [value for value in given if len(value) >= _SECRET_CHARS]

    def hide(said: str) -> str:
        for value in sorted(values, key=len, reverse=True):
            said = said.replace(value, "REDACTED")
        return said

    return change_values(text, hide)


class ServersAtWork:
    """All servers of a conversation, by name."""

    def __init__(self, lists: KnownLists, make: MakeClient, on_list: Callable[[ConfiguredServer, KnownList], None]) -> None:
        self._lists = lists
        self._make = make
        self._on_list = on_list
        self._all: dict[str, ServerAtWork] = {}

    def of(self, server: ConfiguredServer) -> ServerAtWork:
        if server.name not in self._all:
            self._all[server.name] = ServerAtWork(server, self._lists, self._make, self._on_list)
        return self._all[server.name]

    async def aclose(self) -> None:
        """End all servers at the same time: each takes a moment."""
        running = list(self._all.values())
        self._all.clear()
        await asyncio.gather(*(each.aclose() for each in running), return_exceptions=True)
