"""Hooks: the user's commands, run at fixed points of a run. The contract is Claude Code's, which Codex and gemini-cli largely share."""
