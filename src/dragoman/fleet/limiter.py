"""One limiter for all attempts of a fleet: how many requests and tokens per minute a service takes, and what the fleet may spend.

A worker leases a block of requests, so that it need not ask for each. What a service takes is learned from its refusals (429): they slow
everybody down once, and fail nobody. Each question tells what its worker has spent, and what the limiter knew when it last answered: a
limiter that was lost is made anew, and learns it back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

BLOCK_REQUESTS = 8
"""Most requests of one lease."""
LEASE_S = 5.0
"""How long a lease is good for, and the longest wait before somebody asks again."""
WINDOW_S = 10.0
"""What a service takes is measured over so long."""
CUT = 0.7
LEAST_PER_S = 0.2
NEVER_MIND_PER_S = 2_000.0
"""A limit above this is none."""


class Known(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a limiter knows of a service, as each lease tells it."""

    per_s: float = 0.0
    """Requests; 0: any number."""
    held_s: float = 0.0
    """How long nothing may be sent from now on."""


class Ask(msgspec.Struct, frozen=True, omit_defaults=True, tag="ask"):
    """A worker's question: may I send?"""

    holder: str
    """The attempt, with its epoch."""
    deployment: str
    """The service and the model: services limit models one by one."""
    tokens: int = 0
    """About how many the next request has."""
    usd: float = 0.0
    """What this epoch has spent so far."""
    known: Known = Known()
    per_minute: int = 0
    """What the configuration says the service takes; 0: it says nothing."""
    tokens_per_minute: int = 0


class RefusalNews(msgspec.Struct, frozen=True, omit_defaults=True, tag="refused"):
    """A worker's news: the service has answered 429."""

    holder: str
    deployment: str
    retry_after_s: float = 0.0


class SpendingNews(msgspec.Struct, frozen=True, tag="spent"):
    """A worker's news: a request was answered, and so much is spent by now. Its next question may come late, or never."""

    holder: str
    usd: float


class Lease(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer: so many requests may be sent, after so long."""

    requests: int = 0
    """0: ask again after `after_s`."""
    after_s: float = 0.0
    for_s: float = LEASE_S
    known: Known = Known()
    is_spent: bool = False
    """The budget of the fleet is used up: nothing more is sent."""


class FleetLimiter(Protocol):
    """What workers ask and tell. Any number of them may do so at once, and survive the loss of what they ask."""

    async def lease(self, ask: Ask) -> Lease: ...

    async def refuse(self, refused: RefusalNews) -> None: ...

    def spent(self, news: SpendingNews) -> None: ...


class _ServiceRate:
    """What is known of one deployment."""

    def __init__(self) -> None:
        self.per_s = 0.0
        self.refused_at_per_s = 0.0
        """The rate at which the service last refused."""
        self.tokens_per_s = 0.0
        self.free_s = 0.0
        """When the next request may be sent."""
        self.held_until_s = 0.0
        self.cut_s = float("-inf")
        self.grown_s = 0.0
        self.window_s, self.in_window, self.before = 0.0, 0, 0
        self.holders: dict[str, float] = {}
        """Who asked when."""


class LocalLimiter:
    """The limiter itself: a state and a clock, without input or output. Its methods are `FleetLimiter`'s, none of them async."""

    def __init__(self, budget_usd: float | None = None, spent_usd: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        """`spent_usd`: by attempts that have ended."""
        self.budget_usd = budget_usd
        self._ended_usd = spent_usd
        self._spending: dict[str, float] = {}
        self._clock = clock
        self._lanes: dict[str, _ServiceRate] = {}
        self.refusals = 0

    @property
    def spent_usd(self) -> float:
        """By attempts that have ended, and by those under way as far as they have said."""
        return self._ended_usd + sum(self._spending.values())

    def spending(self, holder: str) -> float:
        """What an attempt under way has spent, as far as it has said."""
        return self._spending.get(holder, 0.0)

    @property
    def is_spent(self) -> bool:
        return self.budget_usd is not None and self.spent_usd >= self.budget_usd

    def end(self, holder: str, usd: float) -> None:
        """An attempt has ended, and has spent this."""
        self._spending.pop(holder, None)
        self._ended_usd += usd
        for lane in self._lanes.values():
            lane.holders.pop(holder, None)

    def spent(self, news: SpendingNews) -> None:
        """A request of somebody who is under way was answered."""
        if (before := self._spending.get(news.holder)) is not None:
            self._spending[news.holder] = max(news.usd, before)

    def restate(self, ended_usd: float, live: Mapping[str, float]) -> None:
        """Take over what another limiter knows, as a part of it: what has ended, and who is under way and has spent at least so much."""
        self._ended_usd = ended_usd
        self._spending = {holder: max(usd, self._spending.get(holder, 0.0)) for holder, usd in live.items()}

    @property
    def ended_usd(self) -> float:
        return self._ended_usd

    def lease(self, ask: Ask) -> Lease:
        self._spending[ask.holder] = max(ask.usd, self._spending.get(ask.holder, 0.0))
        if self.is_spent:
            return Lease(is_spent=True)
        lane, now_s = self._learned(ask), self._clock()
        lane.holders[ask.holder] = now_s
        if lane.held_until_s > now_s:
            return self._later(lane, lane.held_until_s - now_s)
        self._grow(lane, ask)
        start_s = max(lane.free_s, now_s)
        if start_s - now_s > LEASE_S:
            return self._later(lane, LEASE_S)
        requests = self._block(lane)
        lane.free_s = start_s + max(
            requests / lane.per_s if lane.per_s else 0.0, ask.tokens / lane.tokens_per_s if lane.tokens_per_s else 0.0
        )
        self._count(lane, requests)
        return Lease(requests, start_s - now_s, LEASE_S, self._known(lane))

    def refuse(self, refused: RefusalNews) -> None:
        """The service said 429. Refusals of one moment count once."""
        lane, now_s = self._lanes.setdefault(refused.deployment, _ServiceRate()), self._clock()
        self.refusals += 1
        lane.held_until_s = max(lane.held_until_s, now_s + (refused.retry_after_s or 1.0))
        if now_s - lane.cut_s < max(1.0, refused.retry_after_s):
            return
        lane.cut_s = lane.grown_s = now_s
        observed = self._observed(lane)
        lane.refused_at_per_s = min(lane.per_s or observed, observed)
        lane.per_s = max(LEAST_PER_S, lane.refused_at_per_s * CUT)

    def _later(self, lane: _ServiceRate, after_s: float) -> Lease:
        return Lease(0, min(after_s, LEASE_S), 0.0, self._known(lane))

    def _known(self, lane: _ServiceRate) -> Known:
        return Known(lane.per_s, max(lane.held_until_s - self._clock(), 0.0))

    def _learned(self, ask: Ask) -> _ServiceRate:
        """The lane; a new one begins with what the configuration and the worker know."""
        lane = self._lanes.get(ask.deployment)
        if lane is None:
            lane = self._lanes[ask.deployment] = _ServiceRate()
            now_s = self._clock()
            lane.per_s = ask.known.per_s or ask.per_minute / 60
            lane.tokens_per_s = ask.tokens_per_minute / 60
            lane.held_until_s, lane.window_s, lane.grown_s = now_s + ask.known.held_s, now_s, now_s
        return lane

    def _block(self, lane: _ServiceRate) -> int:
        """How many requests one lease has: few where they are scarce, so that all get some."""
        most = BLOCK_REQUESTS
        if lane.per_s:
            most = min(most, int(lane.per_s * LEASE_S / max(len(lane.holders), 1)))
        if self.budget_usd is not None:  # what a lease may spend unasked is in flight
            most = 1
        return max(most, 1)

    def _grow(self, lane: _ServiceRate, ask: Ask) -> None:
        """Faster again: by half every two seconds up to the rate at which the service refused, by a twentieth beyond."""
        now_s = self._clock()
        while lane.per_s and now_s - lane.grown_s >= 2.0:
            lane.grown_s += 2.0
            lane.per_s = min(lane.per_s * 1.5, lane.refused_at_per_s) if lane.per_s < lane.refused_at_per_s else lane.per_s * 1.05
            if ask.per_minute:
                lane.per_s = min(lane.per_s, ask.per_minute / 60)
            elif lane.per_s > NEVER_MIND_PER_S:
                lane.per_s = 0.0

    def _count(self, lane: _ServiceRate, requests: int) -> None:
        self._turn(lane)
        lane.in_window += requests

    def _observed(self, lane: _ServiceRate) -> float:
        """Requests per second lately."""
        self._turn(lane)
        return (lane.before + lane.in_window) / (WINDOW_S + self._clock() - lane.window_s) if lane.before else self._young(lane)

    def _young(self, lane: _ServiceRate) -> float:
        return lane.in_window / max(self._clock() - lane.window_s, 1.0)

    def _turn(self, lane: _ServiceRate) -> None:
        now_s = self._clock()
        if now_s - lane.window_s >= WINDOW_S:
            lane.before = lane.in_window if now_s - lane.window_s < 2 * WINDOW_S else 0
            lane.in_window, lane.window_s = 0, now_s
            old = [holder for holder, asked_s in lane.holders.items() if now_s - asked_s > 6 * WINDOW_S]
            for holder in old:
                del lane.holders[holder]
