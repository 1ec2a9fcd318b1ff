"""Hooks: commands of the user at fixed points of a run, by the contract of Claude Code, which Codex and gemini-cli share in large part."""
