"""A service that pauses its answer is asked to go on, and the whole is one answer."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from dragoman.loop.history import History
from dragoman.loop.model import Model
from dragoman.loop.options import AnswerPolicy
from dragoman.loop.turn import Turn
from dragoman.providers.connect import connect
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.mock.server import MockServer
from dragoman.values.events import ResponseStarted, Retrying, TextDelta, ToolCallRequested, TurnEvent, TurnFinished
from dragoman.values.messages import Citation, FinishReason, Message, Response, Settings, Text, ToolCall, ToolSpec, assistant, user
from dragoman.values.partial import MAX_PAUSES, Pieces
from dragoman.values.record import Said
from dragoman.values.usage import Usage

MODEL = "claude-sonnet-5-5"
LOOK = ToolSpec.of("look", "Looks.", {"type": "object", "properties": {}})
PAUSE = "finish: pause_turn"


async def no_wait(_: float) -> None:
    pass


def turn(script: str, *, attempts: int = 1) -> tuple[Turn, list[TurnEvent], History, list[Any]]:
    """One turn with a search, over a server that refuses what the service refuses."""
    history = History()
    history.configure(MODEL, tools=(LOOK,), settings=Settings(search=True))
    history.say(user("Weather?"))
    events: list[TurnEvent] = []

    async def run() -> tuple[Turn, list[Any]]:
        async with MockServer(script) as server:
            connection = connect(
                f"anthropic/{MODEL}", key="k", base_url=server.url, env={}, retry=RetryPolicy(attempts=attempts, sleep=no_wait)
            )
            taken = Turn(Model.of(connection), history, AnswerPolicy(sleep=no_wait))
            async with aclosing(taken.run()) as told:
                async for event in told:
                    events.append(event)  # noqa: PERF401 - what was told before it raised is kept
            await connection.aclose()
            assert [exchange.violation for exchange in server.requests] == [None] * len(server.requests)
            return taken, server.requests

    taken, requests = asyncio.run(run())
    return taken, events, history, requests


def test_a_paused_answer_goes_on_by_itself_and_is_one_answer() -> None:
    taken, events, history, requests = turn(f"text: I look.\n{PAUSE}\n---\ntext: Still.\n{PAUSE}\n---\ntext: It is sunny.")
    assert taken.response is not None
    assert (taken.response.message.text, taken.response.finish) == ("I look.Still.It is sunny.", FinishReason.STOP)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "I look.Still.It is sunny."
    assert [type(event) for event in events if isinstance(event, ResponseStarted | TurnFinished)] == [ResponseStarted, TurnFinished]
    assert len(requests) == 3
    said = [entry for entry in history.entries if isinstance(entry, Said) and entry.by == "model"]
    assert [entry.raw_finish for entry in said] == ["pause_turn", "pause_turn", "end_turn"]
    assert taken.response.usage.output_tokens == sum(entry.usage.output_tokens for entry in said if entry.usage)


def test_each_piece_is_sent_back_as_it_came() -> None:
    _, _, history, requests = turn(f"text: I look.\n{PAUSE}\n---\ntext: Still.\n{PAUSE}\n---\ntext: Sunny.")
    sent = [[block["type"] for block in exchange.body["messages"][-1]["content"]] for exchange in requests]
    assert sent == [["text"], ["text", "server_tool_use"], ["text", "server_tool_use", "web_search_tool_result", "text", "server_tool_use"]]
    roles = [message.role for message in history.view.messages]
    assert roles == ["user", "assistant", "assistant", "assistant"]


def test_a_paused_answer_may_end_in_a_call() -> None:
    taken, events, history, _ = turn(f"text: I look.\n{PAUSE}\n---\ncall id=a: look {{}}")
    assert taken.response is not None
    assert [call.id for call in taken.response.message.calls] == ["a"]
    assert [event.call.id for event in events if isinstance(event, ToolCallRequested)] == ["a"]
    assert [call.id for call in history.view.open_calls] == ["a"]


def test_a_service_that_pauses_for_ever_is_asked_a_bounded_number_of_times() -> None:
    taken, _, _, requests = turn(f"script: end=repeat\ntext: More.\n{PAUSE}")
    assert len(requests) == MAX_PAUSES + 1
    assert taken.response is not None
    assert taken.response.message.text.count("More.") == MAX_PAUSES + 1


def test_what_stood_before_a_pause_still_stands_after_a_retry() -> None:
    """A retry voids what was shown; what came before the pause is shown again."""
    taken, events, _, requests = turn(f"text: I look.\n{PAUSE}\n---\nerror: 529\n---\ntext: Sunny.", attempts=2)
    assert len(requests) == 3
    retried = next(index for index, event in enumerate(events) if isinstance(event, Retrying))
    assert "".join(event.text for event in events[retried:] if isinstance(event, TextDelta)) == "I look.Sunny."
    assert taken.response is not None
    assert taken.response.message.text == "I look.Sunny."


def test_nothing_more_need_be_said_after_a_pause() -> None:
    taken, _, _, requests = turn(f"text: It is sunny.\n{PAUSE}\n---\nfinish: stop")
    assert len(requests) == 2
    assert taken.response is not None
    assert taken.response.message.text == "It is sunny."


# --- the pieces themselves ------------------------------------------------------------------------------------------------------


def paused(*parts: Any) -> Response:
    return Response(assistant(*parts), FinishReason.OTHER, "pause_turn", Usage(1, output_tokens=2), fault="paused")


@pytest.mark.parametrize("ending", [Response(assistant("b"), FinishReason.STOP), Response(assistant("b"), FinishReason.OTHER)])
def test_only_a_pause_is_a_piece(ending: Response) -> None:
    pieces = Pieces()
    assert not pieces.take(ending)
    assert pieces.join(ending) is ending
    assert not pieces.take(paused("I call.", ToolCall("a", "look")))


def test_the_pieces_are_joined_in_order() -> None:
    pieces = Pieces()
    assert pieces.take(paused("a", Citation("https://a.example")))
    assert pieces.text == "a"
    joined = pieces.join(Response(assistant("b"), FinishReason.LENGTH, "max_tokens", Usage(3, output_tokens=4)))
    assert joined.message == Message("assistant", (Text("a"), Citation("https://a.example"), Text("b")))
    assert (joined.finish, joined.usage, joined.fault) == (FinishReason.LENGTH, Usage(4, output_tokens=6), "")
    assert pieces.join().message.text == "a"
