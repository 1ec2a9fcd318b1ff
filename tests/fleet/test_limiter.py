"""The limiter of a fleet, on a clock of its own: it slows everybody down once, lets nobody starve, and is made anew from what it said."""

from __future__ import annotations

import pytest

from dragoman.fleet.limiter import BLOCK_REQUESTS, LEASE_S, Ask, HolderSpending, Known, LocalLimiter, RefusalNews, SpendingNews

MODEL = "anthropic/x"


class Time:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def ask(holder: str = "a", **fields: object) -> Ask:
    return Ask(holder, MODEL, **fields)  # type: ignore[arg-type]


def drive(limiter: LocalLimiter, clock: Time, seconds: float, takes_per_s: float, holders: int = 10) -> tuple[int, int]:
    """A service that takes so many requests a second, asked as fast as the limiter lets us: how many were answered, and refused."""
    taken = refused = 0
    room, until_s = takes_per_s, clock.now_s + seconds
    ready = dict.fromkeys(map(str, range(holders)), clock.now_s)
    while clock.now_s < until_s:
        room = min(room + takes_per_s * 0.05, takes_per_s)
        for holder, ready_s in ready.items():
            if ready_s > clock.now_s:
                continue
            lease = limiter.lease(ask(holder))
            for _ in range(lease.requests):
                if room >= 1:
                    room, taken = room - 1, taken + 1
                else:
                    refused += 1
                    limiter.refuse(RefusalNews(holder, MODEL, 1.0))
            ready[holder] = clock.now_s + max(lease.after_s, 0.05)
        clock.now_s += 0.05
    return taken, refused


def test_without_a_refusal_nobody_waits() -> None:
    limiter = LocalLimiter(clock=Time())
    for number in range(1_000):
        lease = limiter.lease(ask(str(number % 7)))
        assert (lease.requests, lease.after_s) == (BLOCK_REQUESTS, 0.0)


def test_it_settles_near_what_the_service_takes() -> None:
    clock = Time()
    limiter = LocalLimiter(clock=clock)
    drive(limiter, clock, 60, takes_per_s=10)
    taken, refused = drive(limiter, clock, 600, takes_per_s=10)
    assert taken > 600 * 10 * 0.6
    assert refused < taken * 0.1


def test_refusals_of_one_moment_count_once() -> None:
    clock = Time()
    limiter = LocalLimiter(clock=clock)
    for holder in range(20):
        limiter.lease(ask(str(holder)))
    clock.now_s += 10
    for holder in range(20):
        limiter.refuse(RefusalNews(str(holder), MODEL, 2.0))
    once = LocalLimiter(clock=clock)
    for holder in range(20):
        once.lease(ask(str(holder)))
    held = limiter.lease(ask("0"))
    assert held.requests == 0
    assert held.after_s == 2.0
    clock.now_s += 2.0
    assert limiter.lease(ask("0")).known.per_s > 1.0


def test_what_the_configuration_says_is_kept_to() -> None:
    clock = Time()
    limiter = LocalLimiter(clock=clock)
    granted, until_s = 0, clock.now_s + 120
    while clock.now_s < until_s:
        lease = limiter.lease(ask(per_minute=60))
        granted += lease.requests
        clock.now_s += max(lease.after_s, 0.01)
    assert 110 <= granted <= 125


def test_tokens_are_counted_too() -> None:
    clock = Time()
    limiter = LocalLimiter(clock=clock)
    granted, until_s = 0, clock.now_s + 60
    while clock.now_s < until_s:
        lease = limiter.lease(ask(tokens=1_000, tokens_per_minute=10_000))
        granted += min(lease.requests, 1)
        clock.now_s += max(lease.after_s, 0.01)
    assert 9 <= granted <= 12


def test_a_lost_limiter_learns_back_what_it_knew() -> None:
    clock = Time()
    limiter = LocalLimiter(clock=clock)
    limiter.lease(ask())
    clock.now_s += 10
    limiter.refuse(RefusalNews("a", MODEL, 3.0))
    known = limiter.lease(ask()).known
    assert known.held_s == 3.0
    anew = LocalLimiter(clock=clock)
    lease = anew.lease(ask(known=known, spending=HolderSpending(0.5)))
    assert lease.requests == 0
    assert lease.after_s == 3.0
    assert anew.spent_usd == 0.5


def test_no_wait_is_longer_than_a_lease_is_good_for() -> None:
    """So that a worker hears of a change soon."""
    limiter = LocalLimiter(clock=Time())
    limiter.refuse(RefusalNews("a", MODEL, 3_600.0))
    assert limiter.lease(ask()).after_s == LEASE_S


def test_a_budget_is_leased_request_by_request_and_ends() -> None:
    limiter = LocalLimiter(budget_usd=1.0, spent_usd=0.4, clock=Time())
    assert limiter.lease(ask("a", spending=HolderSpending(0.1))).requests == 1
    assert limiter.lease(ask("b", spending=HolderSpending(0.4))).requests == 1
    assert not limiter.is_spent
    assert limiter.lease(ask("a", spending=HolderSpending(0.2))).is_spent
    limiter.end("a", 0.2)
    assert limiter.is_spent
    assert abs(limiter.spent_usd - 1.0) < 1e-9


def test_what_was_answered_counts_before_its_worker_asks_again() -> None:
    """Its check may take an hour, and there may be nothing more to ask."""
    limiter = LocalLimiter(budget_usd=1.0, clock=Time())
    limiter.lease(ask("a", spending=HolderSpending(0.1)))
    limiter.spent(SpendingNews("a", HolderSpending(1.0)))
    assert limiter.lease(ask("b")).is_spent
    limiter.end("a", 1.0)
    limiter.spent(SpendingNews("a", HolderSpending(1.0)))  # it came late
    assert limiter.spent_usd == 1.0


def test_where_what_is_in_flight_may_use_the_budget_up_others_wait_until_it_is_known() -> None:
    """Ten workers with a dollar each in flight went over a budget of a dollar by nine."""
    limiter = LocalLimiter(budget_usd=1.0, clock=Time())
    assert limiter.lease(ask("a", next_usd=1.0)).requests == 1
    waits = limiter.lease(ask("b", next_usd=1.0))
    assert (waits.requests, waits.is_spent) == (0, False)
    assert waits.after_s > 0
    limiter.spent(SpendingNews("a", HolderSpending(1.0, 1.0, step=1)))
    assert limiter.lease(ask("b", next_usd=1.0)).requests == 0
    limiter.spent(SpendingNews("a", HolderSpending(0.25, 0.0, step=2)))  # as the service told
    assert limiter.spent_usd == 0.25
    assert limiter.lease(ask("b", next_usd=1.0)).requests == 1
    limiter.end("b", 1.0)  # lost, and nobody knows better
    assert limiter.lease(ask("c")).is_spent


def test_what_comes_late_says_less_than_what_is_known() -> None:
    """The supervisor of a cluster tells its limiter what it read half a second ago."""
    limiter = LocalLimiter(clock=Time())
    limiter.lease(ask("a", spending=HolderSpending(0.5, 0.5, step=3)))
    limiter.restate(0.1, {"a": HolderSpending(0.2, 0.2, step=1), "b": HolderSpending(0.3, step=4)})
    assert limiter.spent_usd == pytest.approx(0.9)
    limiter.restate(0.1, {"a": HolderSpending(0.4, step=5)})
    assert limiter.spent_usd == pytest.approx(0.5)


def test_what_the_worker_knows_of_an_old_service_does_not_slow_another() -> None:
    limiter = LocalLimiter(clock=Time())
    limiter.refuse(RefusalNews("a", MODEL, 60.0))
    assert limiter.lease(Ask("a", "gemini/y", known=Known())).requests > 0
