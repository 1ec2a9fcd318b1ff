"""A setting that a service refuses is left out, once and for the model that refused it; what was asked is never changed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.providers.catalog import builtin_catalog
from dragoman.providers.connect import Connection, connect
from dragoman.providers.omitting import MAX_LEFT_OUT, OMITTABLE, fields_named, without_fields
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.mock.server import MockServer
from dragoman.testing.mock.validate import Rules
from dragoman.testing.script import Script
from dragoman.testing.script_steps import Fail, answer
from dragoman.values.errors import BadRequest, ContextOverflow
from dragoman.values.events import FieldOmitted, ResponseFinished, StreamEvent
from dragoman.values.messages import Request, Settings, Thinking, ToolSpec, user

UNVERIFIED = "Your organization must be verified to generate reasoning summaries. Please go to the settings and click on Verify."
THINKS = Settings(temperature=0.5, thinking=Thinking("medium"))


# --- a body without some fields -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("omit", "left"),
    [
        ((), {"a": 1, "temperature": 0.5, "reasoning": {"effort": "low", "summary": "auto"}}),
        (("temperature",), {"a": 1, "reasoning": {"effort": "low", "summary": "auto"}}),
        (("reasoning.summary",), {"a": 1, "temperature": 0.5, "reasoning": {"effort": "low"}}),
        (("reasoning.summary", "reasoning.effort"), {"a": 1, "temperature": 0.5}),
        (("reasoning",), {"a": 1, "temperature": 0.5}),
        (
            ("temperature.x", "a", "messages", "top_p", "thinking.display"),
            {"a": 1, "temperature": 0.5, "reasoning": {"effort": "low", "summary": "auto"}},
        ),
    ],
)
def test_only_what_may_go_goes_and_an_empty_object_with_it(omit: Sequence[str], left: dict[str, Any]) -> None:
    assert without_fields({"a": 1, "temperature": 0.5, "reasoning": {"effort": "low", "summary": "auto"}}, omit) == left


def test_options_of_a_stream_go_with_the_stream() -> None:
    assert without_fields({"stream": True, "stream_options": {"include_usage": True}}, ["stream"]) == {}


_VALUES = st.none() | st.integers() | st.text(max_size=3)
_BODIES = st.dictionaries(
    st.sampled_from(["temperature", "reasoning", "thinking", "generationConfig", "messages", "tools", "max_tokens", "response_format"]),
    _VALUES | st.dictionaries(st.sampled_from(["effort", "summary", "display", "temperature", "thinkingConfig"]), _VALUES),
)


@given(_BODIES, st.lists(st.sampled_from(sorted(OMITTABLE)) | st.text(max_size=5)))
def test_leaving_out_twice_is_leaving_out_once_and_never_touches_what_was_asked(body: dict[str, Any], omit: list[str]) -> None:
    left = without_fields(body, omit)
    assert without_fields(left, omit) == left
    assert without_fields(body, list(reversed(omit))) == left
    for field in ("messages", "tools", "max_tokens", "response_format"):
        assert (field in left, left.get(field)) == (field in body, body.get(field))


# --- which field an error names -------------------------------------------------------------------------------------------------

NAMED: list[tuple[str, str, str, str]] = [
    # service, param, words, the first field that may be meant: only one that was sent counts
    ("OpenAI, unverified", "reasoning.summary", UNVERIFIED, "reasoning.summary"),
    ("OpenAI, unverified, unnamed", "", UNVERIFIED, "reasoning.summary"),
    ("OpenAI, unverified to stream", "stream", "Your organization must be verified to stream this model.", "stream"),
    ("OpenAI, temperature", "temperature", "Unsupported value: 'temperature' does not support 0.5 with this model.", "temperature"),
    ("OpenAI, unknown", "", "Unknown parameter: 'reasoning.summary'.", "reasoning.summary"),
    ("OpenAI, unrecognized", "", "Unrecognized request argument supplied: reasoning_effort", "reasoning_effort"),
    ("OpenAI, effort", "reasoning.effort", "Unsupported value: 'minimal' is not supported with this model.", "reasoning_effort"),
    ("OpenAI, effort by value", "reasoning_effort", "Invalid value: 'xhigh'. Supported values are: 'low' and 'high'.", "reasoning_effort"),
    ("OpenAI, encrypted", "include", "Encrypted content is not supported with this model.", "include"),
    ("Azure", "", "Unrecognized request argument supplied: stream_options", "stream_options"),
    ("Mistral, effort", "", "reasoning_effort='medium' is not supported for this model. Must be one of (none, high)", "reasoning_effort"),
    ("Mistral, fields", "prompt_cache_key", "prompt_cache_key: Extra inputs are not permitted", "prompt_cache_key"),
    ("vLLM, fields", "", "[{'type': 'extra_forbidden', 'loc': ('body', 'top_k'), 'msg': 'Extra inputs are not permitted'}]", "top_k"),
    ("Groq, a property", "", "property 'prompt_cache_key' is unsupported", "prompt_cache_key"),
    ("Groq, effort", "", "`reasoning_effort` must be one of `low`, `medium`, or `high`", "reasoning_effort"),
    ("xAI", "", "Model grok-4 does not support parameter reasoningEffort.", "reasoning_effort"),
    ("DeepSeek", "", "Failed to deserialize: reasoning_effort: unknown variant `xhigh`, expected one of `low`, `high`", "reasoning_effort"),
    ("Kimi", "", "invalid temperature: only 1 is allowed for this model", "temperature"),
    ("Ollama", "", '"gemma3:4b" does not support thinking', "thinking"),
    ("Anthropic, temperature", "", "`temperature` is deprecated for this model.", "temperature"),
    ("Anthropic, binding", "", "thinking.adaptive.block_binding: Extra inputs are not permitted", "thinking.block_binding"),
    ("Anthropic, effort", "", "This model does not support the effort parameter.", "reasoning_effort"),
    ("Anthropic, adaptive", "", "adaptive thinking is not supported on this model", "thinking"),
    (
        "Gemini",
        "",
        "Invalid JSON payload received. Unknown name \"thinkingLevel\" at 'generation_config.thinking_config': Cannot find field.",
        "generationConfig.thinkingConfig.thinkingLevel",
    ),
    (
        "Vertex",
        "",
        "Invalid JSON payload received. Unknown name \"includeServerSideToolInvocations\" at 'tool_config': Cannot find field.",
        "toolConfig.includeServerSideToolInvocations",
    ),
    ("Gemini in words", "", "Thinking level is not supported for this model.", "generationConfig.thinkingConfig.thinkingLevel"),
    (
        "Gemini, temperature",
        "",
        "Invalid JSON payload received. Unknown name \"temperature\" at 'generation_config': Cannot find field.",
        "temperature",
    ),
]


@pytest.mark.parametrize(("service", "param", "words", "field"), NAMED, ids=[row[0] for row in NAMED])
def test_a_refused_setting_is_found_in_every_services_words(service: str, param: str, words: str, field: str) -> None:
    assert next(fields_named(BadRequest(words, status=400, field=param)), "") == field


@pytest.mark.parametrize(
    ("param", "words"),
    [
        ("max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model."),
        ("tools[0].function.parameters", "Invalid schema: 'temperature' is not supported."),
        ("messages[3].content", "reasoning is not supported here"),
        ("response_format", "response_format is not supported with reasoning"),
        ("text.format", "Unsupported: reasoning"),
        ("model", "The model does not support temperature."),
        ("", "messages.1.content.0: thinking blocks are not supported"),
        ("", "tools.0.custom: temperature is not supported"),
        ("", "Unknown name \"temperature\" at 'contents[0].parts[0]': Cannot find field."),
        ("", "Unknown name \"temperature\" at 'tools[0].function_declarations[0]': Cannot find field."),
        ("temperature", "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 1000 instead."),
        ("", "it has a temperature value of 1000 but the supported range is from 0 (inclusive) to 2.0001 (exclusive)."),
        ("", "The tool_choice parameter does not support being set to required in thinking mode"),
        ("", "Tool call validation failed: additionalProperties 'temperature' not allowed"),
        ("", "Invalid schema for function 'look': 'temperature' is not permitted."),
        ("", "JSON mode is not supported with thinking."),
        ("", "Request contains an invalid argument."),
        ("", "The image is not supported."),
    ],
)
def test_what_was_asked_and_values_out_of_range_are_the_users_to_mend(param: str, words: str) -> None:
    assert not list(fields_named(BadRequest(words, status=400, field=param)))


def test_only_a_refusal_counts() -> None:
    words = "Unsupported parameter: 'temperature'"
    assert not list(fields_named(ContextOverflow(words, status=400)))
    assert not list(fields_named(BadRequest(words, status=409)))
    assert list(fields_named(BadRequest(words, status=422)))


@given(st.text(max_size=60), st.text(max_size=20))
def test_no_words_break_the_reading(words: str, param: str) -> None:
    assert set(fields_named(BadRequest(words, status=400, field=param))) <= OMITTABLE


# --- over HTTP ------------------------------------------------------------------------------------------------------------------


def connected(model: str, server: MockServer) -> Connection:
    return connect(model, key="a-key", base_url=server.url, env={}, retry=RetryPolicy(attempts=1))


async def told(connection: Connection, request: Request) -> list[StreamEvent]:
    return [event async for event in connection.stream(request)]


def omitted(events: Sequence[StreamEvent]) -> list[str]:
    return [event.field for event in events if isinstance(event, FieldOmitted)]


def bodies(server: MockServer) -> list[dict[str, Any]]:
    return [exchange.body for exchange in server.requests]


CASES = [
    ("responses/gpt-6.1-sol", "reasoning.summary", UNVERIFIED),
    ("responses/gpt-6.1-sol", "reasoning.effort", "Unsupported value: 'medium' is not supported with this model."),
    ("mistral/mistral-medium-latest", "reasoning_effort", "reasoning_effort='medium' is not supported for this model."),
    ("openai/gpt-4.1", "temperature", "Unsupported value: 'temperature' does not support 0.5 with this model."),
    ("openai/gpt-4.1", "stream_options", "Unrecognized request argument supplied: stream_options"),
    ("openai/gpt-4.1", "prompt_cache_key", "Unknown parameter: 'prompt_cache_key'."),
    ("anthropic/claude-opus-5", "output_config.effort", "This model does not support the effort parameter."),
    (
        "gemini/gemini-3.8-flash",
        "generationConfig.thinkingConfig.thinkingLevel",
        "Unknown name \"thinkingLevel\" at 'generation_config.thinking_config': Cannot find field.",
    ),
]


@pytest.mark.parametrize(("model", "field", "words"), CASES)
def test_a_request_is_sent_once_more_without_the_refused_field(model: str, field: str, words: str) -> None:
    async def ask() -> None:
        async with MockServer(
            Script((answer("one"), answer("two"), answer("three"))), rules=Rules(refused_settings={field: words})
        ) as server:
            connection = connected(model, server)
            request = Request(connection.model, (user("hello"),), settings=THINKS, cache_key="k")
            try:
                events = await told(connection, request)
                assert isinstance(events[0], FieldOmitted), "told before the answer begins"
                assert (events[0].deployment, events[0].model) == (connection.name, connection.model)
                assert omitted(events) == [field]
                assert words[:20] in events[0].reason
                assert isinstance(events[-1], ResponseFinished)
                first, second = bodies(server)
                assert second == without_fields(first, [field]), "and in nothing else does it differ"

                assert omitted(await told(connection, request)) == [field], "who did not say it is told each time"
                assert len(server.requests) == 3, "but the field is not sent again"
                await connection.generate(request)
                assert len(server.requests) == 4
                assert connection.prepare(request).body == connection.prepare(_without(request, field)).body
            finally:
                await connection.aclose()

    asyncio.run(ask())


def _without(request: Request, field: str) -> Request:
    return Request(request.model, request.messages, settings=request.settings, cache_key=request.cache_key, omit=(field,))


def test_a_request_that_says_so_itself_is_not_told_of_it() -> None:
    async def ask() -> None:
        async with MockServer(Script((answer("one"),)), rules=Rules(refused_settings={"temperature": "is not supported"})) as server:
            connection = connected("openai/gpt-4.1", server)
            request = Request(connection.model, (user("hello"),), settings=THINKS, omit=("temperature",))
            assert not omitted(await told(connection, request))
            assert len(server.requests) == 1
            await connection.aclose()

    asyncio.run(ask())


def test_generate_does_the_same_and_teaches_the_stream() -> None:
    async def ask() -> None:
        async with MockServer(
            Script((answer("one"), answer("two"))), rules=Rules(refused_settings={"temperature": "not supported"})
        ) as server:
            connection = connected("openai/gpt-4.1", server)
            request = Request(connection.model, (user("hello"),), settings=THINKS)
            assert (await connection.generate(request)).message.text == "one"
            assert omitted(await told(connection, request)) == ["temperature"]
            assert ["temperature" in body for body in bodies(server)] == [True, False, False]
            await connection.aclose()

    asyncio.run(ask())


def test_several_fields_are_left_out_one_after_the_other_and_not_without_end() -> None:
    words = "Unsupported parameter"
    everything = dict.fromkeys(("temperature", "top_p", "reasoning_effort", "stream_options", "prompt_cache_key"), words)
    settings = Settings(temperature=0.5, top_p=0.5, thinking=Thinking("low"))

    async def ask(refused: dict[str, str]) -> tuple[int, list[str] | None]:
        async with MockServer(Script((answer("one"),)), rules=Rules(refused_settings=refused)) as server:
            catalog = builtin_catalog().with_rows({"openai": {"models": {"m": {"thinking": "effort", "temperature": True}}}})
            connection = connect("openai/m", key="a-key", base_url=server.url, env={}, catalog=catalog, retry=RetryPolicy(attempts=1))
            request = Request(connection.model, (user("hello"),), settings=settings, cache_key="k")
            try:
                return 0, omitted(await told(connection, request))
            except BadRequest:
                return len(server.requests), None
            finally:
                await connection.aclose()

    fewer = dict(list(everything.items())[:MAX_LEFT_OUT])
    assert asyncio.run(ask(fewer)) == (0, list(fewer))
    assert asyncio.run(ask(everything)) == (MAX_LEFT_OUT + 1, None)


def test_nothing_is_learned_from_a_request_that_fails_all_the_same() -> None:
    """The words were of something else: the second try is refused too, and its error is the one that is raised."""

    async def ask() -> None:
        script = Script((answer(Fail(400, "temperature is not supported")), answer(Fail(400, "No such image.")), answer("well")))
        async with MockServer(script) as server:
            connection = connected("openai/gpt-4.1", server)
            request = Request(connection.model, (user("hello"),), settings=THINKS)
            with pytest.raises(BadRequest, match="No such image"):
                await told(connection, request)
            assert not omitted(await told(connection, request))
            assert ["temperature" in body for body in bodies(server)] == [True, False, True]
            await connection.aclose()

    asyncio.run(ask())


def test_a_field_that_was_not_sent_is_not_left_out() -> None:
    async def ask() -> None:
        async with MockServer(Script((answer(Fail(400, "top_p is not supported", param="top_p")),))) as server:
            connection = connected("openai/gpt-4.1", server)
            with pytest.raises(BadRequest, match="top_p"):
                await told(connection, Request(connection.model, (user("hello"),), settings=THINKS))
            assert len(server.requests) == 1
            await connection.aclose()

    asyncio.run(ask())


def test_a_schema_and_the_tools_are_never_left_out() -> None:
    tool = ToolSpec.of("look", "Look.", {"type": "object", "properties": {}})
    settings = Settings(response_schema='{"type":"object","properties":{},"additionalProperties":false}', tool_choice="look")

    async def ask(field: str) -> None:
        async with MockServer(rules=Rules(refused_settings={field: f"Unsupported parameter: '{field}'"})) as server:
            connection = connected("openai/gpt-4.1", server)
            with pytest.raises(BadRequest, match=field):
                await told(connection, Request(connection.model, (user("hello"),), tools=(tool,), settings=settings))
            assert len(server.requests) == 1
            await connection.aclose()

    for field in ("response_format", "tool_choice", "tools", "messages"):
        asyncio.run(ask(field))


def test_an_organisation_that_may_not_stream_gets_its_answer_whole() -> None:
    async def ask() -> None:
        words = "Your organization must be verified to stream this model."
        async with MockServer(Script((answer("whole"),)), rules=Rules(refused_settings={"stream": words})) as server:
            connection = connected("openai/gpt-4.1", server)
            events = await told(connection, Request(connection.model, (user("hello"),)))
            assert omitted(events) == ["stream"]
            assert isinstance(events[-1], ResponseFinished)
            assert events[-1].response.message.text == "whole"
            await connection.aclose()

    asyncio.run(ask())


def test_what_one_model_refuses_is_still_sent_to_another() -> None:
    async def ask() -> None:
        script = Script((answer(Fail(400, "temperature is not supported")), answer("one"), answer("two")))
        async with MockServer(script) as server:
            connection = connected("openai/gpt-4.1", server)
            await told(connection, Request("gpt-4.1", (user("hello"),), settings=THINKS))
            await told(connection, Request("gpt-4.1-mini", (user("hello"),), settings=THINKS))
            assert ["temperature" in body for body in bodies(server)] == [True, False, True]
            await connection.aclose()

    asyncio.run(ask())


def test_many_at_once_over_one_provider_are_all_answered_and_all_told() -> None:
    """Two threads with an event loop each, eight requests in each, one provider."""
    results: list[list[StreamEvent]] = []

    async def crowd(connection: Connection) -> None:
        request = Request(connection.model, (user("hello"),), settings=THINKS)
        results.extend(await asyncio.gather(*(told(connection, request) for _ in range(8))))

    async def serve() -> None:
        rules = Rules(refused_settings={"temperature": "Unsupported parameter: 'temperature'"})
        async with MockServer(Script(tuple(answer("ok") for _ in range(17))), rules=rules) as server:
            connection = connected("openai/gpt-4.1", server)
            threads = [threading.Thread(target=lambda: asyncio.run(crowd(connection))) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                await asyncio.to_thread(thread.join)
            assert len(results) == 16
            assert all(omitted(events) == ["temperature"] and isinstance(events[-1], ResponseFinished) for events in results)
            before = len(server.requests)
            await told(connection, Request(connection.model, (user("hello"),), settings=THINKS))
            assert len(server.requests) == before + 1
            await connection.aclose()

    asyncio.run(serve())
