"""What a call of an MCP server's tool tells of itself, and what it must not tell: its progress, and the secrets the server was given."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.base.text import one_line
from dragoman.mcp_client.configured import ConfiguredServer
from dragoman.mcp_client.contracts import HttpServer
from dragoman.tools.child_environment import is_secret_name
from dragoman.tools.tool_context import ToolContext
from dragoman.values.calls import Show

if TYPE_CHECKING:
    from dragoman.mcp_client.contracts import Progress

MAX_PROGRESS_CHARS = 300
PROGRESS_S = 0.1
SHORTEST_SECRET = 8
"""Shorter values stand in many texts by chance."""


def secrets_of(server: ConfiguredServer) -> tuple[str, ...]:
    """Values of its entry whose names say that they are secrets."""
    spec = server.server
    if isinstance(spec, HttpServer):
        signing = {name: value for name, value in spec.headers.items() if "auth" in name.lower() or is_secret_name(name.replace("-", "_"))}
        found = [value.partition(" ")[2] or value for value in signing.values()]  # without `Bearer`
    else:
        found = [value for name, value in spec.env.items() if is_secret_name(name)]
    return tuple(value for value in found if len(value) >= SHORTEST_SECRET)


def report_progress(show: Show, hide: Callable[[str], str]) -> Progress:
    """What a server says of its progress, on one short line, without secrets, and only so often."""
    context = ToolContext.of(show)
    not_before = 0.0

    def tell(done: float, total: float | None, message: str) -> None:
        nonlocal not_before
        now = time.monotonic()
        if now < not_before and done != total:
            return
        not_before = now + PROGRESS_S
        context.progress(one_line(hide(message[:MAX_PROGRESS_CHARS]), MAX_PROGRESS_CHARS), done, total)

    return tell
