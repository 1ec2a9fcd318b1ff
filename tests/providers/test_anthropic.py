"""What Anthropic is sent: thinking and its checks, effort, searches of its own, structured output."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from destinations import violation_in
from dragoman.providers.catalog import builtin_catalog, profile_for
from dragoman.providers.connect import Connection, connect
from dragoman.testing.mock.server import MockServer
from dragoman.values.messages import (
    Message,
    Opaque,
    Request,
    Settings,
    Text,
    Thinking,
    Thought,
    ToolCall,
    ToolSpec,
    assistant,
    tool_result,
    user,
)

Json = dict[str, Any]
TOOLS = (ToolSpec.of("look", "Looks.", {"type": "object", "properties": {}}),)
DROP = {"prefix_mismatch_behavior": "drop_block"}
HOUSE = builtin_catalog()["anthropic"]


def kept(block: Json) -> Thought:
    return Thought(block.get("thinking", ""), Opaque("anthropic", json.dumps(block), "m"))


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "weather"}}
PAGE = {"type": "web_search_result", "url": "https://a.example", "title": "A", "encrypted_content": "ZW5j"}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [PAGE]}
CALL = ToolCall("c1", "look")


def connected(model: str) -> Connection:
    return connect(f"anthropic/{model}", key="k", base_url="http://127.0.0.1:9", env={})


def body_for(model: str, *messages: Message, settings: Settings | None = None, tools: tuple[ToolSpec, ...] = ()) -> Json:
    """The body, which the service would take."""
    connection = connected(model)
    request = Request(model, messages or (user("Hi."),), tools=tools, settings=settings or Settings())
    sent = connection.prepare(request).body
    assert violation_in(connection, sent) is None
    return msgspec.json.decode(sent)


def kinds(body: Json, index: int) -> list[str]:
    return [block["type"] for block in body["messages"][index]["content"]]


# --- thinking that is checked ---------------------------------------------------------------------------------------------------

BOUND = ["claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5", "claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-2"]
NEWER = ["claude-fable-6", "claude-of-tomorrow"]


@pytest.mark.parametrize("model", [*BOUND, *NEWER])
@pytest.mark.parametrize("settings", [Settings(), Settings(thinking=Thinking("high"))])
def test_a_model_that_checks_old_thinking_is_asked_to_drop_what_fails(model: str, settings: Settings) -> None:
    """Else the first compression of a conversation ends it with a 400. Also Haiku, which thinks unless told not to, and models to come."""
    assert body_for(model, settings=settings)["thinking"] == {"type": "adaptive", "display": "summarized", "block_binding": DROP}
    assert "thinking-binding-controls" in connected(model).prepare(Request(model, (user("Hi."),))).headers["anthropic-beta"]


def test_thinking_that_is_off_takes_old_thinking_with_it() -> None:
    """Without thinking there is no way to ask for dropping, so what might fail is not sent."""
    history = (user("Go."), assistant(kept(THOUGHT), "I look.", CALL), user(tool_result(CALL, "ok")))
    off = body_for("claude-haiku-5-5", *history, tools=TOOLS, settings=Settings(thinking=Thinking("off")))
    assert (off["thinking"], kinds(off, 1)) == ({"type": "disabled"}, ["text", "tool_use"])
    forced = body_for("claude-haiku-5-5", *history, tools=TOOLS, settings=Settings(tool_choice="required"))
    assert (forced["thinking"], forced["tool_choice"]["type"], kinds(forced, 1)) == ({"type": "disabled"}, "any", ["text", "tool_use"])
    on = body_for("claude-haiku-5-5", *history, tools=TOOLS)
    assert kinds(on, 1) == ["thinking", "text", "tool_use"]


def test_counting_says_what_to_do_with_old_thinking_too() -> None:
    async def count(model: str) -> Json:
        async with MockServer("text: ok") as server:
            connection = connect(f"anthropic/{model}", key="k", base_url=server.url, env={})
            await connection.count_tokens(Request(model, (user("Go."), assistant(kept(THOUGHT), "So."), user("And?"))))
            await connection.aclose()
            return server.requests[0].body

    assert asyncio.run(count("claude-haiku-5-5"))["thinking"]["block_binding"] == DROP
    assert "thinking" not in asyncio.run(count("claude-opus-5"))


def test_a_model_newer_than_the_catalog_has_room_to_think() -> None:
    assert body_for("claude-of-tomorrow")["max_tokens"] == 64_000
    assert body_for("claude-fable-5-2")["max_tokens"] == 128_000
    assert profile_for(HOUSE, "claude-fable-5-2").prices is not None


@pytest.mark.parametrize("model", ["claude-sonnet-4-20250514", "claude-3-5-haiku-20241022", "claude-opus-4-1"])
def test_an_older_model_than_the_catalog_is_not_asked_for_what_it_does_not_know(model: str) -> None:
    body = body_for(model, settings=Settings(thinking=Thinking("high")))
    assert (body.get("thinking") or {}).get("type") != "adaptive"
    assert "anthropic-beta" not in connected(model).prepare(Request(model, (user("Hi."),))).headers


def test_whatever_else_speaks_the_protocol_is_asked_for_nothing_special() -> None:
    assert "thinking" not in body_for("glm-5.3")


# --- effort ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [name for name, profile in HOUSE.models.items() if profile.thinking == "adaptive"])
@pytest.mark.parametrize("effort", ["off", "low", "medium", "high", "max"])
def test_effort_is_in_words_the_model_takes(model: str, effort: Any) -> None:
    body = body_for(model, settings=Settings(thinking=Thinking(effort)))
    said = (body.get("output_config") or {}).get("effort")
    if body["thinking"]["type"] == "disabled":
        assert (effort, said) == ("off", None)
    else:
        assert said == ("low" if effort == "off" else effort)


def test_the_rows_say_which_words_there_are() -> None:
    assert "xhigh" not in HOUSE.models["claude-opus-4-6"].efforts
    assert HOUSE.models["claude-opus-4-7"].efforts == ("low", "medium", "high", "xhigh", "max")


# --- searches of its own --------------------------------------------------------------------------------------------------------


def test_an_open_search_stays_while_it_is_last() -> None:
    """The service goes on from it. Without it the message would end in text, which newer models refuse."""
    paused = (user("Weather?"), assistant(kept(THOUGHT), "I look.", kept(SEARCH)))
    for model in ("claude-sonnet-5-5", "claude-opus-5", "claude-haiku-4-5"):
        body = body_for(model, *paused, settings=Settings(search=True))
        assert kinds(body, 1) == ["thinking", "text", "server_tool_use"]
        assert "cache_control" in body["messages"][0]["content"][-1]


def test_an_open_search_goes_when_somebody_speaks() -> None:
    body = body_for("claude-sonnet-5-5", user("Weather?"), assistant("I look.", kept(SEARCH)), user("Never mind."))
    assert kinds(body, 1) == ["text"]
    silent = body_for("claude-sonnet-5-5", user("Weather?"), assistant(kept(THOUGHT), kept(SEARCH)), user("Never mind."))
    assert [message["role"] for message in silent["messages"]] == ["user"]


def test_the_pieces_of_a_paused_answer_are_one_turn() -> None:
    pieces = (assistant("I look.", kept(SEARCH)), assistant(kept(FOUND), kept(THOUGHT), "Sunny."))
    body = body_for("claude-sonnet-5-5", user("Weather?"), *pieces, user("Thanks."))
    assert kinds(body, 1) == ["text", "server_tool_use", "web_search_tool_result", "thinking", "text"]


def test_a_search_beside_a_call_waits_for_its_result() -> None:
    """The service answers it when it has the call's result: its own result then opens the next answer."""
    asked = (user("Weather?"), assistant(kept(SEARCH), CALL), user(tool_result(CALL, "ok")))
    assert kinds(body_for("claude-sonnet-5-5", *asked, tools=TOOLS), 1) == ["server_tool_use", "tool_use"]
    told = (*asked, assistant(kept(FOUND), "Sunny."), user("Thanks."))
    body = body_for("claude-sonnet-5-5", *told, tools=TOOLS)
    assert (kinds(body, 1), kinds(body, 3)) == (["server_tool_use", "tool_use"], ["web_search_tool_result", "text"])
    never = (*asked, assistant("Sunny."), user("Thanks."))
    assert kinds(body_for("claude-sonnet-5-5", *never, tools=TOOLS), 1) == ["tool_use"]
    interrupted = (*asked, user("Stop."))
    assert kinds(body_for("claude-sonnet-5-5", *interrupted, tools=TOOLS), 1) == ["tool_use"]


def test_a_result_without_its_search_is_left_out() -> None:
    body = body_for("claude-sonnet-5-5", user("Weather?"), assistant(kept(FOUND), "Sunny."), user("Thanks."))
    assert kinds(body, 1) == ["text"]


# --- blank text -----------------------------------------------------------------------------------------------------------------


def test_blank_text_goes_back_beside_other_blocks_and_not_alone() -> None:
    beside = body_for("claude-haiku-4-5", user("Go."), assistant(Text(" "), CALL), user(tool_result(CALL, "ok")), tools=TOOLS)
    assert beside["messages"][1]["content"][0] == {"type": "text", "text": " "}
    alone = body_for("claude-haiku-4-5", user("Go."), assistant(Text(" \n")), user("Well?"))
    assert [message["role"] for message in alone["messages"]] == ["user"]


def test_no_text_stands_behind_a_call() -> None:
    """The service takes what is behind a call for a missing result."""
    body = body_for("claude-opus-5", user("Go."), assistant(CALL, "I look."), user(tool_result(CALL, "ok")), tools=TOOLS)
    assert kinds(body, 1) == ["text", "tool_use"]


# --- long answers ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "is_streamed"), [(None, True), (21_334, True), (21_333, False), (1_000, False)])
def test_a_long_answer_is_streamed_though_it_is_wanted_whole(most: int | None, is_streamed: bool) -> None:
    """An answer of more tokens may take longer than any connection stays open without a word."""

    async def ask() -> Json:
        async with MockServer("text: Hello.") as server:
            connection = connect("anthropic/claude-opus-5", key="k", base_url=server.url, env={})
            response = await connection.generate(Request("claude-opus-5", (user("Hi."),), settings=Settings(max_output_tokens=most)))
            await connection.aclose()
            assert response.message == assistant("Hello.")
            return server.requests[0].body

    assert ("stream" in asyncio.run(ask())) == is_streamed


# --- structured output ----------------------------------------------------------------------------------------------------------


def schema_of(schema: Json) -> Json:
    return body_for("claude-sonnet-5-5", settings=Settings(response_schema=json.dumps(schema)))


def test_limits_the_service_does_not_know_are_described() -> None:
    age = {"type": "integer", "minimum": 1, "maximum": 9, "description": "Years."}
    body = schema_of({"type": "object", "properties": {"age": age}, "required": ["age"]})
    sent = body["output_config"]["format"]["schema"]
    assert sent["properties"]["age"] == {"type": "integer", "description": "Years.\n\n(minimum: 1, maximum: 9)"}
    assert (sent["required"], sent["additionalProperties"]) == (["age"], False)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"scores": {"type": "object", "additionalProperties": {"type": "integer"}}}},
        {"type": "object"},
        {"type": "object", "properties": {"any": {}}},
        {"type": "object", "properties": {"list": {"type": "array"}}},
        {"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}},
        {"$ref": "https://example.com/schema.json"},
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}},
                {"type": "object", "properties": {"b": {"type": "string"}}},
            ]
        },
    ],
    ids=["map", "map within", "any object", "any value", "any list", "recursion", "elsewhere", "two at once"],
)
def test_what_cannot_be_constrained_is_asked_for_in_words(schema: Json) -> None:
    """A map must not silently become an object that is always empty."""
    body = schema_of(schema)
    assert "output_config" not in body
    assert json.dumps(schema) in body["system"][-1]["text"]


def test_json_without_a_schema_is_asked_for_in_words() -> None:
    assert "JSON" in body_for("claude-sonnet-5-5", settings=Settings(response_mime="application/json"))["system"][-1]["text"]


def test_a_model_with_a_budget_thinks_first_or_not_at_all() -> None:
    """What another model thought in the middle of its answer would be taken for a changed block."""
    late = (user("Go."), assistant("One.", kept(THOUGHT), "Two."), user("And?"))
    budget = Settings(thinking=Thinking("high"))
    assert kinds(body_for("claude-haiku-4-5", *late, settings=budget), 1) == ["text", "text"]
    assert kinds(body_for("claude-opus-5", *late, settings=budget), 1) == ["text", "thinking", "text"]
    run = (user("Go."), assistant("One."), assistant(kept(THOUGHT), "Two."), user("And?"))
    assert kinds(body_for("claude-haiku-4-5", *run, settings=budget), 1) == ["text", "text"]
