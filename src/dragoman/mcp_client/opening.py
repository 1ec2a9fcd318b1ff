"""The transports of an HTTP server, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dragoman.http.clients import open_transport
from dragoman.mcp_client.channel import Channel
from dragoman.mcp_client.contracts import Authorizer, Era, HttpServer
from dragoman.mcp_client.errors import McpError, ServerRefused
from dragoman.mcp_client.http_calls import HttpCalls
from dragoman.mcp_client.old_sse import OldSseChannel
from dragoman.mcp_client.peer import Peer
from dragoman.mcp_client.streamable import StreamableChannel
from dragoman.values.contracts import Transport
from dragoman.values.errors import ProviderError

__all__ = ["open_http", "open_transport"]

NO_SUCH_ENDPOINT = frozenset({400, 404, 405})
"""What a server of the oldest transport answers to a POST."""

Greet = Callable[[Channel, Era], Awaitable[Peer]]


async def open_http(server: HttpServer, name: str, transport: Transport, authorizer: Authorizer | None, era: Era, greet: Greet) -> Peer:
    """A connection that has begun. Raises McpError."""
    calls = HttpCalls(server, transport, authorizer)
    if server.transport == "sse":
        return await greet(OldSseChannel(calls, name), "legacy")
    try:
        return await greet(StreamableChannel(calls, name), era)
    except ServerRefused as refusal:
        if refusal.status not in NO_SUCH_ENDPOINT or era == "modern":
            raise
        try:
            return await greet(OldSseChannel(calls, name, endpoint_s=5.0), "legacy")
        except (McpError, ProviderError):
            raise refusal from None
