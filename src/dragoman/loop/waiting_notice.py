"""The notice that outdated results stay in the context for now, until when, and how they go at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.loop.room import Emit
from dragoman.values.events import NoticeGiven
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.context.decide import Waiting

WORTH_TELLING = 0.1
"""Outdated results that make up less than this share of the request are not told of."""


class WaitingNotice:
    """Given once in a session."""

    def __init__(self) -> None:
        self._was_given = False

    def tell(self, waiting: Waiting | None, emit: Emit) -> None:
        if self._was_given or waiting is None or waiting.share < WORTH_TELLING:
            return
        self._was_given = True
        emit(NoticeGiven("context", str(_words(waiting))))


def _words(waiting: Waiting) -> str:
    when = say("loop.wait_prompt")
    if waiting.until_ms:
        limit = f"{waiting.share_limit:.0%}"
        when = say("loop.wait_share", limit=limit) if waiting.share_limit < 1 else say("loop.wait_cold")
    percent = f"{waiting.share:.0%}"
    return say("loop.results_wait", results=waiting.results, tokens=waiting.tokens, percent=percent, when=when)
