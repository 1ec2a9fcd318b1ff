"""How long a command may run, not counting the time in which the user is asked about it."""

from __future__ import annotations

import asyncio


class Clock:
    """The time limit of a command. It stands still while the user is asked about the command, however many questions there are."""

    def __init__(self, limit: asyncio.Timeout) -> None:
        self._limit = limit
        self._left_s: float | None = None
        """How much time is left, while it stands still."""
        self._is_over = False

    @property
    def has_limit(self) -> bool:
        return not self._is_over and (self._left_s is not None or self._limit.when() is not None)

    def hold(self, is_asked: bool) -> None:
        """Stand still from now on, or go on. In the loop of the command."""
        if not self.has_limit or self._limit.expired():
            return
        now_s, ends_s = asyncio.get_running_loop().time(), self._limit.when()
        if is_asked and ends_s is not None:
            self._left_s = ends_s - now_s
            self._limit.reschedule(None)
        elif not is_asked and self._left_s is not None:
            self._limit.reschedule(now_s + self._left_s)
            self._left_s = None

    def end(self) -> None:
        """Nothing is limited any more: it may run as long as it wants, or it has ended."""
        if not self._is_over and self._limit.when() is not None and not self._limit.expired():
            self._limit.reschedule(None)
        self._is_over, self._left_s = True, None
