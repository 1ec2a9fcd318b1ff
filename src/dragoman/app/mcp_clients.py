"""Makes the clients of MCP servers: what each is started or reached with, who signs in, and who answers its questions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import cache
from threading import Thread
from typing import Any

import msgspec

from dragoman.app.mcp_sign_in import authorizer_of
from dragoman.app.setup import Setup
from dragoman.mcp_client.asking import asks_by
from dragoman.mcp_client.client import McpClient
from dragoman.mcp_client.configured import ConfiguredServer
from dragoman.mcp_client.consent import Consent
from dragoman.mcp_client.contracts import HttpServer, StdioServer
from dragoman.mcp_client.known import KnownList, KnownLists
from dragoman.mcp_client.leftovers import MARK, mark_of_this_process, reap_leftovers
from dragoman.mcp_client.running import ServerAtWork
from dragoman.values.calls import AskUser


def make_client(
    setup: Setup,
    server: ConfiguredServer,
    known: KnownList | None = None,
    on_change: Callable[[str], None] | None = None,
    ask_user: AskUser | None = None,
) -> McpClient:
    """A client for the server, not connected yet."""
    _reap_once()
    return McpClient(
        _as_started(setup, server),
        name=server.name,
        authorizer=authorizer_of(setup, server) if isinstance(server.server, HttpServer) else None,
        elicit=asks_by(ask_user, server.name) if ask_user is not None else None,
        era=known.era if known is not None else "",
        on_change=on_change,
        timeout_s=server.call_timeout_s,
    )


@cache
def _reap_once() -> None:
    """What a killed run has left is ended beside what we do; in a thread, because looking for it takes a moment."""
    Thread(target=reap_leftovers, name="dragoman-mcp-leftovers", daemon=True).start()


async def ask_once(setup: Setup, server: ConfiguredServer, lists: KnownLists, consent: Consent) -> KnownList:
    """Start or reach a server once, ask what it offers, and end it. Raises ServerFailed."""
    running = ServerAtWork(
        server,
        lists,
        lambda each, known, on_change: make_client(setup, each, known, on_change),
        lambda each, known: consent.bind_tools(each, known),
    )
    try:
        return await running.learn()
    finally:
        async with asyncio.timeout(3):
            await running.aclose()


def _as_started(setup: Setup, server: ConfiguredServer) -> Any:
    """The server as it is started: in the workspace, unless it names a folder."""
    spec = server.server
    if not isinstance(spec, StdioServer):
        return spec
    folder = os.path.join(setup.workspace, os.path.expanduser(spec.cwd)) if spec.cwd else setup.workspace
    return msgspec.structs.replace(spec, cwd=folder, env={**spec.env, MARK: mark_of_this_process()})
