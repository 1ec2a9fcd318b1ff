"""MCP servers for agents in Python: their tools beside your own (`async with Servers({…}) as servers: Agent(tools=[*servers.tools])`)."""

from dragoman.extensions.mcp.contracts import HttpServer as HttpServer
from dragoman.extensions.mcp.contracts import OAuthSettings as OAuthSettings
from dragoman.extensions.mcp.contracts import StdioServer as StdioServer
from dragoman.extensions.mcp.oauth_login import login as login
from dragoman.extensions.mcp.oauth_login import logout as logout
from dragoman.extensions.mcp.oauth_loopback import Browser as Browser
from dragoman.extensions.mcp.oauth_tokens import TokenStore as TokenStore
from dragoman.extensions.mcp.running import ServerFailed as ServerFailed
from dragoman.loop.mcp_servers import Servers as Servers
