"""The notices that outdated results stay in the context for now, and that the clock went back."""

from __future__ import annotations

from collections.abc import Callable
from time import localtime, strftime
from typing import TYPE_CHECKING, TypeGuard

from dragoman.context.cache import Cache
from dragoman.context.view import View
from dragoman.loop.room import Emit
from dragoman.values.events import NoticeGiven
from dragoman.values.record import Pruned
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.context.decide import Decision, Waiting
    from dragoman.loop.history import History

    Decide = Callable[[View, int, Cache], Decision]

WORTH_TELLING = 0.1
"""Outdated results that make up less than this share of the request are not told of."""

LOOKED_AT = 16
"""How many requests of earlier processes."""


BEHIND_MS = 60_000
"""A clock is that much behind the record before it is told of: machines differ by less."""


def clock_fault(now_ms: int, newest_ms: int) -> str:
    """In words that the clock is behind what is on the record, and what to do; empty: it is not."""
    if newest_ms - now_ms < BEHIND_MS:
        return ""
    return str(say("loop.clock_behind", now=_minute(now_ms), newest=_minute(newest_ms)))


def _minute(at_ms: int) -> str:
    return strftime("%Y-%m-%d %H:%M", localtime(at_ms / 1000))


class ClockNotice:
    """Given once where the clock went back: what is on the record is then younger than none, and nothing becomes outdated."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._newest_ms = max((entry.timestamp_ms for entry in history.entries), default=0)
        self._was_given = False

    def tell(self, emit: Emit) -> None:
        entries = self._history.entries
        if entries:
            self._newest_ms = max(self._newest_ms, entries[-1].timestamp_ms)
        if not self._was_given and (fault := clock_fault(self._history.now_ms(), self._newest_ms)):
            self._was_given = True
            emit(NoticeGiven("context", fault))


class WaitingNotice:
    """Given once in a session, whichever process of it comes first. `decide` says what is due, in a conversation as it stood."""

    def __init__(self, history: History, decide: Decide) -> None:
        self._history = history
        self._decide = decide
        self._earlier = history.cache.last
        """The last request of an earlier process."""
        self._was_given = False

    def tell(self, waiting: Waiting | None, emit: Emit) -> None:
        if self._was_given or not _is_worth_telling(waiting):
            return
        self._was_given = True
        if not self._was_given_earlier():
            emit(NoticeGiven("context", str(_words(waiting))))

    def _was_given_earlier(self) -> bool:
        """Whether as much waited before one of the last requests of an earlier process, or results that waited were let go."""
        if self._earlier is None:
            return False
        calls = {call.seq: call for call in self._history.cache.calls if call.seq <= self._earlier.seq}
        looked_at = {seq: calls[seq] for seq in list(calls)[-LOOKED_AT:]}
        view, cache = View(), Cache()
        for entry in self._history.entries:
            if isinstance(entry, Pruned) and entry.reason in ("share", "request"):
                return True
            if (call := looked_at.get(entry.seq)) is not None and _is_worth_telling(self._decide(view, call.asked_ms, cache).waiting):
                return True
            view.feed(entry)
            cache.feed(entry)
        return False


def _is_worth_telling(waiting: Waiting | None) -> TypeGuard[Waiting]:
    return waiting is not None and waiting.share >= WORTH_TELLING


def _words(waiting: Waiting) -> str:
    when = say("loop.wait_prompt")
    if waiting.until_ms:
        limit = f"{waiting.share_limit:.0%}"
        when = say("loop.wait_share", limit=limit) if waiting.share_limit < 1 else say("loop.wait_cold")
    percent = f"{waiting.share:.0%}"
    return say("loop.results_wait", results=waiting.results, tokens=waiting.tokens, percent=percent, when=when)
