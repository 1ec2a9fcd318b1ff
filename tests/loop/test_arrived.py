"""What has arrived of an answer: all of it is kept however it was cut, and keeping it costs the same for each piece."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.clock import now_ms
from dragoman.loop.closing import record_broken, record_stopped
from dragoman.loop.history import History
from dragoman.values.events import (
    FieldOmitted,
    ResponseStarted,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallDelta,
    ToolCallReady,
    UsageUpdated,
)
from dragoman.values.messages import Text, Thought, ToolCall
from dragoman.values.partial import Arrived
from dragoman.values.parts import merge_text
from dragoman.values.record import Said, Spent
from dragoman.values.usage import Usage

texts = st.text(max_size=8)
events = st.one_of(
    st.builds(TextDelta, texts),
    st.builds(ThoughtDelta, texts),
    st.builds(lambda name: ToolCallReady(ToolCall("c", name, "{}")), st.sampled_from(["look", "run"])),
    st.builds(ToolCallDelta, st.just("c"), texts),
    st.builds(lambda tokens: UsageUpdated(Usage(tokens)), st.integers(0, 9)),
)


@given(st.lists(events, max_size=30))
def test_nothing_is_lost_and_the_order_is_kept(came: list[StreamEvent]) -> None:
    arrived = Arrived(now_ms)
    for event in came:
        arrived.add(event)
    message = arrived.message()
    assert message.text == "".join(event.text for event in came if isinstance(event, TextDelta))
    assert "".join(p.text for p in message.parts if isinstance(p, Thought)) == "".join(e.text for e in came if isinstance(e, ThoughtDelta))
    assert list(message.calls) == [event.call for event in came if isinstance(event, ToolCallReady)]
    assert all(
        type(first) is not type(second) or isinstance(first, ToolCall)
        for first, second in zip(message.parts, message.parts[1:], strict=False)
    )
    assert arrived.message() == message, "asking twice gives the same"


@given(st.lists(events, max_size=30))
def test_the_usage_is_the_last_that_was_told_and_never_whole(came: list[StreamEvent]) -> None:
    arrived = Arrived(now_ms)
    for event in came:
        arrived.add(event)
    told = [event.usage.fresh_tokens for event in came if isinstance(event, UsageUpdated)]
    assert arrived.usage() == Usage(told[-1] if told else 0, incomplete=1)
    arrived.finish()
    assert arrived.usage() is None


def test_what_was_not_sent_took_nothing() -> None:
    arrived = Arrived(now_ms)
    assert arrived.usage(may_have_cost=False) is None, "the service refused"
    arrived.begin(wait_s=60)
    assert arrived.usage() is None, "still waiting for the next attempt"
    arrived.add(FieldOmitted("d", "m", "temperature", "no"))
    assert arrived.usage() is None, "told before anything is sent"
    arrived.add(ResponseStarted())
    assert arrived.usage() == Usage(incomplete=1)


def test_two_hundred_thousand_pieces_and_ten_megabytes_are_recorded_in_time() -> None:
    """It took 18 s for 120,000 pieces when each was added to all that came before; now a third of a second for these."""
    history, arrived = History(), Arrived(now_ms)
    history.configure("m")
    for _ in range(200_000):
        arrived.add(TextDelta("forty-nine characters of an answer, and a space: "))
        arrived.add(ThoughtDelta(""))
    began = time.process_time()
    record_stopped(history, arrived)
    assert time.process_time() - began < 5
    said = history.entries[-1]
    assert isinstance(said, Said)
    assert len(said.message.text) == 200_000 * 49
    assert said.raw_finish == "cancelled"


def test_merging_many_texts_is_linear() -> None:
    parts = [Text("x" * 50)] * 200_000
    began = time.process_time()
    assert merge_text(parts) == (Text("x" * 10_000_000),)
    assert time.process_time() - began < 5


def test_an_attempt_of_which_nothing_came_is_recorded_as_spent() -> None:
    history, arrived = History(), Arrived(now_ms)
    history.configure("m")
    arrived.add(UsageUpdated(Usage(100)))
    record_broken(history, arrived, "cut")
    spent = history.entries[-1]
    assert isinstance(spent, Spent)
    assert (spent.model, spent.usage) == ("m", Usage(100, incomplete=1))
    assert history.request.messages == ()
