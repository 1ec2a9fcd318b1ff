"""When taking something out of a cached prefix pays."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.context.economics import Books, Pending, Rates, pays, pays_after, premium, rates_of
from dragoman.values.usage import Prices

ANTHROPIC = Rates(0.1, 1.25)
tokens = st.floats(0, 1e6)
rates = st.builds(lambda read, more, back: Rates(read, read + more, falls_back=back), st.floats(0, 1), st.floats(0, 2), st.booleans())
pendings = st.lists(st.builds(Pending, tokens, st.integers(0, 500)), max_size=8)


def test_the_premium_is_what_writing_the_rest_again_costs_more() -> None:
    """B = (w - r)·s - r·k: 10,000 survive at 1.25 instead of 0.1, and 2,000 are not read any more."""
    assert premium(ANTHROPIC, 2_000, 10_000) == pytest.approx(1.15 * 10_000 - 0.1 * 2_000)


def test_it_pays_after_n_warm_calls() -> None:
    """n* = (w/r - 1)·(s/k) - 1"""
    assert pays_after(ANTHROPIC, 2_000, 10_000) == pytest.approx((1.25 / 0.1 - 1) * 5 - 1)
    assert pays_after(ANTHROPIC, 0, 10_000) == math.inf
    assert pays_after(Rates(0, 1), 2_000, 10_000) == math.inf, "what is read for nothing is never worth removing"
    assert pays_after(ANTHROPIC, 2_000, 0) <= 0, "nothing survives behind it: it pays with the next request"


@given(rates, tokens, tokens)
def test_after_so_many_calls_the_premium_is_earned_and_not_before(rates: Rates, removed: float, surviving: float) -> None:
    calls = pays_after(rates, removed, surviving)
    if not math.isfinite(calls) or calls <= 0:
        return
    cost, gain = premium(rates, removed, surviving), rates.read * removed
    assert gain * calls == pytest.approx(cost)


def test_a_result_goes_when_its_carry_has_reached_the_premium() -> None:
    """Ski rental: 1,000 tokens cost 100 a call; the premium is 1.15 · 2,000 - 100 = 2,200, so 22 calls."""
    assert not pays(ANTHROPIC, [Pending(1_000, 21)], 2_000)
    assert pays(ANTHROPIC, [Pending(1_000, 22)], 2_000)


def test_all_that_is_pending_is_weighed_together() -> None:
    pending = [Pending(1_000, 11), Pending(500, 22)]
    assert pays(ANTHROPIC, [*pending, Pending(200, 0)], 2_000), "2,200 were carried; a fresh one only makes the premium smaller"
    assert not pays(ANTHROPIC, pending, 2_200)


def test_with_nothing_pending_nothing_goes() -> None:
    assert not pays(ANTHROPIC, [], 0)


def test_what_nothing_survives_goes_at_once() -> None:
    assert pays(ANTHROPIC, [Pending(10, 0)], 0)
    assert pays(ANTHROPIC, [Pending(10, 0)], 0, overhead=0.02)


def test_the_budget_counts_what_was_paid_and_what_was_saved() -> None:
    """auto: premiums + B - saved may be at most the overhead's share of what never pruning would have cost."""
    pending = [Pending(1_000, 22)]  # B = 2,200
    assert pays(ANTHROPIC, pending, 2_000, overhead=0.02, books=Books(spent=110_000))
    assert not pays(ANTHROPIC, pending, 2_000, overhead=0.02, books=Books(spent=109_000))
    assert not pays(ANTHROPIC, pending, 2_000, overhead=0.02, books=Books(spent=110_000, premiums=10))
    assert pays(ANTHROPIC, pending, 2_000, overhead=0.02, books=Books(spent=110_000, premiums=2_200, saved=2_200))
    assert not pays(ANTHROPIC, pending, 2_000, overhead=0.02), "nothing is known of what was spent: nothing may be risked"


def test_a_budget_never_makes_it_go_sooner() -> None:
    assert not pays(ANTHROPIC, [Pending(1_000, 21)], 2_000, overhead=0.02, books=Books(spent=1e9))


@given(rates, pendings, tokens, st.floats(0, 1), st.builds(Books, tokens, tokens, tokens))
def test_the_budget_only_holds_back(rates: Rates, pending: list[Pending], surviving: float, overhead: float, books: Books) -> None:
    if pays(rates, pending, surviving, overhead=overhead, books=books):
        assert pays(rates, pending, surviving)


@given(rates, pendings, tokens, tokens)
def test_the_more_survives_the_later_it_goes(rates: Rates, pending: list[Pending], surviving: float, more: float) -> None:
    if pays(rates, pending, surviving + more):
        assert pays(rates, pending, surviving)


def test_rates_are_prices_relative_to_fresh_input() -> None:
    prices = Prices(input=4, output=20, cache_read=0.4, cache_write=5, cache_write_1h=8)
    assert rates_of(prices) == Rates(0.1, 1.25)
    assert rates_of(prices, ttl_ms=3_600_000, falls_back=True) == Rates(0.1, 2.0, 3_600_000, falls_back=True)


def test_where_writing_has_no_price_it_costs_what_fresh_input_does() -> None:
    assert rates_of(Prices(input=2, output=8, cache_read=0.5)) == Rates(0.25, 1.0)
    assert rates_of(Prices(input=2, output=8, cache_read=0.5, cache_write=2.5), ttl_ms=3_600_000) == Rates(0.25, 1.25, 3_600_000)


def test_without_prices_of_a_cache_there_are_no_rates() -> None:
    assert rates_of(Prices(input=2, output=8)) is None
    assert rates_of(Prices(input=0, output=0, cache_read=0)) is None, "what costs nothing has no relative price"
