"""Anthropic Messages, requests. Numbers in comments refer to the rules in docs/wire.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.base.words import say
from dragoman.http.sse import SSEDecoder
from dragoman.providers.anthropic_stream import Decoder, read_answer
from dragoman.providers.wire import Destination, Taken, leave_out, merged_object
from dragoman.providers.wire_calls import arguments_object, declared_tools, wire_id, wire_name
from dragoman.providers.wire_content import EMPTY_MESSAGE, base64, blob_data, image_type, media_placeholder, user_pieces
from dragoman.providers.wire_schemas import closed_schema, tool_schema
from dragoman.values.errors import Unsupported
from dragoman.values.messages import Blob, FileRef, Message, Request, Response, Settings, Text, Thinking, Thought, ToolCall, ToolResult
from dragoman.values.parts import NO_OUTPUT

MAX_ID = 64
_MARKER = b',"cache_control":{"type":"ephemeral"}}'
_THINKING = ("thinking", "redacted_thinking")
_BUDGETS = {"low": 2_048, "medium": 8_192, "high": 24_576, "max": 63_999}


class Rendered(msgspec.Struct, frozen=True):
    role: str
    blocks: bytes
    """Content blocks joined by commas; empty if nothing of the message can be sent to this service."""
    plain: bytes = b""
    """The same without thinking, for a message that continues a turn."""
    thinks_first: bool = False


# --- one message → blocks -----------------------------------------------------------------------------------------------------


def render(message: Message, to: Destination) -> Rendered:
    if message.role == "assistant":
        return _render_assistant(message, to)
    results = [_result_block(part, to) for part in message.parts if isinstance(part, ToolResult)]  # (1) results come first
    rest = [block for part in message.parts for block in user_pieces(part, _text_block, lambda media: _media_block(media, to))]
    blocks = results + rest or [_text_block(EMPTY_MESSAGE)]  # (5)
    return Rendered("user", b",".join(blocks))


def _render_assistant(message: Message, to: Destination) -> Rendered:
    thinking: list[bytes] = []
    said: list[tuple[bool, bytes]] = []
    """(is thinking, block): the model may think again after a server-side search."""
    searched = _searches(message, to)
    visible = answered = False
    for part in message.parts:
        match part:
            case Text(text=text, opaque=opaque) if text.strip():
                said.append((False, to.own(opaque).encode() or _text_block(text)))
                visible = True
            case Thought(opaque=opaque) if own := to.own(opaque):
                block = jsontext.decode(own)
                if block["type"] in _THINKING:  # (6) byte for byte, and first in the turn
                    said.append((True, own.encode())) if answered else thinking.append(own.encode())
                elif block.get("id", block.get("tool_use_id")) in searched:
                    said.append((False, own.encode()))
                    answered = answered or "tool_use_id" in block
            case _:
                pass
    calls = [_call_block(part) for part in message.parts if isinstance(part, ToolCall)]  # (1) nothing may follow a tool_use
    while said and said[-1][0] and not calls:
        said.pop()  # a message may not end with thinking
    if not visible and not calls:
        return Rendered("assistant", b"")  # an answer of thinking alone cannot be sent back
    plain = b",".join([*(block for is_thinking, block in said if not is_thinking), *calls])
    whole = b",".join([*thinking, *(block for _, block in said), *calls])
    return Rendered("assistant", whole, plain, bool(thinking))


def _searches(message: Message, to: Destination) -> set[str]:
    """Ids of server-side tool uses that have their result. One without, from a truncated answer, is rejected."""
    blocks = [jsontext.decode(own) for part in message.parts if isinstance(part, Thought) and (own := to.own(part.opaque))]
    answered = {block["tool_use_id"] for block in blocks if "tool_use_id" in block}
    return {block["id"] for block in blocks if block.get("id") in answered}


def _text_block(text: str) -> bytes:
    return b'{"type":"text","text":' + jsontext.encode(text) + b"}"


def _call_block(call: ToolCall) -> bytes:
    head = jsontext.encode({"type": "tool_use", "id": wire_id(call.id, MAX_ID), "name": wire_name(call.name)})
    return head[:-1] + b',"input":' + arguments_object(call) + b"}"


def _result_block(result: ToolResult, to: Destination) -> bytes:
    content: list[bytes] = []
    for part in result.content:
        if isinstance(part, Text):
            content += [_text_block(part.text)] if part.text.strip() else []
        else:
            content.append(_media_block(part, to))
    head = jsontext.encode({"type": "tool_result", "tool_use_id": wire_id(result.call_id, MAX_ID)})
    error = b',"is_error":true' if result.is_error else b""
    return head[:-1] + b',"content":[' + b",".join(content or [_text_block(NO_OUTPUT)]) + b"]" + error + b"}"


def _media_block(part: Blob | FileRef, to: Destination) -> bytes:
    if (text := media_placeholder(part, to, refused=("audio/",), fetches=("https://",))) is not None:
        return _text_block(text)
    kind = b"document" if part.mime == "application/pdf" else b"image"
    if isinstance(part, FileRef):
        return b'{"type":"' + kind + b'","source":{"type":"url","url":' + jsontext.encode(part.uri) + b"}}"
    data = blob_data(part, to)
    mime = image_type(data, part.mime)  # the service checks, and rejects an image with the wrong media type
    source = b'{"type":"base64","media_type":' + jsontext.encode(mime) + b',"data":"' + base64(data) + b'"}'
    return b'{"type":"' + kind + b'","source":' + source + b"}"


# --- request → body -------------------------------------------------------------------------------------------------------------


def body(request: Request, rendered: Sequence[Rendered], to: Destination, *, stream: bool) -> bytes:
    tail: dict[str, object] = {"max_tokens": _max_tokens(request, to)}
    tail.update(_generation(request, rendered, to))
    if stream:
        tail["stream"] = True
    tail.update(to.deployment.extra_body)
    return b"".join([*_prompt(request, rendered, to), merged_object(leave_out(tail, request.omit)), b"}"])


def _prompt(request: Request, rendered: Sequence[Rendered], to: Destination) -> list[bytes]:
    """Everything the prompt cache covers, in its order. What may change between requests comes after it."""
    marked = to.cache == "breakpoints"
    head = b'{"model":' + jsontext.encode(to.model)
    if tools := _tools(request, marked):  # (21)
        head += b',"tools":[' + tools + b"]"
    if request.system.strip():  # (9) system is a field of its own
        block = _text_block(request.system)
        head += b',"system":[' + (block[:-1] + _MARKER if marked else block) + b"]"
    return [head, b',"messages":[', *_turns([item for item in rendered if item.blocks], marked), b"]"]


def _tools(request: Request, marked: bool) -> bytes:
    tools = [
        jsontext.encode({"name": tool.name, "description": tool.description})[:-1]
        + b',"input_schema":'
        + tool_schema(tool.parameters)
        + b"}"
        for tool in declared_tools(request)
    ]
    if request.settings.search:
        tools.append(b'{"type":"web_search_20250305","name":"web_search"}')
    if tools and marked:
        tools[-1] = tools[-1][:-1] + _MARKER
    return b",".join(tools)


def _turns(rendered: list[Rendered], marked: bool) -> list[bytes]:
    """Consecutive messages of one role become one turn. Cache markers: after the first message (the environment) and the last. (8)"""
    breakpoints = {0, len(rendered) - 1} if marked else set()
    pieces: list[bytes] = []
    role = ""
    for index, item in enumerate(rendered):
        blocks = item.blocks
        if item.role == role:
            pieces.append(b",")
            blocks = item.plain or blocks  # (6) thinking may only come first in a turn
        else:
            pieces += [b"]}," if role else b"", b'{"role":"', item.role.encode(), b'","content":[']
            role = item.role
        pieces.append(blocks[:-1] + _MARKER if index in breakpoints and role == "user" else blocks)
    return [*pieces, b"]}" if role else b""]


def _max_tokens(request: Request, to: Destination) -> int:
    asked = request.settings.max_output_tokens or to.profile.max_output_tokens
    return min(asked, to.profile.max_output_tokens) if to.profile.known else asked


def _generation(request: Request, rendered: Sequence[Rendered], to: Destination) -> dict[str, object]:
    settings, out = request.settings, dict[str, object]()
    output: dict[str, object] = {}
    forced = settings.tool_choice not in ("auto", "none") and to.profile.forced_tool_choice
    thinking = None if forced else _thinking(settings.thinking, request, rendered, to)
    if thinking is not None:
        out["thinking"] = thinking
        if thinking["type"] == "adaptive" and settings.thinking is not None:
            output["effort"] = "low" if settings.thinking.effort == "off" else settings.thinking.effort
    if to.profile.temperature and (thinking is None or thinking["type"] == "disabled"):
        out.update(_sampling(settings))
    if choice := _tool_choice(settings.tool_choice, forced) if request.tools else _no_choice(request):
        out["tool_choice"] = choice
    if settings.response_schema and to.profile.json_schema:
        output["format"] = {"type": "json_schema", "schema": closed_schema(jsontext.decode(settings.response_schema))}
    return out | ({"output_config": output} if output else {})


def _sampling(settings: Settings) -> dict[str, object]:
    """Temperature is at most 1 here, and top_p is rejected together with it."""
    hot = None if settings.temperature is None else min(settings.temperature, 1.0)
    wanted = {"temperature": hot, "top_p": settings.top_p if hot is None else None, "top_k": settings.top_k}
    return {key: value for key, value in wanted.items() if value is not None}


def _tool_choice(choice: str, forced: bool) -> dict[str, object] | None:
    if choice == "none":
        return {"type": "none"}
    if not forced:
        return None
    return {"type": "any"} if choice == "required" else {"type": "tool", "name": choice}


def _no_choice(request: Request) -> dict[str, object] | None:
    return {"type": "none"} if declared_tools(request) else None


def _thinking(asked: Thinking | None, request: Request, rendered: Sequence[Rendered], to: Destination) -> dict[str, object] | None:
    profile = to.profile
    if asked is None:
        return _adaptive(to) if profile.thinking_bound and not profile.thinking_off else None
    if asked.effort == "off" and profile.thinking_off:
        return {"type": "disabled"} if profile.thinking != "none" else None
    if profile.thinking == "adaptive":
        return _adaptive(to)
    if profile.thinking != "budget" or _is_loop_without_thinking(request, rendered):
        return None
    budget = min(asked.budget_tokens or _BUDGETS.get(asked.effort, 1_024), _max_tokens(request, to) - 1)
    return {"type": "enabled", "budget_tokens": budget} if budget >= 1_024 else None


def _adaptive(to: Destination) -> dict[str, object]:
    binding = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}} if to.profile.thinking_bound else {}
    return {"type": "adaptive", "display": "summarized", **binding}


def _is_loop_without_thinking(request: Request, rendered: Sequence[Rendered]) -> bool:
    """Whether an open tool loop was begun without thinking, by another provider: then it must go on without thinking too."""
    opening: Rendered | None = None
    spoken = False
    for message, item in zip(reversed(request.messages), reversed(rendered), strict=True):
        if item.role == "user":
            spoken = not message.results  # text after results is sent in one message with them, and does not end the loop
        elif item.blocks and spoken:
            break
        elif item.blocks:
            opening = item
    return opening is not None and not opening.thinks_first


# --- the other calls, and responses -----------------------------------------------------------------------------------------------


def path(to: Destination, *, stream: bool) -> str:
    return "/v1/messages"


def headers(to: Destination) -> dict[str, str]:
    beta = {"anthropic-beta": "thinking-binding-controls-2026-08-01"} if to.profile.thinking_bound else {}
    return {"anthropic-version": "2023-06-01", **beta}


def framing() -> SSEDecoder:
    return SSEDecoder()


def decoder(to: Destination, taken: Taken) -> Decoder:
    return Decoder(to, taken)


def from_wire(data: Any, to: Destination, taken: Taken) -> Response:
    return read_answer(data, to, taken)


def count_request(request: Request, rendered: Sequence[Rendered], to: Destination) -> tuple[str, bytes]:
    return "/v1/messages/count_tokens", b"".join([*_prompt(request, rendered, to), b"}"])


def count_answer(data: Any) -> int:
    return int(data["input_tokens"])


def embed_request(texts: Sequence[str], to: Destination) -> tuple[str, bytes]:
    raise Unsupported(say("providers.no_embeddings"))


def embed_answer(data: Any) -> list[list[float]]:
    raise Unsupported(say("providers.no_embeddings"))
