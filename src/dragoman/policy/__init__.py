"""ROOM. Approval policy: which calls run, which are refused, and which need the user's confirmation; the sandbox around commands."""
