"""What something has cost, in words."""

from __future__ import annotations

from dragoman.values.usage import Usage
from dragoman.words import say


def spent_words(usage: Usage, cost_usd: float | None, *, estimated: bool) -> str:
    """`1,234 tokens in (80% cached) · 56 out · $0.0012`; `estimated`: some prices are not known."""
    if usage.is_unknown:
        return say("tokens_unknown")
    cached = say("cached_part", percent=round(100 * usage.cache_read_tokens / usage.input_tokens)) if usage.cache_read_tokens else ""
    words = say(
        "tokens_spent", input=_count_words(usage, usage.input_tokens), cached=cached, output=_count_words(usage, usage.output_tokens)
    )
    if cost_usd is None:
        return words
    key = "cost_least" if usage.incomplete else "cost_at_least" if estimated else "cost"
    return words + say(key, usd=f"{cost_usd:.2f}" if cost_usd >= 10 else f"{cost_usd:.4f}")


def _count_words(usage: Usage, count: int) -> str:
    if not usage.incomplete:
        return f"{count:,}"
    return say("count_least", count=f"{count:,}") if count else say("count_unknown")
