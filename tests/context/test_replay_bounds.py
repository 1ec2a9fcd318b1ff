"""What pruning may cost at most, wherever a session ends. `DRAGOMAN_LONG=1` tries 10,000 random sessions."""

from __future__ import annotations

import math
import os
from pathlib import Path
from random import Random

import pytest

from context.random_traces import RATES, RULES, some_calls, some_lively_calls, some_rates
from dragoman.context.economics import Rates, pays_after, premium
from dragoman.context.replay import ALL_TOOLS, Policy, PolicyName, ReplayCost, replay
from dragoman.context.replay_run import NOTHING, ReplayRun, Timeline
from dragoman.context.settings import PruneRule
from dragoman.context.trace import TracedCall, trace_calls
from dragoman.foreign.sessions import import_session

LONG = bool(os.environ.get("DRAGOMAN_LONG"))
SESSIONS = 10_000 if LONG else 400
PRICES = list(RATES.values()) if LONG else list(RATES.values())[:3]
TRACES = ("pi-mono/large-session.jsonl", *(f"claude-code/{number}" for number in range(3)))
BOUNDS: dict[PolicyName, float] = {"none": 1.0, "cold": 1.0, "economic": 2.0, "auto": 1.25}
"""As a multiple of never pruning."""
_ROUNDING = 1 + 1e-9


def broken_bound(cost: ReplayCost) -> str:
    """The first moment at which a session that ends there has cost more than it may; empty: there is none."""
    bound = BOUNDS[cost.policy.name] * _ROUNDING
    for number, (mine, unpruned) in enumerate(zip(cost.costs, cost.unpruned_costs, strict=True)):
        if mine > bound * unpruned:
            return f"{cost.policy.name}: {mine:.1f} after call {number}, where never pruning had cost {unpruned:.1f}"
    return ""


@pytest.mark.parametrize("share", range(4))
def test_no_random_session_costs_more_than_stated_wherever_it_ends(share: int) -> None:
    """cold never more than not pruning, economic never more than twice, auto never more than a quarter above."""
    for seed in range(share, SESSIONS, 4):
        random = Random(seed)
        calls, rule, rates = some_calls(random), random.choice(RULES), some_rates(random)
        timeline = Timeline(calls, rule)
        for name in BOUNDS:
            assert not (fault := broken_bound(replay(timeline, Policy(name, rule), rates))), f"session {seed}, {rates}, {rule}: {fault}"


def test_the_bounds_are_put_to_the_test() -> None:
    """The random sessions do make pruning dear: what is bounded by nothing goes far beyond, and what is bounded prunes often."""
    worst = dict.fromkeys(("request", "economic", "auto"), 0.0)
    moments = dict.fromkeys(worst, 0)
    for seed in range(200):
        random = Random(seed)
        calls, rule, rates = some_calls(random), random.choice(RULES), some_rates(random)
        for name in worst:
            cost = replay(Timeline(calls, rule), Policy(name, rule), rates)  # type: ignore[arg-type]
            worst[name] = max(worst[name], cost.worst_percent)
            moments[name] += len(cost.moments)
    assert worst["request"] > 200
    assert 105 < worst["economic"] <= 200
    assert 105 < worst["auto"] <= 125 * _ROUNDING
    assert min(moments.values()) > 200


@pytest.mark.parametrize("share", range(4))
def test_without_the_share_auto_never_costs_more_than_its_two_percent(share: int) -> None:
    for seed in range(share, SESSIONS, 4):
        random = Random(seed)
        calls, rule, rates = some_calls(random), random.choice(RULES), some_rates(random)
        assert replay(Timeline(calls, rule), Policy("auto", rule, share=1.0), rates).worst_percent <= 102 * _ROUNDING, seed


def test_what_was_paid_for_a_share_is_earned_back_by_going_on() -> None:
    """A session that goes on with a warm cache, for as many requests as it had made before its last batch, or for the 33 that a batch of a
    quarter takes at most at these prices, has cost no more than 2 % above never pruning. Nothing new is outdated meanwhile."""
    batches = 0
    for seed in range(SESSIONS // 4):
        random = Random(seed)
        rates, policy = Rates(0.1, 1.25, falls_back=random.random() < 0.5), Policy("auto")
        longest = math.ceil((rates.write / rates.read - 1) * (1 - policy.share) / policy.share - 1)
        calls = some_lively_calls(random)
        cost = replay(Timeline(calls, policy.rule), policy, rates)
        batches += cost.breaks
        for moment in cost.moments:
            ended = [*calls[: moment + 1], *more_calls(calls[: moment + 1], min(moment, longest))]
            assert replay(Timeline(ended, policy.rule), policy, rates).percent <= 102 * _ROUNDING, (seed, moment)
    assert batches > SESSIONS / 8


def more_calls(calls: list[TracedCall], count: int) -> list[TracedCall]:
    """So many more, right after the others, that add nothing."""
    last, pieces = calls[-1], sum(len(call.added) for call in calls)
    return [TracedCall(last.timestamp_ms + number, (), pieces, last.static) for number in range(count)]


@pytest.mark.parametrize("name", list(RATES))
def test_what_is_outdated_is_more_than_a_quarter_only_while_the_price_says_wait(name: str) -> None:
    """Then letting it go would not be earned back in time, or would cost more than a quarter above never pruning."""
    policy, rates, batches = Policy("auto"), RATES[name], 0
    for seed in range(SESSIONS // 16):
        timeline = Timeline(some_lively_calls(Random(seed)), policy.rule)
        done = replay(timeline, policy, rates)
        run = ReplayRun(timeline, rates)
        for number, share in enumerate(done.shares):
            run.arrive(number)
            cut, books = run.cut_all(), run.books()
            batches += number in done.moments
            run.send(cut if number in done.moments else NOTHING)
            if share > policy.share:
                late = pays_after(rates, cut.removed_cached, cut.surviving) > number
                cost = premium(rates, cut.removed_cached, cut.surviving)
                assert late or books.premiums + cost - books.saved > policy.overdraft * books.spent, (seed, number)
    assert batches > 10 or not rates.read, "what is read for nothing is never worth removing"


@pytest.fixture(scope="module", params=TRACES)
def trace(request: pytest.FixtureRequest) -> tuple[str, Path]:
    """A real session."""
    corpora: Path = request.getfixturevalue("corpora")
    folder, _, name = str(request.param).partition("/")
    files = sorted((corpora / "traces" / folder).glob("*.jsonl"))
    return folder, files[int(name)] if name.isdigit() else files[0]


@pytest.mark.parametrize("falls_back", [False, True])
def test_no_real_session_costs_more_than_stated_wherever_it_ends(trace: tuple[str, Path], falls_back: bool) -> None:
    entries = import_session(trace[1]).entries
    for calls in (trace_calls(entries), trace_calls(entries, by_clock=True)):
        for rule in (PruneRule(), ALL_TOOLS):
            timeline = Timeline(calls, rule)
            for known in PRICES:
                rates = Rates(known.read, known.write, known.ttl_ms, falls_back)
                for name in BOUNDS:
                    assert not broken_bound(cost := replay(timeline, Policy(name, rule), rates))
                    if name == "auto" and rule == PruneRule():
                        assert cost.percent <= 102 * _ROUNDING, "the price decides at the end"


@pytest.mark.parametrize("falls_back", [False, True])
def test_on_the_long_session_economic_is_near_the_optimum(corpora: Path, falls_back: bool) -> None:
    """Every tool's results but the last five, Anthropic 5m: within 5 points of what could be done at best."""
    entries = import_session(corpora / "traces" / TRACES[0]).entries
    rates = Rates(0.1, 1.25, falls_back=falls_back)
    for calls in (trace_calls(entries), trace_calls(entries, by_clock=True)):
        timeline = Timeline(calls, ALL_TOOLS)
        economic, optimum = (replay(timeline, Policy(name, ALL_TOOLS), rates).percent for name in ("economic", "optimum"))
        assert optimum <= economic <= optimum + 5
        assert economic < 65


def test_the_model_of_the_cache_gives_the_bill_that_was_paid(trace: tuple[str, Path]) -> None:
    """Never pruning, at Anthropic's prices: as much as the reported reads and writes come to."""
    calls = trace_calls(import_session(trace[1]).entries)
    paid = sum(_paid(call) for call in calls)
    model = replay(Timeline(calls, PruneRule()), Policy("none"), Rates(0.1, 1.25)).cost
    assert model == pytest.approx(paid, rel=0.01 if trace[0] == "pi-mono" else 0.06)


def _paid(call: TracedCall) -> float:
    usage = call.usage
    assert usage is not None
    return usage.fresh_tokens + 0.1 * usage.cache_read_tokens + 1.25 * usage.cache_write_tokens
