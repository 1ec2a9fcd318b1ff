"""What the service's cache holds, learned from the reads it reports."""

from __future__ import annotations

import itertools

import pytest

from context.conversation import MINUTE, NOW_MS, SECOND, Conversation, Service
from dragoman.context.cache import Cache
from dragoman.context.economics import Rates
from dragoman.context.settings import ContextSettings, PruneSettings
from dragoman.values.messages import Message, ToolCall, assistant, user
from dragoman.values.record import Entry, Said, encode_entry
from dragoman.values.record_reading import decode_entry
from dragoman.values.usage import Usage

RATES = Rates(0.1, 1.25)
OFF = ContextSettings(prune=PruneSettings(schedule="off"))


def conversation(service: Service | None = None) -> Conversation:
    """Some twelve thousand tokens, a prefix long enough to be cached anywhere."""
    held = Conversation(OFF, service=service)
    held.prompt("Look around. " * 1_000)
    held.commands(6)
    return held


def warm_after(held: Conversation, ms: int) -> bool:
    return held.history.cache.is_warm(held.history.cache.calls[-1].timestamp_ms + ms, RATES)


def call_again(held: Conversation, after_ms: int) -> None:
    """The next request is asked for that long after the last answer."""
    held.now_ms = held.history.cache.calls[-1].timestamp_ms + after_ms
    held.prompt("and now?")
    held.answer()


def test_before_the_first_call_nothing_is_warm() -> None:
    cache = Cache()
    assert not cache.is_warm(NOW_MS, RATES)
    assert (cache.break_reason, cache.last, cache.calls) == ("", None, [])


def test_calls_are_what_the_service_counted() -> None:
    held = conversation()
    calls = held.history.cache.calls
    assert [call.warm for call in calls] == [False, True, True, True, True, True]
    assert [call.usage for call in calls] == [entry.usage for entry in held.history.entries if isinstance(entry, Said) and entry.usage]
    assert {(call.deployment, call.model) for call in calls} == {("here", "model")}
    assert [call.asked_ms <= call.timestamp_ms for call in calls] == [True] * 6


def test_until_something_is_learned_the_clock_decides() -> None:
    held = Conversation(OFF)
    held.prompt("short")
    held.answer()
    assert warm_after(held, 5 * MINUTE)
    assert not warm_after(held, 5 * MINUTE + 1)
    assert warm_after(held, -MINUTE), "a clock that went back makes nothing old"


def test_a_gap_after_which_the_prefix_was_read_raises_its_life() -> None:
    held = conversation(Service(ttl_ms=60 * MINUTE))
    call_again(held, 20 * MINUTE)
    assert held.history.cache.calls[-1].warm
    assert warm_after(held, 20 * MINUTE)
    assert not warm_after(held, 20 * MINUTE + 1)


def test_a_gap_after_which_it_was_gone_lowers_it() -> None:
    held = conversation(Service(ttl_ms=2 * MINUTE))
    call_again(held, 3 * MINUTE)
    assert not held.history.cache.calls[-1].warm
    assert not warm_after(held, 3 * MINUTE)
    assert warm_after(held, 3 * MINUTE - 1)
    held.service.ttl_ms = 60 * MINUTE
    call_again(held, 4 * MINUTE)
    assert warm_after(held, 5 * MINUTE), "a longer gap that it survived is believed again"


def test_a_miss_at_once_says_nothing_about_age() -> None:
    """Another machine answered."""
    held = conversation()
    held.service.ttl_ms = 0
    call_again(held, 3 * SECOND)
    assert not held.history.cache.calls[-1].warm
    assert warm_after(held, 5 * MINUTE)


def test_a_static_prefix_that_others_keep_warm_is_not_the_conversation() -> None:
    held = conversation()
    static = held.view.raw_static
    held.wait(20 * MINUTE)
    held.prompt()
    held.answer(usage=Usage(0, static, held.view.raw_tokens - static))
    assert not held.history.cache.calls[-1].warm
    assert not warm_after(held, 6 * MINUTE)


def test_nor_is_it_where_the_static_prefix_is_most_of_what_is_sent() -> None:
    """A long system prompt: half of the request and more was read, and yet nothing of the conversation."""
    held = Conversation(OFF)
    for read, total in ((0, 20_000), (20_000, 23_000), (23_000, 26_000)):
        held.prompt()
        held.answer(usage=Usage(0, read, total - read))
    held.wait(20 * MINUTE)
    held.prompt()
    held.answer(usage=Usage(0, 19_000, 8_000))
    assert [call.warm for call in held.history.cache.calls] == [False, True, True, False]
    assert not warm_after(held, 6 * MINUTE)


def test_a_service_that_never_reports_reads_has_no_cache() -> None:
    held = conversation(Service(caches=False))
    assert not warm_after(held, SECOND)
    held.prompt()
    held.answer(usage=Usage(0, held.view.raw_tokens, 0))
    assert warm_after(held, SECOND), "until it does"


def test_a_prefix_too_short_to_be_cached_teaches_nothing() -> None:
    held = Conversation(OFF, service=Service(caches=False))
    for _ in range(5):
        held.prompt("short")
        held.answer()
    assert held.view.raw_tokens < 4_096
    assert warm_after(held, SECOND)


def test_an_answer_that_was_not_counted_is_no_call() -> None:
    held = conversation()
    before = held.history.cache.calls[:]
    held.history.say(assistant("broken off"))
    assert held.history.cache.calls == before


# What breaks it


@pytest.mark.parametrize(
    ("why", "change"),
    [
        ("model", lambda held: held.history.change_model("other")),
        ("model", lambda held: held.history.change_model("model", "elsewhere")),
        ("system", lambda held: held.history.configure("model", "Be verbose.", held.view.tools)),
        ("tools", lambda held: held.history.configure("model", held.view.system, ())),
        ("compressed", lambda held: held.history.compress(held.history.entries[-1], user("summary"))),
        ("rewound", lambda held: held.history.rewind(held.history.entries[1])),
        ("pruned", lambda held: held.history.prune([held.view.outcomes[0].result.call_id], 900)),
    ],
)
def test_what_breaks_the_prefix_is_named_until_the_next_call(why: str, change) -> None:
    held = conversation()
    assert held.history.cache.break_reason == ""
    change(held)
    assert held.history.cache.break_reason == why
    assert not warm_after(held, SECOND)
    held.prompt()
    assert held.history.cache.break_reason == why
    held.answer()
    assert held.history.cache.break_reason == ""


def test_what_changes_nothing_sent_breaks_nothing() -> None:
    held = conversation()
    held.history.configure("model", held.view.system, held.view.tools)
    held.history.title("a title")
    held.history.prune([])
    held.history.not_compressed("failed", 10)
    assert held.history.cache.break_reason == ""
    held.history.change_model("other")
    held.history.change_model("model")
    assert held.history.cache.break_reason == "", "there and back again before anything was sent"


def test_going_back_no_further_than_the_last_call_loses_nothing() -> None:
    held = conversation()
    answered = held.history.entries[-2]
    assert answered.seq == held.history.cache.calls[-1].seq
    held.history.prune([held.view.outcomes[0].result.call_id], 900)
    assert held.history.cache.break_reason == "pruned"
    held.history.rewind(answered)
    assert held.history.cache.break_reason == "", "nor is what was pruned since then"


# What a change in the middle costs


@pytest.mark.parametrize("falls_back", [True, False])
def test_what_a_change_in_the_middle_loses_is_learned_from_the_next_answer(falls_back: bool) -> None:
    held = conversation(Service(falls_back=falls_back))
    assert held.history.cache.facts.falls_back is None
    held.history.prune([held.view.outcomes[4].result.call_id], 900)
    held.prompt()
    held.answer()
    assert held.history.cache.facts.falls_back is falls_back


def test_what_was_pruned_before_is_no_part_of_the_prefix_any_more() -> None:
    held = conversation()
    held.commands(1, lambda: held.command("x" * 40_000))
    held.commands(2)
    for position in (6, 7):
        held.history.prune([held.view.outcomes[position].result.call_id], 10_000)
        held.prompt()
        held.answer()
        assert held.history.cache.facts.falls_back is False
        held.history.cache._facts.clear()


@pytest.mark.parametrize("first", [False, True])
def test_where_both_would_look_alike_nothing_is_learned(first: bool) -> None:
    """The first result stands right behind the first prompt; and a cold cache reads nothing in either case."""
    held = conversation(Service(falls_back=True))
    held.history.prune([held.view.outcomes[0 if first else 4].result.call_id], 900)
    held.wait(0 if first else 10 * MINUTE)
    held.prompt()
    held.answer()
    assert held.history.cache.facts.falls_back is None


def test_each_model_is_learned_apart() -> None:
    held = conversation(Service(ttl_ms=60 * MINUTE))
    call_again(held, 20 * MINUTE)
    held.history.change_model("other")
    assert held.history.cache.facts.alive_ms == 0
    held.history.change_model("model")
    assert held.history.cache.facts.alive_ms == 20 * MINUTE


# Counting


def test_warm_calls_are_counted_from_a_moment_on() -> None:
    held = conversation()
    cache = held.history.cache
    asked = [call.asked_ms for call in cache.calls]
    assert cache.warm_calls_since([*asked, asked[-1] + 1]) == [5, 5, 4, 3, 2, 1, 0]


def test_a_clock_that_went_back_loses_no_warm_call() -> None:
    held = conversation()
    held.wait(-MINUTE)
    held.commands(9)
    cache = held.history.cache
    asked = list(itertools.accumulate((call.asked_ms for call in cache.calls if call.warm), max))
    moments = range(NOW_MS - MINUTE, NOW_MS + 3 * MINUTE, 5 * SECOND)
    assert cache.warm_calls_since(moments) == [sum(each >= moment for each in asked) for moment in moments]


def test_the_books_say_what_pruning_cost_and_brought() -> None:
    held = conversation()
    held.answer()
    cache = held.history.cache
    none = cache.books(RATES, 10_000)
    assert (none.premiums, none.saved) == (0, 0)
    spent = sum(0.1 * call.usage.cache_read_tokens + 1.25 * call.usage.cache_write_tokens for call in cache.calls)
    assert none.spent == pytest.approx(spent + 0.1 * min(10_000, cache.calls[-1].usage.input_tokens))
    held.history.prune([held.view.outcomes[0].result.call_id], 1_000, "pays", 500)
    assert cache.books(RATES, 10_000).saved == pytest.approx(100), "with the next request"
    held.answer()
    assert cache.books(RATES, 10_000).saved == pytest.approx(100), "the first is part of the premium"
    held.answer()
    books = cache.books(RATES, 10_000)
    assert (books.premiums, books.saved) == (500, pytest.approx(200))


def test_a_damaged_record_still_folds() -> None:
    """Numbers that jump and rewinds into nowhere."""
    cache = Cache()
    entries: list[Entry] = [Said(4, 10, assistant("a"), usage=Usage(9)), Said(2, 5, assistant("b"), usage=Usage(9))]
    for entry in entries:
        cache.feed(decode_entry(encode_entry(entry)))
    held = conversation()
    for to_seq in (0, 10_000):
        held.history.rewind(Said(to_seq, 0, user("x")))
    held.history.say(Message("assistant", (ToolCall("c", "run_shell"),)))
    assert cache.is_warm(20, RATES)
