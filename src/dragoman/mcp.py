"""MCP servers for agents in Python: their tools beside your own (`async with Servers({…}) as servers: Agent(tools=[*servers.tools])`)."""

from dragoman.loop.mcp_servers import Servers
from dragoman.mcp_client.contracts import HttpServer, OAuthSettings, StdioServer
from dragoman.mcp_client.oauth.login import login, logout
from dragoman.mcp_client.oauth.loopback import Browser
from dragoman.mcp_client.oauth.tokens import TokenStore
from dragoman.mcp_client.running import ServerFailed

__all__ = ["Browser", "HttpServer", "OAuthSettings", "ServerFailed", "Servers", "StdioServer", "TokenStore", "login", "logout"]
