"""OpenAI's models and xAI's, as their services describe them: words for effort, windows, sampling, and names that the catalog lacks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from context.conversation import SECOND, Conversation
from destinations import rules_of
from dragoman.context.settings import ContextSettings
from dragoman.providers.catalog import builtin_catalog, profile_for
from dragoman.providers.connect import connect
from dragoman.testing.mock.validate import validate
from dragoman.values.messages import Request, Settings, Thinking, ToolSpec, user

TOOL = ToolSpec.of("list", "List files.", {"type": "object", "properties": {"names": {"type": "array"}}})


def body(name: str, *tools: ToolSpec, **settings: Any) -> dict[str, Any]:
    env = {"AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com"}
    provider = connect(name, key="k", env=env)
    request = Request(provider.model, (user("hi"),), tools=tools, settings=Settings(**settings))
    return msgspec.json.decode(provider.prepare(request).body)


def effort_of(name: str, effort: Any) -> str | None:
    sent = body(name, thinking=Thinking(effort))
    return sent.get("reasoning", {}).get("effort") or sent.get("reasoning_effort")


@pytest.mark.parametrize(
    ("name", "off", "most"),
    [
        ("responses/gpt-6.1-sol", "low", "max"),
        ("responses/gpt-6.1-terra", "none", "max"),
        ("responses/gpt-6-astra", "low", "max"),
        ("responses/gpt-5.6-luna", "none", "max"),
        ("responses/gpt-5.5", "none", "xhigh"),
        ("responses/gpt-5.3-codex", "low", "xhigh"),
        ("azure/gpt-6-sol", "none", "max"),
        ("openai/gpt-5.2", "none", "xhigh"),
        ("xai/grok-4.7", "low", "xhigh"),
        ("xai/grok-4.5", "low", "high"),
        ("xai/grok-4.3", "none", "high"),
        ("responses/gpt-5-mini", "minimal", "high"),
        ("responses/gpt-5.1-codex", "low", "high"),
        ("responses/o3", "low", "high"),
        ("responses/gpt-6.9-sol", "low", "max"),
    ],
)
def test_an_effort_is_a_word_that_the_model_takes(name: str, off: str, most: str) -> None:
    assert (effort_of(name, "off"), effort_of(name, "max")) == (off, most)
    assert effort_of(name, "medium") == "medium"


@pytest.mark.parametrize("name", ["openai", "responses", "azure", "xai"])
def test_the_service_accepts_every_effort_with_every_model(name: str) -> None:
    """A service refuses a word that the model does not know."""
    deployment = builtin_catalog()[name]
    for model in [*deployment.models, *(f"{family}-x" for family in deployment.families), "a-name-of-ones-own"]:
        profile = profile_for(deployment, model)
        rules, tools = rules_of(deployment, profile), (TOOL,) if profile.tools == "native" else ()
        for effort in ("off", "low", "medium", "high", "max"):
            sent = body(f"{name}/{model}", *tools, thinking=Thinking(effort), temperature=0.5)  # type: ignore[arg-type]
            assert validate(deployment.protocol, sent, rules) is None, (model, effort)


def test_a_summary_is_asked_for_only_where_it_does_not_come_by_itself() -> None:
    assert body("responses/gpt-6.1-sol")["reasoning"] == {"summary": "auto"}
    assert body("azure/gpt-6.1-sol", thinking=Thinking("high"))["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body("responses/gpt-6-sol", thinking=Thinking("off"))["reasoning"] == {"effort": "none"}
    assert "reasoning" not in body("xai/grok-4.7")
    assert body("xai/grok-4.7", thinking=Thinking("high"))["reasoning"] == {"effort": "high"}


@pytest.mark.parametrize("name", ["responses/gpt-4o", "responses/gpt-4.1-nano", "azure/gpt-4o", "responses/gpt-5-chat-latest"])
def test_a_model_that_does_not_reason_is_not_asked_for_its_reasoning(name: str) -> None:
    """It refuses `include: reasoning.encrypted_content`, which nothing works without elsewhere."""
    sent = body(name, thinking=Thinking("high"), temperature=0.5)
    assert sent.keys().isdisjoint({"reasoning", "include"})
    assert sent["temperature"] == 0.5


@pytest.mark.parametrize("name", ["openai/mine", "responses/mine", "azure/mine"])
def test_a_stranger_gets_temperature_and_top_p(name: str) -> None:
    """They were dropped without a word. If the service refuses one, it is left out, and that is told."""
    sent = body(name, temperature=0.3, top_p=0.9)
    assert (sent["temperature"], sent["top_p"]) == (0.3, 0.9)


def test_a_model_that_does_not_think_just_now_takes_a_temperature() -> None:
    assert body("responses/gpt-5.6-sol", thinking=Thinking("off"), temperature=0.5)["temperature"] == 0.5
    assert "temperature" not in body("responses/gpt-5.6-sol", thinking=Thinking("low"), temperature=0.5)
    assert "temperature" not in body("responses/gpt-5.6-sol", temperature=0.5)
    assert "temperature" not in body("responses/gpt-6.1-sol", thinking=Thinking("off"), temperature=0.5), "it cannot but think"


@pytest.mark.parametrize("name", ["openai", "responses", "azure"])
def test_what_a_model_reads_leaves_room_for_what_it_writes(name: str) -> None:
    """The window of a reasoning model holds the answer too: 400,000 are 272,000 of input, 1,050,000 are 922,000."""
    deployment = builtin_catalog()[name]
    for model, profile in {**deployment.models, **deployment.families}.items():
        if profile.thinking == "effort" and profile.context_window > 200_000:
            assert profile.prompt_window == profile.context_window - profile.max_output_tokens, model
    small = deployment.models["gpt-5.4-mini"]
    assert small.prompt_window == 272_000
    assert msgspec.structs.replace(small, context_window=50_000).prompt_window == 50_000, "a user made it smaller"


def test_compression_begins_before_the_input_is_full() -> None:
    """At 0.7 of the whole window it would begin beyond what the service takes."""
    profile = msgspec.structs.replace(builtin_catalog()["responses"].models["gpt-5.4-mini"], context_window=40_000, input_window=27_200)
    conversation = Conversation(ContextSettings(), profile)
    conversation.prompt("work")
    sizes = []
    while not conversation.decide().compress and len(sizes) < 200:
        sizes.append(conversation.decide().tokens)
        conversation.command(takes_ms=SECOND)
    assert 0.5 * 27_200 < sizes[-1] < 27_200


def test_an_array_that_does_not_say_what_it_holds_is_told_to() -> None:
    """OpenAI refuses the whole request for one such tool: «array schema missing items»."""
    for name in ("responses/gpt-6.1-sol", "openai/gpt-4.1"):
        tool = body(name, TOOL)["tools"][0]
        assert (tool.get("function") or tool)["parameters"]["properties"] == {"names": {"type": "array", "items": {}}}
