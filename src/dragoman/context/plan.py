"""The plan of a request: everything in it and everything left out, with sizes and reasons. Computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, get_args

import msgspec

from dragoman.context.decide import Decision, Waiting
from dragoman.context.economics import HOUR_MS, Rates, rates_of
from dragoman.context.plan_items import Kind, PlanItem, items_of
from dragoman.context.shown import ByWindow
from dragoman.context.view import View
from dragoman.values.record import (
    Compressed,
    Configured,
    Entry,
    Kept,
    ModelChanged,
    NotCompressed,
    Pruned,
    Said,
    Spent,
    fold,
    usage_of,
)
from dragoman.values.usage import Prices, Usage

if TYPE_CHECKING:
    from dragoman.context.cache import Cache

PricesOf = Callable[[str, str], Prices | None]
"""The prices of a model, by its deployment and its name."""


class Total(msgspec.Struct, frozen=True):
    """The size of one kind of item in the next request; for results, of those of one tool."""

    kind: Kind
    name: str
    items: int
    """How many of them the request holds."""
    tokens: int
    whole_tokens: int
    """The same if nothing had been pruned."""


class Estimate(msgspec.Struct, frozen=True):
    """How accurate the estimates are, compared with what the service itself counted."""

    reported_tokens: int = 0
    """Input of the last request, as the service counted it; 0 before the first."""
    measured: int = 0
    """How many estimates could be compared."""
    median_error: float = 0.0
    """As an absolute share; so is the next."""
    worst_error: float = 0.0


class CachePlan(msgspec.Struct, frozen=True):
    """How much of the next request should be read from the service's cache, and how much of the last one was."""

    expected_tokens: int = 0
    warm: bool = False
    broken: str = ""
    """Why nothing of the last request can be read again; empty if it can."""
    reported_tokens: int = 0
    """Cache read of the last request."""
    reported_of_tokens: int = 0
    """Its whole input."""
    last_ms: int = 0
    """When it was made; 0 if there was none."""
    until_ms: int = 0
    """Until when it stays warm, as far as is known; 0 if it is not warm."""


class Pruning(msgspec.Struct, frozen=True):
    """Results that were pruned together."""

    seq: int
    timestamp_ms: int
    results: int
    saved_tokens: int
    premium_tokens: int
    reason: str
    window: int = 0
    """It holds for models with a window up to this one only; 0: for all."""


class Savings(msgspec.Struct, frozen=True):
    """What pruning removed from the view, and its expected cost."""

    results: int = 0
    tokens: int = 0
    """Fewer in the next request."""
    not_sent_tokens: int = 0
    """Fewer in all requests since, together."""
    premium_tokens: int = 0
    prunings: tuple[Pruning, ...] = ()


class Costs(msgspec.Struct, frozen=True):
    """US dollars; None if prices are not known."""

    next_input_usd: float | None = None
    """The next request after pending pruning: without the coming prompt, and without its answer."""
    spent_usd: float | None = None
    spent_is_whole: bool = True
    """False if the price or the usage of some answers is not known: then the real cost was higher."""
    waiting_usd: float | None = None
    """What the results that wait cost with each request, as long as the cache is warm."""


class Next(msgspec.Struct, frozen=True):
    """What would be done before the next request is sent."""

    prune: int = 0
    saved_tokens: int = 0
    premium_tokens: int = 0
    reason: str = ""
    compress: bool = False
    waiting: Waiting | None = None
    """What is outdated and stays in the request."""


class Plan(msgspec.Struct, frozen=True):
    """The next request item by item, with what was left out and why, and what it costs."""

    session_id: str
    deployment: str
    model: str
    seq: int
    """The last entry that counts."""
    tokens: int
    """The approximate size of the next request; the items' tokens add up to it."""
    window: int
    items: tuple[PlanItem, ...]
    totals: tuple[Total, ...]
    estimate: Estimate
    cache: CachePlan
    savings: Savings
    usage: Usage
    """Of all answers and summaries so far."""
    costs: Costs
    next: Next


def plan_of(
    view: View,
    entries: Sequence[Entry],
    cache: Cache,
    *,
    prior: float = 1.0,
    window: int = 0,
    decision: Decision | None = None,
    now_ms: int = 0,
    falls_back: bool = False,
    prices_of: PricesOf = lambda deployment, model: None,
    asks: tuple[str, str] | None = None,
) -> Plan:
    """The plan for a record; `view` and `cache` are the folds of `entries`.

    `falls_back`: what a change in the middle does to the service's cache, until it is known (see `Rates`). `asks`: the deployment and the
    model of the next request, which a session that was opened with another one does not record before.
    """
    asks = asks if asks is not None and view.model else (view.deployment, view.model)
    total, scale = view.tokens(prior), view.meter.scale(prior)
    items = items_of(view, entries, total=total, scale=scale, goes=decision.prune if decision else ())
    prices = prices_of(*asks)
    cached = _cache_plan(items, total, cache, _rates(prices, cache, falls_back), now_ms)
    if asks != (view.deployment, view.model) and cached.last_ms:
        cached = msgspec.structs.replace(cached, expected_tokens=0, warm=False, broken="model", until_ms=0)
    return Plan(
        view.session_id,
        view.deployment,
        view.model,
        entries[-1].seq if entries else 0,
        total,
        window,
        items,
        _totals(items),
        _estimate(view),
        cached,
        _savings(items, entries),
        sum((usage for _, _, usage in _paid_usage(entries)), Usage()),
        _costs(entries, total - (decision.saved_tokens if decision else 0), cached, prices, prices_of, decision),
        _next(decision),
    )


def _totals(items: Sequence[PlanItem]) -> tuple[Total, ...]:
    """The kinds in the order of a request; tools by the size of their results, and their definitions by MCP server."""
    found: dict[tuple[Kind, str], list[PlanItem]] = {}
    for item in items:
        if item.state in ("kept", "pruned"):
            found.setdefault((item.kind, _name_of(item)), []).append(item)
    order = get_args(Kind)
    totals = [
        Total(kind, name, len(each), sum(item.tokens for item in each), sum(item.whole_tokens for item in each))
        for (kind, name), each in found.items()
    ]
    return tuple(sorted(totals, key=lambda total: (order.index(total.kind), -total.tokens, total.name)))


def _name_of(item: PlanItem) -> str:
    """Under what it is counted."""
    if item.kind == "tools" and item.name.startswith("mcp__"):
        return item.name.split("__")[1]
    return item.name if item.kind == "result" else ""


def _estimate(view: View) -> Estimate:
    errors = [abs(error) for error in view.meter.errors]
    if not errors:
        return Estimate(view.meter.reported)
    return Estimate(view.meter.reported, len(errors), median(errors), max(errors))


def _rates(prices: Prices | None, cache: Cache, falls_back: bool) -> Rates:
    ttl_ms = HOUR_MS if cache.last is not None and cache.last.usage.cache_write_1h_tokens else 300_000
    known = rates_of(prices, ttl_ms=ttl_ms, falls_back=falls_back) if prices is not None else None
    return known or Rates(1.0, 1.0, ttl_ms, falls_back)


def _cache_plan(items: Sequence[PlanItem], total: int, cache: Cache, rates: Rates, now_ms: int) -> CachePlan:
    last = cache.last
    if last is None:
        return CachePlan()
    usage, broken = last.usage, cache.break_reason
    # A pruned result breaks the prefix at its position, not earlier.
    until_ms = last.timestamp_ms + cache.life_ms(rates)
    alive = now_ms <= until_ms if broken == "pruned" else cache.is_warm(now_ms, rates)
    expected = min(usage.input_tokens, total) if alive else 0
    changed = next(
        (place for place, item in enumerate(items) if item.goes or (item.state in ("pruned", "kept") and item.by_seq > last.seq)), -1
    )
    if changed >= 0:
        lost = cache.facts.falls_back or (cache.facts.falls_back is None and rates.falls_back)
        before = [item.tokens for item in items[:changed] if not lost or item.kind in ("system", "tools")]
        expected = min(expected, sum(before))
    return CachePlan(expected, alive, broken, usage.cache_read_tokens, usage.input_tokens, last.timestamp_ms, until_ms if alive else 0)


@fold("savings")
def _savings(items: Sequence[PlanItem], entries: Sequence[Entry]) -> Savings:
    prunings: list[Pruning] = []
    gone, window, not_sent = ByWindow.of(0), 0, 0
    for entry in entries:
        match entry:
            case Pruned(saved_tokens=saved, premium_tokens=premium):
                prunings.append(Pruning(entry.seq, entry.timestamp_ms, len(entry.call_ids), saved, premium, entry.reason, entry.window))
                gone = gone.change(entry.window, lambda tokens, saved=saved: tokens + saved)
            case Kept(restored_tokens=restored):
                gone = gone.change(0, lambda tokens, restored=restored: max(tokens - restored, 0))
            case Compressed():
                gone = gone.change(entry.window, lambda tokens: 0)  # they would be in the summary by now
            case Configured() | ModelChanged():
                window = entry.window
            case Said(usage=Usage()):
                not_sent += gone.at(window)
            case _:
                pass
    pruned = [item for item in items if item.state == "pruned"]
    fewer = sum(item.whole_tokens - item.tokens for item in pruned)
    return Savings(len(pruned), fewer, not_sent, sum(each.premium_tokens for each in prunings), tuple(prunings))


def _costs(
    entries: Sequence[Entry], total: int, cached: CachePlan, prices: Prices | None, prices_of: PricesOf, decision: Decision | None
) -> Costs:
    paid = [(usage, prices_of(where, model)) for where, model, usage in _paid_usage(entries)]
    known = [prices.cost_usd(usage) for usage, prices in paid if prices is not None and not usage.is_unknown]
    is_whole = len(known) == len(paid) and not any(usage.incomplete for usage, _ in paid)
    next_usd = waiting_usd = None
    if prices is not None and decision is not None and decision.waiting is not None:
        waiting_usd = prices.input * decision.waiting.saves_tokens / 1_000_000
    if prices is not None:
        rest = max(total - cached.expected_tokens, 0)
        written = 0 if prices.cache_write is None else rest
        next_usd = prices.cost_usd(Usage(rest - written, cached.expected_tokens, written))
    return Costs(next_usd, sum(known) if known or not paid else None, is_whole, waiting_usd)


@fold("costs")
def _paid_usage(entries: Sequence[Entry]) -> Iterator[tuple[str, str, Usage]]:
    """Deployment, model and usage of everything that was paid for."""
    deployment = model = ""
    for entry in entries:
        match entry:
            case Configured() | ModelChanged():
                deployment, model = entry.deployment or deployment, entry.model
            case Said() | Compressed() | NotCompressed() | Spent():
                where = entry.deployment if isinstance(entry, Spent) else ""
                if (usage := usage_of(entry)) is not None:
                    yield where or deployment, entry.model or model, usage
            case _:
                pass


def _next(decision: Decision | None) -> Next:
    if decision is None:
        return Next()
    after = decision
    return Next(len(after.prune), after.saved_tokens, after.premium_tokens, after.reason, after.compress, after.waiting)


def median(numbers: Sequence[float]) -> float:
    """Python's module of that name takes a hundredth of a second to load."""
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
