"""A tool with its JSON Schema given as it is (document 001: `add_tool(name, description, parameters)`)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import dragoman as dm
from dragoman.testing.scripted import ScriptedProvider

CITY = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}}, "required": ["city"]}


def answer_of(tool: Any, arguments: str) -> str:
    """What the model reads of one call."""
    provider = ScriptedProvider(f"call: {tool.spec.name} {arguments}\n---\ntext: Done.")

    async def go() -> None:
        async with dm.Agent(provider, tools=[tool]) as agent:
            await agent.run("Go.")

    asyncio.run(go())
    [result] = provider.requests[-1].messages[-1].results
    return "".join(part.text for part in result.content if hasattr(part, "text"))


def test_the_model_is_given_the_schema_as_it_is_and_the_function_the_arguments_by_name() -> None:
    tool = dm.tool(name="weather", description="The weather in a city.", parameters=CITY, read_only=True)(
        lambda **given: f"{sorted(given.items())}"
    )
    assert (tool.spec.name, tool.spec.description, tool.spec.schema) == ("weather", "The weather in a city.", CITY)
    assert answer_of(tool, '{"city": "Oslo", "days": 3}') == "[('city', 'Oslo'), ('days', 3)]"


def test_a_decorated_function_keeps_its_own_defaults_and_may_be_async() -> None:
    @dm.tool(parameters=CITY)
    async def weather(city: str, days: int = 1) -> str:
        """The weather in a city."""
        return f"{city} for {days}"

    assert weather.spec.description == "The weather in a city."
    assert answer_of(weather, '{"city": "Oslo"}') == "Oslo for 1"


def test_arguments_that_do_not_fit_the_schema_never_reach_the_function() -> None:
    calls: list[object] = []
    tool = dm.tool(name="weather", parameters=CITY, read_only=True)(lambda **given: calls.append(given))
    assert "days" in answer_of(tool, '{"city": "Oslo", "days": 0}')
    assert "city" in answer_of(tool, "{}")
    assert calls == []


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("{}", "not a JSON Schema of an object"),
        ({"type": "string"}, "not a JSON Schema of an object"),
        ({"properties": ["city"]}, "not a JSON Schema of an object"),
        ({"properties": {"city": {"enum": {1j}}}, "required": ["city"]}, "cannot be written as JSON"),
        ({"properties": {"city": {}, "town": {}}, "required": ["city"]}, "name town, which the function does not take"),
        ({"properties": {"city": {}}}, "needs city, which its parameters do not require"),
    ],
)
def test_a_schema_that_cannot_be_meant_is_refused_in_words(parameters: Any, words: str) -> None:
    def weather(city: str) -> str:
        return city

    with pytest.raises(dm.errors.InputError, match=words):
        dm.tool(weather, parameters=parameters)


def test_what_is_done_with_the_dict_later_changes_nothing() -> None:
    parameters: dict[str, Any] = {"properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = dm.tool(name="weather", parameters=parameters)(lambda city: city)
    parameters["properties"]["city"]["type"] = "integer"
    assert tool.spec.schema["properties"]["city"] == {"type": "string"}
    assert tool.spec.schema["type"] == "object"
