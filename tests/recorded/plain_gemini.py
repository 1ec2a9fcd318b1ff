"""Gemini API and Vertex AI, read plainly."""

from __future__ import annotations

from collections.abc import Iterable

from recorded.exchanges import Exchange
from recorded.reading import Call, Json, PlainUsage, Reading, documents, finish_of, words_of

_FINISH = {
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
    "CONTINUATION": "length",
}


def read_gemini(exchange: Exchange) -> Reading:
    reading = Reading()
    usage: Json = {}
    for _, document in documents(exchange):
        if document.get("error"):
            reading.error = words_of(document["error"])
            continue
        reading.response_id = reading.response_id or document.get("responseId") or ""
        usage = document.get("usageMetadata") or usage
        reading.raw_finish = (document.get("promptFeedback") or {}).get("blockReason") or reading.raw_finish
        for candidate in (document.get("candidates") or ())[:1]:
            reading.raw_finish = candidate.get("finishReason") or reading.raw_finish
            reading.citations += _sources(candidate)
            for part in (candidate.get("content") or {}).get("parts") or ():
                _read_part(part, reading)
    reading.finish = finish_of(_FINISH, reading)
    reading.usage = _read_usage(usage)
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


def _sources(candidate: Json) -> Iterable[str]:
    for chunk in (candidate.get("groundingMetadata") or {}).get("groundingChunks") or ():
        yield (chunk.get("web") or chunk.get("maps") or chunk.get("retrievedContext") or {}).get("uri") or ""
    cited = candidate.get("citationMetadata") or {}
    for source in cited.get("citationSources") or cited.get("citations") or ():
        yield source.get("uri") or ""


def _read_usage(usage: Json) -> PlainUsage:
    def count(name: str) -> int:
        return usage.get(f"{name}TokenCount") or 0

    prompt, output = count("prompt") + count("toolUsePrompt"), count("candidates") + count("thoughts")
    return PlainUsage(prompt, count("cachedContent"), 0, output, count("total"))
