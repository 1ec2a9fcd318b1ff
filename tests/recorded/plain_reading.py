"""What an answer says, read plainly and whole: the oracle for our decoders.

It shares no code with them, reads a stream only when all of it is there, and knows nothing of our types. Finish reasons are in our words
(`stop`, `length`, ...), so that the two can be compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from recorded.exchanges import Exchange

Json = dict[str, Any]

ANTHROPIC_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}
CHAT_FINISH = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "safety",
    # Some services never say why: the end of the stream or of the document is an end all the same.
    "": "stop",
}
RESPONSES_FINISH = {"completed": "stop", "max_output_tokens": "length", "content_filter": "safety"}
GEMINI_FINISH = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "safety",
    "PROHIBITED_CONTENT": "safety",
    "BLOCKLIST": "safety",
    "SPII": "safety",
    "IMAGE_SAFETY": "safety",
    "IMAGE_PROHIBITED_CONTENT": "safety",
    "MODEL_ARMOR": "safety",
    "RECITATION": "recitation",
    "IMAGE_RECITATION": "recitation",
    "MALFORMED_FUNCTION_CALL": "malformed_tool_call",
    "UNEXPECTED_TOOL_CALL": "malformed_tool_call",
    "TOO_MANY_TOOL_CALLS": "malformed_tool_call",
}


@dataclass
class Call:
    name: str
    arguments: Any
    """Decoded, or the text itself where it is not JSON."""
    id: str = ""


@dataclass
class PlainUsage:
    input: int = 0
    """The whole prompt, cached or not."""
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    """Everything the model wrote, thinking included."""
    total: int = 0
    """As the service adds it up; 0 if it does not."""


@dataclass
class Reading:
    """One answer, or the error that came in its place."""

    text: str = ""
    thinking: str = ""
    calls: list[Call] = field(default_factory=list)
    signatures: list[tuple[str, ...]] = field(default_factory=list)
    """What only the service can read and wants back. Of two encryptions of the same thing, either will do."""
    citations: list[str] = field(default_factory=list)
    """Addresses, in order; empty for a source without one."""
    usage: PlainUsage = field(default_factory=PlainUsage)
    finish: str = ""
    """In our words. Empty: the service did not say, and this protocol always does."""
    raw_finish: str = ""
    response_id: str = ""
    error: str | None = None
    """The service's own words, where this is no answer."""
    blocks: list[Json] = field(default_factory=list)
    """The parts of the answer as the service sent them, put together from their deltas."""
    custom_calls: list[Json] = field(default_factory=list)
    """Calls of tools that take text instead of JSON, which we never declare."""
    streamed_text: str | None = None
    """What the deltas add up to, for a protocol that also sends the whole text at the end."""


class NoAnswer(Exception):
    """The body is neither an answer nor an error of this protocol."""


def read_plainly(exchange: Exchange) -> Reading:
    """What the service said. Never raises: what cannot be read is an error in the service's place."""
    reader = {
        "anthropic": _read_anthropic,
        "openai_chat": _read_chat,
        "openai_responses": _read_responses,
        "gemini": _read_gemini,
    }[exchange.protocol]
    try:
        reading = reader(exchange)
    except (NoAnswer, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        return Reading(error=f"not an answer: {type(error).__name__}: {error}")
    if reading.error is None and exchange.status >= 400:
        reading.error = exchange.body
    return _malformed_call(reading) if "tool_use_failed" in (reading.error or "") else reading


def _malformed_call(reading: Reading) -> Reading:
    """Groq reports a call that the model wrote wrongly as an error: a sampling accident, not a fault of the request."""
    return Reading(finish="malformed_tool_call", raw_finish="tool_use_failed", response_id=reading.response_id)


# --- bytes ---------------------------------------------------------------------------------------------------------------


def server_sent_events(text: str) -> Iterator[tuple[str, str]]:
    """The name and data of each event, by the standard."""
    name, data = "", list[str]()
    for line in [*re.split(r"\r\n|\n|\r", text), ""]:
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []
            continue
        key, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if key == "data":
            data.append(value)
        elif key == "event":
            name = value


def _documents(exchange: Exchange) -> Iterator[tuple[str, Json]]:
    """The name and content of each event of a stream, or the one document of a whole answer."""
    if not exchange.stream:
        document = json.loads(exchange.body)
        if not isinstance(document, dict):
            raise NoAnswer("not an object")
        yield "", document
        return
    for name, data in server_sent_events(exchange.body):
        if data.strip() != "[DONE]":
            yield name, json.loads(data)


def _decoded(text: str) -> Any:
    """Arguments as a value; those that are not JSON as they are."""
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text


def _finish(words: dict[str, str], reading: Reading) -> str:
    """The finish reason in our words. A call to carry out counts for more than the service's word for an ordinary end."""
    finish = words.get(reading.raw_finish, "other" if reading.raw_finish else "")
    return "tool_calls" if finish == "stop" and reading.calls else finish


def _words(error: Any) -> str:
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)


# --- Anthropic -----------------------------------------------------------------------------------------------------------


def _read_anthropic(exchange: Exchange) -> Reading:
    reading = Reading()
    usage: Json = {}
    if exchange.stream:
        usage = _gather_anthropic(exchange, reading)
    else:
        (_, document), *_ = _documents(exchange)
        if document.get("error"):
            return Reading(error=_words(document["error"]))
        reading.blocks, reading.raw_finish = document["content"], document.get("stop_reason") or ""
        reading.response_id, usage = document.get("id") or "", document.get("usage") or {}
    for block in reading.blocks:
        _read_anthropic_block(block, reading)
    read, write = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
    reading.usage = PlainUsage((usage.get("input_tokens") or 0) + read + write, read, write, usage.get("output_tokens") or 0)
    reading.finish = _finish(ANTHROPIC_FINISH, reading)
    return reading


def _gather_anthropic(exchange: Exchange, reading: Reading) -> Json:
    """Put the blocks of a stream together in the reading; returns the usage."""
    usage: Json = {}
    blocks: dict[int, Json] = {}
    written: dict[int, str] = {}
    for _, event in _documents(exchange):
        match event.get("type"):
            case "message_start":
                reading.response_id = event["message"].get("id") or ""
                reading.blocks += event["message"].get("content") or []
                usage |= event["message"].get("usage") or {}
            case "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
                reading.blocks.append(blocks[event["index"]])
            case "content_block_delta" if event["delta"]["type"] == "input_json_delta":
                written[event["index"]] = written.get(event["index"], "") + event["delta"]["partial_json"]
            case "content_block_delta":
                _add_delta(blocks[event["index"]], event["delta"])
            case "message_delta":
                reading.raw_finish = event["delta"].get("stop_reason") or reading.raw_finish
                usage |= {name: count for name, count in (event.get("usage") or {}).items() if count is not None}
            case "error":
                reading.error = _words(event["error"])
    for index, text in written.items():
        if text:
            blocks[index]["input"] = _decoded(text)
    return usage


def _add_delta(block: Json, delta: Json) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] = (block.get("text") or "") + delta["text"]
        case "thinking_delta":
            block["thinking"] = (block.get("thinking") or "") + delta["thinking"]
        case "signature_delta":
            block["signature"] = delta["signature"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        case "compaction_delta":
            block["content"] = (block.get("content") or "") + (delta.get("content") or "")


def _read_anthropic_block(block: Json, reading: Reading) -> None:
    match block["type"]:
        case "text":
            reading.text += block["text"]
            reading.citations += [citation.get("url") or "" for citation in block.get("citations") or ()]
        case "thinking":
            reading.thinking += block["thinking"]
            if block.get("signature"):
                reading.signatures.append((block["signature"],))
        case "redacted_thinking":
            reading.signatures.append((block["data"],))
        case "tool_use":
            reading.calls.append(Call(block["name"], block.get("input") or {}, block["id"]))


# --- OpenAI Chat ---------------------------------------------------------------------------------------------------------


def _read_chat(exchange: Exchange) -> Reading:
    reading = Reading()
    usage: Json = {}
    calls: dict[object, Json] = {}
    refused = False
    for _, document in _documents(exchange):
        if document.get("error"):
            reading.error = _words(document["error"])
            return reading
        reading.response_id = reading.response_id or document.get("id") or ""
        usage = document.get("usage") or (document.get("x_groq") or {}).get("usage") or usage
        for choice in document.get("choices") or ():
            message = choice.get("delta" if exchange.stream else "message") or {}
            _read_chat_message(message, reading)
            _gather_chat_calls(message, calls, exchange.stream)
            refused = refused or bool(message.get("refusal"))
            reading.raw_finish = choice.get("finish_reason") or reading.raw_finish
            usage = choice.get("usage") or usage
    if not exchange.stream and not document.get("choices"):
        raise NoAnswer("no choices")
    reading.calls = [Call(call["name"], _decoded(call["arguments"]), call["id"]) for call in calls.values()]
    _part_thinking(reading)
    reading.usage = _chat_usage(usage)
    reading.finish = "refusal" if refused else _finish(CHAT_FINISH, reading)
    return reading


def _read_chat_message(message: Json, reading: Reading) -> None:
    thinking = message.get("reasoning_content") or message.get("reasoning") or ""
    reading.thinking += thinking if isinstance(thinking, str) else ""
    content = message.get("content") or ""
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if block.get("type") == "thinking":  # Mistral: text, or blocks of text
            inner = block.get("thinking") or ""
            reading.thinking += inner if isinstance(inner, str) else "".join(each.get("text") or "" for each in inner)
        else:
            reading.text += block.get("text") or ""
    reading.text += message.get("refusal") or ""
    reading.citations += [(note.get("url_citation") or {}).get("url") or "" for note in message.get("annotations") or ()]
    for detail in message.get("reasoning_details") or ():  # OpenRouter
        reading.signatures += [(detail[key],) for key in ("signature", "data") if detail.get(key)]
        reading.blocks.append(detail)


def _gather_chat_calls(message: Json, calls: dict[object, Json], stream: bool) -> None:
    for position, piece in enumerate(message.get("tool_calls") or ()):
        key = piece.get("index")
        if not stream:
            key = position
        elif key is None:
            key = piece.get("id") or len(calls)
        call = calls.setdefault(key, {"name": "", "arguments": "", "id": ""})
        function = piece.get("function") or {}
        call["name"] = call["name"] or function.get("name") or ""
        call["id"] = call["id"] or piece.get("id") or ""
        arguments = function.get("arguments")
        call["arguments"] += arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)


def _part_thinking(reading: Reading) -> None:
    """Thinking that stands in the text itself, as models of the R1 kind write it: `<think>` first, the answer behind `</think>`."""
    found = re.match(r"\s*<think>(.*?)(?:</think>|\Z)\s*", reading.text, re.DOTALL)
    if found and not reading.thinking:
        reading.thinking, reading.text = found[1], reading.text[found.end() :]


def _chat_usage(usage: Json) -> PlainUsage:
    details = usage.get("prompt_tokens_details") or {}
    read = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens") or 0
    prompt, output, total = (usage.get(f"{name}_tokens") or 0 for name in ("prompt", "completion", "total"))
    reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or usage.get("reasoning_tokens") or 0
    if total and total == prompt + output + reasoning:
        output += reasoning  # xAI and Gemini count it beside the completion; the total tells
    elif total > prompt + output and not reasoning and _is_google(usage):
        output = total - prompt
    write = details.get("cache_write_tokens") or details.get("cache_creation_input_tokens") or 0
    return PlainUsage(prompt, read, write, output, total)


def _is_google(usage: Json) -> bool:
    """Gemini's OpenAI door counts thinking in the total alone, and reports no details."""
    return set(usage) == {"prompt_tokens", "completion_tokens", "total_tokens"}


# --- OpenAI Responses ----------------------------------------------------------------------------------------------------


def _read_responses(exchange: Exchange) -> Reading:
    items: dict[int, Json] = {}
    final: Json | None = None
    streamed = ""
    for name, document in _documents(exchange):
        kind = document.get("type") or name
        if not exchange.stream or kind in ("response.completed", "response.incomplete", "response.failed"):
            final = document["response"] if exchange.stream else document
        elif kind == "error":
            return Reading(error=_words(document))
        elif kind == "response.output_item.done":
            items[document["output_index"]] = document["item"]
        elif kind in ("response.output_text.delta", "response.refusal.delta"):
            streamed += document["delta"]
    if final is None:
        return Reading(text=streamed, streamed_text=streamed)
    if final.get("error"):
        return Reading(error=_words(final["error"]))
    reading = Reading(response_id=final.get("id") or "", blocks=final.get("output") or [items[index] for index in sorted(items)])
    reading.streamed_text = streamed if exchange.stream else None
    refused = [_read_item(item, items, reading) for item in reading.blocks]
    reading.raw_finish = final["status"]
    if reading.raw_finish == "incomplete":
        reading.raw_finish = (final.get("incomplete_details") or {}).get("reason") or "incomplete"
    reading.finish = "refusal" if any(refused) else _finish(RESPONSES_FINISH, reading)
    usage = final.get("usage") or {}
    read = (usage.get("input_tokens_details") or {}).get("cached_tokens") or 0
    reading.usage = PlainUsage(usage.get("input_tokens") or 0, read, 0, usage.get("output_tokens") or 0, usage.get("total_tokens") or 0)
    return reading


def _read_item(item: Json, streamed: dict[int, Json], reading: Reading) -> bool:
    """Add an item of the output to the reading; returns whether it is a refusal."""
    match item["type"]:
        case "message":
            for block in item["content"]:
                reading.text += block.get("text") or block.get("refusal") or ""
                reading.citations += [note.get("url") or "" for note in block.get("annotations") or ()]
            return any(block.get("refusal") for block in item["content"])
        case "reasoning":
            reading.thinking += "".join(part.get("text") or "" for part in item.get("summary") or item.get("content") or ())
            if item.get("encrypted_content"):
                reading.signatures.append(_encryptions(item, streamed))
        case "function_call":
            reading.calls.append(Call(item["name"], _decoded(item["arguments"]), item["call_id"]))
        case "custom_tool_call":
            reading.custom_calls.append(item)
    return False


def _encryptions(item: Json, streamed: dict[int, Json]) -> tuple[str, ...]:
    """The event of an item and the last event carry two encryptions of the same reasoning."""
    same = [other for other in streamed.values() if other.get("type") == "reasoning" and other.get("id") == item.get("id")]
    return (item["encrypted_content"], *(other["encrypted_content"] for other in same if other.get("encrypted_content")))


# --- Gemini --------------------------------------------------------------------------------------------------------------


def _read_gemini(exchange: Exchange) -> Reading:
    reading = Reading()
    usage: Json = {}
    for _, document in _documents(exchange):
        if document.get("error"):
            reading.error = _words(document["error"])
            continue
        reading.response_id = reading.response_id or document.get("responseId") or ""
        usage = document.get("usageMetadata") or usage
        reading.raw_finish = (document.get("promptFeedback") or {}).get("blockReason") or reading.raw_finish
        for candidate in (document.get("candidates") or ())[:1]:
            reading.raw_finish = candidate.get("finishReason") or reading.raw_finish
            reading.citations += _gemini_sources(candidate)
            for part in (candidate.get("content") or {}).get("parts") or ():
                _read_part(part, reading)
    reading.finish = _finish(GEMINI_FINISH, reading)
    reading.usage = _gemini_usage(usage)
    return reading


def _read_part(part: Json, reading: Reading) -> None:
    reading.blocks.append(part)
    if part.get("thoughtSignature"):
        reading.signatures.append((part["thoughtSignature"],))
    if "functionCall" in part:
        call = part["functionCall"]
        reading.calls.append(Call(call.get("name") or "", call.get("args") or {}, call.get("id") or ""))
    elif part.get("thought"):
        reading.thinking += part.get("text") or ""
    else:
        reading.text += part.get("text") or ""


def _gemini_sources(candidate: Json) -> Iterable[str]:
    for chunk in (candidate.get("groundingMetadata") or {}).get("groundingChunks") or ():
        yield (chunk.get("web") or chunk.get("maps") or chunk.get("retrievedContext") or {}).get("uri") or ""
    cited = candidate.get("citationMetadata") or {}
    for source in cited.get("citationSources") or cited.get("citations") or ():
        yield source.get("uri") or ""


def _gemini_usage(usage: Json) -> PlainUsage:
    def count(name: str) -> int:
        return usage.get(f"{name}TokenCount") or 0

    prompt, output = count("prompt") + count("toolUsePrompt"), count("candidates") + count("thoughts")
    return PlainUsage(prompt, count("cachedContent"), 0, output, count("total"))
