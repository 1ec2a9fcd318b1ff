"""What a program told its model: the calls and results in the body of a request, whichever of the four protocols it speaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple


class Told(NamedTuple):
    """A call, and what came of it."""

    name: str
    arguments: dict[str, Any]
    text: str
    is_error: bool = False
    """As far as the protocol says so: chat and responses do not."""


def told(body: dict[str, Any]) -> list[Told]:
    """The calls that have a result, in the order of the results."""
    calls: dict[str, tuple[str, dict[str, Any]]] = {}
    found: list[Told] = []
    for kind, key, value in _pieces(body):
        if kind == "call":
            calls[key] = value
        else:
            text, is_error = value
            found.append(Told(*calls.get(key, ("", {})), text, is_error))
    return found


def words(body: dict[str, Any]) -> str:
    """Everything in it as one text, to look for a word in."""
    return "\n".join(_strings({key: value for key, value in body.items() if key != "tools"}))


def person_words(body: dict[str, Any]) -> list[str]:
    """What stands in messages of the user, results aside."""
    if "contents" in body:
        return [part["text"] for turn in body["contents"] if turn["role"] == "user" for part in turn["parts"] if "text" in part]
    messages = body.get("messages") or [item for item in body.get("input", ()) if item.get("type", "message") == "message"]
    return [text for message in messages if message["role"] == "user" for text in _texts(message["content"])]


def _pieces(body: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    if "contents" in body:
        yield from _gemini(body["contents"])
    elif "input" in body:
        yield from _responses(body["input"])
    else:
        yield from _messages(body.get("messages", ()))


def _gemini(contents: list[dict[str, Any]]) -> Iterator[tuple[str, str, Any]]:
    for part in (part for turn in contents for part in turn.get("parts", ())):
        if call := part.get("functionCall"):
            yield "call", call.get("id", call["name"]), (call["name"], call.get("args", {}))
        elif result := part.get("functionResponse"):
            answer = result["response"]
            text = answer.get("output", answer.get("error"))
            yield "result", result.get("id", result["name"]), (text if isinstance(text, str) else json.dumps(answer), "error" in answer)


def _responses(items: list[dict[str, Any]]) -> Iterator[tuple[str, str, Any]]:
    for item in items:
        if item.get("type") == "function_call":
            yield "call", item["call_id"], (item["name"], json.loads(item["arguments"] or "{}"))
        elif item.get("type") == "function_call_output":
            yield "result", item["call_id"], ("\n".join(_texts(item["output"])), False)


def _messages(messages: list[dict[str, Any]]) -> Iterator[tuple[str, str, Any]]:
    """Of chat completions, and of Anthropic."""
    for message in messages:
        for call in message.get("tool_calls") or ():
            yield "call", call["id"], (call["function"]["name"], json.loads(call["function"]["arguments"] or "{}"))
        if message["role"] == "tool":
            yield "result", message["tool_call_id"], ("\n".join(_texts(message["content"])), False)
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block.get("type") == "tool_use":
                yield "call", block["id"], (block["name"], block["input"])
            elif block.get("type") == "tool_result":
                yield "result", block["tool_use_id"], ("\n".join(_texts(block.get("content", ""))), bool(block.get("is_error")))


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part.get("text", "") for part in content or () if isinstance(part, dict)]


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from _strings(each)
        case list():
            for each in value:
                yield from _strings(each)
        case _:
            pass
