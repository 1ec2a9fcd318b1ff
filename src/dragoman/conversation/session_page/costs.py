"""What each request of a session took: tokens by where they came from, and what they cost. An event for each, beside the Renderer's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.conversation.types import ViewEvent
from dragoman.values.record import Compressed, Configured, Entry, ModelChanged, NotCompressed, Said, Spent, usage_of
from dragoman.values.usage import Prices, Usage

PricesOf = Callable[[str, str], Prices | None]
"""The prices of a model, by its deployment and its name."""


class CostReader:
    """Entries in, events out: `a2.usage` for the second answer, `x17.usage` for a request that is no answer, as for a summary."""

    def __init__(self, prices_of: PricesOf) -> None:
        self._prices_of = prices_of
        self._answers = 0
        self._deployment = self._model = ""
        self._window = 0
        self._before_seq = 0

    def take(self, entry: Entry) -> ViewEvent | None:
        before, self._before_seq = self._before_seq, entry.seq
        match entry:
            case Configured() | ModelChanged():
                self._deployment, self._model = entry.deployment or self._deployment, entry.model
                self._window = entry.window or self._window
                return None
            case Said(message=message) if message.role == "user":
                return None
            case Said():
                self._answers += 1
                return self._event(f"a{self._answers}", entry, self._deployment, before)
            case Compressed() | NotCompressed() | Spent():
                deployment = entry.deployment if isinstance(entry, Spent) else ""
                return self._event(f"x{entry.seq}", entry, deployment or self._deployment, before)
            case _:
                return None

    def _event(self, id: str, entry: Said | Compressed | NotCompressed | Spent, deployment: str, before: int) -> ViewEvent | None:
        usage = usage_of(entry)
        if usage is None:
            return None
        model = entry.model or self._model
        data = {"of": id, "seq": entry.seq, "before_seq": before, "at_ms": entry.timestamp_ms, "window": self._window}
        data |= {"model": model, "deployment": deployment, "kind": type(entry).__name__.lower()} | usage.as_told()
        data |= costs_of(usage, self._prices_of(deployment, model))
        return ViewEvent(0, "usage", f"{id}.usage", data=data)


def costs_of(usage: Usage, prices: Prices | None) -> dict[str, Any]:
    """US dollars by kind of token; None where prices or usage are not known."""
    if prices is None or usage.is_unknown:
        return {"usd": None}
    at = prices.above if prices.above is not None and usage.input_tokens > prices.above_tokens else prices
    fresh = usage.fresh_tokens * at.input / 1_000_000
    read = usage.cache_read_tokens * (at.input if at.cache_read is None else at.cache_read) / 1_000_000
    output = usage.output_tokens * at.output / 1_000_000
    whole = prices.cost_usd(usage)
    return {"usd": whole, "usd_fresh": fresh, "usd_read": read, "usd_output": output, "usd_write": max(whole - fresh - read - output, 0.0)}
