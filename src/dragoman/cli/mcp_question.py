"""The question whether a server that a project configures may be used, asked once before the conversation begins."""

from __future__ import annotations

import sys

from dragoman.app.mcp import consent_of
from dragoman.app.mcp_rows import ServerRow, rows_of
from dragoman.app.setup import Setup
from dragoman.base.visible import escape_hidden
from dragoman.base.words import say
from dragoman.cli.trust_question import ask_yes_or_no
from dragoman.extensions.mcp.contracts import HttpServer

MAX_QUESTIONS = 10
"""The others are listed by `dragoman mcp`."""


def ask_about_servers(setup: Setup) -> None:
    """Ask about each that waits for a yes, and remember the answers. Raises EOFError if the user leaves."""
    if not setup.trust.is_trusted:
        return
    waiting = [row for row in rows_of(setup)[0] if row.server.is_enabled and row.verdict not in ("yes", "no")]
    if not waiting:
        return
    if (first := sys.modules.get("dragoman.tui.first")) is not None:
        first.take_back()
    for row in waiting[:MAX_QUESTIONS]:
        _ask(setup, row)


def _ask(setup: Setup, row: ServerRow) -> None:
    is_yes = ask_yes_or_no(_intro(row), say("mcp_servers.question"), say("mcp_servers.question_why"))
    if is_yes is None:
        return  # nobody can be asked
    try:
        consent_of(setup).decide(row.server, yes=is_yes, known=row.known)
    except OSError:
        return  # it is asked again next time


def _intro(row: ServerRow) -> list[str]:
    """Every character of what would run is visible."""
    server = row.server
    shown = escape_hidden(server.shown, one_line=True)
    lines = [say("mcp_servers.question_intro", where=escape_hidden(str(server.origin), one_line=True), name=server.name, shown=shown)]
    if row.verdict in ("changed", "tools_changed"):
        lines.append(say(f"mcp_servers.question_{row.verdict}"))
    named = server.server.headers if isinstance(server.server, HttpServer) else server.server.env
    if named:
        lines.append(say("mcp_servers.question_env", names=escape_hidden(", ".join(named), one_line=True)))
    return lines
