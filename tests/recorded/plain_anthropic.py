"""Anthropic Messages, read plainly."""

from __future__ import annotations

from recorded.exchanges import Exchange
from recorded.reading import Call, Json, PlainUsage, Reading, decoded, documents, finish_of, words_of

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}


def read_anthropic(exchange: Exchange) -> Reading:
    reading = Reading()
    usage: Json = {}
    if exchange.stream:
        usage = _gather_blocks(exchange, reading)
    else:
        (_, document), *_ = documents(exchange)
        if document.get("error"):
            return Reading(error=words_of(document["error"]))
        reading.blocks, reading.raw_finish = document["content"], document.get("stop_reason") or ""
        reading.response_id, usage = document.get("id") or "", document.get("usage") or {}
    for block in reading.blocks:
        _read_block(block, reading)
    read, write = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
    reading.usage = PlainUsage((usage.get("input_tokens") or 0) + read + write, read, write, usage.get("output_tokens") or 0)
    reading.finish = finish_of(_FINISH, reading)
    return reading


def _gather_blocks(exchange: Exchange, reading: Reading) -> Json:
    """Put the blocks of a stream together in the reading; returns the usage."""
    usage: Json = {}
    blocks: dict[int, Json] = {}
    written: dict[int, str] = {}
    for _, event in documents(exchange):
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
                reading.error = words_of(event["error"])
    for index, text in written.items():
        if text:
            blocks[index]["input"] = decoded(text)
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


def _read_block(block: Json, reading: Reading) -> None:
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
