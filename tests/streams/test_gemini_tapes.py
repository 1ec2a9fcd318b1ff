"""Gemini as it really answers: every recorded tape is read whole, and every signature goes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dragoman.providers.connect import Connection, connect
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.mock.validate import Rules, validate
from dragoman.values.events import ThoughtDelta
from dragoman.values.messages import FinishReason, Message, Request, Response, Thought, ToolSpec, user
from loopback_http import Received, answer, serving
from streaming import MODELS, answered, checked, collect, cut_at, prepared, results_for, signatures, streamed

GEMINI = MODELS["gemini"]
Tape = list[dict[str, Any]]


def tapes(corpora: Path) -> Iterator[tuple[str, Tape]]:
    """Every tape: its exchanges in the order in which they are played."""
    files = sorted((corpora / "gemini_tapes").glob("*.responses"))
    assert len(files) >= 40
    for file in files:
        yield file.name, [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def chunks_of(exchange: dict[str, Any]) -> list[dict[str, Any]]:
    response = exchange["response"]
    return response if isinstance(response, list) else [response]


def body_of(exchange: dict[str, Any]) -> bytes:
    """The recorded chunks as the service streams them."""
    return b"".join(b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\r\n\r\n" for chunk in chunks_of(exchange))


def parts_of(exchange: dict[str, Any]) -> list[dict[str, Any]]:
    return [part for chunk in chunks_of(exchange) for part in chunk["candidates"][0]["content"].get("parts", ())]


def check_against(exchange: dict[str, Any], response: Response) -> None:
    """What was decoded, against the tape itself."""
    parts = parts_of(exchange)
    message = response.message
    assert message.text == "".join(part.get("text", "") for part in parts if not part.get("thought"))
    thoughts = "".join(part["text"] for part in parts if part.get("thought"))
    assert "".join(part.text for part in message.parts if isinstance(part, Thought)) == thoughts
    called = [part["functionCall"] for part in parts if "functionCall" in part]
    assert [(call.name, call.args) for call in message.calls] == [(call["name"], call.get("args", {})) for call in called]
    assert len({call.id for call in message.calls}) == len(called)
    assert response.finish is (FinishReason.TOOL_CALLS if called else FinishReason.STOP)
    assert response.raw_finish == "STOP"
    usage = next((chunk["usageMetadata"] for chunk in reversed(chunks_of(exchange)) if "usageMetadata" in chunk), {})
    assert response.usage.input_tokens == usage.get("promptTokenCount", 0)
    assert response.usage.cache_read_tokens == usage.get("cachedContentTokenCount", 0)
    assert response.usage.thought_tokens == usage.get("thoughtsTokenCount", 0)
    assert response.usage.output_tokens == usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0)
    sent_back = prepared("gemini", user("hello"), message, *results_for(message) or [user("go on")])
    assert signatures(sent_back) == [part["thoughtSignature"] for part in parts if "thoughtSignature" in part] or not message.parts


# --- the tapes --------------------------------------------------------------------------------------------------------------


@pytest.mark.corpus
def test_every_tape_decodes(corpora: Path) -> None:
    """Text, thoughts, calls with unique ids, usage, finish; every signature goes back byte for byte."""
    for name, tape in tapes(corpora):
        for number, exchange in enumerate(tape):
            try:
                check_against(exchange, answered("gemini", body_of(exchange)))
            except Exception as error:
                error.add_note(f"{name}, exchange {number}")
                raise


@pytest.mark.corpus
def test_every_tape_decodes_however_it_is_cut(corpora: Path) -> None:
    random = Random(7)
    for _, tape in tapes(corpora):
        for exchange in tape:
            body = body_of(exchange)
            plain = streamed("gemini", body)
            for pieces in (1, 3, 30):
                assert streamed("gemini", cut_at(body, [random.randrange(len(body)) for _ in range(pieces)])) == plain


@pytest.mark.corpus
def test_headlines_of_recorded_thoughts_become_subjects(corpora: Path) -> None:
    told = 0
    for _, tape in tapes(corpora):
        for exchange in tape:
            thoughts = [part["text"] for part in parts_of(exchange) if part.get("thought")]
            events = [event for event in streamed("gemini", body_of(exchange)) if isinstance(event, ThoughtDelta)]
            assert [event.text for event in events] == thoughts
            for event in events:
                headline = event.text.split("**")[1]
                assert event.subject == headline.strip()
                assert headline not in event.description or headline in event.text.replace(headline, "", 1)
                told += 1
    assert told >= 20


@pytest.mark.corpus
def test_every_tape_plays_over_real_http(corpora: Path) -> None:
    """The real provider over a loopback server that replays the tape: streams as server-sent events, the rest as JSON.

    The conversation grows with every answer; each request must be one that the service would take.
    """

    async def play(name: str, tape: Tape) -> None:
        waiting = iter(tape)
        at: list[dict[str, Any]] = []

        async def replay(request: Received, writer: asyncio.StreamWriter) -> None:
            exchange = next(waiting)
            at.append(exchange)
            streams = exchange["method"] == "generateContentStream"
            assert (":streamGenerateContent?alt=sse" in request.target) == streams
            body = body_of(exchange) if streams else json.dumps(exchange["response"]).encode()
            kind = "text/event-stream" if streams else "application/json; charset=UTF-8"
            writer.write(answer(body, headers=f"Content-Type: {kind}\r\n"))

        async with serving(replay) as server:
            connection = connect(GEMINI, key="key", base_url=server.url, retry=RetryPolicy(attempts=1))
            history: tuple[Message, ...] = (user("hello"),)
            ids: list[str] = []
            names = {part["functionCall"]["name"] for exchange in tape for part in parts_of(exchange) if "functionCall" in part}
            tools = tuple(ToolSpec(name, "a tool") for name in sorted(names))
            for exchange in tape:
                request = Request(connection.model, history, tools=tools)
                response = await said(connection, request, streams=exchange["method"] == "generateContentStream")
                check_against(exchange, response)
                ids += [call.id for call in response.message.calls]
                history += (response.message, *(results_for(response.message) or [user("go on")]))
            assert at == tape
            assert len(set(ids)) == len(ids), name
            for received in server.requests:
                assert validate("gemini", json.loads(received.body), Rules(thought_signatures=True, temperature=False)) is None, name
            await connection.aclose()

    async def all_tapes() -> None:
        for name, tape in tapes(corpora):
            await play(name, tape)

    asyncio.run(all_tapes())


async def said(connection: Connection, request: Request, *, streams: bool) -> Response:
    return checked(await collect(connection, request)) if streams else await connection.generate(request)
