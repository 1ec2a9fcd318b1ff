"""One model round as the rest of the program sees it (TURN-1)."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from dragoman.loop.history import History
from dragoman.loop.model import Model
from dragoman.loop.options import AnswerPolicy
from dragoman.loop.turn import InvalidAnswer, Turn
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.events import (
    CitationAdded,
    ResponseStarted,
    Retrying,
    StreamInvalid,
    TextDelta,
    ThoughtDelta,
    ToolCallRequested,
    TurnEvent,
    TurnFinished,
)
from dragoman.values.messages import FinishReason, user


async def no_wait(_: float) -> None:
    pass


def turn(script: str) -> tuple[Turn, list[TurnEvent]]:
    history = History()
    history.configure("m")
    history.say(user("hello"))
    taken = Turn(Model.of(ScriptedProvider(script)), history, AnswerPolicy(sleep=no_wait), prompt_id="p1")
    events: list[TurnEvent] = []

    async def collect() -> None:
        async with aclosing(taken.run()) as told:
            async for event in told:
                events.append(event)  # noqa: PERF401 - what was told before it raised is kept

    try:
        asyncio.run(collect())
    except InvalidAnswer as error:
        events.append(error)  # type: ignore[arg-type]
    return taken, events


def test_text_thoughts_citations_and_the_end() -> None:
    taken, events = turn('thought: **Plan** look\ntext: Hi\ncite title="A": https://a.example\nusage: fresh=3 output=2')
    kinds = [type(event) for event in events]
    assert kinds[:2] == [ResponseStarted, ThoughtDelta]
    assert TextDelta in kinds
    assert CitationAdded in kinds
    finished = events[-1]
    assert isinstance(finished, TurnFinished)
    assert (finished.reason, finished.usage.output_tokens) == (FinishReason.STOP, 2)
    assert taken.response is not None


def test_the_id_of_a_response_is_told_before_its_content() -> None:
    taken, events = turn("text: Hi")
    assert taken.response is not None
    assert taken.response.response_id
    assert events[:2] == [ResponseStarted(taken.response.response_id, taken.response.model_version), TextDelta("Hi")]


def test_calls_are_requested_when_the_answer_is_complete() -> None:
    _, events = turn('call id=a: read_file {"file_path": "x"}\ncall id=b: glob {"pattern": "*"}')
    assert isinstance(events[1], TurnFinished)
    requested = [event for event in events if isinstance(event, ToolCallRequested)]
    assert [(event.call.id, event.call.name, event.call.args, event.prompt_id, event.client_initiated) for event in requested] == [
        ("a", "read_file", {"file_path": "x"}, "p1", False),
        ("b", "glob", {"pattern": "*"}, "p1", False),
    ]


def test_a_call_that_the_service_did_not_expect_is_never_requested() -> None:
    _, events = turn('call: run_shell {"command": "x"}\nfinish: UNEXPECTED_TOOL_CALL\n---\ntext: Sorry.')
    assert not [event for event in events if isinstance(event, ToolCallRequested)]
    assert [event for event in events if isinstance(event, Retrying)]


def test_a_retry_is_told_before_the_new_text() -> None:
    _, events = turn("thought: hm\n---\ntext: Hi")
    kinds = [type(event) for event in events]
    assert kinds.index(Retrying) < kinds.index(TextDelta)


def test_no_answer_at_all_is_an_invalid_stream() -> None:
    _, events = turn("finish: stop\n---\nfinish: stop")
    assert isinstance(events[-2], StreamInvalid)
    assert isinstance(events[-1], InvalidAnswer)


@pytest.mark.parametrize("piece", [1, 2, 5])
def test_deltas_add_up_to_the_answer(piece: int) -> None:
    taken, events = turn(f"text piece={piece}: One two three")
    assert taken.response is not None
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == taken.response.message.text
