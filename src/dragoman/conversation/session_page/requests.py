"""What the model was told at one entry: the exact request in any protocol, and each item of it with its size, its reason and its cost."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman.base.jsontext import NotJSON
from dragoman.base.text import clip
from dragoman.context.plan_items import PlanItem
from dragoman.conversation.pages.context_command import upkeep_of
from dragoman.conversation.pages.context_page import reason_words
from dragoman.conversation.pages.context_request import prepare, redact_headers
from dragoman.loop.history import History
from dragoman.providers.redact import redact
from dragoman.values.errors import InputError
from dragoman.values.record import Entry, Said
from dragoman.values.usage import Prices
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.conversation.pages.context_command import ContextCommand

_ABOUT_CHARS = 200


def request_before(command: ContextCommand, entries: Sequence[Entry], before: int, wanted: str) -> dict[str, Any]:
    """The request that the entries before this one make: for an answer, the one it answers. `wanted`: a protocol, a deployment or a model;
    empty: the session's own. Raises InputError or ConfigError."""
    view = History(entries=_before(entries, before)).view
    if not view.messages:
        raise InputError(say("context_empty", id=command.short_id))
    try:
        prepared = prepare(command, view, wanted)
    except NotJSON as error:  # what a service is to get back as it came, in a log that somebody made
        raise InputError(str(error)) from error
    return {
        "method": prepared.method,
        "url": redact(prepared.url),
        "headers": redact_headers(command, prepared),
        "body": prepared.body.decode("utf-8", "replace"),
    }


def items_before(command: ContextCommand, entries: Sequence[Entry], before: int) -> dict[str, Any]:
    """Every item of that request and what was left out of it. Where it was answered, `cached` says how much of each came from the cache."""
    counted = _before(entries, before)
    at_ms = counted[-1].timestamp_ms if counted else 0
    plan = upkeep_of(command, History(entries=counted, now_ms=lambda: at_ms)).plan(command.prices)
    answer = next((entry for entry in entries if entry.seq == before and _is_answer(entry)), None)
    usage = answer.usage if isinstance(answer, Said) else None
    read = usage.cache_read_tokens if usage is not None else plan.cache.expected_tokens
    answers = [*counted, answer] if answer is not None else counted
    costs = costs_so_far(plan.items, answers, command.prices(plan.deployment, plan.model))
    shares = cached_shares(plan.items, read, usage.input_tokens if usage is not None else plan.tokens)
    return {
        "tokens": plan.tokens,
        "window": plan.window,
        "model": "/".join(filter(None, (plan.deployment, plan.model))),
        "is_answered": usage is not None,
        "items": [_item(item, cost, cached) for item, cost, cached in zip(plan.items, costs, shares, strict=True)],
    }


def _item(item: PlanItem, cost: float | None, cached: float) -> dict[str, Any]:
    fields: dict[str, Any] = {"kind": item.kind, "state": item.state, "tokens": item.tokens, "whole": item.whole_tokens}
    fields |= {"seq": item.seq, "name": item.name, "about": clip(item.about, _ABOUT_CHARS), "call_id": item.call_id}
    why = reason_words(item.detail or item.reason) if item.reason else ""
    fields |= {"why": str(why), "by_seq": item.by_seq, "held": item.held, "since": item.since, "cached": round(cached, 3)}
    return fields | {"usd": cost}


def _before(entries: Sequence[Entry], seq: int) -> list[Entry]:
    return [entry for entry in entries if entry.seq < seq]


def _is_answer(entry: Entry) -> bool:
    return isinstance(entry, Said) and entry.message.role != "user"


# --- what was cached, and what items have cost


def cached_shares(items: Sequence[PlanItem], read_tokens: int, input_tokens: int) -> list[float]:
    """Of each item, how much of it lies in the part of the request that came from the cache: a prefix is cached, or nothing."""
    whole = sum(item.tokens for item in items)
    left = read_tokens * whole / input_tokens if input_tokens else 0.0
    shares: list[float] = []
    for item in items:
        shares.append(min(max(left / item.tokens, 0.0), 1.0) if item.tokens else 0.0)
        left -= item.tokens
    return shares


def costs_so_far(items: Sequence[PlanItem], entries: Sequence[Entry], prices: Prices | None) -> list[float | None]:
    """What each item has cost in all requests that held it, at today's prices of the model: fresh in the first, as what was read from the
    cache of it later. It is an estimate, as the items' sizes are."""
    answered = [entry for entry in entries if isinstance(entry, Said) and _is_answer(entry) and entry.usage is not None]
    if prices is None:
        return [None] * len(items)
    read_rate = prices.input if prices.cache_read is None else prices.cache_read
    paid = _Paid(items)
    for entry in answered:
        usage = entry.usage
        assert usage is not None
        write_rate = prices.input if prices.cache_write is None else prices.cache_write
        new = usage.fresh_tokens + usage.cache_write_tokens
        new_rate = (usage.fresh_tokens * prices.input + usage.cache_write_tokens * write_rate) / new if new else prices.input
        paid.add_request(entry.seq, usage.input_tokens, usage.cache_read_tokens, read_rate, new_rate)
    return [amount / 1_000_000 for amount in paid.finish()]


class _Paid:
    """Adds up what requests have cost, item by item, without going through all items for each request: what an item costs is the same for
    each of its tokens, and items that come one after the other cost alike."""

    def __init__(self, items: Sequence[PlanItem]) -> None:
        self._items = items
        self._rates = _Sums(len(items))
        """Differences of what a token of each item has cost so far."""
        self._sizes = _Sums(len(items))
        self._comes = deque(sorted(range(len(items)), key=lambda place: items[place].seq))
        leaving = (place for place in range(len(items)) if _leaves(items[place]))
        self._goes = deque(sorted(leaving, key=lambda place: items[place].by_seq))
        self._in_view = [0] * len(items)
        self._paid = [0.0] * len(items)
        self._since = [0.0] * len(items)

    def add_request(self, seq: int, input_tokens: int, read_tokens: int, read_rate: float, new_rate: float) -> None:
        self._move_to(seq)
        whole = self._sizes.up_to(len(self._items))
        if not whole:
            return
        scale = input_tokens / whole
        read = min(read_tokens / scale, whole) if scale else 0.0
        edge = self._sizes.place_of(read)
        self._rates.add(0, read_rate * scale)
        if edge < len(self._items):  # of the item at the edge a part was read
            share = (read - self._sizes.up_to(edge)) / (self._in_view[edge] or 1)
            at_edge = share * read_rate + (1 - share) * new_rate
            self._rates.add(edge, (at_edge - read_rate) * scale)
            self._rates.add(edge + 1, (new_rate - at_edge) * scale)

    def _move_to(self, seq: int) -> None:
        """Items that were said before this entry have come, and those that were taken out have gone."""
        while self._comes and self._items[self._comes[0]].seq < seq:
            place = self._comes.popleft()
            self._change(place, self._items[place].whole_tokens)
        while self._goes and self._items[self._goes[0]].by_seq < seq:
            place = self._goes.popleft()
            self._change(place, self._items[place].tokens)

    def _change(self, place: int, tokens: int) -> None:
        rate = self._rates.up_to(place + 1)
        self._paid[place] += self._in_view[place] * (rate - self._since[place])
        self._since[place] = rate
        self._sizes.add(place, tokens - self._in_view[place])
        self._in_view[place] = tokens

    def finish(self) -> list[float]:
        for place in range(len(self._items)):
            self._change(place, self._in_view[place])
        return self._paid


def _leaves(item: PlanItem) -> bool:
    return item.state in ("pruned", "summarised", "dropped") and bool(item.by_seq)


class _Sums:
    """Numbers of which sums from the first on are asked (a Fenwick tree)."""

    def __init__(self, count: int) -> None:
        self._tree = [0.0] * (count + 1)

    def add(self, place: int, amount: float) -> None:
        place += 1
        while place < len(self._tree):
            self._tree[place] += amount
            place += place & -place

    def up_to(self, place: int) -> float:
        """The sum of those before it."""
        total = 0.0
        while place > 0:
            total += self._tree[place]
            place -= place & -place
        return total

    def place_of(self, total: float) -> int:
        """How many of the first ones together are at most so much."""
        place, step = 0, 1 << len(self._tree).bit_length()
        while step:
            after = place + step
            if after < len(self._tree) and self._tree[after] <= total:
                place, total = after, total - self._tree[after]
            step >>= 1
        return place
