"""`dragoman context simulate`: what a session's input would have cost under other pruning policies, at its own and at other prices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dragoman.app.settings import context_of
from dragoman.base import jsontext
from dragoman.base.text import one_line
from dragoman.context.economics import HOUR_MS, Rates, rates_of
from dragoman.context.replay import ALL_TOOLS, Policy, PolicyName, ReplayCost, policy_of, replay
from dragoman.context.replay_run import Timeline
from dragoman.context.settings import PruneRule, PruneSettings
from dragoman.context.trace import TracedCall, trace_calls
from dragoman.context.view import View
from dragoman.conversation.page import Page, Piece, look_of, table
from dragoman.conversation.pages.context_page import dollars
from dragoman.providers.catalog import profile_for
from dragoman.values.errors import InputError
from dragoman.values.profile import Deployment, Profile
from dragoman.values.usage import Prices
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.conversation.pages.context_command import ContextCommand
    from dragoman.values.record import Entry

POLICIES: tuple[PolicyName, ...] = ("none", "request", "turn", "cold", "economic", "auto", "optimum")
OTHERS = ("anthropic", "openai", "gemini", "deepseek")
"""Deployments whose prices are shown beside the session's own."""
MOST_CALLS = 100
"""With more calls, the best possible schedule is computed only with --all: finding it takes quadratic time."""


class Tariff(msgspec.Struct, frozen=True):
    """A price table, and how its prompt cache is assumed to work."""

    name: str
    model: str
    prices: Prices
    ttl_ms: int = 300_000
    falls_back: bool = False
    is_own: bool = False
    """Whether it is the tariff of the session's own model."""

    @property
    def rates(self) -> Rates | None:
        return rates_of(self.prices, ttl_ms=self.ttl_ms, falls_back=self.falls_back)


class Simulation(NamedTuple):
    """What the session's input would have cost: by group of rules a row for each policy, with a cell for each tariff."""

    calls: Sequence[TracedCall]
    model: str
    settings: PruneSettings
    tariffs: Sequence[Tariff]
    costs: dict[str, list[list[ReplayCost]]]
    is_whole: bool
    """Whether the best possible schedule is among them."""

    def to_json(self) -> dict[str, Any]:
        return _to_json(self.calls, self.tariffs, self.costs, self.settings)


def run_simulation(command: ContextCommand, entries: Sequence[Entry]) -> Simulation:
    """Raises InputError where there is nothing to simulate."""
    calls = trace_calls(entries)
    if not calls:
        raise InputError(say("simulate_none", id=command.short_id))
    view = View()
    for entry in entries:
        view.feed(entry)
    settings = context_of(command.setup.config).prune
    superseded = msgspec.structs.replace(settings.rule, superseded=True)
    tariffs = _tariffs(command, view)
    whole = command.options.all or len(calls) <= MOST_CALLS
    groups = {
        "terminal": [policy_of(settings, name) for name in POLICIES if whole or name != "optimum"],
        "superseded": [policy_of(settings, name, superseded) for name in POLICIES[-3:] if whole or name != "optimum"],
        "all": [policy_of(settings, name, ALL_TOOLS) for name in POLICIES[-3:] if whole or name != "optimum"],
    }
    if settings.rule.superseded:
        del groups["superseded"]  # the first group has it already
    costs = {name: _replay_all(calls, group, tariffs) for name, group in groups.items()}
    return Simulation(calls, view.model, settings, tariffs, costs, whole)


def simulate(command: ContextCommand, entries: Sequence[Entry]) -> str:
    simulation = run_simulation(command, entries)
    if command.as_json:
        return jsontext.dumps(simulation.to_json()) + "\n"
    calls, model, settings, tariffs, costs, whole = simulation
    page = Page(look_of(command.setup.config.color))
    tokens = sum(each.usage.input_tokens for each in calls if each.usage is not None)
    page.fact("", 0, say("simulate_head", calls=len(calls), tokens=tokens))
    has_own = bool(tariffs) and tariffs[0].is_own
    if not has_own:
        page.line((say("simulate_unpriced", model=model or say("context_no_model")), "yellow"))
    file = one_line(command.options.config or command.setup.places.config_file, 300)
    for name, rows in costs.items():
        page.blank()
        page.line((_heading(name, settings), "bold"))
        head = [say("simulate_policy"), *(tariff.name for tariff in tariffs)]
        table(page, [head, *(_row(row, has_own, settings) for row in rows)], right=range(1, len(head)))
    if not settings.rule.superseded:
        page.fact("", 0, say("simulate_how_superseded", file=file))
    if settings.rule != ALL_TOOLS:
        page.fact("", 0, say("simulate_how", file=file, settings=_toml(ALL_TOOLS)))
    page.blank()
    for text in map(_legend, tariffs):
        page.fact("", 0, text)
    legend = say("simulate_legend", overhead=f"{settings.overhead:.0%}", share=f"{settings.share:.0%}")
    page.fact("", 0, legend, *([] if whole else [say("simulate_no_hindsight")]))
    return page.text


def _replay_all(calls: Sequence[TracedCall], policies: Sequence[Policy], tariffs: Sequence[Tariff]) -> list[list[ReplayCost]]:
    """One row per policy. All policies must have the same rule."""
    timeline = Timeline(calls, policies[0].rule)
    without_cache = Rates(1, 1, 0)
    return [[replay(timeline, policy, tariff.rates or without_cache, tariff.prices) for tariff in tariffs] for policy in policies]


# --- prices


def _tariffs(command: ContextCommand, view: View) -> list[Tariff]:
    """The session's own tariff first, then the others whose prices are in the catalog."""
    own = _own_tariff(command, view)
    found = [own] if own is not None else []
    for name in OTHERS:
        row = command.catalog.deployments.get(name)
        if row is not None and row.default_model and (prices := command.prices(name, row.default_model)) is not None:
            profile = profile_for(row, row.default_model)
            tariff = Tariff(name, f"{name}/{row.default_model}", prices, falls_back=_falls_back(row, profile))
            found.append(tariff)
            if prices.cache_write_1h is not None:
                found.append(msgspec.structs.replace(tariff, name=f"{name} 1h", ttl_ms=HOUR_MS))
    return found


def _own_tariff(command: ContextCommand, view: View) -> Tariff | None:
    row, profile = command.find_model(view.deployment, view.model)
    if row is None or profile.prices is None:
        return None
    return Tariff(say("simulate_own"), f"{row.name}/{view.model}", profile.prices, falls_back=_falls_back(row, profile), is_own=True)


def _falls_back(row: Deployment, profile: Profile) -> bool:
    return (profile.cache or row.cache) == "breakpoints"


# --- the table


def _heading(group: str, settings: PruneSettings) -> str:
    if group == "all":
        return say("simulate_all", keep=ALL_TOOLS.keep)
    if group == "superseded":
        return say("simulate_superseded")
    rule = settings.rule
    return say(
        "simulate_terminal",
        tools=", ".join([*rule.tools[:1], *(["…"] if rule.tools[1:] else [])]),
        minutes=f"{rule.age_ms / 60_000:g}",
        keep=rule.keep,
    )


def _settings_of(rule: PruneRule) -> dict[str, Any]:
    """What to write under `[context.prune]` for this rule."""
    found: dict[str, Any] = {"tools": list(rule.tools), "age_minutes": rule.age_ms / 60_000, "keep": rule.keep}
    return found | {"superseded": True} if rule.superseded else found


def _toml(rule: PruneRule) -> str:
    """Numbers and lists of plain text are written in TOML as they are in JSON."""
    return "; ".join(f"{name} = {jsontext.dumps(value)}" for name, value in _settings_of(rule).items())


def _row(costs: Sequence[ReplayCost], has_own: bool, settings: PruneSettings) -> list[Piece]:
    policy = costs[0].policy
    name = say("simulate_none_policy") if policy.name == "none" else say(f"simulate_{policy.name}")
    configured = policy.name == ("none" if settings.schedule == "off" else settings.schedule) and policy.rule == settings.rule
    cells: list[Piece] = [(say("simulate_configured", name=name) if configured else name, "bold" if configured else "")]
    for place, cost in enumerate(costs):
        percent = f"{cost.percent:.0f}%"
        text = say("simulate_dollars", percent=percent, usd=dollars(cost.cost)) if has_own and place == 0 else percent
        cells.append((text, "green" if cost.percent < 99.5 else "red" if cost.percent > 100.5 else ""))
    return cells


def _legend(tariff: Tariff) -> str:
    rates, fresh = tariff.rates, f"${tariff.prices.input:g}"
    if rates is None:
        return say("simulate_no_cache", name=tariff.name, model=tariff.model, input=fresh)
    read, write = f"{rates.read:.3g}×", f"{rates.write:.3g}×"
    minutes = tariff.ttl_ms // 60_000
    return say("simulate_prices", name=tariff.name, model=tariff.model, input=fresh, read=read, write=write, minutes=minutes)


def _to_json(
    calls: Sequence[TracedCall], tariffs: Sequence[Tariff], costs: dict[str, list[list[ReplayCost]]], settings: PruneSettings
) -> dict[str, Any]:
    rules = {name: rows[0][0].policy.rule for name, rows in costs.items() if rows and rows[0]}
    return {
        "requests": len(calls),
        "prices": list(tariffs),
        "settings": {name: _settings_of(rule) for name, rule in rules.items()},
        "costs": [
            {
                "policy": cost.policy.name,
                "rule": name,
                "prices": tariff.name,
                "cost_usd": cost.cost,
                "unpruned_usd": cost.unpruned,
                "percent": cost.percent,
                "prunes": len(cost.moments),
                "pruned": cost.pruned,
                "tokens": round(cost.tokens),
                "unpruned_tokens": round(cost.unpruned_tokens),
                "cache_breaks": cost.breaks,
            }
            for name, rows in costs.items()
            for row in rows
            for tariff, cost in zip(tariffs, row, strict=True)
        ],
    }
