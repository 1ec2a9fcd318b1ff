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

SAME_USD = 1e-9
"""Sums of dollars that differ by less are equal: they were added up in another order."""
WAIT_FOR_ANSWERS_S = 0.2
"""How soon somebody asks again where what is in flight may use the budget up."""
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


class HolderSpending(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an attempt under way has spent, with an estimate of what its service has not told."""

    usd: float = 0.0
    in_flight_usd: float = 0.0
    """The part of it that is for requests which were sent and have not ended: it may still change."""
    step: int = 0
    """Grows with each change. What comes late says less than what is known."""


class Ask(msgspec.Struct, frozen=True, omit_defaults=True, tag="ask"):
    """A worker's question: may I send?"""

    holder: str
    """The attempt, with its epoch."""
    deployment: str
    """The service and the model: services limit models one by one."""
    tokens: int = 0
    """About how many the next request has."""
    spending: HolderSpending = HolderSpending()
    """Of this epoch so far."""
    next_usd: float = 0.0
    """About what the next request costs."""
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
    """A worker's news: a request was sent, or has ended. Its next question may come late, or never."""

    holder: str
    spending: HolderSpending


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
        self._spending: dict[str, HolderSpending] = {}
        self._clock = clock
        self._lanes: dict[str, _ServiceRate] = {}
        self.refusals = 0

    @property
    def spent_usd(self) -> float:
        """By attempts that have ended, and by those under way, with what is in flight."""
        return self._ended_usd + sum(each.usd for each in self._spending.values())

    def spending(self, holder: str) -> float:
        """What an attempt under way has spent, with what is in flight."""
        return self._spending.get(holder, HolderSpending()).usd

    @property
    def is_spent(self) -> bool:
        """Whether the budget is used up, whatever comes of what is in flight."""
        return is_used_up(self.budget_usd, self.spent_usd - sum(each.in_flight_usd for each in self._spending.values()))

    def end(self, holder: str, usd: float) -> None:
        """An attempt has ended, and has spent this."""
        self._spending.pop(holder, None)
        self._ended_usd += usd
        for lane in self._lanes.values():
            lane.holders.pop(holder, None)

    def spent(self, news: SpendingNews) -> None:
        """Somebody who is under way has sent a request, or got an answer."""
        if news.holder in self._spending:
            self._learn(news.holder, news.spending)

    def restate(self, ended_usd: float, live: Mapping[str, HolderSpending]) -> None:
        """Take over what another limiter knows, as a part of it: what has ended, and who is under way and had spent how much."""
        self._ended_usd = ended_usd
        known = self._spending
        self._spending = {
            holder: known[holder] if holder in known and known[holder].step >= told.step else told for holder, told in live.items()
        }

    def _learn(self, holder: str, spending: HolderSpending) -> None:
        if spending.step >= self._spending.get(holder, HolderSpending()).step:
            self._spending[holder] = spending

    @property
    def ended_usd(self) -> float:
        return self._ended_usd

    def lease(self, ask: Ask) -> Lease:
        self._learn(ask.holder, ask.spending)
        if self.is_spent:
            return Lease(is_spent=True)
        lane, now_s = self._learned(ask), self._clock()
        lane.holders[ask.holder] = now_s
        if is_used_up(self.budget_usd, self.spent_usd):
            return self._later(lane, WAIT_FOR_ANSWERS_S)
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
        self._count_next(ask)
        return Lease(requests, start_s - now_s, LEASE_S, self._known(lane))

    def _count_next(self, ask: Ask) -> None:
        """What is leased counts before its worker says that it has sent it: others ask meanwhile."""
        now = self._spending[ask.holder]
        self._spending[ask.holder] = HolderSpending(now.usd + ask.next_usd, now.in_flight_usd + ask.next_usd, now.step)

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


def is_used_up(budget_usd: float | None, spent_usd: float) -> bool:
    """Whether a budget has nothing left."""
    return budget_usd is not None and spent_usd >= budget_usd - SAME_USD
