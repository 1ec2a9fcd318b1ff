"""An answer that never ends is stopped: with a clear error, with what came kept, and with the memory flat."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncGenerator
from itertools import count
from typing import Any

import pytest

import dragoman as dm
from agents import make_agent
from dragoman.loop.options import AnswerPolicy, Limits, LoopLimits
from dragoman.providers.answer import AnswerBuilder, last_response
from dragoman.testing.script_steps import RawStep, Say, ScriptedAnswer, Stall
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.errors import AnswerTooLong, StreamBroken
from dragoman.values.events import StreamEvent, TextDelta, ThoughtDelta, ToolCallDelta, TurnFinished, UsageUpdated
from dragoman.values.messages import Request
from dragoman.values.partial import AnswerBound
from dragoman.values.record import AnswerRejected, Said
from dragoman.values.usage import Usage


class Endless(ScriptedProvider):
    """Sends pieces of one kind for ever."""

    def __init__(self, kind: str, piece: str = "0123456789") -> None:
        super().__init__("text: never played")
        self._kind, self._piece = kind, piece
        self.sent = 0

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        built = AnswerBuilder(set)
        for event in [*built.start("x", "m"), *built.set_usage(Usage(900))]:
            yield event
        call_id = built.begin_call("c", "look")[0] if self._kind == "arguments" else ""
        for number in count():
            self.sent += 1
            text = f"{number}{self._piece}"
            add = {"text": built.add_text, "thinking": built.add_thought}.get(self._kind)
            for event in add(text) if add is not None else built.add_arguments(call_id, text):
                yield event
            if number % 1000 == 0:
                await asyncio.sleep(0)


def run_endless(provider: ScriptedProvider, **policy: Any) -> tuple[dm.Agent, dm.Result, list[Any]]:
    async def go() -> tuple[dm.Agent, dm.Result, list[Any]]:
        limits = Limits(answers=AnswerPolicy(**policy), loop=LoopLimits(text_window=0))
        agent = make_agent(provider, builtin=False, describe=False, limits=limits)
        run = agent.run("hi")
        events = [event async for event in run if not isinstance(event, TextDelta | ThoughtDelta)]
        return agent, run.result, events

    return asyncio.run(go())


@pytest.mark.parametrize("kind", ["text", "thinking", "arguments"])
@pytest.mark.parametrize(("policy", "words"), [({"max_chars": 50_000}, "50,000 characters"), ({"max_events": 3_000}, "3,000 pieces")])
def test_an_endless_answer_is_stopped(kind: str, policy: dict[str, int], words: str) -> None:
    agent, result, events = run_endless(Endless(kind), **policy)
    assert (result.error_type, result.exit_code) == ("AnswerTooLong", 59)
    assert words in result.error
    assert result.usage == Usage(900, incomplete=1)
    assert any(isinstance(event, TurnFinished) for event in events)
    kept = [entry for entry in agent.history.entries if isinstance(entry, Said) and entry.by == "model"]
    if kind == "arguments":
        assert kept == [], "half a call is no part of an answer"
        return
    (said,) = kept
    chars = sum(len(part.text) for part in said.message.parts)  # type: ignore[union-attr]
    assert 25_000 < chars <= 50_000
    assert [entry.said_seq for entry in agent.history.entries if isinstance(entry, AnswerRejected)] == [said.seq], "it is not sent again"


def test_the_memory_stays_flat() -> None:
    """It grew by 6 MB a second. Here four times as much text passes as may be held at the most."""
    tracemalloc.start()
    try:
        run_endless(Endless("text", "x" * 1_000), max_chars=4_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40_000_000


def test_without_a_bound_it_is_as_long_as_it_is() -> None:
    provider = ScriptedProvider([ScriptedAnswer((Say("x" * 30_000, piece_chars=10),))])
    _, result, _ = run_endless(provider, max_chars=0, max_events=0)
    assert len(result.text) == 30_000


def test_the_next_prompt_is_answered() -> None:
    async def go() -> None:
        provider = Endless("text")
        agent = make_agent(provider, builtin=False, describe=False, limits=Limits(answers=AnswerPolicy(max_chars=1_000)))
        with pytest.raises(AnswerTooLong):
            await agent.run("hi")
        agent.change_model(ScriptedProvider("text: Here."))
        assert (await agent.run("and now?")).text == "Here."

    asyncio.run(go())


def test_a_provider_that_answers_at_once_by_streaming_is_bound_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.providers.answer.AnswerBound", lambda: AnswerBound(max_chars=5_000))
    with pytest.raises(AnswerTooLong):
        asyncio.run(last_response(Endless("text").stream(Request("m", ()))))


def test_events_that_add_nothing_are_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks without content keep a stream alive; not for ever."""
    monkeypatch.setattr("dragoman.providers.reading.MAX_SILENT_BYTES", 1_000)
    empty = b'data: {"id":"x","choices":[{"index":0,"delta":{}}]}\n\n'

    async def go() -> None:
        answer = ScriptedAnswer((Say("Hm."), RawStep(empty * 100), Stall()))
        async with dm.testing.MockServer([answer]) as server:
            provider = dm.connect("openai/gpt-4.1", base_url=f"{server.url}/v1", key="k" * 20)
            with pytest.raises(StreamBroken, match="no part of an answer"):
                async for _ in provider.stream(Request("gpt-4.1", (dm.user("hi"),))):
                    pass
            await provider.aclose()

    asyncio.run(go())


def test_arguments_that_came_in_pieces_count_once() -> None:
    bound = AnswerBound(max_chars=10)
    for event in (ToolCallDelta("c", '{"a":'), ToolCallDelta("c", "1}"), UsageUpdated(Usage(1))):
        bound.take(event)
    bound.take(dm.events.ToolCallReady(dm.ToolCall("c", "look", '{"a":1}')))
    with pytest.raises(AnswerTooLong):
        bound.take(TextDelta("abcd"))
