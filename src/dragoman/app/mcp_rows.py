"""The state of each configured MCP server, as rows for `dragoman mcp`, `dragoman config` and `/mcp`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dragoman.app.mcp import AgentServers, consent_of, definition_tokens, find, lists_of
from dragoman.app.setup import Setup
from dragoman.base.places import shorten_home
from dragoman.base.text import did_you_mean, one_line
from dragoman.foreign.mcp_files import FoundServers
from dragoman.mcp_client.configured import ConfiguredServer
from dragoman.mcp_client.consent import Verdict
from dragoman.mcp_client.contracts import HttpServer
from dragoman.mcp_client.known import KnownList
from dragoman.mcp_client.naming import tool_name
from dragoman.mcp_client.tools import spec_of
from dragoman.values.errors import InputError
from dragoman.words import say


class ServerRow(msgspec.Struct, frozen=True):
    """One server as it is now."""

    server: ConfiguredServer
    verdict: Verdict
    known: KnownList | None
    state: str = ""
    newer: bool = False

    @property
    def tokens(self) -> int:
        """About what its definitions take in a request."""
        known = self.known
        tools = [tool for tool in known.tools if self.server.offers(tool.name)] if known is not None else []
        return definition_tokens(spec_of(tool_name(self.server.name, tool.name), self.server, tool) for tool in tools)

    @property
    def words(self) -> str:
        """One line: whether it is used, and what it offers."""
        server, name = self.server, self.server.name
        if not server.is_enabled:
            return say("mcp_servers.row_disabled")
        if server.problem:
            return say("mcp_servers.row_problem", problem=server.problem)
        if self.verdict != "yes":
            return say(f"mcp_servers.row_{self.verdict}", name=name)
        if self.known is None:
            return say("mcp_servers.row_unknown", name=name)
        count = sum(server.offers(tool.name) for tool in self.known.tools)
        parts = [say("mcp_servers.row_known", count=count, tokens=self.tokens)]
        parts += [say("mcp_servers.row_started")] if self.state in ("started", "called") else []
        parts += [say("mcp_servers.row_newer")] if self.newer else []
        return " · ".join(parts)

    @property
    def line(self) -> str:
        server = self.server
        return f"{server.name}  {one_line(server.shown, 300)}  ({shorten_home(str(server.origin))}): {one_line(self.words, 300)}"

    def to_json(self) -> dict[str, Any]:
        """Without values of variables and headers."""
        server, spec, known = self.server, self.server.server, self.known
        is_http = isinstance(spec, HttpServer)
        return {
            "name": server.name,
            "transport": spec.transport if is_http else "stdio",
            "shown": server.shown,
            "variables": sorted(spec.headers if is_http else spec.env),
            "file": server.origin.path,
            "line": server.origin.line or None,
            "program": server.origin.program,
            "tier": server.origin.tier,
            "enabled": server.is_enabled,
            "problem": server.problem or None,
            "approved": self.verdict,
            "state": self.state or ("configured" if known is None else "known"),
            "tools": None if known is None else [tool.name for tool in known.tools if server.offers(tool.name)],
            "prompts": None if known is None else [prompt.name for prompt in known.prompts],
            "resources": None if known is None else [resource.uri for resource in known.resources],
            "tokens": self.tokens,
        }


def rows_of(setup: Setup) -> tuple[list[ServerRow], FoundServers]:
    """A row for each configured server. No server is started."""
    found, consent, lists = find(setup), consent_of(setup), lists_of(setup)
    rows = []
    for server in found.servers:
        known = lists.get(server)
        rows.append(ServerRow(server, consent.verdict(server, known), known))
    return rows, found


def rows_of_agent(servers: AgentServers) -> list[ServerRow]:
    """A row for each server of a running agent."""
    rows = []
    for server in servers.found.servers:
        running = servers.running(server) if server in servers.usable else None
        known = running.known if running is not None else servers.lists.get(server)
        state, newer = (running.state, running.newer is not None) if running is not None else ("", False)
        rows.append(ServerRow(server, servers.verdict(server), known, state, newer))
    return rows


def no_such_server(name: str, servers: Iterable[ConfiguredServer]) -> InputError:
    hint = did_you_mean(name, [server.name for server in servers])
    return InputError(say("mcp_servers.no_such_server", name=one_line(name, 60), hint=hint))
