"""FRONT. The command-line program: headless runs, the subcommands, and the plain conversation. Nothing imports it."""
