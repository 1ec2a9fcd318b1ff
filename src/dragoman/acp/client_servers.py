"""MCP servers that the client names for a session. Nobody can tell whether a person or a project wrote them there, so they are used as a
project's are: once the person has said yes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from dragoman.acp.incoming import McpServer
from dragoman.acp.rpc import INVALID_PARAMS, AcpError
from dragoman.mcp_client.configured import ConfiguredServer, WrongEntry, hash_of, read_codex, read_entry
from dragoman.mcp_client.filling import FillFrom
from dragoman.tools.child_environment import is_secret_name
from dragoman.values.origin import Origin
from dragoman.words import say


def read_servers(given: Sequence[McpServer], client: str) -> tuple[ConfiguredServer, ...]:
    """Raises AcpError. `client`: what it calls itself."""
    origin = Origin("dragoman", "project", str(say("acp.from_client", client=client or say("acp.client"))))
    return tuple(_read(each, origin) for each in given)


def _read(given: McpServer, origin: Origin) -> ConfiguredServer:
    if given.type not in ("stdio", "http"):
        raise AcpError(INVALID_PARAMS, say("acp.no_transport", name=given.name[:60], type=given.type[:40]))
    env = {each.name: each.value for each in given.env or ()}
    headers = {each.name: each.value for each in given.headers or ()}
    if given.type == "http":
        entry: dict[str, object] = {"url": given.url, "http_headers": headers}
    else:
        entry = {"command": given.command, "args": list(given.args), "env": env}
    try:
        server = read_entry(given.name, entry, origin, read_codex, FillFrom({}, tuple, lambda path: ""))
    except WrongEntry as error:
        raise AcpError(INVALID_PARAMS, say("acp.bad_server", name=given.name[:60], reason=error)) from error
    # A key may change, and is not shown; whatever else changes is another server.
    told = {name: "" if _is_secret(name) else value for name, value in (env | headers).items()}
    hashed = hash_of([given.type, given.command, given.args, given.url, told])
    return replace(server, hash=hashed, given=tuple(f"{name}={value}" if value else name for name, value in told.items()))


def _is_secret(name: str) -> bool:
    return "auth" in name.lower() or is_secret_name(name.replace("-", "_"))
