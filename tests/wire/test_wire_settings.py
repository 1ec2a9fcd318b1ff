"""What a person sets reaches each service in its own words."""

from __future__ import annotations

import platform
import sys
from typing import Any

import msgspec
import pytest

import dragoman as dm

READ_FILE = dm.ToolSpec.of("read_file", "Read a file", {"type": "object"})


def body(model: str, settings: dm.Settings) -> dict[str, Any]:
    connection = dm.connect(model, key="sk-test")
    return msgspec.json.decode(connection.prepare(dm.build_request(connection.model, "Hi", tools=[READ_FILE], settings=settings)).body)


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("gemini/gemini-2.5-pro", {"generationConfig": {"temperature": 0.2, "topP": 0.9, "topK": 40, "maxOutputTokens": 99}}),
        ("openai/gpt-4.1", {"temperature": 0.2, "top_p": 0.9, "max_completion_tokens": 99}),
        ("anthropic/claude-haiku-4-5", {"temperature": 0.2, "top_k": 40, "max_tokens": 99}),
    ],
)
def test_sampling_reaches_each_service_in_its_words(model: str, sent: dict[str, Any]) -> None:
    """REQUEST-5"""
    told = body(model, dm.Settings(temperature=0.2, top_p=0.9, top_k=40, max_output_tokens=99))
    assert {name: told.get(name) for name in sent} == sent


SCHEMA = {"type": "object", "properties": {"depth_m": {"type": "number"}}, "required": ["depth_m"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("model", "where"),
    [
        ("gemini/gemini-3.8-flash", ("generationConfig", "responseJsonSchema")),
        ("openai/gpt-4.1", ("response_format", "json_schema", "schema")),
        ("responses/gpt-6.1-sol", ("text", "format", "schema")),
        ("anthropic/claude-opus-5", ("output_config", "format", "schema")),
    ],
)
def test_the_schema_of_an_answer_reaches_each_service_in_its_words(model: str, where: tuple[str, ...]) -> None:
    """REQUEST-7"""
    found: Any = body(model, dm.Settings(response_mime="application/json", response_schema=msgspec.json.encode(SCHEMA).decode()))
    for each in where:
        found = found[each]
    assert found == SCHEMA


@pytest.mark.parametrize(
    ("model", "where", "sent"),
    [
        ("gemini/gemini-3.8-flash", ("generationConfig", "thinkingConfig", "thinkingLevel"), "high"),
        ("responses/gpt-6.1-sol", ("reasoning", "effort"), "high"),
        ("anthropic/claude-opus-5", ("output_config", "effort"), "high"),
    ],
)
def test_how_much_to_think_reaches_each_service_in_its_words(model: str, where: tuple[str, ...], sent: str) -> None:
    """REQUEST-16"""
    found: Any = body(model, dm.Settings(thinking=dm.Thinking("high")))
    for each in where:
        found = found[each]
    assert found == sent


@pytest.mark.parametrize(
    ("model", "choice", "sent"),
    [
        ("gemini/gemini-2.5-pro", "required", {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
        ("gemini/gemini-2.5-pro", "none", {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}),
        (
            "gemini/gemini-2.5-pro",
            "read_file",
            {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read_file"]}}},
        ),
        ("openai/gpt-4.1", "required", {"tool_choice": "required"}),
        ("anthropic/claude-haiku-4-5", "required", {"tool_choice": {"type": "any"}}),
    ],
)
def test_whether_a_model_must_call_reaches_each_service_in_its_words(model: str, choice: str, sent: dict[str, Any]) -> None:
    """REQUEST-8"""
    told = body(model, dm.Settings(tool_choice=choice))
    assert {name: told.get(name) for name in sent} == sent


def test_the_user_agent_names_version_platform_and_machine() -> None:
    """PROVIDERS-18"""
    connection = dm.connect("gemini/gemini-2.5-pro", key="sk-test")
    prepared = connection.prepare(dm.build_request(connection.model, "Hi"))
    assert prepared.headers["user-agent"] == f"Dragoman/{dm.__version__} ({sys.platform}; {platform.machine()})"
