"""Requests in the four protocols, in few words: the pieces, and whether the strict validators take them."""

from __future__ import annotations

from typing import Any

from dragoman.testing.mock.validate import Rules, Violation, validate
from dragoman.values.profile import ProtocolName

Json = dict[str, Any]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
LONE = "half a pair: \ud83d"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
THOUGHT = {"type": "thinking", "thinking": "Let me look.", "signature": "c2lnbmF0dXJl"}


# Short ways to say the pieces of each protocol.


def anthropic(*messages: Json, **fields: Any) -> Json:
    return {"model": "claude-opus-5", "max_tokens": 4096, "messages": list(messages), **fields}


def user(*blocks: Json | str) -> Json:
    return {"role": "user", "content": [text(each) if isinstance(each, str) else each for each in blocks]}


def assistant(*blocks: Json | str) -> Json:
    return user(*blocks) | {"role": "assistant"}


def text(said: str, **fields: Any) -> Json:
    return {"type": "text", "text": said, **fields}


def use(call: str = "toolu_1", name: str = "read") -> Json:
    return {"type": "tool_use", "id": call, "name": name, "input": {"path": "a"}}


def result(call: str = "toolu_1", content: Any = "ok") -> Json:
    return {"type": "tool_result", "tool_use_id": call, "content": content}


def marked(ttl: str = "5m") -> Json:
    return {"cache_control": {"type": "ephemeral", "ttl": ttl}}


ANTHROPIC_TOOLS = [{"name": "read", "description": "Read a file.", "input_schema": SCHEMA}]


def chat(*messages: Json, **fields: Any) -> Json:
    return {"model": "gpt-5", "messages": list(messages), **fields}


def said(role: str, content: Any = "hi", **fields: Any) -> Json:
    return {"role": role, "content": content, **fields}


def calling(*calls: str, **fields: Any) -> Json:
    made = [{"id": each, "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}} for each in calls]
    return {"role": "assistant", "content": None, "tool_calls": made, **fields}


def answer(call: str = "call_1", content: Any = "ok") -> Json:
    return {"role": "tool", "tool_call_id": call, "content": content}


CHAT_TOOLS = [{"type": "function", "function": {"name": "read", "description": "Read a file.", "parameters": SCHEMA}}]


def responses(*items: Json, **fields: Any) -> Json:
    return {"model": "gpt-5", "input": list(items), **fields}


def asked(said: str = "hi") -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": said}]}


def told(said: str = "hello", **fields: Any) -> Json:
    part = {"type": "output_text", "text": said, "annotations": []}
    return {"type": "message", "role": "assistant", "status": "completed", "content": [part], **fields}


def function_call(call: str = "call_1", **fields: Any) -> Json:
    return {"type": "function_call", "call_id": call, "name": "read", "arguments": '{"path":"a"}', **fields}


def output(call: str = "call_1", said: Any = "ok") -> Json:
    return {"type": "function_call_output", "call_id": call, "output": said}


def reasoning(name: str = "rs_1", **fields: Any) -> Json:
    return {"type": "reasoning", "id": name, "summary": [], "encrypted_content": "gAAAAABsecretDQ==", **fields}


RESPONSES_TOOLS = [{"type": "function", "name": "read", "description": "Read a file.", "parameters": SCHEMA, "strict": False}]


def gemini(*contents: Json, **fields: Any) -> Json:
    return {"contents": list(contents), **fields}


def turn(role: str, *parts: Json | str) -> Json:
    return {"role": role, "parts": [{"text": each} if isinstance(each, str) else each for each in parts]}


def fn(name: str = "read", signature: str = "", **fields: Any) -> Json:
    call = {"functionCall": {"name": name, "args": {"path": "a"}, **fields}}
    return call | ({"thoughtSignature": signature} if signature else {})


def reply(name: str = "read", response: Any = None, **fields: Any) -> Json:
    return {"functionResponse": {"name": name, "response": {"output": "ok"} if response is None else response, **fields}}


def declare(name: str = "read", **fields: Any) -> list[Json]:
    return [{"functionDeclarations": [{"name": name, "description": "Read a file.", **(fields or {"parametersJsonSchema": SCHEMA})}]}]


def refused(protocol: ProtocolName, body: Json, line: int, message: str, rules: Rules | None = None) -> Violation:
    found = validate(protocol, body, rules or Rules())
    assert found is not None
    assert message in found.message
    assert found.line == line
    return found


def passes(protocol: ProtocolName, body: Json, rules: Rules | None = None) -> None:
    assert validate(protocol, body, rules or Rules()) is None
