"""Which files of a project a command would run: an approval of a server or a hook covers these files."""
