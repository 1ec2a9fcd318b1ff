"""What something has cost, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.providers.catalog import profile_for
from dragoman.values.notes import is_setup
from dragoman.values.record import Entry, paid_usage
from dragoman.values.usage import Usage
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent
    from dragoman.providers.catalog import Catalog
    from dragoman.sessions.summary import Summary


class SpentSoFar(msgspec.Struct, frozen=True):
    """What a conversation has cost so far."""

    usage: Usage = Usage()
    cost_usd: float | None = None
    is_whole: bool = True
    """Whether the price of everything is known."""


class CostCount:
    """Counts what a conversation has cost, by its record and nothing else: so every page says the same, and nothing that was paid for is
    forgotten, whether it was an answer, a summary that was thrown away, or a tool's request."""

    def __init__(self) -> None:
        self._agent: Agent | None = None
        self._read = 0
        self._spent = SpentSoFar()

    def of(self, agent: Agent) -> SpentSoFar:
        """Reads what was written since the last time."""
        entries = agent.history.entries
        if agent is not self._agent or len(entries) < self._read:
            self._agent, self._read, self._spent = agent, 0, SpentSoFar()
        if len(entries) > self._read:
            self._spent = _add(self._spent, agent, entries[self._read :])
            self._read = len(entries)
        return self._spent


class WithAgent:
    """What any conversation says of its agent: the model, and what it has cost so far."""

    agent: Agent
    _spending: CostCount | None = None

    @property
    def model(self) -> str:
        return f"{self.agent.provider.name}/{self.agent.model}"

    @property
    def usage(self) -> Usage:
        return self._spent.usage

    @property
    def cost_usd(self) -> float | None:
        return self._spent.cost_usd

    @property
    def cost_is_whole(self) -> bool:
        return self._spent.is_whole

    @property
    def _spent(self) -> SpentSoFar:
        if self._spending is None:
            self._spending = CostCount()
        return self._spending.of(self.agent)


def words_on_resume(agent: Agent, *, may_retry: bool) -> str:
    """How the last run of a session ended that is gone on with, and what goes on with it; empty where it ended with its answer."""
    from dragoman.sessions.last_run import read_last_run, trouble_words

    words = trouble_words(read_last_run(agent.history.entries), is_held=False)
    if may_retry:
        return say("conversation.may_retry", words=words) if words else say("conversation.may_retry_last")
    return words


def was_broken_off(agent: Agent) -> bool:
    """Whether the last run of a session did not come to its answer: /retry goes on with it."""
    if not agent.history.entries or agent.pending:
        return False
    if agent.history.view.open_calls:  # it was killed while a tool was at work
        return True
    last = agent.history.view.items[-1:]
    return any(each.message.role == "user" and not is_setup(each.about) for each in last)


def _add(spent: SpentSoFar, agent: Agent, entries: Sequence[Entry]) -> SpentSoFar:
    usage, cost_usd, is_whole = spent.usage, spent.cost_usd, spent.is_whole
    for entry in entries:
        for _, used in paid_usage((entry,)):
            usage += used
            cost = agent.cost_usd((entry,))
            is_whole = is_whole and cost is not None
            cost_usd = cost_usd if cost is None else (cost_usd or 0.0) + cost
    return SpentSoFar(usage, cost_usd, is_whole)


def cost_of(summary: Summary, catalog: Catalog) -> str:
    """What a session in a list has cost: `$0.0123`, `≥$0.0123` where not everything was told; empty where no price is known."""
    cost_usd, is_whole = sum_cost(summary, catalog)
    return f"{'' if is_whole else '≥'}${_amount(cost_usd)}" if cost_usd is not None else ""


def sum_cost(summary: Summary, catalog: Catalog) -> tuple[float | None, bool]:
    """What a session has cost at today's prices of whoever answered, and whether that is all of it."""
    cost_usd, is_whole = None, True
    for paid in summary.paid:
        is_whole = is_whole and not paid.usage.incomplete
        row = catalog.deployments.get(paid.deployment)
        prices = profile_for(row, paid.model).prices if row is not None else None
        if prices is None or paid.usage.is_unknown:
            is_whole = is_whole and bool(row is not None and row.local)
        else:
            cost_usd = (cost_usd or 0.0) + prices.cost_usd(paid.usage)
    return cost_usd, is_whole


def spent_words(usage: Usage, cost_usd: float | None, *, estimated: bool) -> str:
    """`1,234 tokens in (80% cached) · 56 out · $0.0012`; `estimated`: some prices are not known."""
    if usage.is_unknown:
        return say("tokens_unknown")
    cached = say("cached_part", percent=usage.cached_percent) if usage.cached_percent else ""
    words = say(
        "tokens_spent", input=_count_words(usage, usage.input_tokens), cached=cached, output=_count_words(usage, usage.output_tokens)
    )
    if cost_usd is None:
        return words
    key = "cost_least" if usage.incomplete else "cost_at_least" if estimated else "cost"
    return words + say(key, usd=_amount(cost_usd))


def _amount(cost_usd: float) -> str:
    return f"{cost_usd:.2f}" if cost_usd >= 10 else f"{cost_usd:.4f}"


def _count_words(usage: Usage, count: int) -> str:
    if not usage.incomplete:
        return f"{count:,}"
    return say("count_least", count=f"{count:,}") if count else say("count_unknown")
