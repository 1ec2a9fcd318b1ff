"""OpenAI Chat Completions and compatible services, requests. Numbers in comments refer to the rules in docs/reference/wire.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.providers.openai_chat_stream import Decoder, answer_from_error, read_answer
from dragoman.providers.openai_settings import chat_thinking, embed_answer, embed_request, format_instruction, response_format, sampling
from dragoman.providers.wire import Destination, Framing, Taken, joined, leave_out, merged_object
from dragoman.providers.wire_calls import arguments_object, arguments_string, cache_key, mistral_id, wire_id, wire_name
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
from dragoman.values.errors import Unsupported
from dragoman.values.messages import Blob, FileRef, Message, Request, Response, Text, Thought, ToolCall, ToolResult
from dragoman.words import say

MAX_ID = 40
MAX_KEPT_ID = 256
"""OpenRouter makes ids of Gemini's calls out of the tool's name, and its signatures refer to them."""
BRIDGE = "Understood."
"""An assistant message inserted where a user message may not directly follow a tool result."""
NO_REASONING = "(none)"
"""Kimi treats an empty reasoning field as missing."""
_MARKER = b',"cache_control":{"type":"ephemeral"}}'
"""The end of a block that ends a cached part of the prompt."""
_AUDIO = {"audio/mpeg": b"mp3", "audio/mp3": b"mp3", "audio/wav": b"wav", "audio/x-wav": b"wav", "audio/wave": b"wav"}
CARRIED = Carried(
    (*sorted(IMAGE_TYPES), "application/pdf", *_AUDIO),
    {**dict.fromkeys(sorted(IMAGE_TYPES), ("https://", "http://")), "application/pdf": (FILE_ID,)},
)


class Rendered(msgspec.Struct, frozen=True):
    role: str
    results: bytes = b""
    """Whole `tool` messages joined by commas; they come before the rest of the message."""
    content: bytes = b""
    """The inside of a JSON string, or content blocks joined by commas: the profile decides which, never the message."""
    reasoning: bytes | None = None
    """The inside of a JSON string."""
    details: bytes = b""
    """The items of `reasoning_details` joined by commas, as the service sent them. They replace `reasoning`."""
    calls: bytes = b""
    text_end: int = 0
    """Where the last text block of `content` ends: only a text block takes a cache marker. 0 if there is none."""

    @property
    def is_empty(self) -> bool:
        return not (self.results or self.content or self.calls or self.details)


# --- one message ----------------------------------------------------------------------------------------------------------------


def render(message: Message, to: Destination) -> Rendered:
    if message.role == "assistant":
        return _render_assistant(message, to)
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    said = [piece for part in message.parts for piece in user_pieces(part, lambda text: _text(text, to), lambda media: _media(media, to))]
    shown = [piece for result in results for part in attachments(result) for piece in _attachment(part, result, to)]
    content = shown + said or ([] if results else [_text(EMPTY_MESSAGE, to)])
    answers = b",".join(_result_message(result, to) for result in results)
    return Rendered("user", answers, _join_pieces(content, to), text_end=_text_end(content) if _is_marked(to) else 0)


def _render_assistant(message: Message, to: Destination) -> Rendered:
    texts = [part.text for part in message.parts if isinstance(part, Text) and part.text.strip()]  # (14)
    calls = b",".join(_call(part, to) for part in message.parts if isinstance(part, ToolCall))
    details = _details(message, to)
    if not texts and not calls and not details:
        return Rendered("assistant")
    reasoning = None if details else _reasoning(message, bool(calls), to)
    return Rendered("assistant", b"", _escape("\n\n".join(texts)), reasoning, details, calls)


def _details(message: Message, to: Destination) -> bytes:
    """(12) What this model sent in `reasoning_details`. A server that sends them takes them back: Gemini refuses a call without them."""
    kept = (to.own(part.opaque, same_model=True) for part in message.parts if isinstance(part, Thought))
    return b",".join(each[1:-1].encode() for each in kept if each.startswith("[") and each != "[]")


def _reasoning(message: Message, has_calls: bool, to: Destination) -> bytes | None:
    """(12) Thinking is sent back where the profile says so, with a placeholder if the field is required and there was no thinking."""
    back = to.profile.reasoning_back
    if back == "never" or (back == "calls" and not has_calls) or to.profile.reasoning_field == "reasoning_details":
        return None
    thoughts = [part.text for part in message.parts if isinstance(part, Thought) and part.text]
    if not thoughts and back == "given":
        return None
    return _escape("\n\n".join(thoughts) or NO_REASONING)


def _call(call: ToolCall, to: Destination) -> bytes:
    arguments = arguments_object(call).decode() if _merges_runs(to) else arguments_string(call)
    function = {"name": wire_name(call.name), "arguments": arguments}
    return jsontext.encode({"id": _id(call.id, to), "type": "function", "function": function})


def _result_message(result: ToolResult, to: Destination) -> bytes:
    text = result_text(result)  # (14) never empty
    if result.is_error and not text.lower().startswith("error"):
        text = f"Error: {text}"  # the protocol has no field for it
    content = [{"type": "text", "text": text}] if _is_marked(to) else text  # only a block can hold a cache marker
    return jsontext.encode({"role": "tool", "tool_call_id": _id(result.call_id, to), "content": content})


def _id(call_id: str, to: Destination) -> str:
    if to.profile.call_id == "mistral":
        return mistral_id(call_id)  # (13)
    return wire_id(call_id, MAX_KEPT_ID if to.profile.call_id == "kept" else MAX_ID)  # (11)


def _attachment(part: Blob | FileRef, result: ToolResult, to: Destination) -> Iterator[bytes]:
    """Media that a tool message cannot hold: sent in a user message, with a note of which tool returned it."""
    yield _text(f"[{part.mime} from {result.name}]", to)
    yield _media(part, to)


def _media(part: Blob | FileRef, to: Destination) -> bytes:
    if (text := media_placeholder(part, to, CARRIED)) is not None:
        return _text(text, to)
    if isinstance(part, FileRef):
        if part.uri.startswith(FILE_ID):
            return jsontext.encode({"type": "file", "file": {"file_id": part.uri}})
        return b'{"type":"image_url","image_url":{"url":' + jsontext.encode(part.uri) + b"}}"
    data = blob_data(part, to)
    encoded = base64(data)
    if part.mime in IMAGE_TYPES:
        return b'{"type":"image_url","image_url":{"url":"data:' + part.mime.encode() + b";base64," + encoded + b'"}}'
    if part.mime == "application/pdf":
        return b'{"type":"file","file":{"filename":"document.pdf","file_data":"data:application/pdf;base64,' + encoded + b'"}}'
    return b'{"type":"input_audio","input_audio":{"data":"' + encoded + b'","format":"' + _AUDIO[part.mime] + b'"}}'


def _uses_blocks(to: Destination) -> bool:
    """Whether content is sent as blocks. Text-only models get plain strings, because their chat templates fail on blocks."""
    return to.profile.images or to.profile.pdfs or to.profile.audio or _is_marked(to)


def _is_marked(to: Destination) -> bool:
    """Whether the prompt cache is asked for by marking blocks (Claude behind OpenRouter)."""
    return to.cache == "breakpoints"


def _text(text: str, to: Destination) -> bytes:
    return b'{"type":"text","text":' + jsontext.encode(text) + b"}" if _uses_blocks(to) else _escape(text)


def _join_pieces(pieces: list[bytes], to: Destination) -> bytes:
    return (b"," if _uses_blocks(to) else b"\\n\\n").join(pieces)


def _text_end(blocks: list[bytes]) -> int:
    last = max((number for number, block in enumerate(blocks, 1) if block.startswith(b'{"type":"text"')), default=0)
    return len(b",".join(blocks[:last]))


def _escape(text: str) -> bytes:
    return jsontext.encode(text)[1:-1]


# --- the list of messages ---------------------------------------------------------------------------------------------------------


def _wire_messages(request: Request, rendered: Sequence[Rendered], to: Destination) -> Iterator[bytes]:
    system = [text for text in (request.system, format_instruction(request.settings, to.profile)) if text.strip()]
    if system:
        yield _system_message("\n\n".join(system), to)
    after_tool, uses_blocks = False, _uses_blocks(to)  # asked once: there may be thousands of messages
    items = list(_merge_runs(rendered, to)) if _merges_runs(to) else _merge_answers(rendered, to)
    for item in _mark_items(items) if _is_marked(to) else items:
        if item.results:
            yield item.results
            after_tool = True
        if item.role == "assistant":
            if not item.is_empty:
                yield _assistant_message(item, to)
                after_tool = False
        elif item.content:
            if after_tool and to.profile.strict_template:
                yield _assistant_message(_bridge(to), to)
            after_tool = False
            yield b'{"role":"user","content":' + (b"[" + item.content + b"]" if uses_blocks else b'"' + item.content + b'"') + b"}"


def _system_message(text: str, to: Destination) -> bytes:
    marked = [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]
    return jsontext.encode({"role": to.profile.system_role, "content": marked if _is_marked(to) else text})


def _mark_items(items: Sequence[Rendered]) -> list[Rendered]:
    """Cache markers after the first message of the user (the environment) and the last: with tools and system, the four that may be."""
    marked = list(items)
    users = [index for index, item in enumerate(items) if item.role == "user" and not item.is_empty]
    for index in {*users[:1], *users[-1:]}:
        item = items[index]
        if item.content:
            end = item.text_end
            content = item.content[: end - 1] + _MARKER + item.content[end:] if end else item.content
            marked[index] = msgspec.structs.replace(item, content=content)
        else:  # the end of the last tool message: its block, its content, itself
            marked[index] = msgspec.structs.replace(item, results=item.results[:-3] + _MARKER + b"]}")
    return marked


def _assistant_message(item: Rendered, to: Destination) -> bytes:
    if item.calls and item.reasoning is None and not (item.content or item.details):  # a call alone: most answers of a long run
        return b'{"role":"assistant","content":null,"tool_calls":[' + item.calls + b"]}"
    pieces = [b'{"role":"assistant"']
    if item.details:
        pieces.append(b',"reasoning_details":[' + item.details + b"]")
    elif item.reasoning is not None:
        pieces.append(b"," + jsontext.encode(to.profile.reasoning_field or "reasoning_content") + b':"' + item.reasoning + b'"')
    pieces.append(b',"content":"' + item.content + b'"' if item.content else b',"content":null')
    if item.calls:
        pieces.append(b',"tool_calls":[' + item.calls + b"]")
    return b"".join(pieces) + b"}"


def _bridge(to: Destination) -> Rendered:
    reasoning = _escape(NO_REASONING) if to.profile.reasoning_back == "always" else None
    return Rendered("assistant", content=_escape(BRIDGE), reasoning=reasoning)


def _merges_runs(to: Destination) -> bool:
    return to.profile.strict_template or to.profile.merge_runs


def _merge_runs(rendered: Sequence[Rendered], to: Destination) -> Iterator[Rendered]:
    """(13) Merge consecutive messages of one role. A message with calls ends a run, because its results come next; one whose reasoning
    must stay as it was is sent alone."""
    last: Rendered | None = None
    for item in rendered:
        if item.is_empty:
            continue
        if last is not None and last.role == item.role and not last.calls and not item.results and not (last.details or item.details):
            last = _merge_two(last, item, to)
            continue
        if last is not None:
            yield last
        last = item
    if last is not None:
        yield last


def _merge_answers(rendered: Sequence[Rendered], to: Destination) -> Sequence[Rendered]:
    """Merge answers of plain text that follow each other, where nothing else is merged.

    What stands between two messages changes only by a rewind, so a merged one is the same in every later request.
    """
    if "assistantassistant" not in "".join([item.role for item in rendered]):  # as nearly always, and there may be thousands
        return rendered
    merged: list[Rendered] = []
    for item in rendered:
        if item.is_empty:
            continue
        if _is_plain(item) and merged and _is_plain(merged[-1]):
            merged[-1] = _merge_two(merged[-1], item, to)
        else:
            merged.append(item)
    return merged


def _is_plain(item: Rendered) -> bool:
    return item.role == "assistant" and bool(item.content) and item.reasoning is None and not (item.details or item.calls)


def _merge_two(first: Rendered, second: Rendered, to: Destination) -> Rendered:
    separator = b"," if _uses_blocks(to) and first.role == "user" else b"\\n\\n"
    content = separator.join(piece for piece in (first.content, second.content) if piece)
    thoughts = [piece for piece in (first.reasoning, second.reasoning) if piece is not None]
    kept = [piece for piece in thoughts if piece != _escape(NO_REASONING)] or thoughts[:1]
    reasoning = b"\\n\\n".join(kept) if thoughts else None
    text_end = len(content) - len(second.content) + second.text_end if second.text_end else first.text_end
    return Rendered(first.role, first.results, content, reasoning, calls=second.calls, text_end=text_end)


# --- request → body ---------------------------------------------------------------------------------------------------------------


def body(request: Request, rendered: Sequence[Rendered], to: Destination, *, stream: bool) -> bytes:
    if request.settings.search:
        raise Unsupported(say("providers.no_search", deployment=to.deployment.name))
    head = b'{"model":' + jsontext.encode(to.model)
    if request.tools:
        tools = b",".join(_tool(tool.name, tool.description, tool.parameters) for tool in request.tools)
        head += b',"tools":[' + (tools[:-1] + _MARKER if _is_marked(to) else tools) + b"]"
    tail = merged_object(_tail(request, to, stream))
    return b"".join([head, b',"messages":[', *joined(_wire_messages(request, rendered, to)), b"]", tail, b"}"])


def _tool(name: str, description: str, parameters: str) -> bytes:
    head = jsontext.encode({"name": name, "description": description})[:-1]
    return b'{"type":"function","function":' + head + b',"parameters":' + tool_schema(parameters) + b"}}"


def _tail(request: Request, to: Destination, stream: bool) -> dict[str, object]:
    settings, tail = request.settings, dict[str, object]()
    if settings.max_output_tokens:
        tail[to.profile.max_tokens_field] = settings.max_output_tokens
    tail.update(sampling(settings, to.profile))
    if settings.stop and to.profile.temperature:  # OpenAI's reasoning models refuse it as they refuse sampling
        tail["stop"] = list(settings.stop)
    tail.update(chat_thinking(settings.thinking, bool(request.tools), to.profile))
    if request.tools and settings.tool_choice != "auto":
        named = settings.tool_choice not in ("none", "required")
        tail["tool_choice"] = {"type": "function", "function": {"name": settings.tool_choice}} if named else settings.tool_choice
    if shape := response_format(settings, to.profile):
        tail["response_format"] = shape
    if to.cache == "key" and request.cache_key:
        tail["prompt_cache_key"] = cache_key(request)
    if stream:
        tail["stream"] = True
        if to.deployment.stream_usage:
            tail["stream_options"] = {"include_usage": True}
    return leave_out(tail | to.deployment.extra_body, request.omit)


# --- the other calls, and responses -------------------------------------------------------------------------------------------------


def path(to: Destination, *, stream: bool) -> str:
    return "/chat/completions"


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
    raise Unsupported(say("providers.no_count"))


def count_answer(data: Any) -> int:
    raise Unsupported(say("providers.no_count"))


__all__ = [
    "answer_from_error",
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
