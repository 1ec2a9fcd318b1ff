"""The strict validators on real-looking requests, which pass here and with the official SDKs, and on errors of shape."""

from __future__ import annotations

import copy
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pydantic
import pytest

from dragoman.testing.mock.validate import Rules, validate
from dragoman.values.profile import ProtocolName
from lazily import Lazily
from wire_bodies import (
    ANTHROPIC_TOOLS,
    CHAT_TOOLS,
    CLOSED,
    PNG,
    RESPONSES_TOOLS,
    SCHEMA,
    THOUGHT,
    Json,
    answer,
    anthropic,
    asked,
    assistant,
    calling,
    chat,
    declare,
    fn,
    function_call,
    gemini,
    marked,
    output,
    passes,
    reasoning,
    refused,
    reply,
    responses,
    result,
    said,
    text,
    told,
    turn,
    use,
    user,
)

if TYPE_CHECKING:
    from google.genai import types as genai_types
else:
    genai_types = Lazily("google.genai.types")

# Requests as they are really sent.

SEARCH = {"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search", "input": {"query": "weather"}}
FOUND = {"type": "web_search_result", "url": "https://example.com", "title": "Weather", "encrypted_content": "EqgfCioI"}
SEARCHED = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01", "content": [FOUND]}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK"}, "title": "a.pdf"}
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"}

GOOD_ANTHROPIC = {
    "plain strings": anthropic(
        {"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}, user("how are you?"), stream=True
    ),
    "parallel calls": anthropic(
        user("hi"), assistant("I look.", use("a"), use("b")), user(result("a"), result("b")), tools=ANTHROPIC_TOOLS
    ),
    "images and a document": anthropic(
        user("See:", PICTURE, PDF), assistant(use("a")), user(result("a", [PICTURE, text("b")])), tools=ANTHROPIC_TOOLS
    ),
    "thinking in a tool loop": anthropic(
        user("hi"),
        assistant(THOUGHT, REDACTED, "I look.", use("a")),
        user(result("a")),
        assistant(use("b")),
        user({**result("b", "no such file"), "is_error": True}),
        tools=ANTHROPIC_TOOLS,
        thinking={"type": "enabled", "budget_tokens": 2048},
        model="claude-haiku-4-5",
    ),
    "cache breakpoints": anthropic(
        user(text("hi", **marked())), system=[text("You help.", **marked())], tools=[{**ANTHROPIC_TOOLS[0], **marked()}]
    ),
    "structured output": anthropic(
        user("hi"), output_config={"effort": "low", "format": {"type": "json_schema", "schema": CLOSED}}, thinking={"type": "adaptive"}
    ),
    "web search": anthropic(
        user("weather?"),
        assistant(SEARCH, SEARCHED, "It rains."),
        user("and now?"),
        tools=[{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}],
    ),
    "forced tool": anthropic(user("hi"), tools=ANTHROPIC_TOOLS, tool_choice={"type": "tool", "name": "read"}, metadata={"user_id": "u"}),
}
SYSTEM = said("system", "You help.")
IMAGE_PART = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "auto"}}
FILE_PART = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQK"}}
GOOD_CHAT = {
    "streamed": chat(SYSTEM, said("user"), stream=True, stream_options={"include_usage": True}, temperature=0.2),
    "parallel calls": chat(
        said("user"), calling("call_1", "call_2"), answer("call_1"), answer("call_2"), tools=CHAT_TOOLS, tool_choice="auto"
    ),
    "parts": chat(said("user", [text("See:"), IMAGE_PART, FILE_PART]), said("assistant", [text("I see.")]), said("user")),
    "structured output": chat(
        said("user"), response_format={"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": CLOSED}}
    ),
    "reasoning effort": chat(
        said("developer", "You help."), said("user"), reasoning_effort="low", max_completion_tokens=1000, prompt_cache_key="key"
    ),
    "forced tool": chat(
        said("user"), tools=CHAT_TOOLS, tool_choice={"type": "function", "function": {"name": "read"}}, parallel_tool_calls=False
    ),
}
SEARCH_CALL = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "weather"}}
INPUT_IMAGE = {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PNG}"}
GOOD_RESPONSES = {
    "a string": {"model": "gpt-5", "input": "hi", "instructions": "You help.", "stream": True},
    "easy messages": responses(said("developer", "You help."), said("user"), said("assistant"), said("user")),
    "parallel calls": responses(
        asked(), function_call("call_1"), function_call("call_2"), output("call_1"), output("call_2"), tools=RESPONSES_TOOLS
    ),
    "reasoning in a tool loop": responses(
        asked(),
        reasoning(summary=[{"type": "summary_text", "text": "I look."}]),
        function_call(id="fc_1", status="completed"),
        output(said=[{"type": "input_text", "text": "ok"}, INPUT_IMAGE]),
        reasoning("rs_2"),
        told(id="msg_1", phase="final_answer"),
        asked("go on"),
        store=False,
        include=["reasoning.encrypted_content"],
        reasoning={"effort": "high", "summary": "auto"},
        tools=RESPONSES_TOOLS,
    ),
    "images and files": responses(
        {
            "role": "user",
            "content": [INPUT_IMAGE, {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQK"}],
        }
    ),
    "structured output": responses(asked(), text={"format": {"type": "json_schema", "name": "a", "schema": CLOSED, "strict": True}}),
    "web search": responses(asked(), SEARCH_CALL, told(id="msg_1"), asked(), tools=[{"type": "web_search", "search_context_size": "low"}]),
}
INLINE = {"inlineData": {"mimeType": "image/png", "data": PNG}}
GOOD_GEMINI = {
    "plain": gemini(
        {"parts": [{"text": "hi"}]}, systemInstruction={"parts": [{"text": "You help."}]}, generationConfig={"temperature": 0.5}
    ),
    "parallel calls": gemini(
        turn("user", "hi"), turn("model", fn(id="a"), fn(id="b")), turn("user", reply(id="a"), reply(id="b")), tools=declare()
    ),
    "thoughts": gemini(
        turn("user", "hi"),
        turn("model", {"text": "Hm.", "thought": True}, fn(signature="c2ln")),
        turn("user", reply()),
        turn("model", {"text": "so", "thoughtSignature": "c2ln"}),
        turn("user", "go on"),
        tools=declare(),
        generationConfig={"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"}, "maxOutputTokens": 1000},
    ),
    "images": gemini(turn("user", INLINE, {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.com/f"}}, "See.")),
    "an image in a response": gemini(turn("user", "hi"), turn("model", fn()), turn("user", reply(parts=[INLINE])), tools=declare()),
    "structured output": gemini(
        turn("user", "hi"), generationConfig={"responseMimeType": "application/json", "responseJsonSchema": CLOSED}
    ),
    "search": gemini(turn("user", "weather?"), tools=[{"googleSearch": {}}, {"urlContext": {}}]),
    "forced tool": gemini(
        turn("user", "hi"), tools=declare(), toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}}
    ),
    "snake case": {"contents": [{"parts": [{"inline_data": {"mime_type": "image/png", "data": PNG}}]}], "generation_config": {"top_p": 1}},
}
GOOD: dict[ProtocolName, dict[str, Json]] = {
    "anthropic": GOOD_ANTHROPIC,
    "openai_chat": GOOD_CHAT,
    "openai_responses": GOOD_RESPONSES,
    "gemini": GOOD_GEMINI,
}
EVERY_GOOD = [pytest.param(protocol, body, id=f"{protocol}-{name}") for protocol, bodies in GOOD.items() for name, body in bodies.items()]


@pytest.mark.parametrize(("protocol", "body"), EVERY_GOOD)
def test_a_real_request_passes(protocol: ProtocolName, body: Json) -> None:
    before = copy.deepcopy(body)
    passes(protocol, body)
    assert body == before


def exhaust(value: object) -> object:
    """Pydantic checks an Iterable only while it is read."""
    if isinstance(value, dict):
        return {key: exhaust(item) for key, item in value.items()}
    return value if isinstance(value, str | bytes) or not hasattr(value, "__iter__") else [exhaust(item) for item in value]


SDK_TYPES: dict[ProtocolName, str] = {
    "anthropic": "anthropic.types.message_create_params:MessageCreateParamsNonStreaming",
    "openai_chat": "openai.types.chat.completion_create_params:CompletionCreateParamsNonStreaming",
    "openai_responses": "openai.types.responses.response_create_params:ResponseCreateParamsNonStreaming",
}


@cache
def adapter(protocol: ProtocolName) -> pydantic.TypeAdapter[Any]:
    module, _, name = SDK_TYPES[protocol].partition(":")
    return pydantic.TypeAdapter(getattr(import_module(module), name))


@pytest.mark.parametrize(("protocol", "body"), EVERY_GOOD)
def test_the_official_sdk_takes_the_real_requests_too(protocol: ProtocolName, body: Json) -> None:
    if protocol == "gemini":
        for content in body["contents"]:
            genai_types.Content.model_validate(content)
        for tool in body.get("tools", []):
            genai_types.Tool.model_validate(tool)
        genai_types.GenerationConfig.model_validate(body.get("generationConfig", {}))
        genai_types.ToolConfig.model_validate(body.get("toolConfig", {}))
        return
    exhaust(adapter(protocol).validate_python({key: item for key, item in body.items() if key != "stream"}))


# Errors of shape.

BAD_ANTHROPIC: list[tuple[Json, str]] = [
    ({"model": "m", "messages": [user("hi")]}, "max_tokens: Field required"),
    (anthropic(), "messages: at least one message is required"),
    (anthropic(user("hi"), foo=1), "foo: Extra inputs are not permitted"),
    (anthropic(user(text("hi", foo=1))), "messages.0.content.0.text.foo: Extra inputs are not permitted"),
    (anthropic(user({"type": "text", "text": 1})), "messages.0.content.0.text.text: Input should be a valid string"),
    (anthropic({"role": "tool", "content": "x"}), "messages.0.role: Input should be 'user', 'assistant' or 'system'"),
    (anthropic(user("hi"), assistant({**use(), "input": "x"})), "messages.1.content.0.tool_use.input: Input should be a valid dictionary"),
    (anthropic(user(use())), "messages.0: `tool_use` blocks can only be in `assistant` messages"),
    (anthropic(user("hi"), assistant(result())), "messages.1: `tool_result` blocks can only be in `user` messages"),
    (anthropic(user({"type": "foo"})), "messages.0.content.0: Input tag 'foo' found using 'type'"),
    (
        anthropic(user({"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": PNG}})),
        "media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
    ),
    (
        anthropic(user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "!"}})),
        "messages.0.content.0.image.source.base64: invalid base64 data",
    ),
    (
        anthropic(user({"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": PNG}})),
        "the image appears to be a image/png image",
    ),
    (
        anthropic(user("hi"), tools=[{"name": "a b", "input_schema": SCHEMA}]),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    (anthropic(user("hi"), tools=[{"name": "a", "input_schema": {}}]), "tools.0.custom.input_schema.type: Field required"),
    (anthropic(user("hi"), tools=ANTHROPIC_TOOLS * 2), "tools: Tool names must be unique."),
    (anthropic(user("hi"), tools=ANTHROPIC_TOOLS, tool_choice={"type": "tool", "name": "x"}), "Tool 'x' not found in provided tools"),
    (anthropic(user("hi"), tool_choice={"type": "auto"}), "tool_choice may only be specified while providing tools."),
    (
        anthropic(user("hi"), thinking={"type": "adaptive"}, temperature=0),
        "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode",
    ),
    (
        anthropic(user("hi"), thinking={"type": "enabled", "budget_tokens": 10}, model="claude-haiku-4-5"),
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    ),
    (
        anthropic(user("hi"), thinking={"type": "enabled", "budget_tokens": 4096}, model="claude-haiku-4-5"),
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    ),
    (
        anthropic(user("hi"), thinking={"type": "adaptive"}, tools=ANTHROPIC_TOOLS, tool_choice={"type": "any"}, model="claude-haiku-5-5"),
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    (
        anthropic(user("hi"), output_config={"format": {"type": "json_schema", "schema": SCHEMA}}),
        "'additionalProperties' must be explicitly set to false",
    ),
]
BAD_CHAT: list[tuple[Json, str]] = [
    ({"messages": [said("user")]}, "Missing required parameter: 'model'."),
    (chat(), "Invalid 'messages': empty array. Expected an array with minimum length 1"),
    (chat(said("user"), foo=1), "Unrecognized request argument supplied: foo"),
    (chat(said("user"), foo=1, bar=2), "Unrecognized request arguments supplied: foo, bar"),
    (chat(said("user", foo=1)), "Unknown parameter: 'messages[0].foo'."),
    (
        chat(said("model")),
        "Invalid value: 'model'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
    ),
    (
        chat(said("user", None)),
        "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got null instead.",
    ),
    (chat(said("user"), said("assistant", None)), "Invalid type for 'messages[1].content'"),
    (chat(said("user"), calling()), "Invalid 'messages[1].tool_calls': empty array."),
    (
        chat(
            said("user"), {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": {}}}]}
        ),
        "Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got an object instead.",
    ),
    (
        chat(said("user"), calling("call_1"), answer("call_1", [IMAGE_PART])),
        "Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL.",
    ),
    (
        chat(said("user", [{"type": "image_url", "image_url": {"url": "data:application/pdf;base64,AAAA"}}])),
        "Invalid MIME type. Only image types are supported.",
    ),
    (chat(said("user", [{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}])), "is not valid base64"),
    (
        chat(said("user"), stream_options={"include_usage": True}),
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    ),
    (chat(said("user"), tools=[]), "Invalid 'tools': empty array."),
    (
        chat(said("user"), tools=[{"type": "function", "function": {"name": "a.b"}}]),
        "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    ),
    (
        chat(said("user"), tools=[{"type": "function", "function": {"name": "a" * 65}}]),
        "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64",
    ),
    (
        chat(said("user"), tools=[{"type": "function", "function": {"name": "a", "parameters": {}}}]),
        "Invalid schema for function 'a': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'.",
    ),
    (chat(said("user"), tools=CHAT_TOOLS * 2), "tool names must be unique"),
    (
        chat(said("user"), tools=CHAT_TOOLS, tool_choice={"type": "function", "function": {"name": "x"}}),
        "Tool choice 'x' not found in 'tools' parameter.",
    ),
    (chat(said("user"), tool_choice="auto"), "'tool_choice' is only allowed when 'tools' are specified."),
    (
        chat(said("user"), max_tokens=1, max_completion_tokens=1),
        "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
    ),
    (chat(said("user"), response_format={"type": "json_object"}), "'messages' must contain the word 'json' in some form"),
    (
        chat(said("user"), response_format={"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": SCHEMA}}),
        "In context=(), 'additionalProperties' is required to be supplied and to be false.",
    ),
]
BAD_RESPONSES: list[tuple[Json, str]] = [
    ({"input": "hi"}, "Missing required parameter: 'model'."),
    (responses(), "Invalid 'input': empty array."),
    (responses(asked(), foo=1), "Unknown parameter: 'foo'."),
    (responses(asked(), messages=[]), "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'."),
    (responses(asked(), stream=True, stream_options={"include_usage": True}), "Unknown parameter: 'stream_options.include_usage'."),
    (
        responses(asked(), max_output_tokens=1),
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead.",
    ),
    (
        responses({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    ),
    (responses({"role": "user", "content": [{"type": "output_text", "text": "x"}]}), "Invalid value: 'output_text'."),
    (responses(asked(), {"type": "reasoning", "id": "rs_1"}, told()), "Missing required parameter: 'input[1].summary'."),
    (responses(asked(), told(id="rs_1")), "Invalid 'input[1].id': 'rs_1'. Expected an ID that begins with 'msg'."),
    (responses(asked(), reasoning(""), told()), "Invalid 'input[1].id': ''. Expected an ID that contains letters"),
    (
        responses(asked(), function_call(arguments={}), output()),
        "Invalid type for 'input[1].arguments': expected a string, but got an object instead.",
    ),
    (
        responses(asked(), function_call(), output(said={})),
        "Invalid type for 'input[2].output': expected one of a string or array of objects, but got an object instead.",
    ),
    (responses(asked(), tools=CHAT_TOOLS), "Missing required parameter: 'tools[0].name'."),
    (responses(asked(), tools=[{"type": "foo"}]), "Invalid value: 'foo'."),
    (responses(asked(), {"type": "foo"}), "Invalid value: 'foo'."),
    (
        responses(asked(), tools=RESPONSES_TOOLS, tool_choice={"type": "function", "name": "x"}),
        "Tool choice 'x' not found in 'tools' parameter.",
    ),
    (responses(asked(), include=["foo"]), "Invalid value: 'foo'."),
    (
        responses(asked(), prompt_cache_key="k" * 65),
        "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64",
    ),
]
BAD_GEMINI: list[tuple[Json, str]] = [
    (gemini(), "* GenerateContentRequest.contents: contents is not specified"),
    (gemini(turn("user", "hi"), foo=1), 'Invalid JSON payload received. Unknown name "foo": Cannot find field.'),
    (
        gemini(turn("user", "hi"), generationConfig={"maxTokens": 1}),
        "Unknown name \"maxTokens\" at 'generation_config': Cannot find field.",
    ),
    (gemini(turn("assistant", "hi")), "Please use a valid role: user, model."),
    (gemini(turn("user")), "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty."),
    (
        gemini(turn("user", {})),
        "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have one initialized field",
    ),
    (gemini(turn("user", {"text": "a", **INLINE})), "oneof field 'data' is already set. Cannot set 'inlineData'"),
    (gemini(turn("user", {"text": 1})), "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 1"),
    (
        gemini(turn("user", {"inlineData": {"mimeType": "image/png", "data": "!"}})),
        "Invalid value at 'contents[0].parts[0].inline_data.data' (TYPE_BYTES), Base64 decoding failed",
    ),
    (gemini(turn("user", {"inlineData": {"mimeType": "image/svg+xml", "data": PNG}})), "Unsupported MIME type: image/svg+xml"),
    (gemini(turn("user", {"inlineData": {"mimeType": "image/png", "data": ""}})), "Unable to process input image."),
    (
        gemini(turn("user", "hi"), turn("model", {"functionCall": {"name": "f", "args": "{}"}})),
        "'contents[1].parts[0].function_call.args' (type.googleapis.com/google.protobuf.Struct)",
    ),
    (
        gemini(turn("user", "hi"), turn("model", fn("")), turn("user", reply())),
        "contents[1].parts[0].function_call.name: Name cannot be empty.",
    ),
    (
        gemini(turn("user", "hi"), tools=declare("9a")),
        "tools[0].function_declarations[0].name: Invalid function name. Must start with a letter or an underscore.",
    ),
    (gemini(turn("user", "hi"), tools=declare() + declare()), "Duplicate function declaration found: read"),
    (gemini(turn("user", "hi"), tools=[{}]), "tools[0].tool_type: required one_of 'tool_type' must have one initialized field"),
    (gemini(turn("user", "hi"), tools=[*declare(), {"googleSearch": {}}]), "Tool use with function calling is unsupported"),
    (
        gemini(turn("user", "hi"), tools=declare(), toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["x"]}}),
        "x is not a declared function",
    ),
    (
        gemini(turn("user", "hi"), generationConfig={"thinkingConfig": {"thinkingLevel": "low", "thinkingBudget": 0}}),
        "You can only set only one of thinking budget and thinking level.",
    ),
]
BAD: dict[ProtocolName, list[tuple[Json, str]]] = {
    "anthropic": BAD_ANTHROPIC,
    "openai_chat": BAD_CHAT,
    "openai_responses": BAD_RESPONSES,
    "gemini": BAD_GEMINI,
}
EVERY_BAD = [pytest.param(protocol, *case, id=f"{protocol}-{case[1][:60]}") for protocol, cases in BAD.items() for case in cases]


@pytest.mark.parametrize(("protocol", "body", "expected"), EVERY_BAD)
def test_a_wrong_shape_is_refused(protocol: ProtocolName, body: Json, expected: str) -> None:
    refused(protocol, body, 0, expected)


# What differs by service.


def test_vertex_knows_no_call_ids() -> None:
    body = GOOD_GEMINI["parallel calls"]
    refused("gemini", body, 0, "Unknown name \"id\" at 'contents[1].parts[0].function_call': Cannot find field.", Rules(call_ids=False))


def test_vertex_runs_search_beside_functions_and_knows_no_flag_for_it() -> None:
    body = gemini(turn("user", "hi"), tools=[*declare(), {"googleSearch": {}}])
    flagged = body | {"toolConfig": {"includeServerSideToolInvocations": True}}
    unknown = "Unknown name \"includeServerSideToolInvocations\" at 'tool_config': Cannot find field."
    for call_ids in (True, False):
        rules = Rules(thought_signatures=True, call_ids=call_ids, search_flag=False)
        passes("gemini", body, rules)
        refused("gemini", flagged, 0, unknown, rules)
        refused("gemini", body, 0, "Tool use with function calling is unsupported", Rules(call_ids=call_ids, search_flag=False))


def test_gemini_says_which_temperatures_it_takes() -> None:
    words = "temperature value of 1000 but the supported range is from 0 (inclusive) to 2.0001 (exclusive)"
    refused("gemini", gemini(turn("user", "hi"), generationConfig={"temperature": 1000}), 0, words)
    passes("gemini", gemini(turn("user", "hi"), generationConfig={"temperature": 2}))


def test_gemini_3_runs_search_beside_functions_when_told_to() -> None:
    rules = Rules(thought_signatures=True)
    body = gemini(turn("user", "hi"), tools=[*declare(), {"googleSearch": {}}])
    refused("gemini", body, 0, "Please enable tool_config.include_server_side_tool_invocations", rules)
    passes("gemini", body | {"toolConfig": {"includeServerSideToolInvocations": True}}, rules)


@pytest.mark.parametrize(
    ("protocol", "service", "expected", "code"),
    [
        ("anthropic", "", "prompt is too long: 50", ""),
        (
            "openai_chat",
            "",
            "This model's maximum context length is 4000 tokens. However, your messages resulted in 50",
            "context_length_exceeded",
        ),
        (
            "openai_chat",
            "llama.cpp",
            "tokens) exceeds the available context size (4000 tokens), try increasing it",
            "exceed_context_size_error",
        ),
        ("openai_responses", "", "Your input exceeds the context window of this model.", "context_length_exceeded"),
        ("gemini", "", "exceeds the maximum number of tokens allowed (4000).", ""),
    ],
)
def test_a_prompt_over_the_window(protocol: ProtocolName, service: Any, expected: str, code: str) -> None:
    long = "x" * 20_000
    bodies = {"anthropic": anthropic(user(long)), "openai_chat": chat(said("user", long)), "openai_responses": responses(asked(long))}
    body = bodies.get(protocol) or gemini(turn("user", long))
    assert refused(protocol, body, 0, expected, Rules(context_window_tokens=4000, service=service)).code == code
    passes(protocol, body, Rules(context_window_tokens=6000, service=service))


def test_models_settings_and_extra_fields() -> None:
    nobody = Rules(known_models=frozenset({"other"}))
    assert refused("anthropic", anthropic(user("hi")), 0, "model: claude-opus-5", nobody).status == 404
    assert refused("openai_chat", chat(said("user")), 0, "The model `gpt-5` does not exist", nobody).code == "model_not_found"
    cold = Rules(temperature=False)
    refused("anthropic", anthropic(user("hi"), temperature=1), 0, "`temperature` is deprecated for this model.", cold)
    refused("openai_responses", responses(asked(), temperature=1), 0, "Unsupported parameter: 'temperature'", cold)
    passes("openai_responses", responses(asked(), temperature=1, reasoning={"effort": "none"}), cold)
    newer = Rules(max_tokens_field="max_completion_tokens")
    refused("openai_chat", chat(said("user"), max_tokens=1), 0, "Use 'max_completion_tokens' instead.", newer)
    passes("openai_chat", chat(said("user"), enable_thinking=True), Rules(extra_fields=frozenset({"enable_thinking"})))


def test_responses_says_which_setting_it_refuses() -> None:
    """In the words of recorded errors."""
    gone = refused(
        "openai_responses", responses(asked()), 0, "The requested model 'gpt-5' does not exist.", Rules(known_models=frozenset())
    )
    assert (gone.status, gone.code, gone.param) == (400, "model_not_found", "model")
    wanted = responses(asked(), reasoning={"summary": "auto"})
    unverified = refused("openai_responses", wanted, 0, "must be verified to generate reasoning summaries", Rules(verified=False))
    assert (unverified.code, unverified.param) == ("unsupported_value", "reasoning.summary")
    weak = Rules(efforts=("low", "high"))
    passes("openai_responses", responses(asked(), reasoning={"effort": "high"}), weak)
    strong = responses(asked(), reasoning={"effort": "xhigh"})
    assert refused("openai_responses", strong, 0, "'xhigh' is not supported with the 'gpt-5' model.", weak).param == "reasoning.effort"
    hot = "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 2.5 instead."
    assert refused("openai_responses", responses(asked(), temperature=2.5), 0, hot).code == "decimal_above_max_value"
    cold = "Invalid 'top_p': decimal below minimum value. Expected a value >= 0, but got -1 instead."
    refused("openai_chat", chat(said("user"), top_p=-1), 0, cold)


def test_responses_takes_what_was_recorded_as_taken() -> None:
    passes("openai_responses", responses(asked(), told(status=None)))
    passes("openai_responses", responses(asked(), {"type": "web_search_call", "id": "x" * 83, "status": "searching", "action": {}}, told()))
    announced = {"type": "additional_tools", "tools": []}
    passes("openai_responses", responses(asked(), announced, tool_choice="auto"))
    passes("openai_responses", responses(asked(), {**reasoning(), "id": "tco_1"}, told(), asked()), Rules(free_item_ids=True))


def test_responses_hears_no_sound() -> None:
    for file in ({"file_url": "https://example.org/a.mp3?x=1"}, {"file_data": "data:audio/wav;base64,AAAA"}):
        heard = {"role": "user", "content": [{"type": "input_file", **file}]}
        refused("openai_responses", responses(heard), 0, "The file type you uploaded is not supported.")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"oneOf": [{"type": "string"}]}, "In context=('properties', 'a'), 'oneOf' is not permitted."),
        ({"anyOf": [{"allOf": []}]}, "In context=('properties', 'a', 'anyOf', '0'), 'allOf' is not permitted."),
        ({"type": "array", "items": {"not": {}}}, "'not' is not permitted."),
        ({"$ref": "#", "description": "me"}, "$ref cannot have keywords {'description'}."),
        ({"description": "anything"}, "schema must have a 'type' key."),
        ({"type": "string", "format": "uri"}, "'uri' is not a valid format."),
        ({"type": "object"}, "'additionalProperties' is required to be supplied and to be false."),
        ({"type": "array"}, "array schema missing items."),
        ({"type": "string", "enum": ["x"] * 1001}, "1001 enum values exceeds limit of 1000."),
    ],
)
def test_strict_mode_refuses_what_it_has_no_words_for(schema: Json, words: str) -> None:
    whole = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    form = {"type": "json_schema", "name": "x", "schema": whole}
    found = refused("openai_responses", responses(asked(), text={"format": {**form, "strict": True}}), 0, words)
    assert found.code == "invalid_json_schema"
    if "array" not in words:
        passes("openai_responses", responses(asked(), text={"format": {**form, "strict": False}}))


# Whatever JSON comes, a validator answers.

ODD = [None, True, 0, -1, 1.5, "", "text", [], [None], [{}], {}, {"type": []}, {"type": {}}, {"type": "text", "role": []}]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in items for found in [(*path, key), *places(item, (*path, key))]]


@pytest.mark.parametrize(("protocol", "body"), EVERY_GOOD)
def test_no_odd_value_anywhere_makes_a_validator_raise(protocol: ProtocolName, body: Json) -> None:
    strict = Rules(strict_template=True, call_id="mistral", thought_signatures=True, known_signatures=frozenset(), call_ids=False)
    for *path, last in places(body):
        holder: Any = body
        for key in path:
            holder = holder[key]
        before = holder[last]
        for odd in ODD:
            holder[last] = odd
            for rules in (Rules(), strict):
                validate(protocol, body, rules)
        holder[last] = before
    passes(protocol, body)
