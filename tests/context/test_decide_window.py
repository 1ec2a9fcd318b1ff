"""How full the window is: pruning under pressure, and when compressing may be tried."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from context.conversation import MINUTE, PRICED, SECOND, Conversation
from context.test_decide import by, held
from dragoman.context.decide import Decider, Decision, has_grown
from dragoman.context.settings import CompressSettings, ContextSettings, PruneSettings
from dragoman.loop.history import History
from dragoman.values.messages import FinishReason, Response, assistant, user
from dragoman.values.usage import Usage

# Pressure


def pressed(window: int, commands: int, settings: ContextSettings | None = None) -> Conversation:
    conversation = Conversation(settings or by("auto", overhead=-1.0, share=1.0), msgspec.structs.replace(PRICED, context_window=window))
    conversation.prompt("work")
    conversation.commands(commands, lambda: conversation.command(takes_ms=45 * SECOND))
    return conversation


def test_under_pressure_everything_goes_at_once_and_again_after_ten_more_points() -> None:
    """With no overhead allowed, nothing else would ever go."""
    conversation = pressed(100_000, 140)
    levels = [(decision.tokens + decision.saved_tokens) / 100_000 for decision in conversation.pruned]
    after = [decision.tokens / 100_000 for decision in conversation.pruned]
    assert {decision.reason for decision in conversation.pruned} == {"pressure"}
    assert 0.5 < levels[0] < 0.52
    assert len(levels) > 1
    for before, again in zip(after, levels[1:], strict=False):
        assert max(0.5, before + 0.1) - 0.001 <= again < max(0.5, before + 0.1) + 0.03


def test_where_little_can_go_it_is_not_tried_at_every_request() -> None:
    """More than half of the window is what the user said: ten points lie between one try and the next."""
    conversation = Conversation(by("auto", overhead=-1.0, share=1.0), msgspec.structs.replace(PRICED, context_window=100_000))
    conversation.prompt("x" * 220_000)
    conversation.commands(70, lambda: conversation.command(takes_ms=45 * SECOND))
    levels = [(decision.tokens, decision.tokens + decision.saved_tokens) for decision in conversation.pruned]
    assert len(levels) > 2
    for (after, _), (_, again) in itertools.pairwise(levels):
        assert after + 10_000 <= again < after + 12_500


def test_a_request_that_failed_after_a_prune_under_pressure_is_no_new_pressure() -> None:
    conversation = pressed(60_000, 40)
    while conversation.request().reason != "pressure":
        conversation.command(takes_ms=45 * SECOND)
    conversation.wait(MINUTE)
    assert conversation.decide().reason in ("", "pruned")


def test_no_pressure_below_half_of_the_window() -> None:
    assert pressed(1_000_000, 60).pruned == []
    assert pressed(100_000, 60, by("economic")).pruned == busy_reasons(pressed(1_000_000, 60, by("economic"))), "auto's alone"


def busy_reasons(conversation: Conversation) -> list[Decision]:
    return [msgspec.structs.replace(decision, window=100_000) for decision in conversation.pruned]


# When compressing may be tried


def sized(tokens: int, settings: CompressSettings | None = None, window: int = 100_000) -> Conversation:
    """A conversation whose next request has about so many tokens."""
    conversation = Conversation(
        ContextSettings(PruneSettings("off"), settings or CompressSettings()), msgspec.structs.replace(PRICED, context_window=window)
    )
    conversation.prompt()
    grow(conversation, tokens)
    return conversation


def grow(conversation: Conversation, tokens: int) -> None:
    conversation.history.answer(answer := response(tokens))
    assert answer.usage.input_tokens == tokens


def response(tokens: int) -> Response:
    return Response(assistant("."), FinishReason.STOP, usage=Usage(tokens))


@pytest.mark.parametrize(
    ("tokens", "settings", "compress"),
    [
        (60_000, CompressSettings(), False),
        (71_000, CompressSettings(), True),
        (71_000, CompressSettings(enabled=False), False),
        (71_000, CompressSettings(threshold=0.8), False),
        (31_000, CompressSettings(threshold_tokens=30_000), True),
        (29_000, CompressSettings(threshold_tokens=30_000), False),
        (101_000, CompressSettings(threshold_tokens=500_000), True),
    ],
)
def test_compressing_is_due_over_the_threshold(tokens: int, settings: CompressSettings, compress: bool) -> None:
    assert sized(tokens, settings).decide().compress is compress


def test_pruning_goes_first() -> None:
    """What it saves may make compressing needless."""
    conversation = held("request")
    conversation.wait(20 * MINUTE)
    tokens, window = conversation.decide().tokens, conversation.view.tokens()
    assert tokens < window
    limit = CompressSettings(threshold_tokens=(tokens + window) // 2)
    conversation.decider = Decider(msgspec.structs.replace(conversation.settings, compress=limit))
    assert not conversation.decide().compress
    conversation.decider = Decider(ContextSettings(PruneSettings("off"), limit))
    assert conversation.decide().compress


@pytest.mark.parametrize("counted", [True, False])
def test_after_one_that_was_not_used_the_request_must_have_grown_by_a_tenth_then_by_a_fifth_and_three_are_enough(counted: bool) -> None:
    conversation = sized(72_000)
    for tried, grown in ((72_000, 79_300), (79_500, 95_500)):
        conversation.history.not_compressed("inflated", tried if counted else 0)
        assert not conversation.decide().compress
        for tokens, compress in ((tried, False), (grown - 200, False), (grown, True)):
            grow(conversation, tokens)
            assert conversation.decide().compress is compress
        assert not conversation.decide().shrink
    conversation.history.not_compressed("inflated", 95_500 if counted else 0)
    for tokens in (95_500, 120_000, 500_000):
        grow(conversation, tokens)
        assert not conversation.decide().compress
        assert conversation.decide().shrink
    grow(conversation, 60_000)
    assert not conversation.decide().shrink, "below the threshold nothing has to go"


def failed_thrice() -> Conversation:
    conversation = sized(72_000)
    for _ in range(3):
        conversation.history.not_compressed("failed", 10_000)
    assert not conversation.decide().compress
    return conversation


def test_a_summary_that_could_be_used_makes_up_for_those_before() -> None:
    conversation = failed_thrice()
    said = conversation.history.say(user("x"))
    conversation.history.compress(said, user("y"), 72_000, 30_000)
    grow(conversation, 72_000)
    assert not conversation.decide().compress, "an extract is none"
    conversation.history.compress(said, user("y"), 72_000, 30_000, model="model")
    grow(conversation, 72_000)
    assert conversation.decide().compress


def test_whoever_folds_the_same_record_waits_alike() -> None:
    """A session that is resumed, or a fork of it."""
    conversation = failed_thrice()
    again = History(entries=conversation.history.entries)
    assert again.cache.useless_summaries == conversation.history.cache.useless_summaries == 3
    assert not has_grown(CompressSettings(), 500_000, again.cache)


@pytest.mark.parametrize("counted", [True, False])
def test_never_two_in_a_row_without_progress(counted: bool) -> None:
    """A summary that is nearly as long as the window: not again before a fifth more was said."""
    conversation = sized(10)
    said = conversation.history.say(user("x" * 390_000))
    assert conversation.decide().compress
    conversation.history.compress(said, user("y" * 292_500), 100_000, 75_000 if counted else 0)
    assert conversation.decide().tokens > 70_000
    assert not conversation.decide().compress
    for tokens, compress in ((75_000, False), (89_000, False), (91_000, True)):
        grow(conversation, tokens)
        assert conversation.decide().compress is compress


@pytest.mark.parametrize("configured", [True, False])
def test_another_model_is_another_chance(configured: bool) -> None:
    conversation = sized(72_000)
    conversation.history.say(user("x" * 8_000))
    conversation.history.not_compressed("failed", 75_000)
    conversation.history.configure("model", "Other words.")
    assert not conversation.decide().compress, "other words alone are none"
    if configured:
        conversation.history.configure("smaller")
    else:
        conversation.history.change_model("smaller")
    conversation.profile = msgspec.structs.replace(PRICED, context_window=1_000)
    assert conversation.decide().compress


def test_a_rewind_takes_back_what_was_tried_after_it() -> None:
    conversation = sized(72_000)
    before = conversation.history.entries[-1]
    conversation.history.not_compressed("failed", 72_000)
    assert not conversation.decide().compress
    conversation.history.rewind(before)
    assert conversation.decide().compress
