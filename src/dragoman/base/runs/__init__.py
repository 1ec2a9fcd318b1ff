"""What of a project a command runs, as the program it starts would find it: what a yes to a server or a hook covers."""
