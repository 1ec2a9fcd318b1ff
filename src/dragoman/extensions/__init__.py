"""ROOM. Extensions in files: hooks, skills, commands, subagents and plugins, also those written for other programs."""
