"""Tokens and money: the invariant holds, whatever a service reports."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Prices, Usage
from dragoman.providers import anthropic_stream, gemini_stream, openai_chat_stream, openai_responses_stream
from dragoman.values.usage import MOST_TOKENS

counts = st.integers(0, 10**7)
reported = st.none() | counts


@given(first=st.builds(Usage, counts, counts, counts, counts, counts), second=st.builds(Usage, counts, counts, counts, counts))
def test_usages_add_up(first: Usage, second: Usage) -> None:
    total = first + second
    assert total.input_tokens == first.input_tokens + second.input_tokens
    assert total.total_tokens == first.total_tokens + second.total_tokens


@given(st.lists(st.integers() | st.integers(10**15, 10**400), min_size=7, max_size=7))
def test_what_is_no_count_is_kept_in_bounds(told: list[int]) -> None:
    """A service, or a log that somebody made, can tell any number; what it costs can still be said."""
    usage = Usage(*told)
    assert all(0 <= count <= MOST_TOKENS for count in msgspec.structs.astuple(usage))
    assert usage == Usage(*(min(max(count, 0), MOST_TOKENS) for count in told))
    assert msgspec.json.decode(msgspec.json.encode(dict(zip(Usage.__struct_fields__, told, strict=True))), type=Usage) == usage
    assert math.isfinite(Prices(5, 25, 0.5, 6).cost_usd(usage + usage))


@given(total=counts, read=st.integers(-5, 10**7), write=counts, output=counts, thought=counts)
def test_the_parts_of_the_input_always_make_the_input(total: int, read: int, write: int, output: int, thought: int) -> None:
    """Fresh + cache read + cache write = input"""
    usage = Usage.from_total(total, cache_read=read, cache_write=write, output=output, thought=thought)
    assert min(usage.fresh_tokens, usage.cache_read_tokens, usage.cache_write_tokens) >= 0
    assert usage.fresh_tokens + usage.cache_read_tokens + usage.cache_write_tokens == usage.input_tokens
    assert usage.input_tokens == max(total, max(read, 0) + write)
    assert usage.thought_tokens <= usage.output_tokens


@given(reported, reported, reported, reported)
def test_every_protocol_reports_its_input_whole(total: int | None, cached: int | None, out: int | None, thought: int | None) -> None:
    gemini = gemini_stream.read_usage(
        {"promptTokenCount": total, "cachedContentTokenCount": cached, "candidatesTokenCount": out, "thoughtsTokenCount": thought}
    )
    chat = openai_chat_stream.read_usage(
        {"prompt_tokens": total, "prompt_tokens_details": {"cached_tokens": cached}, "completion_tokens": out}
    )
    responses = openai_responses_stream.read_usage(
        {"input_tokens": total, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": out}
    )
    for usage in (gemini, chat, responses):
        assert usage.input_tokens == max(total or 0, cached or 0)
        assert usage.cache_read_tokens == (cached or 0)
    assert gemini.output_tokens == (out or 0) + (thought or 0)
    anthropic = anthropic_stream.read_usage({"input_tokens": total, "cache_read_input_tokens": cached, "output_tokens": out})
    assert anthropic.input_tokens == (total or 0) + (cached or 0)


def test_cost_by_kind_of_token() -> None:
    prices = Prices(3, 15, cache_read=0.3, cache_write=3.75, cache_write_1h=6)
    usage = Usage(fresh_tokens=1000, cache_read_tokens=10_000, cache_write_tokens=2000, output_tokens=500, cache_write_1h_tokens=500)
    assert prices.cost_usd(usage) == pytest.approx((3000 + 3000 + 1500 * 3.75 + 500 * 6 + 7500) / 1e6)


def test_a_service_without_cache_prices_charges_cached_tokens_like_fresh_ones() -> None:
    assert Prices(2, 8).cost_usd(Usage(500, 300, 200)) == pytest.approx(1000 * 2 / 1e6)


def test_long_inputs_cost_what_the_tier_says() -> None:
    prices = Prices(1, 2, above_tokens=1000, above=Prices(2, 4))
    assert prices.cost_usd(Usage(1000, output_tokens=10)) == pytest.approx((1000 + 20) / 1e6)
    assert prices.cost_usd(Usage(1001, output_tokens=10)) == pytest.approx((2002 + 40) / 1e6)
