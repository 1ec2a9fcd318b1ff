"""Encodes answers as OpenAI Chat Completions: chunks with deltas, a usage chunk if requested, and `[DONE]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.testing.mock import faults
from dragoman.testing.mock.wire import Comment, Event, ModelRequest, argument_pieces, to_json, usage_of
from dragoman.testing.script import pieces
from dragoman.testing.script_steps import CallQuirk, CallStep, Cite, Fail, Finish, ScriptedAnswer, Think
from dragoman.values.messages import FinishReason
from dragoman.values.usage import Usage

CALL_PREFIX = "call_"
DONE = Event(b"[DONE]")
REFUSAL = "I'm sorry, I can't help with that."

# A reason without a word of the service is sent unchanged.
_FINISH = {FinishReason.SAFETY: "content_filter", FinishReason.RECITATION: "content_filter", FinishReason.REFUSAL: "stop"}


class ChatEncoder:
    """One answer as a chat completion. Thinking goes in `reasoning_content`, as with DeepSeek, Qwen and most servers.

    Signed thinking goes in `reasoning_details` if the request asks for reasoning as OpenRouter's clients do.
    """

    def __init__(self, answer: ScriptedAnswer, request: ModelRequest) -> None:
        self._request = request
        self._quirks = answer.calls
        self._usage = usage_body(usage_of(answer, request))
        self._usage_wanted = bool((request.body.get("stream_options") or {}).get("include_usage"))
        self._text = self._reasoning = self._refusal = ""
        self._calls: list[dict[str, Any]] = []
        self._annotations: list[dict[str, Any]] = []
        self._details: list[dict[str, Any]] = []
        self._finish: str | None = None

    def start(self) -> list[Event]:
        return [self._chunk({"role": "assistant", "content": "", "refusal": None})]

    def say(self, piece: str) -> list[Event]:
        self._text += piece
        return [self._chunk({"content": piece})]

    def think(self, step: Think) -> list[Event]:
        if step.signature and isinstance(self._request.body.get("reasoning"), dict):
            return self._sign(step)
        self._reasoning += step.text
        return [self._chunk({"content": None, "reasoning_content": piece}) for piece in pieces(step.text, step.piece_chars) if piece]

    def _sign(self, step: Think) -> list[Event]:
        """OpenRouter: the text in fragments and the signature behind it, all under one index; redacted thinking whole."""
        index = len(self._details)
        if step.redacted or not step.text:
            self._details.append({"type": "reasoning.encrypted", "data": step.signature, "format": "mock-v1", "index": index})
            return [self._chunk({"reasoning": None, "reasoning_details": self._details[-1:]})]
        same = {"type": "reasoning.text", "format": "mock-v1", "index": index}
        self._reasoning += step.text
        self._details.append({**same, "text": step.text, "signature": step.signature})
        told = [
            {"reasoning": piece, "reasoning_details": [{**same, "text": piece}]} for piece in pieces(step.text, step.piece_chars) if piece
        ]
        return [*map(self._chunk, told), self._chunk({"reasoning_details": [{**same, "signature": step.signature}]})]

    def call(self, calls: Sequence[CallStep]) -> list[Event]:
        first = len(self._calls)
        self._calls += [{"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in calls]
        events: list[Event] = []
        opened: set[int] = set()
        unnamed: set[int] = set()
        if CallQuirk.INTERLEAVED in self._quirks:
            events += [self._opening(call, first + number) for number, call in enumerate(calls)]
            opened = set(range(len(calls)))
            unnamed = set(opened)
        for number, piece in argument_pieces(calls, self._quirks):
            call = calls[number]
            if number not in opened:
                events.append(self._opening(call, first + number))
                opened.add(number)
                unnamed.add(number)
            function = {"arguments": piece}
            if CallQuirk.LATE_NAME in self._quirks and number in unnamed:
                function["name"] = call.name
            unnamed.discard(number)
            events.append(self._call_chunk(first + number, {"function": function}, call if CallQuirk.ID_EVERY in self._quirks else None))
        return events

    def _opening(self, call: CallStep, index: int) -> Event:
        function = {"arguments": ""} if CallQuirk.LATE_NAME in self._quirks else {"name": call.name, "arguments": ""}
        return self._call_chunk(index, {"type": "function", "function": function}, call)

    def _call_chunk(self, index: int, delta: dict[str, Any], identified: CallStep | None) -> Event:
        if identified is not None:
            delta = {"id": identified.id} | delta
        if CallQuirk.NO_INDEX not in self._quirks:
            delta = {"index": 0 if CallQuirk.SAME_INDEX in self._quirks else index} | delta
        return self._chunk({"tool_calls": [delta]}, delta=True)

    def cite(self, step: Cite) -> list[Event]:
        start = max(self._text.rfind(step.text), 0) if step.text else 0
        end = start + len(step.text) if step.text else len(self._text)
        cited = {"start_index": start, "end_index": end, "title": step.title, "url": step.uri}
        self._annotations.append({"type": "url_citation", "url_citation": cited})
        return [self._chunk({"annotations": self._annotations[-1:]})]

    def block(self, reason: str) -> list[Event]:
        return self.finish(Finish("content_filter", reason))

    def fail(self, fail: Fail) -> list[Event]:
        return [Event(to_json(faults.error_body("openai_chat", fail, faults.request_id_of(self._request))))]

    def finish(self, finish: Finish) -> list[Event]:
        events: list[Event] = []
        if finish.reason == FinishReason.REFUSAL:
            self._refusal = finish.detail or REFUSAL
            events.append(self._chunk({"refusal": self._refusal}))
        self._finish = _FINISH.get(FinishReason(finish.reason), finish.reason) if finish.reason in tuple(FinishReason) else finish.reason
        events.append(self._chunk({}, self._finish))
        if self._usage_wanted:
            events.append(Event(to_json(self._envelope("chat.completion.chunk", [], self._usage))))
        return [*events, DONE]

    def ping(self) -> Comment:
        return Comment("keep-alive")

    def whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self._text or None, "refusal": self._refusal or None}
        message["annotations"] = self._annotations
        if self._reasoning:
            message["reasoning" if self._details else "reasoning_content"] = self._reasoning
        if self._details:
            message["reasoning_details"] = self._details
        if self._calls:
            message["tool_calls"] = self._calls
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish}
        return self._envelope("chat.completion", [choice], self._usage)

    def _chunk(self, content: dict[str, Any], finish: str | None = None, *, delta: bool = False) -> Event:
        choice = {"index": 0, "delta": content, "logprobs": None, "finish_reason": finish}
        return Event(to_json(self._envelope("chat.completion.chunk", [choice], None)), delta=delta)

    def _envelope(self, kind: str, choices: list[dict[str, Any]], usage: dict[str, Any] | None) -> dict[str, Any]:
        envelope: dict[str, Any] = {
            "id": self._request.id("chatcmpl-"),
            "object": kind,
            "created": self._request.created,
            "model": self._request.model,
            "service_tier": "default",
            "system_fingerprint": "fp_0000000000",
            "choices": choices,
        }
        # With include_usage every chunk has the field, null until the last.
        return envelope | ({"usage": usage} if usage or self._usage_wanted else {})


def usage_body(usage: Usage) -> dict[str, Any]:
    details = {"cached_tokens": usage.cache_read_tokens, "audio_tokens": 0}
    if usage.cache_write_tokens:
        details["cache_write_tokens"] = usage.cache_write_tokens
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": details,
        "completion_tokens_details": {
            "reasoning_tokens": usage.thought_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
