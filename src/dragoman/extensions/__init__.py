"""ROOM. Extensions: MCP servers, hooks, skills, commands, subagents and plugins, also those written for other programs."""
