"""Signing in to MCP servers: OAuth, as the specification asks for it."""
