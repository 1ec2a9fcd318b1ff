"""A long conversation: prompts, answers with tool calls, results. Deterministic, about 800 bytes a message."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from benchmarks.recording import PROSE
from dragoman.values.messages import Message, Request, Text, ToolCall, ToolResult, ToolSpec, assistant, user

TOOLS = tuple(
    ToolSpec.of(
        name,
        f"{name}: {PROSE}",
        {"type": "object", "properties": {"path": {"type": "string", "description": PROSE}}, "required": ["path"]},
        kind="read",
    )
    for name in ("read_file", "write_file", "list_folder", "search", "run", "fetch")
)
SYSTEM = PROSE * 40


def request(model: str, messages: tuple[Message, ...]) -> Request:
    return Request(model, messages, SYSTEM, TOOLS, cache_key="conversation-1")


def messages(count: int, first: int = 0) -> tuple[Message, ...]:
    """So many messages of an endless conversation."""
    return tuple(itertools.islice(_conversation(), first, first + count))


def _conversation() -> Iterator[Message]:
    for number in itertools.count():
        path = f"src/module_{number}/file_{number % 7}.py"
        call = ToolCall(f"call_{number:08d}", "read_file", json.dumps({"path": path, "from": number, "to": number + 80}))
        source = f'def function_{number}(value):\n    """{PROSE}"""\n    return "value-{number}" + value\n\n'
        yield user(f"Question {number}: {PROSE}")
        yield assistant(Text(f"I will look at {path}. {PROSE}"), call)
        yield Message("user", (ToolResult(call.id, call.name, (Text(source * 9),)),))
        yield assistant(Text(f"In {path} there is nothing to be done. {PROSE * 3}"))


def sdk_arguments(protocol: str, body: dict[str, Any]) -> dict[str, Any]:
    """The same conversation as its official SDK is given it, from the body that we send."""
    match protocol:
        case "openai_chat":
            return {"model": body["model"], "messages": body["messages"], "tools": body["tools"], "stream": True}
        case "openai_responses":
            kept = ("model", "instructions", "input", "tools")
            return {name: body[name] for name in kept} | {"stream": True, "store": False}
        case "anthropic":
            kept = ("model", "system", "messages", "tools", "max_tokens")
            return {name: body[name] for name in kept} | {"stream": True}
        case _:
            from google.genai import types

            tools = [types.Tool.model_validate(tool) for tool in body["tools"]]
            config = types.GenerateContentConfig(system_instruction=SYSTEM, tools=tools)
            contents = [types.Content.model_validate(_without_signatures(content)) for content in body["contents"]]
            return {"model": "mock-model", "contents": contents, "config": config}


def _without_signatures(content: dict[str, Any]) -> dict[str, Any]:
    parts = [{key: value for key, value in part.items() if key != "thoughtSignature"} for part in content["parts"]]
    return content | {"parts": parts}
