"""Encodes answers for Gemini: every chunk is a whole GenerateContentResponse; the last one has the finish reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.testing.mock import faults
from dragoman.testing.mock.wire import Comment, Event, ModelRequest, raw_object, to_json, usage_of
from dragoman.testing.script import pieces
from dragoman.testing.script_steps import CallQuirk, CallStep, Cite, Fail, Finish, ScriptedAnswer, Think
from dragoman.values.messages import FinishReason

CALL_PREFIX = "fc"
CONTINUATION_TOKEN = "cGF1c2Vk"
"""What continues an answer that ends with CONTINUATION."""

# A reason without a word of the service is sent unchanged.
_FINISH = {
    FinishReason.STOP: "STOP",
    FinishReason.LENGTH: "MAX_TOKENS",
    FinishReason.TOOL_CALLS: "STOP",
    FinishReason.SAFETY: "SAFETY",
    FinishReason.RECITATION: "RECITATION",
    FinishReason.MALFORMED_TOOL_CALL: "MALFORMED_FUNCTION_CALL",
    FinishReason.REFUSAL: "PROHIBITED_CONTENT",
    FinishReason.OTHER: "OTHER",
}


class GeminiEncoder:
    """One answer as GenerateContentResponses. A function call is sent in one piece; one that is not JSON is MALFORMED_FUNCTION_CALL."""

    def __init__(self, answer: ScriptedAnswer, request: ModelRequest) -> None:
        self._request = request
        self._quirks = answer.calls
        self._finish_scripted = any(isinstance(step, Finish) for step in answer.steps)
        self._usage = usage_of(answer, request)
        self._parts: list[dict[str, Any]] = []
        self._text = ""
        self._signature = ""
        self._malformed = ""
        self._grounding: list[tuple[Cite, int]] = []
        self._end: dict[str, Any] = {}
        self._blocked = ""

    def start(self) -> list[Event]:
        return []

    def say(self, piece: str) -> list[Event]:
        self._text += piece
        return [self._chunk([{"text": piece}])]

    def think(self, step: Think) -> list[Event]:
        # The signature is on the call that the thinking led to, or on an empty text at the end.
        self._signature = step.signature or self._signature
        return [self._chunk([{"text": piece, "thought": True}]) for piece in pieces(step.text, step.piece_chars) if piece]

    def call(self, calls: Sequence[CallStep]) -> list[Event]:
        parts = [part for call in calls if (part := self._call_part(call)) is not None]
        if not parts:
            return []
        if {CallQuirk.INTERLEAVED, CallQuirk.LATE_DELTA} & set(self._quirks):
            return [self._chunk([part], delta=True) for part in parts]
        return [self._chunk(parts, delta=True)]

    def _call_part(self, call: CallStep) -> dict[str, Any] | None:
        arguments = raw_object(call.arguments)
        if arguments is None:
            self._malformed = f"Malformed function call: {call.name}({call.arguments}"
            return None
        function: dict[str, Any] = {"name": call.name, "args": arguments}
        if call.id:
            function["id"] = call.id
        signature, self._signature = call.signature or self._signature, ""
        return {"functionCall": function} | ({"thoughtSignature": signature} if signature else {})

    def cite(self, step: Cite) -> list[Event]:
        self._grounding.append((step, len(self._text.encode("utf-8", "surrogatepass"))))
        return []  # grounding comes with the last chunk

    def block(self, reason: str) -> list[Event]:
        self._blocked = reason
        return [Event(to_json(self.whole()))]

    def fail(self, fail: Fail) -> list[Event]:
        return [Event(to_json(faults.error_body("gemini", fail, "")))]

    def finish(self, finish: Finish) -> list[Event]:
        word = _FINISH[FinishReason(finish.reason)] if finish.reason in tuple(FinishReason) else finish.reason
        detail = finish.detail
        if self._malformed and not self._finish_scripted:
            word, detail = "MALFORMED_FUNCTION_CALL", self._malformed
        self._end = {"finishReason": word}
        if detail:
            self._end["finishMessage"] = detail
        if word == "CONTINUATION":
            self._end["continuationToken"] = CONTINUATION_TOKEN
        if self._grounding:
            self._end["groundingMetadata"] = self._grounding_metadata()
        closing = [{"text": "", "thoughtSignature": self._signature}] if self._signature else []
        self._parts += closing
        return [Event(to_json(self._response(closing, last=True)))]

    def ping(self) -> Comment:
        return Comment()

    def whole(self) -> dict[str, Any]:
        if self._blocked:
            feedback = {"blockReason": self._blocked}
            usage = {"promptTokenCount": self._usage.input_tokens, "totalTokenCount": self._usage.input_tokens}
            return {"promptFeedback": feedback, "usageMetadata": usage} | self._names()
        return self._response(_merge_text(self._parts), last=True)

    def _chunk(self, parts: list[dict[str, Any]], *, delta: bool = False) -> Event:
        self._parts += parts
        return Event(to_json(self._response(parts, last=False)), delta=delta)

    def _response(self, parts: list[dict[str, Any]], *, last: bool) -> dict[str, Any]:
        content: dict[str, Any] = {"parts": parts, "role": "model"} if parts else {"role": "model"}
        candidate = {"content": content} | (self._end if last else {}) | {"index": 0}
        return {"candidates": [candidate], "usageMetadata": self._usage_metadata(last)} | self._names()

    def _names(self) -> dict[str, Any]:
        return {"modelVersion": self._request.model, "responseId": self._request.id("resp")}

    def _usage_metadata(self, last: bool) -> dict[str, Any]:
        usage = self._usage
        counts: dict[str, Any] = {"promptTokenCount": usage.input_tokens}
        if usage.cache_read_tokens:
            counts["cachedContentTokenCount"] = usage.cache_read_tokens
        thoughts = usage.thought_tokens
        spoken = usage.output_tokens - thoughts if last else 0
        if spoken:
            counts["candidatesTokenCount"] = spoken
        counts["totalTokenCount"] = usage.input_tokens + thoughts + spoken
        counts["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": usage.input_tokens}]
        return counts | ({"thoughtsTokenCount": thoughts} if thoughts else {})

    def _grounding_metadata(self) -> dict[str, Any]:
        supports = []
        for number, (cite, end) in enumerate(self._grounding):
            start = max(end - len(cite.text.encode("utf-8", "surrogatepass")), 0)
            segment = {"startIndex": start, "endIndex": end, "text": cite.text}
            supports.append({"segment": segment, "groundingChunkIndices": [number]})
        chunks = [{"web": {"uri": cite.uri, "title": cite.title}} for cite, _ in self._grounding]
        return {"webSearchQueries": [], "groundingChunks": chunks, "groundingSupports": supports}


def _merge_text(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without streaming, adjacent pieces of one text are one part."""
    merged: list[dict[str, Any]] = []
    for part in parts:
        last = merged[-1] if merged else {}
        if "text" in part and "text" in last and part.get("thought") == last.get("thought") and "thoughtSignature" not in last:
            merged[-1] = last | part | {"text": last["text"] + part["text"]}
        else:
            merged.append(part)
    return merged
