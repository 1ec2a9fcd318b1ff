"""`dragoman mcp`: which MCP servers are configured and what they offer; adding, trying, agreeing to and removing one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import Any, TypeVar

from dragoman.app.config import PROJECT_FILE
from dragoman.app.mcp import consent_of, find, lists_of
from dragoman.app.mcp_file import NAME, ServerEntry, add_entry, remove_entry
from dragoman.app.mcp_rows import ServerRow, no_such_server, rows_of
from dragoman.app.notices import one_for_each_file
from dragoman.app.options import Options
from dragoman.app.setup import Setup, set_up
from dragoman.app.trust import require_trust
from dragoman.base import jsontext
from dragoman.base.places import shorten_home
from dragoman.base.text import one_line
from dragoman.base.visible import escape_hidden
from dragoman.conversation.actions import Action, Output, find_action, refuse_options
from dragoman.conversation.code_lines import code_lines
from dragoman.mcp_client.configured import ConfiguredServer
from dragoman.mcp_client.contracts import HttpServer
from dragoman.mcp_client.known import KnownList
from dragoman.values.errors import DragomanError, InputError
from dragoman.words import say

T = TypeVar("T")
EXIT_FAILED = 1


def run_mcp(options: Options) -> Output:
    name, action = find_action(options, ACTIONS)
    operands = options.words[1:]
    if action.operand and not operands:
        raise InputError(say("mcp_servers.needs_name", action=name))
    if name != "add" and len(operands) > (1 if action.operand else 0):
        raise InputError(say("mcp_servers.too_many_words", action=name, word=one_line(operands[-1], 60)))
    refuse_options(options, action, f"mcp {name}")
    return action.run(options)


def _list(options: Options) -> str:
    setup = set_up(options)
    rows, found = rows_of(setup)
    if options.output_format == "json":
        return _json(
            {"servers": [row.to_json() for row in rows], "problems": list(one_for_each_file((*setup.wrong_files, *found.problems)))}
        )
    lines = [
        *(row.line for row in rows),
        *(say("notice", text=problem) for problem in one_for_each_file((*found.problems, *setup.notices))),
    ]
    return "\n".join(lines or [say("mcp_servers.none")]) + "\n"


def _get(options: Options) -> str:
    setup = set_up(options)
    rows, _ = rows_of(setup)
    row = _row(setup, rows, options.words[1])
    if options.output_format == "json":
        return _json(row.to_json() | {"definitions": _definitions(row.known)})
    server = row.server
    named = server.server.headers if isinstance(server.server, HttpServer) else server.server.env
    lines = [row.line]
    lines += [say("mcp_servers.question_env", names=", ".join(sorted(named)))] if named else []
    lines += _code_lines(setup, server)
    for tool in row.known.tools if row.known is not None else ():
        is_left_out = "" if server.offers(tool.name) else f" ({say('mcp_servers.row_disabled')})"
        lines.append(one_line(f"  {tool.name}{is_left_out}  {tool.description}", 200))
    for prompt in row.known.prompts if row.known is not None else ():
        lines.append(one_line(f"  /mcp__{server.name}__{prompt.name}  {prompt.description}", 200))
    for resource in row.known.resources if row.known is not None else ():
        lines.append(one_line(f"  @{server.name}:{resource.uri}  {resource.description or resource.name}", 200))
    return "\n".join(lines) + "\n"


def _add(options: Options) -> str | tuple[str, int]:
    setup = set_up(options)
    if len(options.words) < 3:
        raise InputError(say("mcp_servers.add_usage"))
    name, first, *rest = options.words[1:]
    if not NAME.match(name):
        raise InputError(say("mcp_servers.bad_name", name=one_line(name, 80)))
    entry = _entry(options, first, rest)
    path = _own_file(setup, options.scope)
    add_entry(path, name, entry, within=_project_of(setup, path))
    reason, known = "", None
    try:
        known = _try_added(set_up(options), name)  # with what was written
    except (DragomanError, OSError) as error:
        reason = str(error)
    if options.output_format == "json":
        return _json({"added": name, "file": path, "works": not reason, "reason": reason or None, "tools": _names(known)})
    lines = [say("mcp_servers.added", name=name, path=shorten_home(path))]
    lines.append(_test_words(name, known) if known is not None else say("mcp_servers.added_but", reason=reason))
    return "\n".join(lines) + "\n"


def _try_added(setup: Setup, name: str) -> KnownList:
    """Ask a new server once what it offers. Whoever adds one has said yes to it."""
    server = _find_server(setup, name)
    if consent_of(setup).asks_about(server):
        consent_of(setup).decide(server, yes=True)
    return _ask_server(setup, _find_usable(setup, name))


def _entry(options: Options, first: str, rest: list[str]) -> ServerEntry:
    env = dict(_pair(each, "=", "mcp_servers.wrong_variable") for each in options.env)
    headers = dict(_pair(each, ":", "mcp_servers.wrong_header") for each in options.header)
    if first.startswith(("http://", "https://")):
        return ServerEntry(url=first, transport=options.transport, headers=headers)
    return ServerEntry(command=first, args=tuple(rest), env=env)


def _pair(text: str, sign: str, problem: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found or not name.strip():
        raise InputError(say(problem, text=one_line(name, 60)))
    return name.strip(), value.strip() if sign == ":" else value


def _remove(options: Options) -> str:
    setup = set_up(options)
    server = _find_server(setup, options.words[1])
    if server.origin.program != "dragoman":
        path = setup.places.config_file
        raise InputError(say("mcp_servers.not_ours", name=server.name, where=server.origin, path=path))
    remove_entry(server.origin.path, server.name, within=_project_of(setup, server.origin.path))
    lists_of(setup).forget(server)
    if options.output_format == "json":
        return _json({"removed": server.name, "file": server.origin.path})
    return say("mcp_servers.removed", name=server.name, path=shorten_home(server.origin.path)) + "\n"


def _test(options: Options) -> str | tuple[str, int]:
    setup = set_up(options)
    server = _find_usable(setup, options.words[1])
    try:
        known = _ask_server(setup, server)
    except (DragomanError, OSError) as error:
        if options.output_format == "json":
            return _json({"name": server.name, "works": False, "reason": str(error)}), EXIT_FAILED
        return say("failed", message=str(error)) + "\n", EXIT_FAILED
    if options.output_format == "json":
        return _json({"name": server.name, "works": True, "era": known.era, "protocol": known.protocol, "tools": _names(known)})
    return _test_words(server.name, known) + "\n"


def _approve(options: Options) -> str:
    setup = set_up(options)
    server = _find_server(setup, options.words[1])
    if not consent_of(setup).asks_about(server):
        raise InputError(say("mcp_servers.already", name=server.name, where=server.origin))
    try:
        consent_of(setup).decide(server, yes=True, known=lists_of(setup).get(server))
    except OSError as error:
        raise InputError(say("mcp_servers.file_unwritable", path=setup.places.data, reason=error.strerror or error)) from error
    if options.output_format == "json":
        return _json({"approved": server.name, "shown": server.shown, "file": str(server.origin)})
    approved = say("mcp_servers.approved", name=server.name, shown=one_line(server.shown, 300))
    return "\n".join([approved, *_code_lines(setup, server)]) + "\n"


def _code_lines(setup: Setup, server: ConfiguredServer) -> list[str]:
    lines = code_lines(consent_of(setup).code(server), setup.trust.root or setup.workspace)
    return [escape_hidden(line, one_line=True) for line in lines]


def _login(options: Options) -> str:
    from dragoman.conversation.pages.mcp_login import sign_in, signed_in_lines

    setup = set_up(options)
    server = _find_usable(setup, options.words[1])
    signed = _run(sign_in(setup, server))
    if options.output_format == "json":
        row = {"name": server.name, "issuer": signed.issuer, "scopes": list(signed.scopes), "stored": signed.stored_in}
        return _json(row | {"file": setup.places.mcp_tokens_file})
    return "\n".join(signed_in_lines(setup, server, signed)) + "\n"


def _logout(options: Options) -> str:
    from dragoman.conversation.pages.mcp_login import sign_out, signed_out_line

    setup = set_up(options)
    server = _find_server(setup, options.words[1])
    out = _run(sign_out(setup, server))
    if options.output_format == "json":
        return _json({"name": server.name, "was_signed_in": out is not None, "revoked": out is not None and out.is_revoked})
    return signed_out_line(server, out) + "\n"


ACTIONS: dict[str, Action[Options]] = {
    "list": Action(_list, options=("trust",)),
    "get": Action(_get, "NAME", ("trust",)),
    "add": Action(_add, "NAME", ("trust", "env", "header", "transport", "scope")),
    "remove": Action(_remove, "NAME", ("trust",)),
    "test": Action(_test, "NAME", ("trust",)),
    "approve": Action(_approve, "NAME", ("trust",)),
    "login": Action(_login, "NAME", ("trust",)),
    "logout": Action(_logout, "NAME", ("trust",)),
}


# --- parts


def _own_file(setup: Setup, scope: str) -> str:
    if scope == "project":
        return os.path.join(setup.workspace, PROJECT_FILE)
    return setup.loaded.files[0].path


def _project_of(setup: Setup, path: str) -> str:
    """The workspace, if it is the project's file: a command or a repository may have made it a link. Empty for the user's own."""
    return setup.workspace if path == os.path.join(setup.workspace, PROJECT_FILE) else ""


def _row(setup: Setup, rows: list[ServerRow], name: str) -> ServerRow:
    found = next((row for row in rows if row.server.name == name), None)
    if found is None:
        require_trust(setup.trust)
        raise no_such_server(name, [row.server for row in rows])
    return found


def _find_server(setup: Setup, name: str) -> ConfiguredServer:
    found = find(setup)
    server = found.get(name)
    if server is None:
        require_trust(setup.trust)
        raise no_such_server(name, found.servers)
    return server


def _find_usable(setup: Setup, name: str) -> ConfiguredServer:
    """A server that may be used. Raises InputError for one that waits for approval, or cannot be used."""
    server = _find_server(setup, name)
    verdict = consent_of(setup).verdict(server, lists_of(setup).get(server))
    if verdict not in ("yes", "tools_changed"):
        raise InputError(say(f"mcp_servers.row_{verdict}", name=server.name))
    if server.problem:
        raise InputError(say("mcp_servers.row_problem", problem=server.problem))
    return server


def _ask_server(setup: Setup, server: ConfiguredServer) -> KnownList:
    from dragoman.app.mcp_clients import ask_once

    return _run(ask_once(setup, server, lists_of(setup), consent_of(setup)))


def _run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def _test_words(name: str, known: KnownList) -> str:
    return say(
        "mcp_servers.tested",
        name=name,
        tools=len(known.tools),
        prompts=len(known.prompts),
        resources=len(known.resources),
        era=known.era,
        protocol=known.protocol,
    )


def _names(known: KnownList | None) -> list[str] | None:
    return None if known is None else [tool.name for tool in known.tools]


def _definitions(known: KnownList | None) -> list[dict[str, Any]] | None:
    if known is None:
        return None
    return [{"name": tool.name, "description": tool.description, "input_schema": tool.input_schema} for tool in known.tools]


def _json(value: dict[str, Any]) -> str:
    return jsontext.dumps(value) + "\n"
