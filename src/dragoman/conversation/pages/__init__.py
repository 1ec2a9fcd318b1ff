"""One module for each command that a conversation and the shell have in common."""
