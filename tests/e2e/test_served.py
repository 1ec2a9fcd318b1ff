"""A real model over three protocols, through our own providers. What is asserted is the protocol and the constraint, not the wit."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from dragoman.loop.agent import Agent
from dragoman.providers.catalog import builtin_catalog
from dragoman.providers.connect import Connection, connect
from dragoman.text_tools.wrapper import TextTools
from dragoman.values import errors
from dragoman.values.bound_answer import constrain_request
from dragoman.values.events import PromptRead, ResponseFinished, ResponseStarted, StreamEvent, TextDelta, UsageUpdated
from dragoman.values.messages import FinishReason, Request, Settings, ToolSpec, user
from dragoman.values.schema import problems

LONG = bool(os.environ.get("DRAGOMAN_LONG"))
BASES = {"openai_chat": "/v1", "openai_responses": "/v1", "anthropic": ""}
IN_PROCESS = "in_process"
READ = ToolSpec.of(
    "read_file", "Read a file", {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}
)
LIST = ToolSpec.of("list_directory", "List a folder", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
    "required": ["city"],
    "additionalProperties": False,
}
PROFILE = {"context_window": 4096, "max_output_tokens": 256, "tools": "text", "strict_template": True, "first_event_s": 120}


SCHEMA_FIELDS: dict[str, dict[str, Any]] = {
    "openai_chat": {},
    # This server does not read `text.format`; what it reads of Chat Completions it reads here too.
    "openai_responses": {"extra_body": {"response_format": {"type": "json_schema", "json_schema": {"schema": CITY}}}},
    IN_PROCESS: {},
}
"""What a deployment needs so that an answer is bound to CITY. Messages are not here: this server binds them by no field (`output_config`,
`json_schema` and `response_format` were tried)."""


def connected(protocol: str, request: pytest.FixtureRequest, **fields: Any) -> Connection:
    if protocol == IN_PROCESS:
        weights = request.getfixturevalue("weights")
        return connect("local/smollm2", env={"DRAGOMAN_LOCAL_MODEL": str(weights), "DRAGOMAN_LOCAL_THREADS": "1"})
    url = request.getfixturevalue("served") + BASES[protocol]
    profile = PROFILE | {"json_schema": protocol == "openai_chat"}
    row = {"protocol": protocol, "base_url": url, "auth": "none", "local": True, "profile": profile, **fields}
    return connect("served/smollm2", env={}, catalog=builtin_catalog().with_rows({"served": row}))


@pytest.fixture(params=[*BASES, IN_PROCESS])
def model(request: pytest.FixtureRequest) -> Connection:
    """The same weights, over each protocol and within this process."""
    return connected(request.param, request)


def asked(model: Connection, prompt: str, *, tools: tuple[ToolSpec, ...] = (), **settings: Any) -> Request:
    given = Settings(**{"max_output_tokens": 32, "temperature": 0.0, **settings})
    return Request(model.model, (user(prompt),), "Be brief.", tools, given)


async def events_of(provider: Any, request: Request) -> list[StreamEvent]:
    async with aclosing(provider.stream(request)) as events:
        return [event async for event in events]


def last(events: list[StreamEvent]) -> ResponseFinished:
    assert isinstance(events[-1], ResponseFinished)
    return events[-1]


def test_an_answer_streams_in_pieces_and_ends_with_its_end(model: Connection) -> None:
    events = asyncio.run(events_of(model, asked(model, "Count from one to ten in words.")))
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert isinstance(events[0], ResponseStarted)
    assert len(texts) > 1
    assert "".join(texts) == last(events).response.message.text != ""
    assert last(events).reason in (FinishReason.STOP, FinishReason.LENGTH)


def test_how_far_it_is_with_a_long_prompt_is_told(weights: Path) -> None:
    local = connect("local/smollm2", env={"DRAGOMAN_LOCAL_MODEL": str(weights), "DRAGOMAN_LOCAL_THREADS": "1"})
    events = asyncio.run(events_of(local, asked(local, "Say hello. " * 40, max_output_tokens=4)))
    done = [event.done_tokens for event in events if isinstance(event, PromptRead)]
    assert len(done) > 2
    assert done == sorted(done)
    assert done[-1] == next(event.total_tokens for event in events if isinstance(event, PromptRead)) > 100


def test_what_it_took_is_told(model: Connection) -> None:
    events = asyncio.run(events_of(model, asked(model, "Say hello.")))
    usage = last(events).response.usage
    assert 10 < usage.input_tokens < 100
    assert 0 < usage.output_tokens <= 32
    assert any(isinstance(event, UsageUpdated) for event in events)


@pytest.mark.parametrize("protocol", SCHEMA_FIELDS)
def test_an_answer_is_bound_to_a_schema(protocol: str, request: pytest.FixtureRequest) -> None:
    model = connected(protocol, request, **SCHEMA_FIELDS[protocol])
    response = asyncio.run(model.generate(asked(model, "Name a city.", response_mime="application/json", response_schema=json.dumps(CITY))))
    assert problems(CITY, json.loads(response.message.text)) == []


@pytest.mark.parametrize("temperature", [0.0, 1.0] if LONG else [0.0])
def test_no_call_is_made_that_does_not_fit_and_none_is_unreadable_under_constraint(model: Connection, temperature: float) -> None:
    request = asked(model, "What is in notes.txt?", tools=(READ, LIST), temperature=temperature, max_output_tokens=32)
    response = last(asyncio.run(events_of(TextTools(model), constrain_request(request)))).response
    for call in response.message.calls:
        assert problems({tool.name: tool.schema for tool in (READ, LIST)}[call.name], call.args) == []
    if model.profile(model.model).json_schema:
        assert response.finish in (FinishReason.TOOL_CALLS, FinishReason.STOP, FinishReason.LENGTH), response


def test_an_answer_that_is_left_frees_the_server(model: Connection) -> None:
    async def leave() -> str:
        async with aclosing(model.stream(asked(model, "Write a very long story.", max_output_tokens=250))) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        return (await asyncio.wait_for(model.generate(asked(model, "Say hello.")), 60)).message.text

    assert asyncio.run(leave())


def test_a_prompt_that_does_not_fit_is_told_with_its_size(model: Connection) -> None:
    with pytest.raises(errors.ContextOverflow, match=r"[4-9]\d{3} tokens"):
        asyncio.run(model.generate(asked(model, "word " * 8500)))


def test_a_run_holds_whatever_the_model_says(model: Connection, tmp_path: Path) -> None:
    """Every call has its result, and the run ends with words or with an error that has a name."""
    (tmp_path / "notes.txt").write_text("The meeting is on Thursday.\n")

    async def run() -> Agent:
        agent = make_agent(model, workspace=tmp_path, builtin=("read_file",), describe=False, settings=Settings(max_output_tokens=32))
        async with agent:
            try:
                await agent.run("Read notes.txt. On which day is the meeting?")
            except (errors.ProviderError, errors.OutputLimit, errors.LoopDetected):
                pass
        return agent

    view = asyncio.run(run()).history.view
    assert not view.open_calls
    calls = [call.id for message in view.messages for call in message.calls]
    assert calls == [result.call_id for message in view.messages for result in message.results]


def test_tokens_are_counted_as_the_model_counts_them(weights: Path) -> None:
    local = connect("local/smollm2", env={"DRAGOMAN_LOCAL_MODEL": str(weights), "DRAGOMAN_LOCAL_THREADS": "1"})
    request = asked(local, "How many tokens are this, and — naïvely — that?")

    async def both() -> tuple[int, int]:
        return await local.count_tokens(request), (await local.generate(request)).usage.input_tokens

    counted, used = asyncio.run(both())
    assert counted == used
