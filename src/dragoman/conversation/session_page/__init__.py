"""A session as a page of a browser: what it shows, and the page itself. The viewer serves it, an export has it in one file."""
