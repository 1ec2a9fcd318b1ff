"""What goes back to the service in the next request, beside what it sent: blocks in their order, item types, signatures."""

from __future__ import annotations

from typing import Any

import msgspec

from destinations import violation_in
from dragoman.providers.connect import Connection
from dragoman.values.errors import DragomanError
from dragoman.values.messages import Request, Response, ToolSpec, tool_result, user
from recorded.comparison import Difference
from recorded.exchanges import Exchange
from recorded.reading import Reading
from recorded.services import rules_for

Json = dict[str, Any]
ASKED_FOR = {
    "anthropic": {"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result"},
    "openai_responses": {"message", "reasoning", "function_call", "web_search_call"},
}
"""The types of what our requests can bring about. The rest comes of tools and modes that we never use."""
_SKIP_SIGNATURE = "skip_thought_signature_validator"
"""What we send in place of a signature that a call lacks."""


def compare_sent_back(exchange: Exchange, reading: Reading, response: Response, connection: Connection) -> list[Difference]:
    """Put the answer and results for its calls into a next request, and compare."""
    found = _compare_next(exchange, reading, response, connection)
    strange = _never_asked_for(exchange, reading)
    return [Difference("never asked for", strange, found[0].kind)] if found and strange else found


def _compare_next(exchange: Exchange, reading: Reading, response: Response, connection: Connection) -> list[Difference]:
    calls = response.message.calls
    results = [tool_result(call, "done") for call in calls]
    tools = tuple({call.name: ToolSpec(call.name or "a_tool", "A tool.") for call in calls}.values())
    request = Request(connection.model, (user("hi"), response.message, user(*results or ["go on"])), tools=tools)
    try:
        sent = connection.prepare(request).body
    except DragomanError as error:
        return [Difference("not sent", "", str(error))]
    compare = {
        "anthropic": _compare_blocks,
        "openai_chat": _compare_message,
        "openai_responses": _compare_items,
        "gemini": _compare_parts,
    }[exchange.protocol]
    found = compare(reading, msgspec.json.decode(sent))
    violation = violation_in(connection, sent) if rules_for(exchange) else None
    return [*found, Difference("refused", "", violation.message)] if violation else found


def _never_asked_for(exchange: Exchange, reading: Reading) -> list[str]:
    asked = ASKED_FOR.get(exchange.protocol)
    if asked is None:
        return []
    return [block["type"] for block in reading.blocks if block["type"] not in asked or _is_strange_tool(block)]


def _is_strange_tool(block: Json) -> bool:
    return block["type"] == "server_tool_use" and block.get("name") != "web_search"


def _compare_blocks(reading: Reading, body: Json) -> list[Difference]:
    """Anthropic: every block, unchanged and in its place."""
    expected = [{key: value for key, value in block.items() if value is not None} for block in reading.blocks]
    sent = next((message["content"] for message in body["messages"] if message["role"] == "assistant"), [])
    types = [block["type"] for block in expected], [block["type"] for block in sent]
    if types[0] != types[1]:
        return [Difference("order", *types)]
    found = []
    for old, new in zip(expected, sent, strict=True):
        cut = {"input"} if isinstance(old.get("input"), str) else set()  # such a call is never carried out
        changed = [key for key in {**old, **new} if key not in {"cache_control", *cut} and old.get(key) != new.get(key)]
        found += [Difference(f"{old['type']}.{key}", old.get(key), new.get(key)) for key in changed]
    return found


def _compare_message(reading: Reading, body: Json) -> list[Difference]:
    """OpenAI Chat: the text, the calls with their ids, and what OpenRouter wants back of the reasoning."""
    sent = next((message for message in body["messages"] if message["role"] == "assistant"), {})
    found = []
    if (sent.get("content") or "") != reading.text:
        found.append(Difference("text", reading.text, sent.get("content")))
    expected = [call.id for call in reading.calls if call.id]
    ids = [call["id"] for call in sent.get("tool_calls") or ()]
    if expected and ids != expected:
        found.append(Difference("call ids", expected, ids))
    details = msgspec.json.encode(sent.get("reasoning_details") or []).decode()
    lost = [forms[0] for forms in reading.signatures if not any(form in details for form in forms)]
    return [*found, Difference("signatures", lost, details)] if lost else found


def _compare_items(reading: Reading, body: Json) -> list[Difference]:
    """OpenAI Responses: the same items in the same order."""
    ours = [item for item in body["input"] if item.get("role") != "user" and item.get("type") != "function_call_output"]
    expected, sent = ([item.get("type") or "message" for item in items if _must_go_back(item)] for items in (reading.blocks, ours))
    return [] if sent == expected else [Difference("order", expected, sent)]


def _must_go_back(item: Json) -> bool:
    """Reasoning that is not encrypted need not, nor can it: the service alone has it. A message without a word says nothing."""
    match item.get("type"):
        case "reasoning":
            return bool(item.get("encrypted_content"))
        case "message" if isinstance(item["content"], list):
            return any(block.get("text") or block.get("refusal") for block in item["content"])
    return True


def _compare_parts(reading: Reading, body: Json) -> list[Difference]:
    """Gemini: each signature on a part of the kind it came with. Summaries of thoughts stay here, and so do empty texts."""
    sent = next((content["parts"] for content in body["contents"] if content["role"] == "model"), [])
    expected, got = _kinds(reading.blocks), _kinds(sent)
    return [] if got == expected else [Difference("order", expected, got)]


def _kinds(parts: list[Json]) -> list[str]:
    """The kinds of parts in their order, with `*` for a signature of the service's own; texts that follow each other count once."""
    kinds: list[str] = []
    for part in parts:
        signature = part.get("thoughtSignature")
        signed = bool(signature) and signature != _SKIP_SIGNATURE
        kind = next((key for key in part if key not in ("thought", "thoughtSignature")), "")
        if not signed and (not kind or part.get("thought") or part.get("text") == ""):
            continue
        if not (kinds and kinds[-1] == kind == "text") or signed:
            kinds.append(kind + "*" * signed)
    return kinds
