"""`python -m benchmarks.context_cost`: what pruning costs and saves on real sessions, and how well tokens are estimated.

Tables in percent of never pruning, and checks that pass or fail. Nothing is measured by a clock: the same sessions give the same numbers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from benchmarks import context_share
from benchmarks.context_traces import Trace, traces
from benchmarks.corpora import NO_CORPORA
from benchmarks.table import Cell, Table
from dragoman.context.economics import Rates, rates_of
from dragoman.context.replay import ALL_TOOLS, Policy, PolicyName, ReplayCost, replay
from dragoman.context.replay_run import Timeline
from dragoman.context.settings import PruneRule
from dragoman.context.trace import TracedCall
from dragoman.providers.catalog import builtin_catalog, profile_for

MINUTE_MS = 60_000
SERVICES = {
    "Anthropic 5m": ("anthropic/claude-opus-4-5", 5),
    "Anthropic 1h": ("anthropic/claude-opus-4-5", 60),
    "Anthropic, newest, 5m": ("anthropic/claude-sonnet-5-5", 5),
    "OpenAI": ("openai/gpt-5.4", 10),
    "Gemini": ("gemini/", 10),
    "DeepSeek": ("deepseek/deepseek-v4-pro", 60),
}
"""Whose prices, and for how many minutes a prefix is taken to live unused. (What the last three say of that is vague.)"""
RULES = {"default": PruneRule(), "all": ALL_TOOLS}
OURS: tuple[PolicyName, ...] = ("request", "turn", "cold", "economic", "auto", "optimum")
COLUMNS: tuple[tuple[PolicyName, str], ...] = (
    *((name, "default") for name in OURS),
    *((name, "all") for name in OURS),
    ("free", "all"),
    ("opencode", "all"),
    ("gemini-cli", "all"),
)
BOUNDS: dict[PolicyName, float] = {"cold": 100.0, "economic": 200.0, "auto": 125.0}
"""Percent of never pruning that may never be passed, wherever a session ends."""


class Check(NamedTuple):
    what: str
    passed: bool
    seen: str

    def __str__(self) -> str:
        return f"{'pass' if self.passed else 'FAIL'}  {self.what}: {self.seen}"


def run(quick: bool) -> list[Table]:
    return measure(quick=quick)[0]


def measure(*, quick: bool) -> tuple[list[Table], list[Check]]:
    found = traces()
    if not found:
        return [Table("What pruning costs", ["session"], [], [NO_CORPORA])], []
    services = dict(list(SERVICES.items())[:1]) if quick else SERVICES
    tables: list[Table] = []
    costs: dict[tuple[str, str, bool, PolicyName, str], ReplayCost] = {}
    for trace in found:
        table = Table(
            f"{trace.name}: input cost in % of never pruning ({len(trace.calls())} calls)", ["prices, cache", *map(_heading, COLUMNS)]
        )
        for service, falls_back, rates in _rates(services):
            row = _row(trace.calls(), rates)
            costs.update({(trace.name, service, falls_back, *column): cost for column, cost in row.items()})
            table.rows.append([f"{service}, {'static' if falls_back else 'longest'}", *(_percent(row[column]) for column in COLUMNS)])
        tables.append(table)
    tables[0].notes += [
        "default: commands older than 15 minutes, the five newest results kept. all: every tool's results but the five newest.",
        "longest: after a change the longest common prefix is still read. static: only system and tools.",
        "optimum: at the best moments, known afterwards. free: as if pruning cost nothing; nothing can be below it.",
        "opencode and gemini-cli go by rules of their own, whatever the columns beside them.",
    ]
    clock = _by_the_clock(found, services)
    accuracy, errors = _accuracy(found)
    tables += [context_share.beside_the_letter(found), context_share.lively(), context_share.choices()]
    tables += [clock, _bills(found), accuracy]
    return tables, [*_cost_checks(costs), *_clock_checks(clock), *_token_checks(errors)]


def _heading(column: tuple[PolicyName, str]) -> str:
    name, rule = column
    return name if name in ("opencode", "gemini-cli") else f"{name} {rule}"


def _percent(cost: ReplayCost) -> Cell:
    return f"{cost.percent:.1f}"


def _rates(services: dict[str, tuple[str, int]]) -> Iterator[tuple[str, bool, Rates]]:
    for service, (model, minutes) in services.items():
        deployment, name = builtin_catalog().find(model)
        prices = profile_for(deployment, name).prices
        for falls_back in (False, True):
            rates = rates_of(prices, ttl_ms=minutes * MINUTE_MS, falls_back=falls_back) if prices is not None else None
            if rates is not None:
                yield service, falls_back, rates


def _row(calls: tuple[TracedCall, ...], rates: Rates) -> dict[tuple[PolicyName, str], ReplayCost]:
    timelines = {name: Timeline(calls, rule) for name, rule in RULES.items()}
    return {(name, rule): replay(timelines[rule], Policy(name, RULES[rule]), rates) for name, rule in COLUMNS}


def _by_the_clock(found: list[Trace], services: dict[str, tuple[str, int]]) -> Table:
    """As if the cache were lost by age alone: how such numbers are usually given."""
    table = Table(
        "The same by the clock alone: reports of a cache that was lost for another reason are not heeded",
        ["session, cache", *map(_heading, COLUMNS)],
    )
    first = dict(list(services.items())[:1])
    for trace in found:
        if trace.has_usage:
            for service, falls_back, rates in _rates(first):
                row = _row(trace.calls(by_clock=True), rates)
                where = f"{trace.name}, {service}, {'static' if falls_back else 'longest'}"
                table.rows.append([where, *(_percent(row[column]) for column in COLUMNS)])
    return table


def _bills(found: list[Trace]) -> Table:
    """What the reported reads and writes come to, and what the model of the cache gives for never pruning."""
    table = Table(
        "Is the model of the cache right? Its bill for never pruning beside the one that was paid (Anthropic 5m)",
        ["session", "calls", "paid, tokens", "model, %", "by the clock, %"],
    )
    for trace in found:
        calls = trace.calls()
        if not trace.has_usage:
            continue
        paid = sum(_paid(call) for call in calls)
        models = [
            replay(Timeline(which, PruneRule()), Policy("none"), Rates(0.1, 1.25)).cost for which in (calls, trace.calls(by_clock=True))
        ]
        table.rows.append([trace.name, len(calls), round(paid), *(f"{100 * model / paid:.1f}" for model in models)])
    table.notes.append("Cline does not report what was written to the cache: what was not read is taken as written.")
    return table


def _paid(call: TracedCall) -> float:
    """Everything that was not read was written, but for what a service with breakpoints reports as fresh."""
    usage = call.usage
    if usage is None:
        return 0.0
    if not usage.cache_write_tokens:
        return 0.1 * usage.cache_read_tokens + 1.25 * usage.fresh_tokens
    return usage.fresh_tokens + 0.1 * usage.cache_read_tokens + 1.25 * usage.cache_write_tokens


def _accuracy(found: list[Trace]) -> tuple[Table, list[float]]:
    table = Table(
        "Estimates of a request's tokens against what the service counted",
        ["session", "estimates", "median %", "p95 %", "worst %", "tokens to one raw"],
    )
    pooled: list[float] = []
    for trace in found:
        if not trace.has_usage:
            continue
        meter = trace.view().meter
        errors = [abs(error) for error in meter.errors]
        pooled += errors
        if errors:
            table.rows.append([trace.name, len(errors), *_spread(errors), f"{meter.scale():.2f}"])
    table.rows.append(["all", len(pooled), *_spread(pooled), ""])
    table.notes += [
        "The worst are requests whose content the record does not hold: files attached unseen, results cleared unsaid (both claude-code).",
        "The first estimate of each session has only the raw count to go by: pi's is its worst.",
    ]
    return table, pooled


def _spread(errors: list[float]) -> list[Cell]:
    ordered = sorted(errors)
    return [f"{100 * value:.2f}" for value in (median(ordered), ordered[int(len(ordered) * 0.95)], ordered[-1])]


# --- what must hold


def _cost_checks(costs: dict[tuple[str, str, bool, PolicyName, str], ReplayCost]) -> Iterator[Check]:
    for name, bound in BOUNDS.items():
        worst, where = max((cost.worst_percent, key) for key, cost in costs.items() if key[3] == name)
        seen = f"{worst:.2f} % at the worst moment of {where[0]}, {where[1]}, {'static' if where[2] else 'longest'}, {where[4]}"
        yield Check(f"{name} costs at most {bound:.0f} % of never pruning, wherever any session ends", worst <= bound * (1 + 1e-9), seen)
    lasting = replay(Timeline(context_share.steady(160), PruneRule()), Policy("auto"), Rates(0.1, 1.25, falls_back=True))
    yield Check("auto, a command a minute: cheaper than not pruning in the end", lasting.percent <= 100, f"{lasting.percent:.1f} %")
    share = max(lasting.shares)
    yield Check("auto, a command a minute: at most a third is outdated at any moment", share <= 1 / 3, f"{100 * share:.0f} %")
    at_end, where = max((cost.percent, key) for key, cost in costs.items() if key[3:] == ("auto", "default"))
    yield Check("auto, the given rule: no session ends above 102 %", at_end <= 102, f"{at_end:.2f} % on {where[0]}, {where[1]}")
    for falls_back in (False, True):
        economic, optimum = (costs["pi", "Anthropic 5m", falls_back, name, "all"].percent for name in ("economic", "optimum"))
        cache = "static" if falls_back else "longest"
        yield Check(
            f"economic, all tools, pi, Anthropic 5m, {cache}: within 5 points of the optimum",
            economic <= optimum + 5,
            f"{economic:.1f} and {optimum:.1f}",
        )


def _clock_checks(table: Table) -> Iterator[Check]:
    economic, optimum = (table.columns.index(f"{name} all") for name in ("economic", "optimum"))
    for row in table.rows:
        if str(row[0]).startswith("pi"):
            yield Check(
                f"the same by the clock alone, {row[0]}",
                float(str(row[economic])) <= float(str(row[optimum])) + 5,
                f"{row[economic]} and {row[optimum]}",
            )


def _token_checks(errors: list[float]) -> Iterator[Check]:
    ordered = sorted(errors)
    middle, high = 100 * median(ordered), 100 * ordered[int(len(ordered) * 0.95)]
    yield Check(
        "estimates are off by at most 1 % in the median and 3 % in 95 of 100", middle <= 1 and high <= 3, f"{middle:.2f} % and {high:.2f} %"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.context_cost", description="What pruning costs and saves on real sessions.")
    parser.add_argument("--quick", action="store_true", help="one price table: to see that it runs")
    tables, checks = measure(quick=parser.parse_args(arguments).quick)
    for table in tables:
        print(table.markdown(), flush=True)
    print("\n".join(map(str, checks)))
    return 0 if all(check.passed for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
