"""ABOVE THE ROOMS. What every front end shares: slash commands, subcommands and their pages, questions, the words for calls and results."""
