"""OpenAI Chat Completions and its accents, read plainly."""

from __future__ import annotations

import json
import re

from recorded.exchanges import Exchange
from recorded.reading import Call, Json, NoAnswer, PlainUsage, Reading, decoded, documents, finish_of, words_of

_FINISH = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "safety",
}


def read_chat(exchange: Exchange) -> Reading:
    reading = Reading()
    usage: Json = {}
    calls: dict[object, Json] = {}
    refused = False
    for _, document in documents(exchange):
        if document.get("error"):
            reading.error = words_of(document["error"])
            return reading
        reading.response_id = reading.response_id or document.get("id") or ""
        usage = document.get("usage") or (document.get("x_groq") or {}).get("usage") or usage
        for choice in document.get("choices") or ():
            if choice.get("error"):  # OpenRouter
                return Reading(error=words_of(choice["error"]))
            message = choice.get("delta" if exchange.stream else "message") or {}
            _read_message(message, reading)
            _gather_calls(message, calls, exchange.stream)
            refused = refused or bool(message.get("refusal"))
            reading.raw_finish = choice.get("finish_reason") or reading.raw_finish
            usage = choice.get("usage") or usage
    if not exchange.stream and not document.get("choices"):
        raise NoAnswer("no choices")
    reading.calls = [Call(call["name"], decoded(call["arguments"]), call["id"]) for call in calls.values()]
    _part_thinking(reading)
    reading.usage = _read_usage(usage)
    if not reading.raw_finish and (not exchange.stream or "[DONE]" in exchange.body):
        reading.raw_finish = "stop"  # some services never say why, but the answer is all there
    reading.finish = "refusal" if refused else finish_of(_FINISH, reading)
    return reading


def _read_message(message: Json, reading: Reading) -> None:
    details = message.get("reasoning_details") or []  # OpenRouter
    thinking = message.get("reasoning_content") or message.get("reasoning")
    reading.thinking += thinking or "".join(detail.get("text") or detail.get("summary") or "" for detail in details)
    content = message.get("content") or ""
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if block.get("type") == "thinking":  # Mistral: text, or blocks of text
            inner = block.get("thinking") or ""
            reading.thinking += inner if isinstance(inner, str) else "".join(each.get("text") or "" for each in inner)
        else:
            reading.text += block.get("text") or ""
    reading.text += message.get("refusal") or ""
    reading.citations += [(note.get("url_citation") or {}).get("url") or "" for note in message.get("annotations") or ()]
    for detail in details:
        reading.signatures += [(detail[key],) for key in ("signature", "data") if detail.get(key)]
        reading.blocks.append(detail)


def _gather_calls(message: Json, calls: dict[object, Json], stream: bool) -> None:
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


def _read_usage(usage: Json) -> PlainUsage:
    """Where the total is more than prompt and completion, it tells what the two leave out."""
    details = usage.get("prompt_tokens_details") or {}
    read = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens") or 0
    prompt, output, total = (usage.get(f"{name}_tokens") or 0 for name in ("prompt", "completion", "total"))
    beyond = total - prompt - output
    if beyond > 0 and beyond == details.get("audio_tokens"):
        prompt += beyond  # Mistral counts what it heard beside the prompt
    elif beyond > 0:
        output += beyond  # xAI and Gemini count thinking beside the completion
    write = details.get("cache_write_tokens") or details.get("cache_creation_input_tokens") or 0
    return PlainUsage(prompt, read, write, output, total)
