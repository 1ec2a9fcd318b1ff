"""What is sent is what the record says, always: forced choices, reminders and unreadable calls included. So `dragoman context --request`
shows what the next request is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec
import pytest

import dragoman as dm
from dragoman.context.view import View
from dragoman.errors import DragomanError
from dragoman.options import AnswerPolicy, Limits, TextOptions
from dragoman.testing import MockServer, ScriptedProvider
from dragoman.values.contracts import Provider
from dragoman.values.events import StreamEvent
from dragoman.values.messages import Request
from dragoman.values.notes import ANSWER_NOTE
from dragoman.values.wrapping import WrappingProvider

CALL = 'call: tides {"harbour": "Muscat"}'
PROTOCOLS = [("gemini", ""), ("openai", "/v1"), ("responses", "/v1"), ("anthropic", "")]
WRITTEN = '<tool_call>\n{"name": "tides", "arguments": {"harbour": "Muscat"}}\n</tool_call>'
UNREADABLE = 'text: <tool_call>{"name": "tides", "arguments": {"harbour": </tool_call>'


@dm.tool(read_only=True)
def tides(harbour: str) -> str:
    """When the tide is high."""
    return f"noon, at {harbour}"


class Noting(WrappingProvider):
    """Notes what it is asked, and what the record says at that moment."""

    def __init__(self, provider: Provider, record: Callable[[], dm.History]) -> None:
        super().__init__(provider)
        self._record = record
        self.asked: list[tuple[Request, Request, Request]] = []

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        history, replayed = self._record(), View()
        for entry in history.entries:
            replayed.feed(entry)
        self.asked.append((request, history.request, replayed.request))
        async for event in self.provider.stream(request):
            yield event


def asked_of(provider: Provider, *prompts: str, text: str = "", **options: Any) -> list[Request]:
    """What was asked, which is what the record said each time."""
    limits = Limits(answers=AnswerPolicy(delay_s=0))

    async def go() -> list[Request]:
        noting = Noting(dm.TextTools(provider, TextOptions(text)) if text else provider, lambda: agent.history)
        agent = dm.Agent(noting, tools=[tides], limits=limits, **options)
        async with agent:
            for prompt in prompts:
                try:
                    await agent.run(prompt)
                except DragomanError:
                    pass
        for sent, recorded, replayed in noting.asked:
            assert sent == recorded == replayed
        return [sent for sent, _, _ in noting.asked]

    return asyncio.run(go())


def choices(requests: list[Request]) -> list[str]:
    return [request.settings.tool_choice for request in requests]


def test_a_forced_choice_is_for_the_first_request_after_each_prompt() -> None:
    provider = ScriptedProvider("\n---\n".join([CALL, "text: At noon."] * 2))
    asked = asked_of(provider, "when?", "and tomorrow?", settings=dm.Settings(tool_choice="required"))
    assert choices(asked) == ["required", "auto", "required", "auto"]


def test_a_call_by_name_is_forced_and_then_free() -> None:
    asked = asked_of(ScriptedProvider(f"{CALL}\n---\n{CALL}\n---\ntext: At noon."), "when?", settings=dm.Settings(tool_choice="tides"))
    assert choices(asked) == ["tides", "auto", "auto"]


def test_none_stays_none() -> None:
    asked = asked_of(ScriptedProvider("text: I do not know."), "when?", settings=dm.Settings(tool_choice="none"))
    assert choices(asked) == ["none"]


def test_where_a_model_must_answer_in_words_the_record_says_so() -> None:
    history = dm.History()
    history.configure("m", "", [tides.spec], dm.Settings(tool_choice="required"))
    call = dm.ToolCall("c1", "tides", "{}")
    history.say(dm.user("when?"))
    history.say(dm.assistant(call))
    history.finish_tool(dm.tool_result(call, "noon"))
    history.say(dm.user(ANSWER_NOTE), "answer_now")
    assert history.request.settings.tool_choice == "none"
    history.say(dm.user("Go on."), "empty")
    assert history.request.settings.tool_choice == "none", "also where it is asked once more"
    history.say(dm.assistant("At noon."))
    history.say(dm.user("and tomorrow?"))
    assert history.request.settings.tool_choice == "required"


def test_after_calls_that_cannot_be_read_the_next_is_asked_for_under_a_schema() -> None:
    provider = ScriptedProvider("\n---\n".join([UNREADABLE] * 4 + ["text: Again."]))
    profile = msgspec.structs.replace(provider.profile(""), json_schema=True)
    provider.profile = lambda model: profile  # type: ignore[method-assign]
    asked = asked_of(provider, "when?", "and now?", text="hermes")
    assert [bool(request.settings.response_schema) for request in asked] == [False, False, False, True, False]


SCRIPTS = {
    "a forced choice": ("", f"{CALL}\n---\nfinish: stop\n---\ntext: At noon.", 3),
    "calls in words": ("hermes", f"text: {json.dumps(WRITTEN)}\n---\nfinish: stop\n---\ntext: At noon.", 3),
    "calls that cannot be read": ("hermes", "\n---\n".join([UNREADABLE] * 4), 4),
}


@pytest.mark.parametrize("case", SCRIPTS)
@pytest.mark.parametrize(("service", "path"), PROTOCOLS)
def test_the_bytes_that_are_sent_are_those_of_the_record(service: str, path: str, case: str) -> None:
    text, script, requests = SCRIPTS[case]

    async def go() -> None:
        async with MockServer(script) as server:
            connected = dm.connect(service, base_url=server.url + path, key="any")
            provider = dm.TextTools(connected, TextOptions(text)) if text else connected
            noting = Noting(provider, lambda: agent.history)
            limits = Limits(answers=AnswerPolicy(delay_s=0))
            agent = dm.Agent(noting, tools=[tides], settings=dm.Settings(tool_choice="required"), limits=limits)
            async with agent:
                try:
                    await agent.run("when?")
                except DragomanError:
                    assert case == "calls that cannot be read"
            assert len(server.requests) == len(noting.asked) == requests
            for exchange, (_, _, replayed) in zip(server.requests, noting.asked, strict=True):
                assert provider.prepare(replayed).body == exchange.data

    asyncio.run(go())
