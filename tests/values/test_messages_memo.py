"""The memo of what was made of messages, shared by many agents: once for each message, never another's, and gone with its message."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.values.messages import Message, PerMessage, Text, assistant, user


def text_of(message: Message) -> list[str]:
    """A new object each time, to be told apart by identity."""
    return [message.text]


def conversation(name: object, length: int = 50) -> list[Message]:
    return [user(f"{name}: {number}") for number in range(length)]


# --- once for each message --------------------------------------------------------------------------------------------------------


def test_a_hundred_conversations_that_take_turns_are_rendered_once_each() -> None:
    memo = PerMessage(text_of)
    conversations = [conversation(name) for name in range(100)]
    for _ in range(4):
        for name, messages in enumerate(conversations):
            assert memo.over(messages) == [[f"{name}: {number}"] for number in range(50)]
    assert memo.computed == 5_000


@given(st.lists(st.lists(st.integers(0, 20), max_size=12), max_size=6))
def test_whatever_is_new_and_wherever_it_stands_each_message_has_its_own_value(requests: list[list[int]]) -> None:
    messages = conversation("all", 21)
    memo = PerMessage(text_of)
    first: dict[int, list[str]] = {}
    for chosen in requests:
        values = memo.over(tuple(messages[number] for number in chosen))
        assert values == [[messages[number].text] for number in chosen]
        for number, value in zip(chosen, values, strict=True):
            assert first.setdefault(number, value) is value
    assert memo.computed == len(first)


def test_equal_messages_are_kept_apart() -> None:
    memo = PerMessage(text_of)
    one, other = user("same"), user("same")
    assert memo(one) is memo(one)
    assert memo(one) is not memo(other)


def test_what_the_function_raises_is_raised_and_nothing_is_kept() -> None:
    memo = PerMessage(lambda message: {}[message.text])
    messages = conversation("no", 3)
    for _ in range(2):
        with pytest.raises(KeyError, match="no: 0"):
            memo.over(messages)
    assert not memo._memo


# --- gone with its message ----------------------------------------------------------------------------------------------------------


def test_a_conversation_that_is_dropped_leaves_nothing_behind() -> None:
    memo = PerMessage(text_of)
    kept, dropped = conversation("kept"), conversation("dropped")
    memo.over(kept)
    memo.over(dropped)
    assert len(memo._memo) == 100
    dropped.clear()
    gc.collect()
    assert len(memo._memo) == 50
    kept.clear()
    gc.collect()
    assert not memo._memo


def test_a_message_that_is_its_own_value_is_not_held() -> None:
    memo = PerMessage(lambda message: message)
    messages = conversation("same")
    assert all(value is message for value, message in zip(memo.over(messages), messages, strict=True))
    assert all(value is message for value, message in zip(memo.over(messages), messages, strict=True))
    assert memo.computed == 50
    messages.clear()
    assert not memo._memo


def test_messages_made_of_messages_live_as_long_as_those() -> None:
    """As with tools in text: what was rewritten is rendered, and the rendering is kept by what was rewritten."""
    rewritten = PerMessage(lambda message: assistant(message.text))
    rendered = PerMessage(text_of)
    messages = conversation("two")
    for _ in range(3):
        assert rendered.over(rewritten.over(messages)) == [[message.text] for message in messages]
        gc.collect()
    assert (rewritten.computed, rendered.computed) == (50, 50)
    del messages[10:]
    assert (len(rewritten._memo), len(rendered._memo)) == (10, 10)


def test_a_memo_that_is_dropped_lets_go_of_its_values() -> None:
    class Value:
        pass

    messages = conversation("stay", 3)
    memo = PerMessage(lambda message: Value())
    values = [weakref.ref(value) for value in memo.over(messages)]
    del memo
    gc.collect()
    assert [value() for value in values] == [None] * 3


# --- never another's ------------------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 7)), max_size=200))
def test_ids_are_used_again_and_never_confused(steps: list[tuple[bool, int]]) -> None:
    memo = PerMessage(text_of)
    living: list[Message | None] = [None] * 8
    for number, (is_new, place) in enumerate(steps):
        living[place] = user(f"message {number}") if is_new else None
        messages = [message for message in living if message is not None]
        assert memo.over(messages) == [[message.text] for message in messages]
        assert len(memo._memo) == len(messages)


def test_a_message_takes_the_place_of_a_dead_one_that_was_not_forgotten() -> None:
    """In Python 3.11, what should be called when a message dies is not called where the stack is full."""
    memo = PerMessage(text_of)
    memo._pop = lambda *_: None  # type: ignore[method-assign, assignment]
    dead = conversation("dead", 200)
    memo.over(dead)
    del dead
    alive: list[Message] = []
    while len(alive) < 10_000 and not (alive and id(alive[-1]) in memo._memo):  # until one lies where a dead one lay
        alive.append(user(f"message {len(alive)}"))
    assert id(alive[-1]) in memo._memo
    assert memo.over(alive) == [[message.text] for message in alive]
    assert memo.over(alive)[-1] is memo(alive[-1])


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_eight_threads_share_a_memo(hasty_threads: None) -> None:
    memo = PerMessage(text_of)
    shared = conversation("shared", 200)

    def work(name: int) -> None:
        for round_number in range(20):
            own = conversation((name, round_number), 20)
            for messages in (own, shared, [*shared, *own], own):
                assert memo.over(messages) == [[message.text] for message in messages]

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    gc.collect()
    assert len(memo._memo) == 200


def test_threads_that_compute_a_value_at_once_are_given_the_same_object() -> None:
    together = threading.Barrier(4, timeout=60)

    def compute(message: Message) -> list[str]:
        together.wait()  # all four compute it
        return text_of(message)

    memo = PerMessage(compute)
    messages = [user("hi")]
    with ThreadPoolExecutor(4) as threads:
        values = list(threads.map(lambda _: memo(messages[0]), range(4)))
    assert all(value is values[0] for value in [*values, memo(messages[0])])
    messages.clear()
    gc.collect()
    assert not memo._memo


# --- a message is a plain value, all the same --------------------------------------------------------------------------------------


@given(st.sampled_from(["user", "assistant"]), st.text())
def test_a_message_that_can_be_referred_to_weakly_is_still_equal_by_content(role: str, text: str) -> None:
    message = Message(role, (Text(text),))  # type: ignore[arg-type]
    PerMessage(text_of)(message)
    encoded = msgspec.json.encode(message)
    assert msgspec.json.decode(encoded) == {"role": role, "parts": [{"type": "text", "text": text}]}
    twins = [msgspec.json.decode(encoded, type=Message), pickle.loads(pickle.dumps(message)), copy.copy(message), copy.deepcopy(message)]
    twins.append(msgspec.structs.replace(message))
    for twin in twins:
        assert (twin, hash(twin), repr(twin)) == (message, hash(message), repr(message))
        assert msgspec.json.encode(twin) == encoded
    with pytest.raises(AttributeError, match="immutable"):
        message.role = "user"  # type: ignore[misc]
