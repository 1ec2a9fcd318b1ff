"""ABOVE. What every front end shares: slash commands, subcommands and their pages, questions, and how calls and results are worded."""
