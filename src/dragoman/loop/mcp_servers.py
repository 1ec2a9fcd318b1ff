"""MCP servers for an agent in your own code: their tools beside your functions.

    async with Servers({"files": StdioServer("npx", ("-y", "@modelcontextprotocol/server-filesystem", "."))}) as servers:
        agent = Agent("gemini", tools=[tides, *servers.tools])
        print((await agent.run("Which files mention a harbour?")).text)

The servers are started, or reached, when the block begins, and end with it. They live in a thread of their own, so that agents of any
thread and any event loop may share them, and `with` does for code that is not async. For the servers that files configure, see app/mcp.py.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dragoman.base import late_types
from dragoman.loop.mcp_calls import report_progress, secrets_of
from dragoman.loop.watching import call_in
from dragoman.mcp_client.configured import CALL_S, STARTUP_S, ConfiguredServer, hash_of
from dragoman.mcp_client.contracts import CallResult, HttpServer, McpTool, Progress, StdioServer
from dragoman.mcp_client.known import KnownList, KnownLists
from dragoman.mcp_client.leftovers import MARK, mark_of_this_process
from dragoman.mcp_client.naming import tool_name
from dragoman.mcp_client.tools import ServerTool, spec_of
from dragoman.values.calls import AskUser, Show, ToolOutput
from dragoman.values.errors import InputError, shown
from dragoman.values.messages import Text
from dragoman.values.origin import Origin
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.mcp_client.oauth.authorizer import OAuth
    from dragoman.mcp_client.oauth.tokens import TokenStore
    from dragoman.mcp_client.running import ServerAtWork
else:
    (TokenStore,) = late_types("dragoman.mcp_client.oauth.tokens", "TokenStore")

ENDING_S = 10.0
_IN_CODE = Origin("dragoman", "user", "")

T = TypeVar("T")


class Servers:
    """MCP servers by name, and their tools. Any thread and any event loop may use it."""

    def __init__(
        self,
        servers: Mapping[str, StdioServer | HttpServer],
        *,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        asks: bool = False,
        ask_user: AskUser | None = None,
        startup_timeout_s: float = STARTUP_S,
        call_timeout_s: float = CALL_S,
        tokens: TokenStore | None = None,
    ) -> None:
        """`include`, `exclude`: which tools are offered, as the servers name them. `asks`: whether each call is decided like those of the
        built-in tools, by mode, rules and whoever can be asked; otherwise they run as your own functions do. `ask_user` answers questions
        of servers; without it they are told that nobody does. `tokens`: those of `login`, for servers that want a sign-in; a header in
        `HttpServer.headers` needs none."""
        if not isinstance(servers, Mapping):
            raise _wrong("servers", say("loop.option_servers"), servers)
        for option, names in (("include", include), ("exclude", exclude)):
            if isinstance(names, str):
                raise _wrong(option, say("loop.option_list"), names)
        self._asks = asks
        self._ask_user = ask_user
        self._tokens = tokens
        given = {
            "include": tuple(include),
            "exclude": tuple(exclude),
            "startup_timeout_s": startup_timeout_s,
            "call_timeout_s": call_timeout_s,
        }
        self._servers = [_configured(name, server, given) for name, server in servers.items()]
        self._running: dict[str, ServerAtWork] = {}
        self._thread: _LoopThread | None = None
        self._tools: tuple[ServerTool, ...] = ()

    @property
    def tools(self) -> tuple[ServerTool, ...]:
        """For `Agent(tools=…)`. They are there inside the block."""
        if self._thread is None:
            raise InputError(say("loop.servers_not_open"))
        return self._tools

    async def __aenter__(self) -> Servers:
        thread = self._begin()
        try:
            await asyncio.wrap_future(thread.submit(self._start()))
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __enter__(self) -> Servers:
        thread = self._begin()
        try:
            thread.submit(self._start()).result()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def aclose(self) -> None:
        """End the servers. Calls under way fail."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """`aclose` for code that is not async."""
        thread, self._thread = self._thread, None
        if thread is None or thread.is_of_parent:  # theirs to end
            return
        atexit.unregister(self.close)
        try:
            thread.submit(self._stop()).result(ENDING_S)
        finally:
            thread.end()

    # --- in their own thread

    def _begin(self) -> _LoopThread:
        if self._thread is not None:
            raise InputError(say("loop.servers_open_already"))
        self._thread = _LoopThread()
        atexit.register(self.close)  # of a program that forgets to
        return self._thread

    async def _start(self) -> None:
        """All at once. If one fails, its error is raised and the others are ended."""
        from dragoman.mcp_client.running import ServerAtWork

        self._running = {each.name: ServerAtWork(each, _Unsaved(), self._make_client, _ignore) for each in self._servers}
        lists = await _gather(_learn(running) for running in self._running.values())
        taken: set[str] = set()
        self._tools = tuple(
            self._tool(server, tool, taken)
            for server, known in zip(self._servers, lists, strict=True)
            for tool in known.tools
            if server.offers(tool.name)
        )

    async def _stop(self) -> None:
        running = list(self._running.values())
        self._running.clear()
        await asyncio.gather(*(each.aclose() for each in running), return_exceptions=True)

    def _make_client(self, server: ConfiguredServer, known: KnownList | None, on_change: Callable[[str], None]) -> Any:
        from dragoman.mcp_client.asking import asks_by
        from dragoman.mcp_client.client import McpClient

        return McpClient(
            server.server,
            name=server.name,
            authorizer=self._authorizer(server),
            elicit=asks_by(self._ask_user, server.name) if self._ask_user is not None else None,
            era=known.era if known is not None else "",
            on_change=on_change,
            timeout_s=server.call_timeout_s,
        )

    def _authorizer(self, server: ConfiguredServer) -> OAuth | None:
        spec = server.server
        if self._tokens is None or isinstance(spec, StdioServer) or any(name.lower() == "authorization" for name in spec.headers):
            return None
        from dragoman.mcp_client.oauth.authorizer import OAuth

        return OAuth(server.name, spec, self._tokens)

    def _tool(self, server: ConfiguredServer, tool: McpTool, taken: set[str]) -> ServerTool:
        name = tool_name(server.name, tool.name, taken)
        taken.add(name)
        return GivenTool(spec_of(name, server, tool), server, tool, partial(self._calls_of, server), asks=self._asks)

    def _calls_of(self, server: ConfiguredServer) -> Any:
        if self._thread is None:
            raise InputError(say("loop.servers_not_open"))
        return _CallsElsewhere(self._thread, self._running[server.name])


class GivenTool(ServerTool):
    """A tool of a server that your code has named."""

    def __init__(self, spec: Any, server: ConfiguredServer, tool: McpTool, find: Callable[[], Any], *, asks: bool) -> None:
        self._secrets = secrets_of(server)
        super().__init__(spec, server, tool, find, lambda show: report_progress(show, self._hide))
        self.is_trusted = not asks

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        output = await super().run(args, show)
        if not self._secrets:
            return output
        content = tuple(Text(self._hide(part.text)) if isinstance(part, Text) else part for part in output.content)
        return msgspec.structs.replace(output, content=content, display=self._hide(output.display))

    def _hide(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "REDACTED")
        return text


class _CallsElsewhere:
    """Calls of a server that lives in another thread, for the loop of whoever calls."""

    def __init__(self, thread: _LoopThread, running: ServerAtWork) -> None:
        self._thread = thread
        self._running = running

    async def call(self, tool: str, args: Mapping[str, Any], progress: Progress | None, tell: Callable[[str], None]) -> CallResult:
        here = asyncio.get_running_loop()

        def report(done: float, total: float | None, message: str) -> None:
            if progress is not None:
                call_in(here, partial(progress, done, total, message))

        told: list[str] = []
        try:
            return await asyncio.wrap_future(self._thread.submit(self._running.call(tool, args, report, told.append)))
        finally:
            for each in told:
                tell(each)


class _LoopThread:
    """A thread with an event loop, until it is ended."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="dragoman-mcp", daemon=True)
        self._thread.start()

    @property
    def is_of_parent(self) -> bool:
        """A forked child has no such thread, and would wait for it forever."""
        return self._pid != os.getpid()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self.is_of_parent:
            work.close()
            raise InputError(say("loop.servers_of_parent"))
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def end(self) -> None:
        call_in(self._loop, self._loop.stop)
        self._thread.join(ENDING_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()


class _Unsaved(KnownLists):
    """Servers in code are asked each time: nothing of them is kept on disk."""

    def __init__(self) -> None:
        super().__init__("")

    def get(self, server: ConfiguredServer) -> KnownList | None:
        return None

    def put(self, server: ConfiguredServer, known: KnownList) -> None:
        return


def _configured(name: str, server: StdioServer | HttpServer, given: Mapping[str, Any]) -> ConfiguredServer:
    if not isinstance(server, StdioServer | HttpServer):
        raise InputError(say("loop.server_wrong", name=name, given=type(server).__name__))
    if isinstance(server, StdioServer):
        if isinstance(server.args, str):
            raise _wrong(f"{name}.args", say("loop.option_list"), server.args)
        server = msgspec.structs.replace(server, cwd=server.cwd or os.getcwd(), env={**server.env, MARK: mark_of_this_process()})
    return ConfiguredServer(name, _IN_CODE, server, hash_of([name]), **given)


def _wrong(option: str, expected: str, given: object) -> InputError:
    return InputError(say("loop.option_wrong", name=option, expected=expected, given=shown(given)))


async def _learn(running: ServerAtWork) -> KnownList:
    from dragoman.mcp_client.running import ServerFailed

    try:
        return await running.learn()
    except ServerFailed as failed:
        raise ServerFailed(say("loop.server_failed", name=running.server.name, reason=failed)) from failed


async def _gather(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All results, or the first error, once all have ended."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for each in results:
        if isinstance(each, BaseException):
            raise each
    return [each for each in results if not isinstance(each, BaseException)]


def _ignore(server: ConfiguredServer, known: KnownList) -> None:
    """Nobody is asked about changed tools of servers in code."""
