"""OpenAI Responses, requests, without state of the server: each is whole. Numbers: the rules in docs/reference/wire.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.providers.openai_responses_stream import Decoder, read_answer
from dragoman.providers.openai_settings import effort, embed_answer, embed_request, format_instruction, named_schema, sampling
from dragoman.providers.wire import Destination, Framing, Taken, joined, leave_out, merged_object
from dragoman.providers.wire_calls import arguments_string, cache_key, wire_id, wire_name
from dragoman.providers.wire_content import (
    EMPTY_MESSAGE,
    FILE_ID,
    IMAGE_TYPES,
    Carried,
    attachments,
    base64,
    blob_data,
    media_placeholder,
    result_text,
    user_pieces,
)
from dragoman.providers.wire_schemas import tool_schema
from dragoman.values.messages import Blob, FileRef, Message, Part, Request, Response, Settings, Text, Thought, ToolCall, ToolResult

MAX_ID = 64
MIN_OUTPUT_TOKENS = 16
_KINDS = (*sorted(IMAGE_TYPES), "application/pdf")
CARRIED = Carried(_KINDS, dict.fromkeys(_KINDS, ("https://", "http://", FILE_ID)))
_ANSWER_BEGINS, _ANSWER_ENDS = b'{"type":"message","role":"assistant","content":[', b"]}"


class Rendered(msgspec.Struct, frozen=True):
    role: str
    items: bytes
    """Input items joined by commas."""
    texts: bytes = b""
    """Of an answer that is a single message without fields of the service's own: its content blocks."""


# --- one message → items ------------------------------------------------------------------------------------------------------------


def render(message: Message, to: Destination) -> Rendered:
    if message.role == "assistant":
        items = list(_assistant_items(message, to))
        return Rendered("assistant", b",".join(items), _blocks_of(items))
    results = [_result_item(part, to) for part in message.parts if isinstance(part, ToolResult)]
    content = [block for part in message.parts for block in user_pieces(part, _text_block, lambda media: _media_block(media, to))]
    if not content and not results:
        content = [_text_block(EMPTY_MESSAGE)]
    said = [b'{"type":"message","role":"user","content":[' + b",".join(content) + b"]}"] if content else []
    return Rendered("user", b",".join(results + said))


def _assistant_items(message: Message, to: Destination) -> Iterator[bytes]:
    reasoning: list[bytes] = []
    private = {index: item for index, part in enumerate(message.parts) if (item := _private_item(part, to))}
    call_ids = Counter(item.get("call_id") for item in private.values())
    for index, part in enumerate(message.parts):
        match part:
            case Thought() if kept := private.get(index):
                if kept.get("type") == "reasoning":
                    reasoning.append(_reasoning_item(kept))
                    continue
                if not _is_settled(kept, call_ids):
                    continue
                item = jsontext.encode(kept)
            case Text(text=text) if text.strip():
                item = _text_item(part, to)
            case ToolCall():
                call = {"type": "function_call", "call_id": wire_id(part.id, MAX_ID), "name": wire_name(part.name)}
                item = jsontext.encode({**call, "arguments": arguments_string(part)})
            case _:
                continue
        yield from reasoning  # (16) reasoning must come before the item it led to, or be left out
        reasoning = []
        yield item


def _blocks_of(items: Sequence[bytes]) -> bytes:
    if len(items) != 1 or not items[0].startswith(_ANSWER_BEGINS) or not items[0].endswith(_ANSWER_ENDS):
        return b""
    return items[0][len(_ANSWER_BEGINS) : -len(_ANSWER_ENDS)]


def _private_item(part: Part, to: Destination) -> dict[str, Any] | None:
    """The item of the service that a part was made from, if this model made it: (17) no other one can decrypt it."""
    own = to.own(part.opaque, same_model=True) if isinstance(part, Thought) else ""
    return jsontext.decode(own) if own else None


def _reasoning_item(item: dict[str, Any]) -> bytes:
    """Without its id, which names nothing where nothing is stored, and which would bind the item to the id of the one behind it."""
    return jsontext.encode({key: value for key, value in item.items() if key not in ("id", "status")})


def _is_settled(item: dict[str, Any], call_ids: Counter[str | None]) -> bool:
    """Whether an item waits for no answer of ours: a call whose output does not stand beside it is refused."""
    call_id = item.get("call_id")
    return not str(item.get("type")).endswith("_request") and (call_id is None or call_ids[call_id] > 1)


def _text_item(part: Text, to: Destination) -> bytes:
    said = [{"type": "output_text", "text": part.text}]  # behind reasoning, plain text is refused
    item = jsontext.encode({"type": "message", "role": "assistant", "content": said})
    if own := to.own(part.opaque, same_model=True):
        return item[:-1] + b"," + own[1:].encode()  # service-specific fields, such as the phase
    return item


def _result_item(result: ToolResult, to: Destination) -> bytes:
    text = result_text(result)
    if result.is_error and not text.lower().startswith("error"):
        text = f"Error: {text}"
    head = jsontext.encode({"type": "function_call_output", "call_id": wire_id(result.call_id, MAX_ID)})[:-1]
    shown = [_media_block(part, to) for part in attachments(result)]
    output = b"[" + b",".join([_text_block(text), *shown]) + b"]" if shown else jsontext.encode(text)
    return head + b',"output":' + output + b"}"


def _text_block(text: str) -> bytes:
    return b'{"type":"input_text","text":' + jsontext.encode(text) + b"}"


def _media_block(part: Blob | FileRef, to: Destination) -> bytes:
    if (text := media_placeholder(part, to, CARRIED)) is not None:
        return _text_block(text)
    image = part.mime in IMAGE_TYPES
    if isinstance(part, FileRef):
        if part.uri.startswith(FILE_ID):
            kind = {"type": "input_image", "detail": "auto"} if image else {"type": "input_file"}
            return jsontext.encode({**kind, "file_id": part.uri})
        if image:
            return jsontext.encode({"type": "input_image", "detail": "auto", "image_url": part.uri})
        return jsontext.encode({"type": "input_file", "file_url": part.uri})
    data = blob_data(part, to)
    url = b'"data:' + part.mime.encode() + b";base64," + base64(data) + b'"'
    if image:
        return b'{"type":"input_image","detail":"auto","image_url":' + url + b"}"
    return b'{"type":"input_file","filename":"document.pdf","file_data":' + url + b"}"


# --- request → body -----------------------------------------------------------------------------------------------------------------


def body(request: Request, rendered: Sequence[Rendered], to: Destination, *, stream: bool) -> bytes:
    return b"".join([*_prompt(request, rendered, to), merged_object(_tail(request, to, stream)), b"}"])


def _prompt(request: Request, rendered: Sequence[Rendered], to: Destination) -> list[bytes]:
    head = b'{"model":' + jsontext.encode(to.model)
    if request.system.strip():
        head += b',"instructions":' + jsontext.encode(request.system)
    tools = [_tool(tool.name, tool.description, tool.parameters) for tool in request.tools]
    if request.settings.search:
        tools.append(b'{"type":"web_search"}')
    if tools:
        head += b',"tools":[' + b",".join(tools) + b"]"
    items = list(_merge_answers(rendered))
    if said := format_instruction(request.settings, to.profile):  # `instructions` does not count
        items.insert(0, jsontext.encode({"type": "message", "role": "developer", "content": said}))
    return [head, b',"input":[', *joined(items), b"]"]


def _merge_answers(rendered: Sequence[Rendered]) -> Iterator[bytes]:
    """The items, with answers of plain text that follow each other as one message: their texts stay blocks of their own."""
    texts: list[bytes] = []
    for item in rendered:
        if item.texts:
            texts.append(item.texts)
            continue
        if texts and item.items:
            yield _answer_item(texts)
            texts = []
        if item.items:
            yield item.items
    if texts:
        yield _answer_item(texts)


def _answer_item(texts: Sequence[bytes]) -> bytes:
    return b"".join([_ANSWER_BEGINS, b",".join(texts), _ANSWER_ENDS])


def _tool(name: str, description: str, parameters: str) -> bytes:
    head = jsontext.encode({"type": "function", "name": name, "description": description})[:-1]
    return head + b',"parameters":' + tool_schema(parameters) + b',"strict":false}'


def _tail(request: Request, to: Destination, stream: bool) -> dict[str, object]:
    settings = request.settings
    tail: dict[str, object] = {"store": False}
    if settings.max_output_tokens:
        tail["max_output_tokens"] = max(settings.max_output_tokens, MIN_OUTPUT_TOKENS)
    tail.update(sampling(settings, to.profile))
    if to.profile.thinking != "none":
        tail["include"] = ["reasoning.encrypted_content"]
        if reasoning := _reasoning(settings, to):
            tail["reasoning"] = reasoning
    if request.tools and settings.tool_choice != "auto":
        named = settings.tool_choice not in ("none", "required")
        tail["tool_choice"] = {"type": "function", "name": settings.tool_choice} if named else settings.tool_choice
    if settings.response_schema and to.profile.json_schema:
        tail["text"] = {"format": {"type": "json_schema", **named_schema(settings, to.profile)}}
    elif settings.response_schema or settings.response_mime == "application/json":
        tail["text"] = {"format": {"type": "json_object"}}
    if to.cache == "key" and request.cache_key:
        tail["prompt_cache_key"] = cache_key(request)
    if stream:
        tail["stream"] = True
    return leave_out(tail | to.deployment.extra_body, request.omit)


def _reasoning(settings: Settings, to: Destination) -> dict[str, object]:
    level = effort(settings.thinking, to.profile)
    wanted: dict[str, object] = {"effort": level} if level is not None else {}
    if to.profile.thinking == "effort" and level != "none" and to.deployment.reasoning_summary:
        wanted["summary"] = "auto"  # may be refused: OpenAI gives it to verified organisations only
    return wanted


# --- the other calls, and responses ---------------------------------------------------------------------------------------------------


def path(to: Destination, *, stream: bool) -> str:
    return "/responses"


def headers(to: Destination) -> dict[str, str]:
    return {}


def framing() -> Framing:
    from dragoman.http.sse import SSEDecoder

    return SSEDecoder()


def decoder(to: Destination, taken: Taken) -> Decoder:
    return Decoder(to, taken)


def from_wire(data: Any, to: Destination, taken: Taken) -> Response:
    return read_answer(data, to, taken)


def count_request(request: Request, rendered: Sequence[Rendered], to: Destination) -> tuple[str, bytes]:
    return "/responses/input_tokens", b"".join([*_prompt(request, rendered, to), b"}"])


def count_answer(data: Any) -> int:
    return int(data["input_tokens"])


__all__ = [
    "body",
    "count_answer",
    "count_request",
    "decoder",
    "embed_answer",
    "embed_request",
    "framing",
    "from_wire",
    "headers",
    "path",
    "render",
]
