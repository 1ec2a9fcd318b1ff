"""A key that a service repeats in its answer reaches nobody, however the answer was cut."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman as dm
from dragoman.providers.redact import REDACTED
from dragoman.providers.repeated_keys import HiddenKeys, HidingDecoder, keys_to_hide
from dragoman.providers.retry import RetryPolicy
from dragoman.values.events import (
    ResponseFinished,
    ResponseStarted,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallDelta,
    ToolCallReady,
    UsageUpdated,
)
from dragoman.values.messages import FinishReason, Message, Response, Text, ToolCall
from dragoman.values.parts import text_of
from program import KEY, PROTOCOLS, script, service

KEYS = ("abab1ab", "abab1abc", "b1")
"""They begin alike, and one lies inside the other."""


class Given:
    """A decoder that gives what it was given."""

    complete = ended = False

    def __init__(self, steps: Sequence[list[StreamEvent]]) -> None:
        self._steps = list(steps)

    def feed(self, name: str, data: bytes) -> list[StreamEvent] | None:
        return self._steps.pop(0)

    def close(self) -> list[StreamEvent]:
        return []


def told(steps: Sequence[list[StreamEvent]], keys: Sequence[str] = KEYS) -> list[StreamEvent]:
    decoder = HidingDecoder(Given(steps), HiddenKeys(sorted(keys, key=len, reverse=True)))
    events = [event for _ in range(len(steps)) for event in decoder.feed("", b"") or ()]
    return events + decoder.close()


def pieces(text: str, cuts: Sequence[int]) -> list[str]:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


TEXTS = st.text(alphabet="ab1c ", max_size=40)
CUTS = st.lists(st.integers(0, 100), max_size=12)
MAKERS: dict[str, Any] = {
    "text": (TextDelta, lambda event: event.text),
    "thought": (ThoughtDelta, lambda event: event.text),
    "arguments": (lambda text: ToolCallDelta("c", text), lambda event: event.arguments),
}


@pytest.mark.parametrize("kind", MAKERS)
@given(TEXTS, CUTS, st.booleans())
def test_however_an_answer_is_cut_it_is_told_alike_and_without_keys(kind: str, text: str, cuts: list[int], with_usage: bool) -> None:
    make, read = MAKERS[kind]
    steps: list[list[StreamEvent]] = [[make(piece)] for piece in pieces(text, cuts)]
    if with_usage:  # some services count after every piece
        steps = [[*step, UsageUpdated(dm.Usage())] for step in steps]
    events = [event for event in told(steps) if not isinstance(event, UsageUpdated)]
    said = "".join(read(event) for event in events)
    assert said == HiddenKeys(sorted(KEYS, key=len, reverse=True)).replace(text)
    assert not [key for key in KEYS if key in said.replace(REDACTED, "·")]


@given(TEXTS, CUTS)
def test_without_a_key_in_it_every_character_arrives(text: str, cuts: list[int]) -> None:
    events = told([[TextDelta(piece)] for piece in pieces(text, cuts)], ["zz-not-there", "ab1c ab1c ab1c ab1c ab1c ab1c ab1c ab1c ab1"])
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text


def test_what_is_held_back_comes_before_what_follows() -> None:
    call = ToolCallReady(ToolCall("c", "read_file", '{"file_path":"abab1ab"}'))
    events = told([[TextDelta("ab")], [ThoughtDelta("ab")], [TextDelta("a")], [call]], ["abab1ab"])
    assert events[:3] == [TextDelta("ab"), ThoughtDelta("ab"), TextDelta("a")]
    assert events[3] == ToolCallReady(ToolCall("c", "read_file", '{"file_path":"REDACTED"}'))


def test_calls_are_held_apart() -> None:
    steps: list[list[StreamEvent]] = [[ToolCallDelta("c", "aba")], [ToolCallDelta("d", "b1ab")]]
    assert told(steps, ["abab1ab"]) == [ToolCallDelta("c", "aba"), ToolCallDelta("d", "b1"), ToolCallDelta("d", "ab")]


def test_the_whole_answer_and_its_id_have_none_either() -> None:
    response = Response(Message("assistant", (Text("it is abab1ab"),)), FinishReason.STOP, response_id="id-abab1ab", detail="abab1ab")
    started, finished = told([[ResponseStarted("id-abab1ab")], [ResponseFinished(FinishReason.STOP, response)]], ["abab1ab"])
    assert started == ResponseStarted("id-REDACTED")
    assert isinstance(finished, ResponseFinished)
    assert "abab1ab" not in repr(finished)
    assert finished.response.message.parts == (Text("it is REDACTED"),)


def test_an_answer_without_keys_is_the_same_object() -> None:
    response = Response(Message("assistant", (Text("fine"),)), FinishReason.STOP)
    finished = ResponseFinished(FinishReason.STOP, response)
    assert told([[finished]])[0] is finished


@pytest.mark.parametrize(
    ("secret", "hidden"),
    [("ollama", False), ("lm-studio", False), ("not-needed", False), ("sk-no-key-required", False), (KEY, True), ("s3cret-x", True)],
)
def test_words_that_stand_in_for_a_key_are_left_in_answers(secret: str, hidden: bool) -> None:
    assert (secret in keys_to_hide([secret])) == hidden


# --- through every protocol


@pytest.mark.parametrize("model", PROTOCOLS.values(), ids=list(PROTOCOLS))
@pytest.mark.parametrize("piece", [1, 5, 1000])
def test_no_protocol_lets_it_through(model: str, piece: int) -> None:
    answer = f"text piece={piece}: Your key is {KEY}, is it not?"
    with service(script(answer, answer)) as served:
        connection = dm.connect(model, env=served.env)
        request = dm.Request(connection.model, (dm.user("hi"),))

        async def both() -> tuple[list[StreamEvent], Response]:
            events = [event async for event in connection.stream(request)]
            whole = await connection.generate(request)
            await connection.aclose()
            return events, whole

        events, whole = asyncio.run(both())
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Your key is REDACTED, is it not?"
    assert KEY not in repr(events) + repr(whole)
    assert text_of(whole.message.parts) == "Your key is REDACTED, is it not?"


def test_what_was_held_back_is_told_where_an_answer_breaks_off() -> None:
    """The text ends as the key begins, and then the connection is cut: no character is lost."""
    with service("text piece=3: It takes tasks\ncut") as served:
        connection = dm.connect(PROTOCOLS["anthropic"], env=served.env, retry=RetryPolicy(1))
        said = ""

        async def listen() -> None:
            nonlocal said
            try:
                async for event in connection.stream(dm.Request(connection.model, (dm.user("hi"),))):
                    said += event.text if isinstance(event, TextDelta) else ""
            finally:
                await connection.aclose()

        with pytest.raises(dm.ProviderError):
            asyncio.run(listen())
    assert said == "It takes tasks"


def test_the_id_of_a_refused_request_is_redacted_too() -> None:
    connection = dm.connect(PROTOCOLS["anthropic"], key=KEY, env={}, transport=Refusing())

    async def send() -> None:
        await connection.generate(dm.Request(connection.model, (dm.user("hi"),)))

    with pytest.raises(dm.ProviderError) as caught:
        asyncio.run(send())
    assert KEY not in str(caught.value) + caught.value.request_id + caught.value.code
    assert "[request id-of-REDACTED]" in str(caught.value)


class Refusing:
    """A service that answers with an error and repeats the key in every part of it."""

    @asynccontextmanager
    async def send(self, method: str, url: str, headers: Any, body: bytes) -> AsyncIterator[Any]:
        key = headers["x-api-key"]

        async def chunks() -> AsyncIterator[bytes]:
            yield json.dumps({"error": {"type": f"code-{key}", "message": f"bad key {key}"}}).encode()

        yield SimpleNamespace(status=400, headers={"request-id": f"id-of-{key}"}, chunks=chunks)

    async def preconnect(self, url: str) -> None: ...

    async def aclose(self) -> None: ...
