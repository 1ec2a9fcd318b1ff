"""`/mcp` in both conversations: lists the servers with their state, and approves one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dragoman.app.mcp import AgentServers
from dragoman.app.mcp_prompts import prompt_names
from dragoman.app.mcp_rows import ServerRow, no_such_server, rows_of_agent
from dragoman.app.notices import one_for_each_file
from dragoman.app.setup import Setup
from dragoman.base.places import shorten_home
from dragoman.base.text import one_line
from dragoman.loop.agent import Agent
from dragoman.values.errors import InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.conversation.talk import Talk


def mcp(talk: Talk, rest: str) -> None:
    for line in _lines_to_show(talk.setup, talk.agent, rest.split()):
        talk.screen.line(line)


def _lines_to_show(setup: Setup, agent: Agent, words: list[str]) -> list[str]:
    """Raises InputError."""
    servers: AgentServers | None = agent.beside.get("mcp")
    problems = one_for_each_file((*setup.wrong_files, *(servers.found.problems if servers is not None else ())))
    if servers is None or not servers.found.servers:
        return [say("mcp_servers.none"), *problems]
    match words:
        case [] | ["list"]:
            prompts = [f"  {name}  {one_line(about, 200)}" for name, about in prompt_names(servers).items()]
            return [*(line for row in rows_of_agent(servers) for line in _lines(setup, row)), *prompts, *problems]
        case ["approve", name]:
            return [_approve(servers, name)]
        case _:
            raise InputError(say("mcp_servers.slash_usage"))


def _lines(setup: Setup, row: ServerRow) -> list[str]:
    """How it is first; then what it is, and where it is configured, as that is named from the workspace."""
    server = row.server
    where = shorten_home(str(server.origin).removeprefix(os.path.join(setup.workspace, "")))
    return [f"{server.name}  {one_line(row.words, 300)}", f"  {one_line(server.shown, 300)} ({where})"]


def _approve(servers: AgentServers, name: str) -> str:
    server = servers.found.get(name)
    if server is None:
        raise no_such_server(name, servers.found.servers)
    if not servers.consent.asks_about(server):
        raise InputError(say("mcp_servers.already", name=server.name, where=server.origin))
    try:
        servers.allow(server)
    except OSError as error:
        raise InputError(say("mcp_servers.file_unwritable", path="mcp.jsonl", reason=error.strerror or error)) from error
    return say("mcp_servers.approved", name=name, shown=one_line(server.shown, 300))
