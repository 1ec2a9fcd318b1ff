"""`History.merge`: a service's own call history (document 000, 4.1, automaticFunctionCallingHistory), each entry once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.loop.history import History
from dragoman.values.errors import InputError
from dragoman.values.messages import FinishReason, Message, Response, Text, Thought, ToolCall, assistant, tool_result, user
from dragoman.values.parts import INTERRUPTED

words = st.sampled_from(["a", "b", "again"])


@st.composite
def exchanges(draw: st.DrawFn, prefix: str = "c") -> list[Message]:
    """Whole exchanges: a prompt, rounds of calls with their results, an answer. They repeat each other often."""
    messages: list[Message] = []
    for number in range(draw(st.integers(0, 3))):
        messages.append(user(draw(words)))
        for round_ in range(draw(st.integers(0, 2))):
            calls = [ToolCall(f"{prefix}{number}-{round_}-{each}", draw(words), "{}") for each in range(draw(st.integers(1, 2)))]
            messages.append(Message("assistant", (*([Thought("hm")] if draw(st.booleans()) else []), *calls)))
            results = [tool_result(call, draw(words)) for call in calls]
            messages += [user(*results)] if draw(st.booleans()) else [user(result) for result in results]
        messages.append(assistant(draw(words)))
    return messages


def history_of(messages: list[Message]) -> History:
    history = History()
    history.configure("m", deployment="gemini")
    history.merge(messages)
    return history


def pieces(messages: tuple[Message, ...] | list[Message]) -> list[object]:
    """What was said and done, without ids and thinking."""
    found: list[object] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, Text):
                found.append((message.role, part.text))
            elif isinstance(part, ToolCall):
                found.append((part.name, part.arguments))
            elif not isinstance(part, Thought):
                found.append((part.name, part.content))  # type: ignore[union-attr]
    return found


def with_other_ids(messages: list[Message]) -> list[Message]:
    """The same as a service returns it: without our ids, and without thinking."""
    found: list[Message] = []
    for message in messages:
        parts = [part for part in message.parts if not isinstance(part, Thought)]
        for place, part in enumerate(parts):
            if isinstance(part, ToolCall):
                parts[place] = ToolCall(f"x{part.id}", part.name, part.arguments)
        results = [tool_result(ToolCall(f"x{result.call_id}", result.name, ""), result.content[0].text) for result in message.results]  # type: ignore[union-attr]
        found.append(Message(message.role, tuple(results or parts)))
    return found


@given(known=exchanges(), new=exchanges("d"))
def test_the_history_a_service_returns_gives_each_entry_once(known: list[Message], new: list[Message]) -> None:
    history = history_of(known)
    before = len(history.entries)
    added = history.merge(with_other_ids([*known, *new]))
    assert pieces(history.curated()) == pieces([*known, *new])
    assert pieces(added) == pieces(new)
    assert not history.view.open_calls
    assert len({call.id for message in history.curated() for call in message.calls}) == sum(len(m.calls) for m in history.curated())
    assert all(entry.seq > 0 for entry in history.entries[before:])


@given(known=exchanges(), new=exchanges("d"), cut=st.integers(0, 20))
def test_merging_twice_changes_nothing(known: list[Message], new: list[Message], cut: int) -> None:
    """Whatever it ends with, a call without a result included."""
    returned = [*known, *new][: len(known) + cut]
    history = history_of(known)
    history.merge(returned)
    before = list(history.entries)
    assert history.merge(returned) == ()
    assert history.merge(with_other_ids(returned)) == ()
    assert history.entries == before


@given(known=exchanges(), new=exchanges("d"))
def test_a_history_that_grows_is_merged_message_by_message(known: list[Message], new: list[Message]) -> None:
    """An open call waits for its result in the next history, and gets it under our id."""
    history = history_of(known)
    returned = with_other_ids([*known, *new])
    for end in range(len(known), len(returned) + 1):
        history.merge(returned[:end])
    assert pieces(history.curated()) == pieces([*known, *new])


def test_a_shorter_history_is_known_already() -> None:
    talk = [user("a"), assistant("b"), user("c"), assistant("d")]
    history = history_of(talk)
    assert history.merge(talk[:2]) == ()
    assert history.merge(talk[2:]) == ()
    assert history.merge([user("e"), assistant("f")]) == (user("e"), assistant("f"))


def test_the_setup_message_may_stand_in_one_content_with_the_prompt_or_be_missing() -> None:
    def begun() -> History:
        history = History()
        history.configure("m")
        history.say(user("The setup."), "environment")
        history.say(user("Hello."))
        return history

    for returned in (
        [user("The setup."), user("Hello."), assistant("Hi.")],
        [user("The setup.", "Hello."), assistant("Hi.")],
        [user("Hello."), assistant("Hi.")],
    ):
        history = begun()
        assert history.merge(returned) == (assistant("Hi."),)
        assert history.merge(returned) == ()


def test_invalid_answers_are_left_out_and_a_call_in_the_middle_gets_a_result() -> None:
    call = ToolCall("1", "look", "{}")
    history = history_of([user("a"), Message("assistant", ()), user("b"), Message("assistant", (call,)), user("c"), assistant("d")])
    assert [message.text for message in history.curated() if message.role == "user" and not message.results] == ["a", "b", "c"]
    [result] = [result for message in history.curated() for result in message.results]
    assert result.content == (Text(INTERRUPTED),)


def test_histories_that_depart_from_each_other_are_refused_in_words_and_nothing_is_added() -> None:
    history = history_of([user("a"), assistant("b"), user("c")])
    before = list(history.entries)
    with pytest.raises(InputError, match="from its message 2 on; nothing was added"):
        history.merge([user("a"), assistant("x"), user("c"), assistant("d")])
    with pytest.raises(InputError, match=r"message 1 lacks"):
        history.merge([user("a"), {"role": "model"}])  # type: ignore[list-item]
    with pytest.raises(InputError, match="system"):
        history.merge([Message("system", (Text("x"),))])  # type: ignore[arg-type]
    assert history.entries == before


def test_what_was_streamed_here_and_returned_there_is_not_doubled() -> None:
    """The prompt and the calls are on the record already when the service returns the whole chain."""
    call = ToolCall("ours", "look", '{"at": "a.txt", "lines": 3}')
    history = history_of([user("Look.")])
    history.answer(Response(Message("assistant", (Thought("hm"), call)), FinishReason.TOOL_CALLS))
    theirs = ToolCall("", "look", '{"lines":3,"at":"a.txt"}')
    history.merge([user("Look."), Message("assistant", (theirs,)), user(tool_result(theirs, "x")), assistant("Seen.")])
    assert [call.id for message in history.curated() for call in message.calls] == ["ours"]
    assert [result.call_id for message in history.curated() for result in message.results] == ["ours"]
    assert history.curated()[-1].text == "Seen."


def test_a_long_history_of_one_message_over_and_over_is_quick() -> None:
    messages = [user("a"), assistant("a")] * 5_000
    history = history_of(messages)
    assert len(history.merge([*messages, user("b")])) == 1
