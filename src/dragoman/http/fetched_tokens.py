"""Tokens that are fetched: one fetch for all who need it at once, and the recent ones, so that they can be redacted."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping

from dragoman.base.turnstile import Turnstile
from dragoman.values.errors import Unauthorized
from dragoman.words import say

REMEMBERED = 32
"""How many recent tokens are remembered, so that they can be redacted."""


class OneFetch:
    """Shares one fetch between concurrent callers from any event loop or thread. They share a failure too."""

    def __init__(self, fetch: Callable[[], Awaitable[None]], timeout_s: float) -> None:
        self._fetch = fetch
        # Longer than any fetch takes: only an event loop that was stopped in the middle of one makes the others wait that long.
        self._turnstile = Turnstile(1, patience_s=2 * timeout_s + 5)
        self._done = 0
        self._failure = ""

    async def unless(self, is_there: Callable[[], bool]) -> None:
        done_before = self._done
        try:
            place = await self._turnstile.enter()
        except TimeoutError as error:
            raise Unauthorized(say("providers.token_stuck")) from error
        try:
            if is_there():
                return
            if self._done == done_before:
                await self._fetch_once()
            elif self._failure:
                raise Unauthorized(self._failure)
        finally:
            self._turnstile.leave(place)

    async def _fetch_once(self) -> None:
        """If it is cancelled it does not count, and the next in the queue fetches."""
        try:
            await self._fetch()
        except Unauthorized as error:
            self._failure = error.message
            self._done += 1
            raise
        self._failure = ""
        self._done += 1


class Tokens:
    """The most recent tokens. A source may give a new one for each request, so not all are kept."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._values: dict[str, None] = {}

    def add(self, token: str) -> None:
        with self._lock:
            self._values.pop(token, None)
            self._values[token] = None
            while len(self._values) > REMEMBERED:
                del self._values[next(iter(self._values))]

    def all(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._values)


def is_in(headers: Mapping[str, str], sent: Mapping[str, str]) -> bool:
    """Whether these were among the headers sent. Header names are case-insensitive."""
    values = {name.lower(): value for name, value in sent.items()}
    return all(values.get(name.lower()) == value for name, value in headers.items())
