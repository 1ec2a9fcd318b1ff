"""One conversation through four protocols: valid at each step, nothing lost, and each provider gets back what only it can read."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import msgspec

from destinations import connection
from dragoman.providers.connect import Connection
from dragoman.testing.mock.server import MockServer
from dragoman.testing.mock.validate import Rules
from dragoman.testing.script import Script
from dragoman.values.events import ResponseFinished
from dragoman.values.messages import Message, Request, Response, Thought, ToolSpec, tool_result, user

TOOLS = (ToolSpec.of("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),)
ROUTE = ("gemini", "anthropic", "openai_chat", "openai_responses", "gemini", "anthropic", "openai_responses")
BASE = {"gemini": "", "anthropic": "", "openai_chat": "/v1", "openai_responses": "/v1"}


def step(number: int) -> str:
    return f"""
thought signature="c2lnbmF0dXJl{number:04d}": Step {number} needs two files.
text: Reading for step {number}.
call: read_file {{"path": "{number}-a.txt"}}
call: read_file {{"path": "{number}-b.txt"}}
usage: fresh=10 output=5
"""


async def answered(provider: Connection, request: Request) -> Response:
    async with aclosing(provider.stream(request)) as events:
        async for event in events:
            last = event
    assert isinstance(last, ResponseFinished)
    return last.response


async def walk() -> tuple[list[Message], list[tuple[str, bytes]]]:
    """The conversation in the end, and what was sent at each step. The server refuses whatever the service would refuse."""
    messages: list[Message] = [user("Compare the files.")]
    sent: list[tuple[str, bytes]] = []
    providers: dict[str, Connection] = {}
    script = Script.parse("---".join(step(number) for number in range(len(ROUTE))))
    async with MockServer(script, rules=Rules(thought_signatures=True)) as server:
        for where in ROUTE:
            provider = providers.setdefault(where, connection(where, server.url + BASE[where]))
            request = Request(provider.model, tuple(messages), "Be brief.", TOOLS)
            sent.append((where, provider.prepare(request).body))
            response = await answered(provider, request)
            calls = response.message.calls
            assert len(calls) == 2
            messages += [response.message, user(*(tool_result(call, f"content of {call.args}") for call in calls))]
        assert [exchange.violation for exchange in server.requests] == [None] * len(ROUTE)
        for provider in providers.values():
            await provider.aclose()
    return messages, sent


def test_a_conversation_goes_through_all_providers_and_back() -> None:
    messages, sent = asyncio.run(walk())
    for number, (where, body) in enumerate(sent):
        text = body.decode()
        for earlier in range(number):
            assert f"Reading for step {earlier}." in text, (where, earlier)
            for name in ("a", "b"):
                assert text.count(f"{earlier}-{name}.txt") == 2, (where, earlier, name)  # the call and its result
    ids = [call.id for message in messages for call in message.calls]
    assert len(ids) == len(set(ids)) == 2 * len(ROUTE)


def test_what_only_a_provider_can_read_goes_back_to_it_and_to_nobody_else() -> None:
    messages, sent = asyncio.run(walk())
    payloads = [
        (part.opaque.provider, part.opaque.json)
        for message in messages
        for part in message.parts
        if getattr(part, "opaque", None) is not None
    ]
    assert {provider for provider, _ in payloads} == {"gemini", "anthropic", "responses"}
    names = {"gemini": "gemini", "anthropic": "anthropic", "openai_responses": "responses", "openai_chat": "openai"}
    for number, (where, body) in enumerate(sent):
        known = [payload for message in messages[: 1 + 2 * number] for payload in opaque_in(message)]
        for provider, json in known:
            assert (sent_back(provider, json) in body) == (provider == names[where]), (where, provider)


def test_thinking_of_another_provider_is_left_out_whole() -> None:
    messages, sent = asyncio.run(walk())
    assert any(isinstance(part, Thought) for message in messages for part in message.parts)
    where, body = sent[2]
    assert where == "openai_chat"
    assert b"needs two files" not in body
    decoded = msgspec.json.decode(body)
    assert all("reasoning_content" not in message for message in decoded["messages"])


def sent_back(provider: str, payload: str) -> bytes:
    """A payload as it goes back: unchanged, but for the id of OpenAI's reasoning, which names nothing where nothing is stored."""
    if provider != "responses":
        return payload.encode()
    return msgspec.json.encode({key: value for key, value in msgspec.json.decode(payload).items() if key != "id"})


def opaque_in(message: Message) -> list[tuple[str, str]]:
    return [(part.opaque.provider, part.opaque.json) for part in message.parts if getattr(part, "opaque", None) is not None]
