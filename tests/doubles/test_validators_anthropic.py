"""What Anthropic's models take and refuse, as recorded exchanges and its documentation show: the loopback service does alike."""

from __future__ import annotations

from typing import Any

import pytest

from wire_bodies import ANTHROPIC_TOOLS, CLOSED, THOUGHT, Json, anthropic, assistant, passes, refused, result, text, use, user

SEARCH = {"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search", "input": {"query": "weather"}}
SEARCHED = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01", "content": []}
REMOTE = {"type": "mcp_tool_use", "id": "mcptoolu_01", "name": "ask", "server_name": "wiki", "input": {}}
REMOTE_SAID = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_01", "content": [text("42")], "is_error": False}
LOADED = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "read"}}


def output(schema: Json) -> Json:
    return {"format": {"type": "json_schema", "schema": schema}}


TAKEN: dict[str, Json] = {
    "a system message in the middle": anthropic(user("hi"), assistant("ho"), {"role": "system", "content": "Be brief."}, user("go")),
    "a tool that is loaded later": anthropic(user("hi"), {"role": "system", "content": [LOADED]}, user("go"), tools=ANTHROPIC_TOOLS),
    "an open search at the end": anthropic(user("weather?"), assistant(THOUGHT, "I look.", SEARCH)),
    "an open search beside a call": anthropic(user("hi"), assistant(SEARCH, use("a")), user(result("a")), tools=ANTHROPIC_TOOLS),
    "its result in the next answer": anthropic(
        user("hi"), assistant(SEARCH, use("a")), user(result("a")), assistant(SEARCHED, "Sunny."), user("ok"), tools=ANTHROPIC_TOOLS
    ),
    "a search over two messages": anthropic(user("weather?"), assistant(SEARCH), assistant(SEARCHED, "Sunny."), user("ok")),
    "blank text beside a call": anthropic(user("hi"), assistant(" ", use("a")), user(result("a")), tools=ANTHROPIC_TOOLS),
    "adaptive thinking beside a forced choice": anthropic(
        user("hi"), thinking={"type": "adaptive"}, tools=ANTHROPIC_TOOLS, tool_choice={"type": "any"}, model="claude-opus-4-6"
    ),
    "calls without tools": anthropic(user("hi"), assistant(use("a")), user(result("a"))),
    "the assistant first": anthropic(assistant("hi"), user("ho")),
    "calls of a run, answered together": anthropic(user("hi"), assistant(use("a")), assistant(use("b")), user(result("a"), result("b"))),
    "a beginning of the answer": anthropic(user("hi"), assistant("The answer is"), model="claude-haiku-4-5-20251001"),
    "temperature and top_p": anthropic(user("hi"), temperature=0.5, top_p=0.9, model="claude-sonnet-4-0"),
    "thinking between calls": anthropic(
        user("hi"), assistant(THOUGHT, use("a"), THOUGHT, use("b")), user(result("a"), result("b")), tools=ANTHROPIC_TOOLS
    ),
    "the older field for a schema": anthropic(user("hi"), output_format=output(CLOSED)["format"]),
    "beta fields": anthropic(
        user("hi"),
        context_management={"edits": []},
        mcp_servers=[{"type": "url", "url": "https://a.example", "name": "wiki"}],
        tools=[{"type": "advisor_20260301", "name": "advisor"}, {"type": "mcp_toolset", "mcp_server_name": "wiki"}],
        output_config={"task_budget": {"type": "tokens", "total": 20_000}},
    ),
    "tools of a server elsewhere": anthropic(user("hi"), assistant(REMOTE, REMOTE_SAID, "42."), user("ok")),
    "what to do with changed thinking": anthropic(
        user("hi"), thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}, model="claude-fable-5-2"
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_the_service_takes(name: str) -> None:
    passes("anthropic", TAKEN[name])


REFUSED: dict[str, tuple[Json, str]] = {
    "a system message to an older model": (
        anthropic(user("hi"), {"role": "system", "content": "x"}, user("go"), model="claude-haiku-4-5"),
        'Unexpected role "system"',
    ),
    "an open search and words": (anthropic(user("hi"), assistant(SEARCH), user("Stop.")), "was found without a corresponding"),
    "an open search, results and words": (
        anthropic(user("hi"), assistant(SEARCH, use("a")), user(result("a"), "Stop."), tools=ANTHROPIC_TOOLS),
        "was found without a corresponding",
    ),
    "blank text alone": (anthropic(user("hi"), assistant(" "), user("go")), "must contain non-whitespace text"),
    "text behind a call": (anthropic(user("hi"), assistant(use("a"), "So."), user(result("a"))), "`tool_use` ids were found without"),
    "a beginning of the answer": (anthropic(user("hi"), assistant("The answer is")), "does not support assistant message prefill"),
    "a budget": (anthropic(user("hi"), thinking={"type": "enabled", "budget_tokens": 2048}), '"thinking.type.enabled" is not supported'),
    "adaptive on an older model": (
        anthropic(user("hi"), thinking={"type": "adaptive"}, model="claude-haiku-4-5"),
        "adaptive thinking is not supported",
    ),
    "thinking off where it is always on": (
        anthropic(user("hi"), thinking={"type": "disabled"}, model="claude-fable-5-1"),
        "is not supported for this model",
    ),
    "a forced choice where there is none": (
        anthropic(user("hi"), tools=ANTHROPIC_TOOLS, tool_choice={"type": "any"}, model="claude-sonnet-5-5"),
        "forced tool use is not supported",
    ),
    "xhigh before it came": (anthropic(user("hi"), output_config={"effort": "xhigh"}, model="claude-opus-4-6"), "effort level 'xhigh'"),
    "any effort before it came": (anthropic(user("hi"), output_config={"effort": "low"}, model="claude-haiku-4-5"), "the effort parameter"),
    "temperature and top_p": (anthropic(user("hi"), temperature=0.5, top_p=0.9, model="claude-haiku-4-5"), "cannot both be specified"),
    "another word for binding": (
        anthropic(user("hi"), thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "keep"}}),
        "prefix_mismatch_behavior: Input should be",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_service_refuses(name: str) -> None:
    body, message = REFUSED[name]
    found = refused("anthropic", body, _line_of(message), message)
    assert found.status == 400


def _line_of(message: str) -> int:
    lines = {"Unexpected role": 9, "was found without a": 1, "`tool_use` ids were": 1, "non-whitespace": 5, "prefill": 7}
    return next((line for words, line in lines.items() if words in message), 0)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "integer", "minimum": 1}, "For 'integer' type, property 'minimum' is not supported"),
        ({"type": "string", "maxLength": 3}, "For 'string' type, property 'maxLength' is not supported"),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2}, "'minItems' values other than 0 or 1 are not supported"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "property 'uniqueItems' is not supported"),
        ({"oneOf": [{"type": "string"}]}, "'oneOf' is not supported"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "must be explicitly set to false"),
    ],
)
def test_words_that_constrained_output_does_not_know(schema: Any, message: str) -> None:
    within = {"type": "object", "properties": {"a": schema}, "additionalProperties": False}
    refused("anthropic", anthropic(user("hi"), output_config=output(within)), 0, message)
    refused("anthropic", anthropic(user("hi"), tools=[{"name": "a", "input_schema": within, "strict": True}]), 0, message)
