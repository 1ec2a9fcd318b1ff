"""A session's calls again: what they would have cost under another way of pruning."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context.random_traces import ANTHROPIC, RULES, some_calls, some_rates
from dragoman.context import replay_cost
from dragoman.context.economics import Rates
from dragoman.context.prune import prune_outdated
from dragoman.context.replay import ALL_TOOLS, Policy, best_moments, replay
from dragoman.context.replay_run import NOTHING, ReplayRun, Timeline
from dragoman.context.settings import PruneRule, PruneSettings
from dragoman.context.trace import TracedCall, TracedPiece, TracedResult
from dragoman.values.usage import Prices

seeds = st.integers(0, 2**32).map(Random)
AT_ONCE = PruneRule(tools=("*",), age_ms=0, keep=0)
SECOND = 1_000
FALLS_BACK = Rates(0.1, 1.25, falls_back=True)


def result(name: str, tokens: float, at_ms: int = 0, **facts: object) -> TracedPiece:
    return TracedPiece(tokens, TracedResult(name, "run_shell", at_ms, **facts))  # type: ignore[arg-type]


def growing(*added: tuple[TracedPiece, ...], every_ms: int = 20 * SECOND, static: float = 100) -> list[TracedCall]:
    """Calls at even times, each with what the ones before it had."""
    calls: list[TracedCall] = []
    for number, pieces in enumerate(added):
        calls.append(TracedCall((number + 1) * every_ms, pieces, sum(map(len, added[:number])), static, at_prompt=number == 0))
    return calls


THREE = growing((TracedPiece(50), result("a", 1_000)), (TracedPiece(200),), (TracedPiece(10),))


# --- the cache, by hand


def test_a_warm_request_reads_what_the_last_one_held_and_writes_the_rest() -> None:
    cost = replay_cost(THREE, "none", ANTHROPIC)
    first, second, third = 1.25 * 1_150, 0.1 * 1_150 + 1.25 * 200, 0.1 * 1_350 + 1.25 * 10
    assert cost.costs == pytest.approx((first, first + second, first + second + third))
    assert cost.percent == 100
    assert cost.moments == ()


def test_a_cold_request_writes_everything() -> None:
    calls = growing((TracedPiece(50),), (TracedPiece(200),), every_ms=300_001)
    assert replay_cost(calls, "none", ANTHROPIC).cost == pytest.approx(1.25 * (150 + 350))
    just_warm = growing((TracedPiece(50),), (TracedPiece(200),), every_ms=300_000)
    assert replay_cost(just_warm, "none", ANTHROPIC).cost == pytest.approx(1.25 * 150 + 0.1 * 150 + 1.25 * 200)


def test_removing_something_writes_again_what_stands_behind_it() -> None:
    """Longest common prefix: the static part and the 50 before it are read, the 200 behind it written again."""
    run = ReplayRun(Timeline(THREE, AT_ONCE), ANTHROPIC)
    run.arrive(0)
    run.send()
    run.arrive(1)
    run.send()
    run.arrive(2)
    run.send(run.cut_all())
    assert run.sent[-1] == pytest.approx((150, 210))
    assert run.premiums == pytest.approx(1.15 * 200 - 0.1 * 1_000)


def test_a_service_that_falls_back_reads_the_static_part_alone() -> None:
    run = ReplayRun(Timeline(THREE, AT_ONCE), FALLS_BACK)
    for number in range(3):
        run.arrive(number)
        run.send(run.cut_all() if number == 2 else NOTHING)
    assert run.sent[-1] == pytest.approx((100, 260))
    assert run.premiums == pytest.approx(1.15 * 250 - 0.1 * 1_000)


def test_a_placeholder_stands_where_the_result_stood() -> None:
    calls = growing((result("a", 1_000, remains=8),), (TracedPiece(0),), every_ms=300_001)
    assert replay_cost(calls, "request", ANTHROPIC, rule=AT_ONCE).cost == pytest.approx(1.25 * (108 + 108))


def test_what_is_not_longer_than_its_placeholder_stays() -> None:
    calls = growing((result("a", 8, remains=8),), (TracedPiece(0),))
    assert replay_cost(calls, "request", ANTHROPIC, rule=AT_ONCE).moments == ()


def test_another_model_reads_nothing_of_what_the_last_one_cached() -> None:
    first, second = growing((TracedPiece(50),), (TracedPiece(200),))
    broken = TracedCall(second.timestamp_ms, second.added, second.shared, second.static, broken=True)
    assert replay_cost([first, broken], "none", ANTHROPIC).cost == pytest.approx(1.25 * 150 + 1.25 * 350)


# --- when something goes


def test_request_prunes_as_soon_as_the_rule_allows_it() -> None:
    """PRUNE-1 to PRUNE-3 at every request: a result older than 15 minutes that is not among the five newest."""
    minute = 60 * SECOND
    added = tuple((TracedPiece(10), result(str(number), 500, (number + 1) * minute)) for number in range(20))
    cost = replay_cost(growing(*added, every_ms=minute), "request", ANTHROPIC)
    assert cost.moments == (16, 17, 18, 19)
    assert cost.pruned == 4


def test_turn_waits_for_a_prompt() -> None:
    added = tuple((result(str(number), 500, 0),) for number in range(9))
    calls = [
        TracedCall(c.timestamp_ms, c.added, c.shared, c.static, at_prompt=number in (0, 6)) for number, c in enumerate(growing(*added))
    ]
    assert replay_cost(calls, "turn", ANTHROPIC, rule=ALL_TOOLS).moments == (6,)
    assert replay_cost(calls, "request", ANTHROPIC, rule=ALL_TOOLS).moments == (5, 6, 7, 8)


def test_cold_waits_until_nothing_need_be_written_again() -> None:
    calls = growing((result("a", 500), TracedPiece(1)), (TracedPiece(1),), (TracedPiece(1),))
    late = TracedCall(10 * 60 * SECOND, (TracedPiece(1),), 4, 100)
    rule = PruneRule(tools=("*",), age_ms=25 * SECOND, keep=0)
    assert replay_cost([*calls, late], "request", ANTHROPIC, rule=rule).moments == (1,)
    assert replay_cost([*calls, late], "cold", ANTHROPIC, rule=rule).moments == (3,)


def test_economic_waits_until_the_carry_has_reached_the_premium() -> None:
    """1,000 tokens behind which 2,000 survive: 22 warm calls, as in `test_economics`."""
    waiting = [(result("a", 1_000, 0), TracedPiece(2_000)), *((TracedPiece(0),) for _ in range(30))]
    calls = growing(*waiting, static=0)
    rule = PruneRule(tools=("*",), age_ms=25 * SECOND, keep=0)  # ripe before the second call, the first that reads it
    assert replay_cost(calls, "economic", ANTHROPIC, rule=rule).moments == (23,)


def test_what_is_carried_is_what_was_read_in_vain() -> None:
    """Not the call that wrote it, nor one that found the cache cold."""
    calls = growing((result("a", 1_000), TracedPiece(5_000)), (TracedPiece(1),), (result("b", 500),), (TracedPiece(1),), (TracedPiece(1),))
    late = [
        TracedCall(calls[-1].timestamp_ms + minutes * 60 * SECOND, (TracedPiece(1),), 6 + number, 100)
        for number, minutes in enumerate((6, 7, 8))
    ]
    run = ReplayRun(Timeline([*calls, *late], PruneRule(tools=("*",), age_ms=25 * SECOND, keep=0)), ANTHROPIC)
    carried: list[list[tuple[float, int]]] = []
    for number in range(8):
        run.arrive(number)
        carried.append([(pending.tokens, pending.warm_calls) for pending in run.cached_pending()])
        run.send()
    assert carried[:5] == [[], [(1_000, 0)], [(1_000, 1)], [(1_000, 2), (500, 0)], [(1_000, 3), (500, 1)]]
    assert carried[5] == [], "nothing is read from a cold cache"
    assert carried[6:] == [[(1_000, 4), (500, 2)], [(1_000, 5), (500, 3)]], "call 4 was the last warm one before it"


def test_auto_never_risks_more_than_its_budget() -> None:
    waiting = [(result("a", 1_000, 0), TracedPiece(2_000)), *((TracedPiece(0),) for _ in range(400))]
    rule = PruneRule(tools=("*",), age_ms=25 * SECOND, keep=0)
    cost = replay_cost(growing(*waiting, static=0), Policy("auto", rule, 0.02, share=1.0), ANTHROPIC)
    spent = cost.unpruned_costs[cost.moments[0]]
    assert cost.moments[0] > 23
    assert spent == pytest.approx(2_200 / 0.02, rel=0.01), "the first moment at which the premium fits"
    assert cost.worst_percent <= 102


def test_opencode_leaves_the_last_two_turns_and_forty_thousand_tokens_alone() -> None:
    """Of the results before the fourth prompt those of two turns are old; the newest 40,000 tokens of these stay."""
    calls: list[TracedCall] = []
    for number in range(4):
        pieces = (result(f"a{number}", 15_000), result(f"b{number}", 15_000), TracedPiece(10))
        calls.append(TracedCall(number * SECOND, pieces, 3 * number, 0, at_prompt=True))
    cost = replay_cost(calls, "opencode", ANTHROPIC)
    assert cost.moments == (3,)
    assert cost.pruned == 2
    assert replay_cost(calls[:3], "opencode", ANTHROPIC).moments == ()


def test_gemini_cli_leaves_fifty_thousand_tokens_and_a_preview() -> None:
    added = tuple((result(str(number), 10_000),) for number in range(10))
    cost = replay_cost(growing(*added, static=0), "gemini-cli", Rates(1, 1, 0))
    assert cost.moments == (8,), "50,000 that stay, 30,000 that are worth it, and what has just come"
    assert cost.pruned == 3
    assert cost.cost == sum(10_000 * (n + 1) for n in range(10)) - 2 * 3 * (10_000 - 180)


def test_a_policy_is_a_name_or_a_value_or_the_settings() -> None:
    by_name = replay_cost(THREE, "request", ANTHROPIC, rule=AT_ONCE)
    assert by_name == replay_cost(THREE, Policy("request", AT_ONCE), ANTHROPIC)
    assert by_name == replay_cost(THREE, PruneSettings(schedule="request", rule=AT_ONCE), ANTHROPIC)
    assert replay_cost(THREE, "off", ANTHROPIC) == replay_cost(THREE, "none", ANTHROPIC)
    with pytest.raises(ValueError, match="no policy is called 'sometimes'"):
        replay_cost(THREE, "sometimes", ANTHROPIC)


def test_nothing_costs_nothing() -> None:
    assert replay_cost([], "economic", ANTHROPIC).cost == 0
    assert replay_cost([], "optimum", ANTHROPIC).percent == 100


# --- money


def test_prices_give_dollars() -> None:
    prices = Prices(input=4, output=20, cache_read=0.4, cache_write=5, cache_write_1h=8)
    in_tokens, in_dollars = replay_cost(THREE, "request", ANTHROPIC, rule=AT_ONCE), replay_cost(THREE, "request", prices, rule=AT_ONCE)
    assert in_dollars.cost == pytest.approx(in_tokens.cost * 4 / 1_000_000)
    assert in_dollars.moments == in_tokens.moments
    hour = replay_cost(THREE, "none", prices, ttl_ms=3_600_000)
    assert hour.cost == pytest.approx(replay_cost(THREE, "none", Rates(0.1, 2.0, 3_600_000)).cost * 4 / 1_000_000)


def test_long_requests_are_charged_by_the_prices_above_the_threshold() -> None:
    prices = Prices(input=1, output=1, cache_read=0.1, above_tokens=1_200, above=Prices(input=3, output=1, cache_read=0.3))
    assert replay_cost(THREE, "none", prices).cost == pytest.approx((1_150 + 3 * (0.1 * 1_150 + 200) + 3 * (0.1 * 1_350 + 10)) / 1_000_000)


def test_without_prices_of_a_cache_every_token_is_a_fresh_one() -> None:
    cost = replay_cost(THREE, "none", Prices(input=1, output=1))
    assert cost.cost == pytest.approx((1_150 + 1_350 + 1_360) / 1_000_000)


# --- whatever the trace


@given(seeds, st.sampled_from(RULES))
def test_a_result_is_ripe_when_the_rule_says_so(random: Random, rule: PruneRule) -> None:
    """The same answer as `prune_outdated` over everything in view at that call."""
    together: list[TracedCall] = []
    count, known = 0, set[int]()
    for call in some_calls(random):
        fresh = tuple(piece for piece in call.added if id(piece) not in known)  # without any that were sent again
        together.append(TracedCall(call.timestamp_ms, fresh, count))
        known |= set(map(id, fresh))
        count += len(fresh)
    timeline = Timeline(together, rule)
    seen: list[TracedPiece] = []
    ripe: set[int] = set()
    for row in timeline.rows:
        seen += row.call.added
        ripe |= set(row.ripe)
        results = [(position, piece.result) for position, piece in enumerate(seen) if piece.result is not None]
        outdated = prune_outdated([result for _, result in results], row.call.timestamp_ms, rule)
        assert ripe == {results[index][0] for index in outdated}


@given(seeds, st.sampled_from(RULES))
def test_what_is_read_and_written_is_what_the_requests_have_in_common(random: Random, rule: PruneRule) -> None:
    """Against a slow reading that compares each request with the one before it, piece by piece, whatever goes when."""
    rates, calls = some_rates(random), some_calls(random)
    run = ReplayRun(Timeline(calls, rule), rates)
    gone: set[str] = set()
    before: list[tuple[int, bool]] = []
    pieces: list[TracedPiece] = []
    spent = 0.0
    for number, call in enumerate(calls):
        run.arrive(number)
        pieces[call.shared :] = call.added
        candidates = [position for position, piece in enumerate(pieces) if piece.result and piece.result.id not in gone]
        cut = run.cut_all() if random.random() < 0.5 else run.cut([p for p in candidates if random.random() < 0.1])
        run.send(cut)
        gone |= {piece.result.id for position in cut.positions if (piece := pieces[position]).result}
        request = [(id(piece), piece.result is not None and piece.result.id in gone) for piece in pieces]
        sizes = [min(p.tokens, p.result.remains) if p.result and p.result.id in gone else p.tokens for p in pieces]
        same = 0
        while same < min(call.shared, len(before)) and request[same] == before[same]:
            same += 1
        warm = number > 0 and not call.broken and call.timestamp_ms - calls[number - 1].timestamp_ms <= rates.ttl_ms
        if rates.falls_back and same < len(before):
            same = 0
        read = min(call.static, calls[number - 1].static) + sum(sizes[:same]) if warm else 0.0
        written = call.static + sum(sizes) - read
        assert run.sent[-1] == pytest.approx((read, written), abs=1e-6)
        spent += rates.read * read + rates.write * written
        before = request
    assert run.cost == pytest.approx(spent)
    assert run.cost == pytest.approx(run.unpruned + run.premiums - run.saved)


@given(seeds, st.sampled_from(RULES))
def test_nothing_betters_the_optimum_but_what_is_free(random: Random, rule: PruneRule) -> None:
    rates, calls = some_rates(random), some_calls(random, 25)
    timeline = Timeline(calls, rule)
    costs = {name: replay(timeline, Policy(name, rule), rates).cost for name in ("none", "request", "turn", "cold", "economic", "auto")}
    best = replay(timeline, Policy("optimum", rule), rates).cost
    assert best <= min(costs.values()) * (1 + 1e-9)
    assert replay(timeline, Policy("free", rule), rates).cost <= best * (1 + 1e-9)


@given(seeds, st.sampled_from(RULES))
def test_the_optimum_is_the_best_of_all_choices_of_moments(random: Random, rule: PruneRule) -> None:
    rates, calls = some_rates(random), some_calls(random, 7)
    timeline = Timeline(calls, rule)

    def cost(moments: frozenset[int]) -> float:
        run = ReplayRun(timeline, rates)
        for number in range(len(calls)):
            run.arrive(number)
            run.send(run.cut_all() if number in moments else NOTHING)
        return run.cost

    choices = [frozenset(chosen) for size in range(len(calls) + 1) for chosen in combinations(range(len(calls)), size)]
    assert cost(best_moments(timeline, rates)) == pytest.approx(min(map(cost, choices)))
