"""CALLS → RESULTS. Registry, scheduler and the built-in tools: one file per family, with descriptions as prose files."""
