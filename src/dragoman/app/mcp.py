"""MCP servers of an agent: which are configured and may be used, and their tools in the agent's registry.

Loaded only where a file configures servers, or a resumed session has tools of some. With the lists of all servers known nothing is
started here, and no part of the client is loaded.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.app.extensions import folders_of
from dragoman.app.setup import Setup, catalog_of, may_have_plugins
from dragoman.base.text_files import FileProblem, read_text
from dragoman.foreign.mcp_files import FoundServers, OwnConfigFile, find_servers
from dragoman.loop.agent import Agent
from dragoman.loop.mcp_calls import report_progress, secrets_of
from dragoman.mcp_client.configured import ConfiguredServer
from dragoman.mcp_client.consent import Consent, Verdict
from dragoman.mcp_client.contracts import McpTool
from dragoman.mcp_client.filling import FillFrom
from dragoman.mcp_client.known import KnownList, KnownLists
from dragoman.mcp_client.naming import tool_name
from dragoman.mcp_client.tools import (
    CALL,
    SEARCH,
    CallTool,
    MissingTool,
    SearchTools,
    ServerTool,
    ToolIndex,
    call_spec,
    search_spec,
    spec_of,
)
from dragoman.providers.catalog import secret_variables
from dragoman.values.calls import AskUser, Tool
from dragoman.values.errors import ConfigError, DragomanError
from dragoman.values.messages import ToolSpec
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.extensions.plugins import Plugin
    from dragoman.mcp_client.running import ServerAtWork, ServersAtWork

MAX_FILE_BYTES = 20_000_000
"""~/.claude.json grows with every project."""
WINDOW_SHARE = 0.05
"""Definitions of all servers that take more of the model's window are searched instead."""
CHARS_PER_TOKEN = 4
MOST_AT_ONCE = 4
"""Servers that are started in the background at the same time."""
CLOSING_S = 5.0
PATIENCE_S = 15.0
"""How long a start waits for servers whose tools are not known, where there is no later prompt at which they could join."""


def find(setup: Setup) -> FoundServers:
    """Every configured server, and what is wrong in the files. A project's are read only where it is trusted."""
    real = os.path.realpath(setup.workspace)
    own = [
        OwnConfigFile(file.path, file.kind, file.text)
        for file in reversed(setup.loaded.files)
        if file.state == "read" and "mcp" in file.text
    ]
    around = FillFrom(setup.env, lambda: secret_variables(catalog_of(setup)), _read_named)
    workspaces = list(dict.fromkeys((setup.workspace, real, setup.trust.root or real)))
    found = find_servers(folders_of(setup), own, workspaces, around, _read, _plugins(setup))
    if not setup.servers:
        return found
    # A rule about a name is about the server in the files.
    further = tuple(each for each in setup.servers if found.get(each.name) is None)
    return msgspec.structs.replace(found, servers=(*found.servers, *further))


def _plugins(setup: Setup) -> Sequence[Plugin]:
    if not may_have_plugins(setup):
        return ()
    from dragoman.app.plugins import plugins_of

    return plugins_of(setup).found


def consent_of(setup: Setup) -> Consent:
    real = os.path.realpath(setup.workspace)
    return Consent(setup.places.servers_file, setup.trust.root or real, real)


def lists_of(setup: Setup) -> KnownLists:
    return KnownLists(setup.places.server_lists)


def _read(path: str) -> str:
    try:
        return read_text(path, MAX_FILE_BYTES)
    except FileProblem as problem:
        raise ValueError(str(problem)) from problem


def _read_named(path: str) -> str:
    return _read(os.path.expanduser(path))


async def add_servers(agent: Agent, setup: Setup, ask_user: AskUser | None, *, waits: bool) -> list[str]:
    """Put the tools of servers into the agent's registry. Returns what to tell the user. `waits`: for servers whose tools are not known
    yet, for a while; otherwise they join at a later prompt."""
    servers = AgentServers(agent, setup, ask_user)
    agent.beside["mcp"] = servers
    agent._harness.further_secrets.append(servers.secrets)
    unknown, outdated = servers.to_learn()
    # All join at once, in the order of the files: whether they are too much is a question about all of them.
    servers.add_known(await servers.learn_all(unknown) if unknown and waits else {})
    if later := outdated if waits else [*unknown, *outdated]:
        servers.learn_later(later)
    return servers.notices


class AgentServers:
    """The servers of one agent. Belongs to one event loop once a server was started."""

    def __init__(self, agent: Agent, setup: Setup, ask_user: AskUser | None = None) -> None:
        self.found = find(setup)
        self.notices = list(self.found.problems)
        self.on_notice: Callable[[str], None] = self.notices.append
        """Told what happens later."""
        self.lists, self.consent = lists_of(setup), consent_of(setup)
        self._agent = agent
        self._setup = setup
        self._ask_user = ask_user
        self._running: ServersAtWork | None = None
        self._index: ToolIndex | None = None
        self._joined: set[str] = set()
        """Servers whose tools the model has been offered."""
        self._learning: asyncio.Task[None] | None = None
        self._clients: dict[str, Any] = {}
        """The last client of each server that was started."""
        self._sent: dict[str, None] = {}
        """Tokens that were sent to servers."""
        self._waiting: list[ConfiguredServer] = []
        """Servers whose tools join at the next prompt."""
        self._usable = [each for each in self.found.servers if self.verdict(each) == "yes" and each.is_enabled and not each.problem]
        self._configured_secrets = tuple(dict.fromkeys(secret for each in self._usable for secret in secrets_of(each)))
        self.notices += self._refusals()

    # --- which may be used

    def verdict(self, server: ConfiguredServer) -> Verdict:
        return self.consent.verdict(server, self.lists.get(server))

    def _refusals(self) -> Iterator[str]:
        for server in self.found.servers:
            verdict = self.verdict(server)
            if server.is_enabled and not server.problem and verdict not in ("yes", "no"):  # what is wrong with it comes first
                yield say(f"mcp_servers.not_approved_{verdict}", name=server.name, where=server.origin)

    def allow(self, server: ConfiguredServer) -> None:
        """The user said yes, in the conversation. Raises OSError."""
        self.consent.decide(server, yes=True, known=self.lists.get(server))
        if server not in self._usable:
            self._usable.append(server)
            self._waiting.append(server)
            self._configured_secrets += secrets_of(server)

    async def join_waiting(self) -> None:
        """Before a prompt: those that the user said yes to since the last one."""
        waiting, self._waiting = self._waiting, list[ConfiguredServer]()
        known = {server.name: each for server in waiting if (each := self.lists.get(server)) is not None}
        known |= await self.learn_all([server for server in waiting if server.name not in known])
        self.join([(server, known[server.name]) for server in waiting if server.name in known])

    @property
    def usable(self) -> Sequence[ConfiguredServer]:
        return tuple(self._usable)

    def running(self, server: ConfiguredServer) -> ServerAtWork:
        """The server at work: made on first use, its process started on the first call."""
        if self._running is None:
            from dragoman.mcp_client.running import ServersAtWork

            self._running = ServersAtWork(self.lists, self._make_client, self._bind)
        return self._running.of(server)

    def state(self, server: ConfiguredServer) -> str:
        if self._running is not None and server in self._usable:
            return self._running.of(server).state
        return "configured" if self.lists.get(server) is None else "known"

    async def aclose(self) -> None:
        if self._learning is not None:
            self._learning.cancel()
        if self._running is not None:
            await self._running.aclose()
        if self._learning is not None:
            await asyncio.wait([self._learning], timeout=CLOSING_S)  # it ends servers that were being started

    def _bind(self, server: ConfiguredServer, known: KnownList) -> None:
        """A list that was learnt for the first time is the one the user agreed to."""
        try:
            self.consent.bind_tools(server, known)
        except OSError:
            return

    def _make_client(self, server: ConfiguredServer, known: KnownList | None, on_change: Callable[[str], None]) -> Any:
        if self.consent.is_changed(server):
            raise ConfigError(say("mcp_servers.not_approved_changed", name=server.name, where=server.origin))
        from dragoman.app.mcp_clients import make_client

        self._clients[server.name] = made = make_client(self._setup, server, known, on_change, self._ask_user)
        return made

    def secrets(self) -> tuple[str, ...]:
        """Tokens of sign-ins, and configured values whose names say that they are secrets. A server may repeat them, and neither the model
        nor the record must get them."""
        for client in self._clients.values():
            self._sent |= dict.fromkeys(client.secrets())
        return (*self._configured_secrets, *self._sent)

    def hide(self, text: str) -> str:
        """A text of a server without them, and without our own keys."""
        return self._agent._harness.outputs.hide(text)

    def names_something(self, prompt: str) -> bool:
        """Whether a prompt may name a resource or a prompt of a server, or servers join before it."""
        return bool(self._waiting) or "@" in prompt or prompt.startswith("/mcp__")

    def names_resource(self, word: str) -> bool:
        """Whether a word behind an `@` is a resource of one of the servers: `server:uri`. Any other may be a file."""
        name, _, uri = word.partition(":")
        return bool(uri) and any(server.name == name for server in self.usable)

    # --- their tools

    def add_known(self, learnt: Mapping[str, KnownList]) -> None:
        """The tools the record has, as it has them; then those of servers that are new to this conversation. `learnt`: by server, what was
        learnt just now."""
        recorded = [spec for spec in self._agent.history.view.tools if spec.name.startswith("mcp__") or spec.name in (SEARCH, CALL)]
        if recorded:
            self._add_recorded(recorded)
        new = [server for server in self._usable if server.name not in self._joined]
        self.join([(server, each) for server in new if (each := learnt.get(server.name) or self.lists.get(server))])

    def join(self, known: Sequence[tuple[ConfiguredServer, KnownList]]) -> None:
        """Offer the tools of these servers from the next prompt on."""
        tools = [tool for server, each in known for tool in self._tools_of(server, each)]
        self._joined |= {server.name for server, _ in known}
        if not tools:
            return
        if self._index is None and self._is_too_much(tools):
            counts = {server.name: len(each.tools) for server, each in known}
            self._offer_search(search_spec(counts), call_spec())
        for tool in tools:
            self._offer(tool)

    def _tools_of(self, server: ConfiguredServer, known: KnownList) -> Iterator[Tool]:
        taken = {*self._agent.tools.names, *(self._index.names if self._index is not None else ())}
        for tool in known.tools:
            if server.offers(tool.name):
                name = tool_name(server.name, tool.name, taken)
                taken.add(name)
                yield self._tool(spec_of(name, server, tool), server, tool)

    def _tool(self, spec: ToolSpec, server: ConfiguredServer, tool: McpTool) -> ServerTool:
        return ServerTool(spec, server, tool, lambda: self.running(server), lambda show: report_progress(show, self.hide))

    def _offer(self, tool: Tool) -> None:
        if self._index is not None:
            self._index.add(tool)
        elif tool.spec.name not in self._agent.tools:
            self._agent.tools.register(tool)

    def _is_too_much(self, tools: Sequence[Tool]) -> bool:
        """With those that are offered already; they stay."""
        offered = [spec for spec in self._agent.tools.specs if spec.name.startswith("mcp__")]
        window = self._agent.provider.profile(self._agent.model).context_window
        return definition_tokens([*offered, *(tool.spec for tool in tools)]) > WINDOW_SHARE * window

    def _offer_search(self, search: ToolSpec, call: ToolSpec) -> None:
        self._index = ToolIndex()
        self._agent.tools.register(SearchTools(search, self._index))
        self._agent.tools.register(CallTool(call, self._index))

    def _add_recorded(self, recorded: Sequence[ToolSpec]) -> None:
        """A resumed session is sent the same tools, whatever its servers offer by now."""
        by_name = {spec.name: spec for spec in recorded}
        whose = self._whose()
        for name, spec in by_name.items():
            if name == SEARCH and CALL in by_name:
                self._offer_search(spec, by_name[CALL])  # what can be found may be what there is now
            if name in self._agent.tools or not name.startswith("mcp__"):
                continue
            server, tool = whose.get(name) or self._guess(name)
            if server is None or tool is None:
                self._agent.tools.register(MissingTool(spec, say("mcp_servers.tool_is_gone", name=name)))
                continue
            self._joined.add(server.name)
            self._agent.tools.register(self._tool(spec, server, tool))

    def _whose(self) -> dict[str, tuple[ConfiguredServer, McpTool]]:
        """Which tool each name stands for. A name that two tools could have stands for neither, unless it carries the hash of one."""
        found: dict[str, list[tuple[ConfiguredServer, McpTool]]] = {}
        for server in self._usable:
            for tool in self._known_tools(server):
                plain = tool_name(server.name, tool.name)
                for name in dict.fromkeys((plain, tool_name(server.name, tool.name, (plain,)))):
                    found.setdefault(name, []).append((server, tool))
        return {name: each[0] for name, each in found.items() if len(each) == 1}

    def _known_tools(self, server: ConfiguredServer) -> Sequence[McpTool]:
        known = self.lists.get(server)
        return known.tools if known is not None else ()

    def _guess(self, name: str) -> tuple[ConfiguredServer | None, McpTool | None]:
        """Which server a tool belongs to that is in no list any more. The server itself decides whether it knows the tool."""
        fitting = [server for server in self._usable if name.startswith(tool_name(server.name, ""))]
        if len(fitting) != 1:
            return None, None
        return fitting[0], McpTool(name.removeprefix(tool_name(fitting[0].name, "")))

    # --- those that are not known yet

    def to_learn(self) -> tuple[list[ConfiguredServer], list[ConfiguredServer]]:
        """Those whose tools are not known, and those whose list does not hold any longer: of these the model has the old one, until the
        next conversation."""
        known = {each.name: self.lists.get(each) for each in self._usable}
        unknown = [each for each in self._usable if known[each.name] is None]
        return unknown, [each for each in self._usable if (found := known[each.name]) is not None and found.is_outdated]

    async def learn_all(self, servers: Sequence[ConfiguredServer]) -> dict[str, KnownList]:
        """Start them once: what each has, by its name. A server that takes too long or fails is reported and left out."""
        async with asyncio.TaskGroup() as group:
            tasks = {server.name: group.create_task(self._learn(server)) for server in servers}
        return {name: known for name, task in tasks.items() if (known := task.result()) is not None}

    async def _learn(self, server: ConfiguredServer) -> KnownList | None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self.running(server).learn()
        except TimeoutError:
            reason = say("mcp_servers.too_slow", server=server.name, seconds=PATIENCE_S)
            self.on_notice(say("mcp_servers.not_learnt", name=server.name, reason=reason))
        except (DragomanError, OSError) as error:
            self.on_notice(say("mcp_servers.not_learnt", name=server.name, reason=error))
        return None

    def learn_later(self, servers: Sequence[ConfiguredServer]) -> None:
        self._learning = asyncio.ensure_future(self._learn_later(servers))

    async def _learn_later(self, servers: Sequence[ConfiguredServer]) -> None:
        """In the background, a few at a time: one that hangs does not hold the others up."""
        places = asyncio.Semaphore(MOST_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for server in servers:
                group.create_task(self._learn_in_background(server, places))

    async def _learn_in_background(self, server: ConfiguredServer, places: asyncio.Semaphore) -> None:
        """Nothing joins while a run is under way."""
        try:
            async with places:
                known = await self.running(server).learn()
        except (DragomanError, OSError) as error:
            return self.on_notice(say("mcp_servers.not_learnt", name=server.name, reason=error))
        while (worker := self._agent.at_work) is not None:
            await worker.finished()
        if server.name not in self._joined:
            self.join([(server, known)])
            self.on_notice(say("mcp_servers.joined", name=server.name, count=len(known.tools)))


def definition_tokens(specs: Any) -> int:
    """About what the definitions of tools take in a request."""
    return sum(len(spec.name) + len(spec.description) + len(spec.parameters) for spec in specs) // CHARS_PER_TOKEN
