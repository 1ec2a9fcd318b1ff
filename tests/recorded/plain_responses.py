"""OpenAI Responses, read plainly."""

from __future__ import annotations

from recorded.exchanges import Exchange
from recorded.reading import Call, Json, PlainUsage, Reading, decoded, documents, finish_of, words_of

_FINISH = {
    "completed": "stop",
    "complete": "stop",
    "max_output_tokens": "length",
    "incomplete": "length",  # without a reason
    "content_filter": "safety",
}


def read_responses(exchange: Exchange) -> Reading:
    items: dict[int, Json] = {}
    final: Json | None = None
    streamed = ""
    for name, document in documents(exchange):
        kind = document.get("type") or name
        if not exchange.stream or kind in ("response.completed", "response.incomplete", "response.failed"):
            final = document["response"] if exchange.stream else document
        elif kind == "error":
            return Reading(error=words_of(document))
        elif kind == "response.output_item.done":
            items[document["output_index"]] = document["item"]
        elif kind in ("response.output_text.delta", "response.refusal.delta"):
            streamed += document["delta"]
    if final is None:
        return Reading(text=streamed, streamed_text=streamed)
    if final.get("error"):
        return Reading(error=words_of(final["error"]))
    reading = Reading(response_id=final.get("id") or "", blocks=final.get("output") or [items[index] for index in sorted(items)])
    reading.streamed_text = streamed if exchange.stream else None
    refused = [_read_item(item, items, reading) for item in reading.blocks]
    reading.raw_finish = final["status"]
    if reading.raw_finish == "incomplete":
        reading.raw_finish = (final.get("incomplete_details") or {}).get("reason") or "incomplete"
    reading.finish = "refusal" if any(refused) else finish_of(_FINISH, reading)
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
            reading.calls.append(Call(item["name"], decoded(item["arguments"]), item["call_id"]))
        case "custom_tool_call":
            reading.custom_calls.append(item)
    return False


def _encryptions(item: Json, streamed: dict[int, Json]) -> tuple[str, ...]:
    """The event of an item and the last event carry two encryptions of the same reasoning."""
    same = [other for other in streamed.values() if other.get("type") == "reasoning" and other.get("id") == item.get("id")]
    return (item["encrypted_content"], *(other["encrypted_content"] for other in same if other.get("encrypted_content")))
