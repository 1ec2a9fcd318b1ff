"""FRONT. The terminal conversation: finished lines in the terminal's own history, above a few rows that are redrawn."""
