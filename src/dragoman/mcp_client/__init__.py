"""ROOM. A client for MCP servers: programs that offer tools, resources and prompts, in both eras of the protocol."""
