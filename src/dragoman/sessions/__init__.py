"""ROOM. Sessions on disk: the write-ahead log, recovery, listing, search, fork, export, import and undo."""
