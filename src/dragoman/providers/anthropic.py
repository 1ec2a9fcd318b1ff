"""Anthropic Messages, requests. Numbers in comments refer to the rules in docs/reference/wire.md."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from dragoman.base import jsontext
from dragoman.providers.anthropic_stream import Decoder, EventsOrDocument, read_answer
from dragoman.providers.wire import Destination, Taken, joined, leave_out, merged_object
from dragoman.providers.wire_calls import arguments_object, declared_tools, wire_id, wire_name
from dragoman.providers.wire_content import (
    EMPTY_MESSAGE,
    IMAGE_TYPES,
    Carried,
    base64,
    blob_data,
    image_type,
    media_placeholder,
    user_pieces,
)
from dragoman.providers.wire_schemas import tool_schema
from dragoman.values.errors import Unsupported
from dragoman.values.messages import Blob, FileRef, Message, Request, Response, Settings, Text, Thought, ToolCall, ToolResult
from dragoman.values.parts import NO_OUTPUT
from dragoman.words import say

MAX_ID = 64
_FIRST_TURN = {role: b'{"role":"' + role.encode() + b'","content":[' for role in ("user", "assistant")}
_NEXT_TURN = {role: b"]}," + begin for role, begin in _FIRST_TURN.items()}
_MARKER = b',"cache_control":{"type":"ephemeral"}}'
_THINKING = ("thinking", "redacted_thinking")
_BUDGETS = {"low": 2_048, "medium": 8_192, "high": 24_576, "max": 63_999}
_WEB_SEARCH = b'{"type":"web_search_20250305","name":"web_search"}'
"""The version that every model and every platform takes. The later ones filter results by running code, which older models and other
platforms do not have, and which is not covered by zero data retention."""
_KINDS = (*sorted(IMAGE_TYPES), "application/pdf")
CARRIED = Carried(_KINDS, dict.fromkeys(_KINDS, ("https://",)))
_DROP_CHANGED = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}


class Block(NamedTuple):
    """A content block, and what decides whether it can be sent. A whole user message is one, because nothing of it is ever left out."""

    data: bytes
    kind: str
    id: str = ""
    """Of a server-side tool use or its result."""


class Rendered(msgspec.Struct, frozen=True):
    role: str
    blocks: tuple[Block, ...] = ()
    """Empty if nothing of the message can be sent to this service."""
    pieces: tuple[bytes, ...] = ()
    """The same with commas between, as it is sent unless something has to be left out."""
    is_plain: bool = True
    """Whether all of it can be sent, whatever is around it: no search of the service's own, and no thinking at the end."""

    @property
    def thinks_first(self) -> bool:
        return bool(self.blocks) and self.blocks[0].kind == "thinking"


# --- one message → blocks -----------------------------------------------------------------------------------------------------


def render(message: Message, to: Destination) -> Rendered:
    if message.role == "assistant":
        own = _assistant_blocks(message, to)
        is_plain = bool(own) and own[-1].kind != "thinking" and not any(block.id for block in own)
        return Rendered("assistant", own, tuple(joined(block.data for block in own)), is_plain)
    results = [_result_block(part, to) for part in message.parts if isinstance(part, ToolResult)]  # (1) results come first
    rest = [block for part in message.parts for block in user_pieces(part, _text_block, lambda media: _media_block(media, to))]
    blocks = results + rest or [_text_block(EMPTY_MESSAGE)]  # (5)
    whole = b",".join(blocks)
    return Rendered("user", (Block(whole, "results" if results and not rest else "user"),), (whole,))


def _assistant_blocks(message: Message, to: Destination) -> tuple[Block, ...]:
    """The answer in its own order (6): what the model thought between two calls is bound to its place."""
    blocks: list[Block] = []
    first_call = -1
    for part in message.parts:
        match part:
            case Text(text=text, opaque=opaque) if text:
                block = Block(to.own(opaque).encode() or _text_block(text), "text" if text.strip() else "blank")
                blocks.insert(first_call, block) if first_call >= 0 else blocks.append(block)  # (1) no text behind a tool_use
                first_call += first_call >= 0
            case Thought(opaque=opaque) if own := to.own(opaque):
                blocks.append(_own_block(own))
            case ToolCall():
                first_call = len(blocks) if first_call < 0 else first_call
                blocks.append(Block(_call_block(part, to), "tool_use"))
            case _:
                pass
    if not any(block.kind not in ("thinking", "blank") for block in blocks):
        return ()  # an answer of thinking alone cannot be sent back
    return tuple(_without_late_thinking(blocks) if to.profile.thinking == "budget" else blocks)


def _without_late_thinking(blocks: Sequence[Block]) -> list[Block]:
    """Models with a budget think first, and again only once one of the service's own tools has answered: elsewhere, thinking is from
    another model, and taken for a change."""
    first_words = next((index for index, block in enumerate(blocks) if block.kind != "thinking"), len(blocks))
    first_found = next((index for index, block in enumerate(blocks) if block.kind == "server_result"), len(blocks))
    return [block for index, block in enumerate(blocks) if block.kind != "thinking" or not first_words < index < first_found]


def _own_block(own: str) -> Block:
    block = jsontext.decode(own)
    if block["type"] in _THINKING:
        return Block(own.encode(), "thinking")  # (6) byte for byte
    if "tool_use_id" in block:
        return Block(own.encode(), "server_result", block["tool_use_id"])
    return Block(own.encode(), "server_use" if "id" in block else "other", block.get("id") or "")


def _text_block(text: str) -> bytes:
    return b'{"type":"text","text":' + jsontext.encode(text) + b"}"


def _call_block(call: ToolCall, to: Destination) -> bytes:
    head = jsontext.encode({"type": "tool_use", "id": wire_id(call.id, MAX_ID), "name": wire_name(call.name)})
    beside = b"," + own[1:-1].encode() if (own := to.own(call.opaque)) else b""
    return head[:-1] + b',"input":' + arguments_object(call) + beside + b"}"


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
    if (text := media_placeholder(part, to, CARRIED)) is not None:
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
    thinking = _thinking(request, rendered, to)
    tail: dict[str, object] = {"max_tokens": _max_tokens(request, to)}
    tail.update(_generation(request, thinking, to))
    if stream:
        tail["stream"] = True
    tail.update(to.deployment.extra_body)
    return b"".join([*_prompt(request, rendered, thinking, to), merged_object(leave_out(tail, request.omit)), b"}"])


def _prompt(request: Request, rendered: Sequence[Rendered], thinking: dict[str, object] | None, to: Destination) -> list[bytes]:
    """Everything the prompt cache covers, in its order. What may change between requests comes after it."""
    marked = to.cache == "breakpoints"
    head = b'{"model":' + jsontext.encode(to.model)
    if tools := _tools(request, marked):  # (21)
        head += b',"tools":[' + tools + b"]"
    if system := _system(request, marked, to):  # (9) system is a field of its own
        head += b',"system":[' + b",".join(system) + b"]"
    # With thinking off, old thinking is of no use, and where it is checked the request cannot ask for what fails to be dropped.
    with_thinking = thinking is None or thinking["type"] != "disabled"
    return [head, b',"messages":[', *_turns(rendered, marked, with_thinking, to), b"]"]


def _system(request: Request, marked: bool, to: Destination) -> list[bytes]:
    blocks: list[bytes] = []
    if request.system.strip():
        block = _text_block(request.system)
        blocks.append(block[:-1] + _MARKER if marked else block)
    if request.settings.response_schema or request.settings.response_mime:
        from dragoman.providers.anthropic_schema import format_instruction

        instruction = format_instruction(request.settings, to.profile)
        blocks += [_text_block(instruction)] if instruction else []
    return blocks


def _tools(request: Request, marked: bool) -> bytes:
    tools = [
        jsontext.encode({"name": tool.name, "description": tool.description})[:-1]
        + b',"input_schema":'
        + tool_schema(tool.parameters)
        + b"}"
        for tool in declared_tools(request)
    ]
    if request.settings.search:
        tools.append(_WEB_SEARCH)
    if tools and marked:
        tools[-1] = tools[-1][:-1] + _MARKER
    return b",".join(tools)


def _turns(rendered: Sequence[Rendered], marked: bool, with_thinking: bool, to: Destination) -> list[bytes]:
    """Consecutive messages of one role become one turn. (8) Cache markers: after the first message and the last, if it is the user's; where
    the service is to go on with a search, after the user's last."""
    sent = [item for item in rendered if item.blocks]
    searches = set[str]() if all(item.is_plain for item in sent) else _sendable_searches(sent)
    last = len(sent) - 1
    while searches and last > 0 and sent[last].role != "user":
        last -= 1
    breakpoints = {0, last} if marked else set[int]()
    pieces: list[bytes] = []
    role, begin = "", 0
    while begin < len(sent):
        item, end = sent[begin], _end_of_turn(sent, begin)
        if item.role == "user":
            run = joined(_marked(sent[index].pieces[0]) if index in breakpoints else sent[index].pieces[0] for index in range(begin, end))
        elif end - begin == 1 and item.is_plain and with_thinking:
            run = item.pieces
        else:
            blocks = [block for each in sent[begin:end] for block in each.blocks if with_thinking or block.kind != "thinking"]
            blocks = _without_late_thinking(blocks) if to.profile.thinking == "budget" else blocks
            run = joined(_sendable_blocks(blocks, searches, is_last=end == len(sent)))
        if run:
            pieces.append(b"," if item.role == role else (_NEXT_TURN if role else _FIRST_TURN)[item.role])
            pieces += run
            role = item.role
        begin = end
    return [*pieces, b"]}" if role else b""]


def _end_of_turn(sent: Sequence[Rendered], begin: int) -> int:
    end = begin + 1
    while end < len(sent) and sent[end].role == sent[begin].role:
        end += 1
    return end


def _marked(block: bytes) -> bytes:
    return block[:-1] + _MARKER


def _sendable_searches(sent: Sequence[Rendered]) -> set[str]:
    """Ids of the service's own tool uses that it takes back. One without its result is rejected, unless the model is still to go on with
    it: nothing follows, or only the results of calls made beside it. Then its result opens the next answer."""
    turns = [[block for item in items for block in item.blocks] for _, items in groupby(sent, key=lambda item: item.role)]
    sendable: set[str] = set()
    for number, turn in enumerate(turns):
        uses = {block.id for block in turn if block.kind == "server_use"}
        if not uses:
            continue
        after = turns[number + 1 : number + 3]
        results = {block.id for block in turn if block.kind == "server_result"}
        if not after or (len(after) == 1 and _is_results(after[0])):
            sendable |= uses
        elif _is_results(after[0]):
            results |= {block.id for block in after[1] if block.kind == "server_result"}
        sendable |= uses & results
    return sendable


def _is_results(turn: Sequence[Block]) -> bool:
    return all(block.kind == "results" for block in turn)


def _sendable_blocks(blocks: Sequence[Block], searches: set[str], *, is_last: bool) -> list[bytes]:
    """What can be sent of the answers of one turn. If it is the last, the model is to go on with it."""
    taken = [block for block in blocks if not block.id or block.id in searches]
    while taken and taken[-1].kind == "thinking":
        taken.pop()  # (6) a message may not end with thinking
    is_said = is_last or any(block.kind in ("text", "tool_use") for block in taken)
    return [block.data for block in taken] if is_said else []


def _max_tokens(request: Request, to: Destination) -> int:
    asked = request.settings.max_output_tokens or to.profile.max_output_tokens
    return min(asked, to.profile.max_output_tokens) if to.profile.known else asked


def _generation(request: Request, thinking: dict[str, object] | None, to: Destination) -> dict[str, object]:
    settings, out = request.settings, dict[str, object]()
    output: dict[str, object] = {}
    if thinking is not None:
        out["thinking"] = thinking
        if thinking["type"] == "adaptive" and settings.thinking is not None:
            output["effort"] = to.profile.effort_word(settings.thinking.effort)
    if to.profile.temperature and (thinking is None or thinking["type"] == "disabled"):
        out.update(_sampling(settings))
    if settings.stop:
        out["stop_sequences"] = list(settings.stop)
    if choice := _tool_choice(settings.tool_choice, _is_forced(settings, to)) if request.tools else _no_choice(request):
        out["tool_choice"] = choice
    if settings.response_schema:
        from dragoman.providers.anthropic_schema import output_schema

        schema = output_schema(settings, to.profile)
        output |= {"format": {"type": "json_schema", "schema": schema}} if schema is not None else {}
    return out | ({"output_config": output} if output else {})


def _is_forced(settings: Settings, to: Destination) -> bool:
    return settings.tool_choice not in ("auto", "none") and to.profile.forced_tool_choice


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


def _thinking(request: Request, rendered: Sequence[Rendered], to: Destination) -> dict[str, object] | None:
    profile, asked = to.profile, request.settings.thinking
    if _is_forced(request.settings, to):  # thinking beside a forced choice is rejected, and these models think unless told not to
        return {"type": "disabled"} if profile.thinking_bound and profile.thinking_off else None
    if asked is None:
        return _adaptive(to) if profile.thinking_bound else None
    if asked.effort == "off" and profile.thinking_off:
        return {"type": "disabled"} if profile.thinking != "none" else None
    if profile.thinking == "adaptive":
        return _adaptive(to)
    if profile.thinking != "budget" or _is_loop_without_thinking(request, rendered):
        return None
    budget = min(asked.budget_tokens or _BUDGETS.get(asked.effort, 1_024), _max_tokens(request, to) - 1)
    return {"type": "enabled", "budget_tokens": budget} if budget >= 1_024 else None


def _adaptive(to: Destination) -> dict[str, object]:
    return {"type": "adaptive", "display": "summarized", **(_DROP_CHANGED if to.profile.thinking_bound else {})}


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


def framing() -> EventsOrDocument:
    return EventsOrDocument()


def decoder(to: Destination, taken: Taken) -> Decoder:
    return Decoder(to, taken)


def from_wire(data: Any, to: Destination, taken: Taken) -> Response:
    return read_answer(data, to, taken)


def count_request(request: Request, rendered: Sequence[Rendered], to: Destination) -> tuple[str, bytes]:
    thinking = _thinking(request, rendered, to)
    # Old thinking is checked here as well, so the request says what to do with it.
    tail = merged_object({"thinking": thinking}) if thinking is not None and to.profile.thinking_bound else b""
    return "/v1/messages/count_tokens", b"".join([*_prompt(request, rendered, thinking, to), tail, b"}"])


def count_answer(data: Any) -> int:
    return int(data["input_tokens"])


def embed_request(texts: Sequence[str], to: Destination) -> tuple[str, bytes]:
    raise Unsupported(say("providers.no_embeddings"))


def embed_answer(data: Any) -> list[list[float]]:
    raise Unsupported(say("providers.no_embeddings"))
