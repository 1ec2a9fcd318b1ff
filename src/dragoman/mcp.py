"""MCP servers for agents in Python: their tools beside your own (`async with Servers({…}) as servers: Agent(tools=[*servers.tools])`)."""

from dragoman.loop.mcp_servers import Servers as Servers
from dragoman.mcp_client.contracts import HttpServer as HttpServer
from dragoman.mcp_client.contracts import OAuthSettings as OAuthSettings
from dragoman.mcp_client.contracts import StdioServer as StdioServer
from dragoman.mcp_client.oauth.login import login as login
from dragoman.mcp_client.oauth.login import logout as logout
from dragoman.mcp_client.oauth.loopback import Browser as Browser
from dragoman.mcp_client.oauth.tokens import TokenStore as TokenStore
from dragoman.mcp_client.running import ServerFailed as ServerFailed
