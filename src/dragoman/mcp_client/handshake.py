"""Finds out which era a server speaks, and begins to speak it.

HTTP: the modern era first, and a refusal's body is read before the other is tried. Stdio: `initialize` first, unless the server is known to
be modern, because some servers start what is behind them at whatever comes first.
"""

from __future__ import annotations

import re
from typing import Any

from dragoman import __version__
from dragoman.mcp_client.contracts import Era, ServerInfo
from dragoman.mcp_client.errors import (
    METHOD_NOT_FOUND,
    MODERN_CODES,
    UNSUPPORTED_VERSION,
    McpError,
    ProtocolError,
    ServerDied,
    ServerGarbled,
    ServerRefused,
    ServerTimedOut,
)
from dragoman.mcp_client.peer import Peer
from dragoman.words import say

MODERN = ("2026-07-28",)
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Newest first."""
CLIENT_INFO = {"name": "dragoman", "title": "Dragoman", "version": __version__}
PROBE_S = 20.0
"""A legacy server may say nothing at all to a request of the modern era. A modern one may be slow to wake up."""
_META = "io.modelcontextprotocol/"
_MODERN_NAMED = re.compile(r"\b20(?:2[6-9]|[3-9]\d)-\d\d-\d\d\b")


class NotModern(Exception):
    """The server does not speak the modern era; the cause is what it said instead."""


def modern_meta(version: str, capabilities: dict[str, Any]) -> dict[str, Any]:
    """What every request of the modern era carries."""
    return {
        f"{_META}protocolVersion": version,
        f"{_META}clientInfo": CLIENT_INFO,
        f"{_META}clientCapabilities": capabilities,
    }


async def shake_hands(peer: Peer, name: str, era: Era, capabilities: dict[str, Any], *, by_http: bool, timeout_s: float) -> ServerInfo:
    """Raises McpError. `era` is what is known of the server."""
    if era == "modern" or (by_http and era != "legacy"):
        try:
            return await discover(peer, name, capabilities, timeout_s if era == "modern" else min(timeout_s, PROBE_S))
        except NotModern as refusal:
            if not isinstance(refusal.__cause__, ServerTimedOut):
                return await initialize(peer, name, capabilities, timeout_s)
    try:
        return await initialize(peer, name, capabilities, timeout_s)
    except (ProtocolError, ServerRefused, ServerGarbled) as error:
        if not _may_be_modern(error):
            raise
        try:
            return await discover(peer, name, capabilities, timeout_s)
        except NotModern:
            raise error from None


async def discover(peer: Peer, name: str, capabilities: dict[str, Any], timeout_s: float) -> ServerInfo:
    """Raises NotModern, or McpError where it is not about the era."""
    version = MODERN[0]
    peer.channel.settle(version, True)
    peer.answers_questions = False
    params = {"_meta": modern_meta(version, capabilities)}
    try:
        try:
            result = await peer.request("server/discover", params, timeout_s=timeout_s)
        except ProtocolError as error:
            if version not in error.supported_versions:
                raise
            result = await peer.request("server/discover", params, timeout_s=timeout_s)  # it does support what it has just refused
    except (ProtocolError, ServerRefused, ServerTimedOut, ServerGarbled, ServerDied) as error:
        _raise_if_modern(error, name)
        if not peer.is_open:
            raise
        raise NotModern from error
    return _read_discovery(result, name)


async def initialize(peer: Peer, name: str, capabilities: dict[str, Any], timeout_s: float) -> ServerInfo:
    peer.channel.settle("", False)
    peer.answers_questions = True
    params = {"protocolVersion": LEGACY[0], "capabilities": capabilities, "clientInfo": CLIENT_INFO}
    result = await peer.request("initialize", params, timeout_s=timeout_s)
    version = result.get("protocolVersion")
    if version not in LEGACY:
        raise ServerGarbled(say("mcp.unknown_version", server=name, version=version))
    peer.channel.settle(version, False)
    await peer.tell("notifications/initialized")
    await peer.channel.listen()
    return _info("legacy", version, result, result.get("serverInfo"))


def _read_discovery(result: dict[str, Any], name: str) -> ServerInfo:
    """An answer that cannot be read means a legacy server: some answer anything."""
    given = result.get("supportedVersions")
    if not isinstance(given, list) or not given:
        raise NotModern
    version = next((each for each in MODERN if each in given), "")
    if not version:
        if any(each in given for each in LEGACY):
            raise NotModern
        raise ServerGarbled(say("mcp.no_version", server=name, versions=", ".join(map(str, given))[:200]))
    meta = result.get("_meta")
    named = result.get("serverInfo") or (meta.get(f"{_META}serverInfo") if isinstance(meta, dict) else None)
    return _info("modern", version, result, named)


def _raise_if_modern(error: McpError, name: str) -> None:
    """Raise what the user must hear; return where the older era may do."""
    if isinstance(error, ServerRefused) and error.status in {401, 403}:
        raise error
    if not isinstance(error, ProtocolError) or error.code not in MODERN_CODES:
        return
    if error.code == UNSUPPORTED_VERSION and any(each in error.supported_versions for each in LEGACY):
        return
    if error.code == UNSUPPORTED_VERSION and error.supported_versions:
        raise ServerGarbled(say("mcp.no_version", server=name, versions=", ".join(error.supported_versions)[:200])) from error
    raise error


def _may_be_modern(error: McpError) -> bool:
    """Whether a server that refused `initialize` may speak the modern era alone."""
    if isinstance(error, ServerRefused):
        return error.status in {400, 404, 405, 406}
    if not isinstance(error, ProtocolError):
        return error.values.get("version") in MODERN  # it answers in the old way and means the new one
    return error.code in MODERN_CODES | {METHOD_NOT_FOUND, -32602, -32600} or bool(_MODERN_NAMED.search(str(error)))


def _info(era: Era, version: str, result: dict[str, Any], named: Any) -> ServerInfo:
    named = named if isinstance(named, dict) else {}
    instructions, capabilities = result.get("instructions"), result.get("capabilities")
    return ServerInfo(
        era=era,
        version=version,
        name=_text(named.get("title")) or _text(named.get("name")),
        server_version=_text(named.get("version")),
        instructions=_text(instructions),
        capabilities=capabilities if isinstance(capabilities, dict) else {},
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
