"""Sessions in one SQLite file: the same store as in files."""
