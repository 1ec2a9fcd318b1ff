"""Who signs requests to a configured MCP server: tokens of earlier sign-ins, refreshed. In a run nobody is asked for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.app.setup import Setup
from dragoman.mcp_client.configured import ConfiguredServer
from dragoman.mcp_client.contracts import HttpServer

if TYPE_CHECKING:
    from dragoman.mcp_client.oauth.authorizer import OAuth
    from dragoman.mcp_client.oauth.tokens import TokenStore


def store_of(setup: Setup) -> TokenStore:
    from dragoman.mcp_client.oauth.tokens import TokenStore

    return TokenStore(setup.places.mcp_tokens_file)


def authorizer_of(setup: Setup, server: ConfiguredServer) -> OAuth | None:
    """What signs requests to the server; None for stdio servers, and for those whose entry already has an authentication header."""
    spec = server.server
    if not isinstance(spec, HttpServer) or any(name.lower() == "authorization" for name in spec.headers):
        return None
    from dragoman.mcp_client.oauth.authorizer import OAuth

    return OAuth(server.name, spec, store_of(setup))
