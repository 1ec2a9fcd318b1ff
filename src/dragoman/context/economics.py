"""When taking something out of a cached prefix pays. Pure arithmetic; every amount is in tokens of fresh input.

A token read from the cache costs r, one written to it w. To remove k tokens, the s that survive behind them are written again instead of
read: that costs B = (w - r)·s - r·k more with the next request, and saves r·k with each warm one after it. Nobody knows how many will
follow. So, as with skis that are rented until the rent has reached their price: wait until what the k tokens have cost so far reaches B.
Every token's carry is spent at most once, and is part of what never pruning costs too; hence all premiums together never reach that
cost, and no session costs more than twice what it would have without pruning, wherever it ends.

A lively session never lets the cache get cold, and what is outdated piles up in it while the price says wait. So where it makes up more
than a share q of the request, it goes sooner, all together, if two things hold: a session that goes on for as long again as it has will
have earned the premium back, and all that pruning has cost so far stays within a share d of what never pruning would have. Of the request
s < (1 - q)/q·k survive then, so the premium is earned back within (w/r - 1)(1 - q)/q - 1 warm requests: 33 at r = 0.1, w = 1.25, q = 1/4.
Batches that are not yet earned back save together: no more requests are needed for all of them than for the slowest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from dragoman.values.usage import Prices

HOUR_MS = 3_600_000


class Rates(msgspec.Struct, frozen=True):
    """What the cache charges for a token, relative to a fresh one."""

    read: float
    write: float
    ttl_ms: int = 300_000
    """How long a cached prefix lives unused."""
    falls_back: bool = False
    """A change in the middle loses everything behind the static prefix; otherwise the longest common prefix stays."""


class Pending(msgspec.Struct, frozen=True):
    """A result that may be pruned and is still in view."""

    tokens: float
    """How much pruning it would save: its own tokens minus its placeholder's."""
    warm_calls: int
    """How often it was read from the cache since it could have been pruned."""


class Books(msgspec.Struct, frozen=True):
    """The costs and savings of pruning so far."""

    spent: float = 0
    """What never pruning would have cost, including the next request."""
    premiums: float = 0
    """Paid for rewriting what survived."""
    saved: float = 0
    """Saved since by what was pruned, including the next request."""


def rates_of(prices: Prices, *, ttl_ms: int = 300_000, falls_back: bool = False) -> Rates | None:
    """None if no cache price is known. A prefix that lives an hour is written at the one-hour price, if there is one."""
    if prices.cache_read is None or prices.input <= 0:
        return None
    write = prices.cache_write_1h if ttl_ms >= HOUR_MS and prices.cache_write_1h is not None else prices.cache_write
    return Rates(prices.cache_read / prices.input, 1.0 if write is None else write / prices.input, ttl_ms, falls_back)


def premium(rates: Rates, removed: float, surviving: float) -> float:
    """B: how much more the next request costs if these tokens go now. Negative: it is already cheaper."""
    return (rates.write - rates.read) * surviving - rates.read * removed


def pays_after(rates: Rates, removed: float, surviving: float) -> float:
    """How many warm requests, after the one that pays the premium, earn it back."""
    cost, gain = premium(rates, removed, surviving), rates.read * removed
    if gain > 0:
        return cost / gain
    return math.inf if cost > 0 else 0.0


def relieves(rates: Rates, removed: float, surviving: float, *, calls: int, overdraft: float, books: Books) -> bool:
    """Whether results that make up too much of the request should go now, though they have not cost enough yet for `pays`.

    `calls`: how many requests the session has made. It is taken to make as many again, and the premium must be earned back by then.
    """
    if pays_after(rates, removed, surviving) > calls:
        return False
    return books.premiums + premium(rates, removed, surviving) - books.saved <= overdraft * books.spent


def pays(rates: Rates, pending: Sequence[Pending], surviving: float, *, overhead: float | None = None, books: Books | None = None) -> bool:
    """Whether all pending results should go now, out of a warm cache. (Out of a cold or broken one they always should; do not call this.)

    With an overhead, only while pruning has never cost more than that share above not pruning, this premium included.
    """
    if not pending:
        return False
    cost = premium(rates, sum(item.tokens for item in pending), surviving)
    if rates.read * sum(item.tokens * item.warm_calls for item in pending) < cost:
        return False
    if overhead is None:
        return True
    books = books or Books()
    return books.premiums + cost - books.saved <= overhead * books.spent
