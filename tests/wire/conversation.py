"""A case in our own words: what is asked for on top, then a part of the conversation a line, in the look of `testing/script_text.py`.

system: Be terse.
settings: temperature=0.2 thinking=low

user       text: Read the files.
assistant  text: I look.
           call id=call_1: read_file {"path":"1.txt"}
user       result id=call_1: content of call_1
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import assert_never

import msgspec

from dragoman.values.messages import Blob, Citation, FileRef, Message, Opaque, Part, Request, Settings, Text, Thought, ToolCall, ToolResult
from wire.layout import abbreviate, one_line, wrap

_ROLE_CHARS = len("assistant  ")


def describe(request: Request, like: dict[str, Request]) -> Iterator[str]:
    """The lines of a conversation. Tools that one of the other cases (`like`, by name) has too are named with that case."""
    head = list(_describe_head(request, like))
    yield from head
    if head:
        yield ""
    for message in request.messages:
        yield from _describe_message(message)


def _describe_head(request: Request, like: dict[str, Request]) -> Iterator[str]:
    if request.system:
        yield f"system: {_quote(request.system)}"
    if same := next((name for name, other in like.items() if request.tools and other.tools == request.tools), ""):
        yield f"tools: as in {same}"
    else:
        for tool in request.tools:
            yield f"tool {tool.name}: {_quote(tool.description)}"
            yield f"  {wrap(json.loads(tool.parameters), 2, 2)}"
    if words := list(_describe_settings(request.settings)):
        yield f"settings: {' '.join(words)}"
    if request.settings.response_schema:
        yield f"response_schema: {wrap(json.loads(request.settings.response_schema), 17, 2)}"
    if request.cache_key:
        yield f"cache_key: {_quote(request.cache_key)}"


def _describe_settings(settings: Settings) -> Iterator[str]:
    for key, value in msgspec.structs.asdict(settings).items():
        if value == getattr(Settings(), key) or key == "response_schema":
            continue
        if key != "thinking":
            yield f"{key}={value if isinstance(value, str) else one_line(value)}"
        elif settings.thinking is not None:
            budget = settings.thinking.budget_tokens
            yield f"thinking={settings.thinking.effort}" + (f" thinking_tokens={budget}" if budget is not None else "")


def _describe_message(message: Message) -> Iterator[str]:
    lines = [line for part in message.parts for line in _describe_part(part)] or ["nothing"]
    for role, line in zip([message.role, *[""] * len(lines)], lines, strict=False):
        yield f"{role:{_ROLE_CHARS}}{line}"


def _describe_part(part: Part) -> Iterator[str]:
    match part:
        case Text() | Thought():
            yield f"{'text' if isinstance(part, Text) else 'thought'}: {_quote(part.text)}"
        case ToolCall():
            yield _describe_call(part)
        case ToolResult():
            yield from _describe_result(part)
        case Blob():
            yield f"blob: {part.mime}, {part.size} bytes, sha256 {part.sha256[:16]}"
        case FileRef():
            yield f"file: {part.mime} {part.uri}"
        case Citation():
            yield f"cite title={one_line(part.title)} text={one_line(part.cited_text)}: {part.uri}"
        case _:
            assert_never(part)
    if isinstance(part, Text | Thought | ToolCall | Citation) and part.opaque is not None:
        yield f"  {_describe_opaque(part.opaque)}"


def _describe_call(call: ToolCall) -> str:
    start, arguments = f"call id={_quote_word(call.id)}", abbreviate(call.arguments)
    name = _quote_word(call.name)
    return f"{start}: {name} {arguments}" if _is_plain(arguments) else f"{start} args={one_line(arguments)}: {name}"


def _describe_result(result: ToolResult) -> Iterator[str]:
    start = f"result id={_quote_word(result.call_id)}{' error' if result.is_error else ''}:"
    match result.content:
        case ():
            yield f"{start} nothing"
        case (Text(text=text),):
            yield f"{start} {_quote(text)}"
        case parts:
            yield start
            yield from (f"  {line}" for part in parts for line in _describe_part(part))


def _describe_opaque(opaque: Opaque) -> str:
    return f"opaque {opaque.provider}/{opaque.model}: {abbreviate(opaque.json)}"


def _quote(text: str) -> str:
    """The text as it is where it is a line; else a JSON string."""
    text = abbreviate(text)
    return text if _is_plain(text) and not text.startswith('"') else one_line(text)


def _quote_word(text: str) -> str:
    return text if _is_plain(text) and " " not in text and '"' not in text else one_line(text)


def _is_plain(text: str) -> bool:
    return bool(text) and text.isprintable() and text == text.strip()
