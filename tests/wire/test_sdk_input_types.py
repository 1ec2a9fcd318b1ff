"""The official SDKs as judges of what we send: their input types accept our bodies, and they send our fields as their own.

Types are read with pydantic. A field that a type does not know is dropped on reading, so that what comes back must equal what went in.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from dragoman.providers.connect import connect
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.mock.server import MockServer, ServedExchange
from dragoman.values.contracts import Provider
from dragoman.values.errors import BadRequest, RateLimited, Unauthorized
from dragoman.values.messages import Request, assistant, user
from lazily import Lazily
from wire.cases import BLOBS, CASES, call
from wire.destinations import BY_NAME, CATALOG, Destination

if TYPE_CHECKING:
    import anthropic
    import openai
    from google import genai
    from google.genai import types as genai_types
else:
    anthropic, openai, genai, genai_types = map(Lazily, ("anthropic", "openai", "google.genai", "google.genai.types"))

Json = dict[str, Any]
KEY = "a-key"
MESSAGES = "anthropic.types.message_create_params:MessageCreateParamsStreaming"
BETA_MESSAGES = "anthropic.types.beta.message_create_params:MessageCreateParamsStreaming"
CHAT = "openai.types.chat.completion_create_params:CompletionCreateParamsStreaming"
RESPONSES = "openai.types.responses.response_create_params:ResponseCreateParamsStreaming"
TYPES = {
    "anthropic": MESSAGES,
    "anthropic-budget": MESSAGES,
    "anthropic-adaptive": MESSAGES,
    "anthropic-bound": BETA_MESSAGES,
    "anthropic-bound-off": BETA_MESSAGES,
    "openai": CHAT,
    "openai-sampling": CHAT,
    "openai-hearing": CHAT,
    "openai-stranger": CHAT,
    "responses": RESPONSES,
    "responses-other-model": RESPONSES,
    "xai": RESPONSES,
}
"""Destinations that the types describe: the SDKs' own services, and what speaks their protocol without an accent."""

SENT = [name for name in CASES if name not in ("search", "search_and_tools", "json_schema_and_tools")]


@cache
def adapter(described: str) -> TypeAdapter[Any]:
    module, _, name = described.partition(":")
    return TypeAdapter(getattr(import_module(module), name))


def settled(value: Any) -> Any:
    """What pydantic read, with the iterators it leaves for later run to their end: only then are their items checked."""
    match value:
        case BaseModel():
            return settled(value.model_dump(exclude_unset=True))
        case dict():
            return {key: settled(item) for key, item in value.items()}
        case str() | int() | float() | None:
            return value
        case _:
            return [settled(item) for item in value]


@pytest.mark.parametrize("name", TYPES)
def test_the_sdk_types_accept_every_body(name: str) -> None:
    """The official SDKs are oracles."""
    to = BY_NAME[name]
    for case in [*SENT, *(["search"] if to.protocol != "openai_chat" else [])]:
        body = described(name, to.body(CASES[case]))
        try:
            read = settled(adapter(TYPES[name]).validate_python(body))
        except ValidationError as error:
            pytest.fail(f"{case}: {error}")
        assert read == body, case


def received(item: Json) -> Json:
    """An item of an answer as it was received. OpenAI's types know no other; without `store` the service wants no ids, and takes less."""
    if item["type"] == "reasoning":
        return {**item, "id": "rs_1"}
    if item.get("role") != "assistant":
        return item
    return {**item, "id": "msg_1", "status": "completed", "content": [{**block, "annotations": []} for block in item["content"]]}


def described(name: str, body: Json) -> Json:
    """A body without what Anthropic's types leave open: settings that only older models take, and a schema's words beyond the first."""
    if "input" in body:
        return {**body, "input": [received(item) for item in body["input"]]}
    if not name.startswith("anthropic-"):
        return body
    for tool in body.get("tools", ()):
        if schema := tool.get("input_schema"):
            tool["input_schema"] = {key: schema[key] for key in ("type", "properties", "required") if key in schema}
    return {key: value for key, value in body.items() if key not in ("temperature", "top_p", "top_k")}


@pytest.mark.parametrize("name", ["anthropic", "openai", "responses"])
def test_the_sdk_types_notice_what_they_do_not_know(name: str) -> None:
    """So that the test above can fail."""
    body = BY_NAME[name].body(CASES["one_call"])
    messages = "input" if name == "responses" else "messages"
    assert settled(adapter(TYPES[name]).validate_python({**body, "made_up": 1})) != {**body, "made_up": 1}
    for wrong in ({"role": "wizard", "content": "Hello."}, {"role": "user", "content": [{"type": "hologram"}]}):
        with pytest.raises(ValidationError):
            settled(adapter(TYPES[name]).validate_python({**body, messages: [wrong]}))


GEMINI = [to for to in BY_NAME.values() if to.protocol == "gemini"]


def gemini_config(body: Json) -> Json:
    """The SDK's config: what stands beside the contents, and the generation settings among it."""
    beside = {key: value for key, value in body.items() if key in ("systemInstruction", "tools", "toolConfig")}
    return {**body.get("generationConfig", {}), **beside}


@pytest.mark.parametrize("to", GEMINI, ids=[to.name for to in GEMINI])
def test_the_types_of_google_accept_every_body(to: Destination) -> None:
    """Their models forbid fields that they do not know."""
    for case in [*SENT, "search"]:
        body = to.body(CASES[case])
        assert set(body) <= {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"}
        try:
            for content in body["contents"]:
                genai_types.Content.model_validate_json(json.dumps(content))
            genai_types.GenerationConfig.model_validate_json(json.dumps(body.get("generationConfig", {})))
            genai_types.GenerateContentConfig.model_validate_json(json.dumps(gemini_config(body)))
        except ValidationError as error:
            pytest.fail(f"{case}: {error}")


def test_the_types_of_google_notice_what_they_do_not_know() -> None:
    """So that the test above can fail."""
    part = {"functionCall": {"name": "now", "args": {}, "thoughtSignature": "c2ln"}}
    with pytest.raises(ValidationError):
        genai_types.Content.model_validate_json(json.dumps({"role": "model", "parts": [part]}))
    with pytest.raises(ValidationError):
        genai_types.GenerateContentConfig.model_validate_json(json.dumps({"tools": [{"functionDeclarations": [{"schema": {}}]}]}))


# --- over real HTTP ---------------------------------------------------------------------------------------------------------

TELLING = [
    "single_prompt",
    "full_featured_request",
    "images_in_parallel_results",
    "another_provider_in_mid_loop",
    "anthropic_thinking_in_two_steps",
    "responses_reasoning_twice",
    "gemini_signed_thought",
    "odd_characters",
    "json_schema_strict",
]


def served(
    to: Destination, client: Callable[[str], Awaitable[None]], source: str = "script: end=repeat\ntext: Hello."
) -> list[ServedExchange]:
    """Run a client against the loopback server under the destination's rules, and hand back what the server was asked."""

    async def run() -> list[ServedExchange]:
        async with MockServer(source, key=KEY, rules=to.rules) as server:
            await client(server.url)
        return server.requests

    return asyncio.run(run())


def checked(to: Destination, exchanges: list[ServedExchange], essence: Callable[[Json], Json] = lambda body: body) -> None:
    assert [(each.status, each.violation) for each in exchanges] == [(200, None)] * len(TELLING)
    for case, exchange in zip(TELLING, exchanges, strict=True):
        assert essence(exchange.body) == essence(to.body(CASES[case])), case


def test_the_anthropic_sdk_sends_our_fields_and_is_answered() -> None:
    to = BY_NAME["anthropic"]

    async def client(url: str) -> None:
        async with anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as sdk:
            for case in TELLING:
                async for _ in await sdk.messages.create(**to.body(CASES[case])):
                    pass

    checked(to, served(to, client))


def test_the_openai_sdk_sends_our_chat_fields_and_is_answered() -> None:
    to = BY_NAME["openai"]

    async def client(url: str) -> None:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as sdk:
            for case in TELLING:
                async for _ in await sdk.chat.completions.create(**to.body(CASES[case])):
                    pass

    checked(to, served(to, client))


def test_the_openai_sdk_sends_our_responses_fields_and_is_answered() -> None:
    to = BY_NAME["responses"]

    async def client(url: str) -> None:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as sdk:
            for case in TELLING:
                async for _ in await sdk.responses.create(**to.body(CASES[case])):
                    pass

    checked(to, served(to, client))


def test_the_google_sdk_sends_our_fields_and_is_answered() -> None:
    to = BY_NAME["gemini"]

    async def client(url: str) -> None:
        options = genai_types.HttpOptions(base_url=url, api_version="v1beta")
        async with genai.Client(api_key=KEY, http_options=options).aio as sdk:
            for case in TELLING:
                body = to.body(CASES[case])
                contents = [genai_types.Content.model_validate_json(json.dumps(each)) for each in body["contents"]]
                config = genai_types.GenerateContentConfig.model_validate_json(json.dumps(gemini_config(body)))
                config.automatic_function_calling = genai_types.AutomaticFunctionCallingConfig(disable=True)
                async for _ in await sdk.models.generate_content_stream(model=to.row[1], contents=contents, config=config):
                    pass

    checked(to, served(to, client), as_google_writes)


def as_google_writes(body: Json) -> Json:
    """A body without what the SDK writes in another way: names in snake case, base64 in the other alphabet, levels in capitals."""

    def plain(value: Any, key: str = "") -> Any:
        match value:
            case dict():
                named = {re.sub(r"_([a-z])", lambda found: found[1].upper(), name): item for name, item in value.items()}
                return {name: plain(item, name) for name, item in named.items()}
            case list():
                return [plain(item, key) for item in value]
            case str() if key in ("data", "thoughtSignature"):
                return value.replace("-", "+").replace("_", "/").rstrip("=")
            case str() if key == "thinkingLevel":
                return value.upper()
            case _:
                return value

    found = plain(body)
    found.get("systemInstruction", {}).pop("role", None)
    return {key: value for key, value in found.items() if value != {}}


@pytest.mark.parametrize("name", ["anthropic", "openai", "responses", "gemini", "anthropic-bound", "vllm", "mistral", "deepseek", "kimi"])
def test_our_provider_sends_what_it_prepared_and_is_answered(name: str) -> None:
    to = BY_NAME[name]

    async def client(url: str) -> None:
        provider = ours(to, url)
        for case in TELLING:
            response = await provider.generate(to.addressed(CASES[case]))
            assert response.message.text == "Hello."
        await provider.aclose()

    exchanges = served(to, client)
    assert [(each.status, each.violation) for each in exchanges] == [(200, None)] * len(TELLING)
    for case, exchange in zip(TELLING, exchanges, strict=True):
        prepared = to.body(CASES[case])
        for field in ("stream", "stream_options"):  # Anthropic's long answers are streamed even if they are wanted whole
            prepared.pop(field, None)
            exchange.body.pop(field, None)
        assert exchange.body == prepared, case


def ours(to: Destination, url: str, key: str = KEY) -> Provider:
    base = url if to.protocol in ("anthropic", "gemini") else f"{url}/v1"
    return connect(to.model, key=key, base_url=base, env={}, catalog=CATALOG, blobs=BLOBS, retry=RetryPolicy(attempts=1))


@pytest.mark.parametrize("name", ["anthropic", "openai", "responses", "gemini"])
def test_refusals_are_told_in_the_words_of_the_service(name: str) -> None:
    """SEARCH-8: 400, 401, 429. A Request that did not come through `compose` can still break a rule."""
    to = BY_NAME[name]
    unanswered = Request(to.row[1], (user("Read."), assistant(call()), user("Well?")))

    async def client(url: str) -> None:
        provider, stranger = ours(to, url), ours(to, url, "another-key")
        with pytest.raises(BadRequest) as refusal:
            await provider.generate(unanswered)
        assert refusal.value.status == 400
        assert any(word in str(refusal.value) for word in ("tool_use", "tool_call", "function call", "function response"))
        with pytest.raises(Unauthorized):
            await stranger.generate(to.addressed(CASES["single_prompt"]))
        with pytest.raises(RateLimited):
            await provider.generate(to.addressed(CASES["single_prompt"]))
        await provider.aclose()
        await stranger.aclose()

    statuses = [exchange.status for exchange in served(to, client, 'error: 429 "Slow down"')]
    assert statuses == [400, 401, 429]
