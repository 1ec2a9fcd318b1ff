"""The conversation's screen: what is said and done, as lines in the terminal's own history, above a few rows that are live."""
