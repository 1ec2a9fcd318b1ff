"""ROOM. Tools: registry, scheduler and the built-in tools, one file per family, with descriptions as prose files."""
