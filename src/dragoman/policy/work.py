"""How much work one judgement of a command line may cost.

Work is counted, never timed: a line that is judged on one machine is judged on every other. A command line can be made so that reading it
takes minutes, on the event loop, with everything else waiting. Past the bound it is not read on, and the user is asked.
"""

from __future__ import annotations

from dragoman.words import say

MAX_WORK = 400_000
"""One unit is about a microsecond: a word looked at, a few bytes parsed. Ordinary lines need some hundreds."""
READ_FOLDER = 50
READ_INDEX = 2_000
SEARCH_TREE = 20_000
"""What is done in the file system, in the same unit."""


class TooMuchWork(Exception):
    """A line cannot be judged within the bound."""


class WorkDone:
    """The work one judgement has done so far."""

    def __init__(self, limit: int = MAX_WORK) -> None:
        self.limit = limit
        self.done = 0

    def spend(self, amount: int) -> None:
        """Raises TooMuchWork past the limit."""
        self.done += amount
        if self.done > self.limit:
            raise TooMuchWork(say("policy.shell_work"))
