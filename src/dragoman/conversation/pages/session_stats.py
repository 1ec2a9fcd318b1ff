"""`/stats`: what a session has used so far, as its record has it: requests and tokens by model, tools, time, what was left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.conversation.page import Look, Page, Piece, table
from dragoman.values.record import (
    Compressed,
    Configured,
    Entry,
    FilesChanged,
    Kept,
    ModelChanged,
    NotCompressed,
    Pruned,
    Said,
    Spent,
    ToolFinished,
    ToolStarted,
    usage_of,
)
from dragoman.values.usage import Usage
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent

CostOf = Callable[[Sequence[Entry]], float | None]
"""What these entries cost; None where prices are not known."""


class ModelStats(msgspec.Struct):
    """What one model was asked and what it used."""

    requests: int = 0
    usage: Usage = Usage()
    cost_usd: float | None = None
    is_whole: bool = True
    """Whether the price of every request is known."""


class ToolStats(msgspec.Struct):
    """How often one tool was called."""

    calls: int = 0
    failed: int = 0
    ms: int = 0
    """From start to end, of those that began."""


class Stats(msgspec.Struct):
    """Of a whole record, what was rewound included: it was paid for."""

    prompts: int = 0
    first_ms: int = 0
    last_ms: int = 0
    answering_ms: int = 0
    """From the entry before a request to the answer."""
    models: dict[str, ModelStats] = {}
    tools: dict[str, ToolStats] = {}
    pruned: int = 0
    pruned_tokens: int = 0
    summaries: int = 0
    files: int = 0


def stats_of(entries: Iterable[Entry], cost_of: CostOf) -> Stats:
    stats, counting = Stats(models={}, tools={}), _Counting()
    for entry in entries:
        stats.first_ms = stats.first_ms or entry.timestamp_ms
        counting.take(stats, entry, cost_of)
        stats.last_ms = entry.timestamp_ms
    stats.files = len(counting.files)
    return stats


class _Counting:
    def __init__(self) -> None:
        self._deployment = self._model = ""
        self._began_ms: dict[str, int] = {}
        self.files: set[str] = set()

    def take(self, stats: Stats, entry: Entry, cost_of: CostOf) -> None:
        match entry:
            case Configured() | ModelChanged():
                self._deployment, self._model = entry.deployment or self._deployment, entry.model
            case Said() if entry.message.role == "user":
                stats.prompts += entry.by == "person"
            case Said() | Compressed() | NotCompressed() | Spent():
                self._count_request(stats, entry, cost_of)
            case ToolStarted(call_id=call_id):
                self._began_ms[call_id] = entry.timestamp_ms
            case ToolFinished(result=result):
                tool = stats.tools.setdefault(result.name, ToolStats())
                tool.calls += 1
                tool.failed += result.is_error
                tool.ms += entry.timestamp_ms - self._began_ms.pop(result.call_id, entry.timestamp_ms)
            case Pruned():
                stats.pruned += len(entry.call_ids)
                stats.pruned_tokens += entry.saved_tokens
            case Kept() if entry.restored_tokens:
                stats.pruned -= len(entry.call_ids)
                stats.pruned_tokens -= entry.restored_tokens
            case FilesChanged():
                self.files |= {each.path for each in entry.files}
            case _:
                pass

    def _count_request(self, stats: Stats, entry: Said | Compressed | NotCompressed | Spent, cost_of: CostOf) -> None:
        stats.summaries += isinstance(entry, Compressed)
        usage = usage_of(entry)
        if usage is None:
            return
        where = entry.deployment if isinstance(entry, Spent) else ""
        name = "/".join(filter(None, (where or self._deployment, entry.model or self._model)))
        model = stats.models.setdefault(name, ModelStats())
        model.requests += 1
        model.usage += usage
        cost = cost_of([entry])
        model.is_whole = model.is_whole and cost is not None
        if cost is not None:
            model.cost_usd = (model.cost_usd or 0.0) + cost
        if not isinstance(entry, Spent):
            stats.answering_ms += max(entry.timestamp_ms - (stats.last_ms or entry.timestamp_ms), 0)


# --- in words


def stats_text(agent: Agent, columns: int) -> str:
    stats = stats_of(agent.history.entries, agent.cost_usd)
    page = Page(Look(columns))
    if not stats.models:
        page.fact("", 0, say("stats.nothing"))
        return page.text
    begun = time.strftime("%Y-%m-%d %H:%M", time.localtime(stats.first_ms / 1000))
    page.fact("", 0, say("stats.head", id=agent.session_id, prompts=stats.prompts, begun=begun, time=_time(stats.last_ms - stats.first_ms)))
    page.blank()
    _models(page, stats)
    page.blank()
    _tools(page, stats)
    page.fact("", 0, say("stats.answering", time=_time(stats.answering_ms)))
    if stats.pruned > 0:
        page.fact("", 0, say("stats.pruned", count=stats.pruned, tokens=stats.pruned_tokens))
    if stats.summaries:
        page.fact("", 0, say("stats.summaries", count=stats.summaries))
    if stats.files:
        page.fact("", 0, say("stats.files", count=stats.files))
    return page.text


def _models(page: Page, stats: Stats) -> None:
    rows = dict(stats.models)
    if len(rows) > 1:
        rows[say("stats.all")] = _sum(stats.models.values())
    for name, each in rows.items():
        usage = each.usage
        page.line((say("stats.of_model", model=name, requests=each.requests, cost=_cost(each)), "bold"))
        names = ("fresh_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
        told = {name: _count(usage, getattr(usage, name)) for name in names}
        page.fact("", 2, say("stats.tokens", fresh=told[names[0]], read=told[names[1]], written=told[names[2]], output=told[names[3]]))
    if any(each.usage.incomplete or not each.is_whole for each in stats.models.values()):
        page.fact("", 0, say("stats.at_least"))


def _count(usage: Usage, count: int) -> str:
    return "?" if usage.told(count) is None else f"{'≥' if usage.incomplete else ''}{count:,}"


def _cost(each: ModelStats) -> str:
    is_all = each.is_whole and not each.usage.incomplete
    return "?" if each.cost_usd is None else f"{'' if is_all else '≥'}${each.cost_usd:.4f}"


def _sum(models: Iterable[ModelStats]) -> ModelStats:
    whole = ModelStats()
    for each in models:
        whole.requests += each.requests
        whole.usage += each.usage
        whole.is_whole = whole.is_whole and each.is_whole
        if each.cost_usd is not None:
            whole.cost_usd = (whole.cost_usd or 0.0) + each.cost_usd
    return whole


def _tools(page: Page, stats: Stats) -> None:
    if not stats.tools:
        return
    rows: list[Sequence[Piece]] = [[say("stats.tool"), say("stats.calls"), say("stats.failed"), say("stats.time")]]
    for name, each in sorted(stats.tools.items(), key=lambda item: -item[1].calls):
        rows.append([name, f"{each.calls:,}", f"{each.failed:,}" if each.failed else "", _time(each.ms)])
    table(page, rows, right=(1, 2, 3))
    page.blank()


def _time(ms: int) -> str:
    seconds = ms / 1000
    if seconds < 60:
        return say("stats.seconds", seconds=f"{seconds:.1f}")
    minutes = round(seconds / 60)
    return say("stats.minutes", minutes=minutes) if minutes < 120 else say("stats.hours", hours=f"{minutes / 60:.1f}")
