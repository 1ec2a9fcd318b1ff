"""ABOVE THE ROOMS. What only other programs write: their rules, settings, memory, lists of MCP servers and sessions."""
