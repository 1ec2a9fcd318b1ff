"""What a session would have cost under another pruning policy, or at other prices: its calls replayed without a model.

The cache is simulated: a request within the time to live reads what it has in common with the one before it and writes the rest. After a
change in the middle that is either the longest common prefix or, if the service falls back, the static part alone. Only the input of
answers is counted: how the model would have answered a shorter context is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Literal, assert_never, get_args

import msgspec

from dragoman.context.economics import Rates, pays, rates_of, relieves
from dragoman.context.replay_run import NOTHING, ReplayCut, ReplayRun, Timeline
from dragoman.context.settings import PruneRule, PruneSettings
from dragoman.context.trace import TracedCall
from dragoman.values.usage import Prices

PolicyName = Literal["none", "request", "turn", "cold", "economic", "auto", "opencode", "gemini-cli", "optimum", "free"]
"""none: never. request, turn: whatever may go, before every request or when a prompt starts a run. cold: when nothing need be rewritten
for it. economic: when the carrying cost has reached the premium. auto: the same, within a budget, and sooner when what is outdated makes
up too much of the request. opencode, gemini-cli: as those programs do. optimum: at the best moments, known in hindsight. free: at once
and without a premium, a lower bound.
"""
ALL_TOOLS = PruneRule(tools=("*",), age_ms=0, keep=5)
"""The results of every tool, except the five newest."""


class Policy(msgspec.Struct, frozen=True):
    """When results are pruned, and which may be."""

    name: PolicyName
    rule: PruneRule = PruneRule()
    overhead: float = 0.02
    share: float = 0.25
    overdraft: float = 0.25
    """`auto`: as in `PruneSettings`."""


class ReplayCost(msgspec.Struct, frozen=True):
    """In tokens of fresh input if rates were given, in US dollars if prices were."""

    policy: Policy
    cost: float
    unpruned: float
    """What never pruning would have cost."""
    moments: tuple[int, ...]
    """The calls before which something was pruned, counted from 0 ..."""
    pruned: int
    """... and how many results in all."""
    costs: tuple[float, ...] = ()
    """The cost up to and including each call."""
    unpruned_costs: tuple[float, ...] = ()
    tokens: float = 0.0
    """Input tokens of all calls together ..."""
    unpruned_tokens: float = 0.0
    """... and what they would have been without pruning."""
    breaks: int = 0
    """Before how many calls a cached prefix was given up for it."""
    shares: tuple[float, ...] = ()
    """Of each request as it was sent: how much of it is outdated and still there."""

    @property
    def percent(self) -> float:
        """The cost in percent of the cost without pruning."""
        return 100 * self.cost / self.unpruned if self.unpruned else 100.0

    @property
    def worst_percent(self) -> float:
        """The same at the worst moment to stop."""
        return max((100 * mine / none for mine, none in zip(self.costs, self.unpruned_costs, strict=True) if none), default=100.0)


def replay_cost(
    calls: Iterable[TracedCall],
    policy: Policy | PruneSettings | str,
    prices: Prices | Rates,
    *,
    rule: PruneRule | None = None,
    ttl_ms: int = 300_000,
    falls_back: bool = False,
) -> ReplayCost:
    """What the calls would have cost. A policy given by name uses `rule`. Rates bring their own time to live and fallback.

    Prices without cache prices mean that there is no cache: every token is a fresh one.
    """
    rates = prices if isinstance(prices, Rates) else rates_of(prices, ttl_ms=ttl_ms, falls_back=falls_back) or Rates(1, 1, 0)
    policy = _policy(policy, rule)
    return replay(Timeline(calls, policy.rule), policy, rates, prices if isinstance(prices, Prices) else None)


def replay(timeline: Timeline, policy: Policy, rates: Rates, prices: Prices | None = None) -> ReplayCost:
    """The same for a timeline made for the policy's rule: several policies and prices can share one."""
    run = ReplayRun(timeline, rates, remains=GEMINI_CLI.remains if policy.name == "gemini-cli" else 0)
    choose = _chooser(policy, timeline, rates)
    costs: list[float] = []
    unpruned: list[float] = []
    shares: list[float] = []
    breaks = 0
    for number in range(len(timeline.rows)):
        run.arrive(number)
        cut = choose(run)
        breaks += cut.surviving > 0
        run.send(cut)
        costs.append(run.cost)
        unpruned.append(run.unpruned)
        shares.append(run.pending_share)
    if prices is not None:
        costs, unpruned = _in_dollars(run.sent, prices, rates), _in_dollars(run.sent_unpruned, prices, rates)
    ends = (costs[-1], unpruned[-1]) if costs else (0.0, 0.0)
    tokens, all_tokens = sum(map(sum, run.sent)), sum(map(sum, run.sent_unpruned))
    return ReplayCost(
        policy, *ends, tuple(run.moments), run.pruned, tuple(costs), tuple(unpruned), tokens, all_tokens, breaks, tuple(shares)
    )


def _policy(policy: Policy | PruneSettings | str, rule: PruneRule | None) -> Policy:
    if isinstance(policy, Policy):
        return policy if rule is None else msgspec.structs.replace(policy, rule=rule)
    if isinstance(policy, PruneSettings):
        return policy_of(policy, rule=rule)
    return Policy(_name(policy), rule or PruneRule())


def policy_of(settings: PruneSettings, name: str = "", rule: PruneRule | None = None) -> Policy:
    """The policy that these settings make, or another with the same numbers."""
    return Policy(_name(name or settings.schedule), rule or settings.rule, settings.overhead, settings.share, settings.overdraft)


def _name(name: str) -> PolicyName:
    for known in get_args(PolicyName):
        if name == known or (name == "off" and known == "none"):
            return known
    raise ValueError(f"no policy is called {name!r}; there are {', '.join(get_args(PolicyName))}")


def _in_dollars(sent: Iterable[tuple[float, float]], prices: Prices, rates: Rates) -> list[float]:
    """Cumulative, call by call. A request beyond the threshold is charged at the prices above it."""
    costs: list[float] = []
    total = 0.0
    for read, others in sent:
        above = prices.above if prices.above is not None and read + others > prices.above_tokens else prices
        relative = rates_of(above, ttl_ms=rates.ttl_ms) or Rates(1, 1, 0)
        total += above.input * (relative.read * read + relative.write * others) / 1_000_000
        costs.append(total)
    return costs


# --- when results are pruned

_Chooser = Callable[[ReplayRun], ReplayCut]


def _chooser(policy: Policy, timeline: Timeline, rates: Rates) -> _Chooser:
    match policy.name:
        case "none":
            return lambda run: NOTHING
        case "request":
            return ReplayRun.cut_all
        case "turn":
            return lambda run: run.cut_all() if run.row.call.at_prompt else NOTHING
        case "cold":
            return lambda run: cut if (cut := run.cut_all()).surviving <= 0 else NOTHING
        case "economic":
            return _economic_cut
        case "auto":
            return lambda run: _auto_cut(run, policy)
        case "opencode":
            return _BackwardScan(OPENCODE)
        case "gemini-cli":
            return _BackwardScan(GEMINI_CLI)
        case "optimum":
            moments = best_moments(timeline, rates)
            return lambda run: run.cut_all() if run.number in moments else NOTHING
        case "free":
            return lambda run: run.cut_all()._replace(surviving=0.0)
        case _:
            assert_never(policy.name)


def _economic_cut(run: ReplayRun) -> ReplayCut:
    cut = run.cut_all()
    if cut.surviving <= 0:
        return cut  # nothing is rewritten for it
    return cut if pays(run.rates, run.cached_pending(), cut.surviving) else NOTHING


def _auto_cut(run: ReplayRun, policy: Policy) -> ReplayCut:
    cut, rates = run.cut_all(), run.rates
    if cut.surviving <= 0:
        return cut
    books = run.books()
    if pays(rates, run.cached_pending(), cut.surviving, overhead=policy.overhead, books=books):
        return cut
    if run.pending_share <= policy.share:
        return NOTHING
    goes = relieves(rates, cut.removed_cached, cut.surviving, calls=run.number, overdraft=policy.overdraft, books=books)
    return cut if goes else NOTHING


class FieldRule(msgspec.Struct, frozen=True):
    """What opencode and gemini-cli have in common: the newest results up to so many tokens stay, older ones go if they add up to enough."""

    protected: float
    least: float
    at_prompts: bool = False
    """Checked when a run has ended, so it takes effect with the next prompt; the two turns before that prompt are left alone."""
    errors: bool = True
    """Whether errors are pruned too."""
    remains: float = 0
    """Tokens that are left of a result."""


OPENCODE = FieldRule(protected=40_000, least=20_000, at_prompts=True, errors=False)
GEMINI_CLI = FieldRule(protected=50_000, least=30_000, remains=180)
"""The last message is left alone; each result keeps its first and last 250 characters and the name of a file with the rest."""


class _BackwardScan:
    """Scans the results backwards, as a field rule does."""

    def __init__(self, rule: FieldRule) -> None:
        self._rule = rule
        self._turns: list[int] = []
        """How many pieces came before each prompt."""

    def __call__(self, run: ReplayRun) -> ReplayCut:
        row = run.row
        if not self._rule.at_prompts:
            return self._older(run, row.shared)  # the results of the last answer's calls are examined only afterwards
        if not row.call.at_prompt:
            return NOTHING
        self._turns.append(row.length - 1)
        return self._older(run, min(self._turns[-3], row.length)) if len(self._turns) >= 3 else NOTHING

    def _older(self, run: ReplayRun, end: int) -> ReplayCut:
        rule = self._rule
        seen = prunable = 0.0
        found: list[int] = []
        for position in range(end - 1, -1, -1):
            piece, size = run.pieces[position], run.sizes[position]
            if piece.result is None or (piece.result.is_error and not rule.errors):
                continue
            if size < piece.tokens:
                if rule.at_prompts:
                    break  # opencode stops at the first result that is already pruned
                continue
            seen += size
            if seen > rule.protected:
                prunable += size
                found.append(position)
        if prunable < rule.least:
            return NOTHING
        return run.cut([position for position in found if run.net_tokens(position) > 0])


def best_moments(timeline: Timeline, rates: Rates) -> frozenset[int]:
    """The calls before which everything pending should have been pruned, known in hindsight.

    After such a moment the context is the same whatever came before, so the best way to each follows from the best ways to earlier ones
    (dynamic programming). A way that would cost more than `economic` even if pruning were free from there on is abandoned.
    """
    count = len(timeline.rows)
    known, free = (replay(timeline, Policy(name), rates) for name in ("economic", "free"))
    limit, rest = known.cost * (1 + 1e-9), [free.cost - before for before in (0.0, *free.costs)]
    best, came_from = [inf] * count, [-1] * count
    end, last = inf, -1
    pruned_run = ReplayRun(timeline, rates)
    for start in range(-1, count):
        if start >= 0:
            pruned_run.arrive(start)
            pruned_run.send(pruned_run.cut_all())
        cost = best[start] if start >= 0 else 0.0
        if cost + rest[start + 1] > limit:
            continue
        run = pruned_run.fork()
        for number in range(start + 1, count):
            run.arrive(number)
            cut = run.cut_all()
            if cut.positions and (pruning := cost + run.as_is + run.extra_cost(cut)) < best[number]:
                best[number], came_from[number] = pruning, start
            cost += run.as_is
            run.send()
            if cost + rest[number + 1] > limit:
                break
        else:
            if cost < end:
                end, last = cost, start
    moments: set[int] = set()
    while last >= 0:
        moments.add(last)
        last = came_from[last]
    return frozenset(moments)
