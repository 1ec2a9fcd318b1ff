"""Tokens: estimates offline, calibrated by what the service counts, and their error known."""

from __future__ import annotations

from pathlib import Path
from statistics import median, quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.context.tokens import MAX_SCALE, MIN_SCALE, Meter, message_tokens, part_tokens, text_tokens, tools_tokens
from dragoman.context.view import View
from dragoman.foreign.sessions import import_session
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.messages import Citation, FileRef, Message, Text, Thought, ToolCall, ToolResult
from property.conversations import PAPER, PICTURE, TOOLS

texts = st.text(st.characters(exclude_categories=()), max_size=60)  # lone halves of characters too
raws = st.integers(0, 10**6)


@given(texts)
def test_an_estimate_is_never_negative_and_only_nothing_is_nothing(text: str) -> None:
    assert text_tokens(text) >= 0
    assert (text_tokens(text) == 0) == (text == "")


@given(texts, texts)
def test_texts_add_up(first: str, second: str) -> None:
    """So a longer text never counts less, and what is new can be counted alone."""
    assert text_tokens(first + second) == pytest.approx(text_tokens(first) + text_tokens(second))


@given(st.text(st.characters(max_codepoint=127), min_size=1), st.sampled_from(["界", "한", "あ", "й", "é", "👩", "𠀀"]))
def test_other_scripts_count_for_more_than_as_many_letters(text: str, character: str) -> None:
    assert text_tokens(character * len(text)) > text_tokens(text)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("The quick brown fox jumps over the lazy dog.", 9, 12),
        ("敏捷的棕色狐狸跳过了懒狗。" * 4, 40, 60),
        ("すばしこい茶色の狐" * 4, 25, 45),
        ("Съешь же ещё этих мягких французских булок" * 2, 30, 50),
        ("👩‍👩‍👧‍👦👍🏽🎉", 12, 30),
        ("🎉" * 10, 20, 24),
        ("x" * 4_000, 900, 1_100),
    ],
)
def test_every_script_is_counted_about_right(text: str, least: int, most: int) -> None:
    assert least <= text_tokens(text) <= most


@given(st.lists(texts, max_size=5))
def test_a_message_counts_all_of_its_parts(found: list[str]) -> None:
    parts = tuple(Text(text) for text in found)
    assert message_tokens(Message("user", parts)) == pytest.approx(4 + sum(map(text_tokens, found)), abs=0.51)


def test_every_kind_of_part_counts() -> None:
    inside = (Text("x" * 390),)
    assert part_tokens(Text("x" * 390)) == part_tokens(Thought("x" * 390)) == pytest.approx(100)
    assert part_tokens(ToolResult("c", "run", inside)) > 100, "a result has a frame"
    assert part_tokens(ToolCall("c", "run", "x" * 390)) > 100, "so has a call"
    assert part_tokens(PICTURE) == part_tokens(FileRef("image/png", "https://example.com/a.png")) > 1_000
    assert part_tokens(PAPER) > 0
    assert part_tokens(MemoryBlobs().put("application/octet-stream", bytes(6_000))) == 100
    assert part_tokens(Citation("https://example.com", "a page", "")) == 0, "it is never sent back"
    assert tools_tokens(TOOLS) > sum(text_tokens(tool.parameters) for tool in TOOLS)


# --- calibrated


@given(raws, st.floats(0.5, 2))
def test_before_anything_was_reported_the_prior_is_gone_by(raw: int, prior: float) -> None:
    assert Meter().tokens(raw, prior) == round(raw * prior)
    assert Meter().scale(prior) == prior


@given(st.lists(st.tuples(raws, st.integers(1, 10**6)), min_size=1, max_size=20))
def test_what_was_counted_is_known_exactly(counted: list[tuple[int, int]]) -> None:
    meter = Meter()
    for raw, reported in counted:
        meter.observe(raw, reported)
        assert meter.tokens(raw) == reported
        assert MIN_SCALE <= meter.scale() <= MAX_SCALE


@given(st.lists(st.tuples(raws, st.integers(1, 10**6)), min_size=1, max_size=20), raws, raws)
def test_a_larger_request_is_never_taken_for_a_smaller_one(counted: list[tuple[int, int]], raw: int, more: int) -> None:
    meter = Meter()
    for seen in counted:
        meter.observe(*seen)
    assert 0 <= meter.tokens(raw) <= meter.tokens(raw + more)


@given(st.floats(0.5, 2.5), st.lists(st.integers(100, 20_000), min_size=2, max_size=30), st.integers(0, 50_000))
def test_the_factor_of_a_tokenizer_is_learned_whatever_is_sent_unseen(factor: float, growth: list[int], unseen: int) -> None:
    """After the first growth it is known; from then on the error is that of rounding."""
    meter, raw = Meter(), 1_000
    for more in [0, *growth]:
        raw += more
        meter.observe(raw, round(unseen + raw * factor))
    assert meter.scale() == pytest.approx(factor, rel=0.02)
    assert all(abs(error) < 0.02 for error in meter.errors[1:])


def test_something_that_came_unseen_is_not_taken_for_the_tokenizer() -> None:
    meter = Meter()
    meter.observe(1_000, 1_200)
    meter.observe(2_000, 2_400)
    meter.observe(2_100, 42_520)  # 40,000 of a file the record does not hold
    assert meter.scale() == pytest.approx(1.2)
    assert meter.tokens(3_100) == pytest.approx(42_520 + 1_200)


def test_every_error_is_kept_with_its_sign() -> None:
    meter = Meter()
    meter.observe(1_000, 1_000)
    assert meter.errors == []
    meter.observe(2_000, 2_500)
    meter.observe(3_000, 3_000)
    assert meter.errors == [pytest.approx(-0.2), pytest.approx((4_000 - 3_000) / 3_000)]


def test_only_the_newest_errors_are_kept() -> None:
    meter = Meter()
    for number in range(1_000):
        meter.observe(number, number + 1)
    assert len(meter.errors) == 500


# --- measured


@pytest.fixture(scope="module")
def errors(corpora: Path) -> dict[str, list[float]]:
    """Of each real session with usage: how far every anchored estimate was off."""
    found: dict[str, list[float]] = {}
    for path in sorted((corpora / "traces").glob("*/*.jsonl")):
        view = View()
        for entry in import_session(path).entries:
            view.feed(entry)
        found[path.name] = [abs(error) for error in view.meter.errors]
    return found


def test_the_total_of_real_requests_is_estimated_within_one_percent(errors: dict[str, list[float]]) -> None:
    """Median at most 1 %, p95 at most 3 %, over all sessions together."""
    pooled = [error for found in errors.values() for error in found]
    assert len(pooled) > 400
    assert median(pooled) <= 0.01
    assert quantiles(pooled, n=20)[-1] <= 0.03


def test_in_every_real_session_half_of_the_estimates_are_within_one_percent(errors: dict[str, list[float]]) -> None:
    assert max(map(median, errors.values())) <= 0.01
