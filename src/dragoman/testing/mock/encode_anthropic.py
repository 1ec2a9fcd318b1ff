"""Encodes answers as Anthropic Messages: message start, content blocks that start, grow and stop, message stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from dragoman.testing.mock import faults
from dragoman.testing.mock.wire import Event, ModelRequest, argument_pieces, raw_object, to_json, usage_of
from dragoman.testing.script import pieces
from dragoman.testing.script_steps import CallQuirk, CallStep, Cite, Fail, Finish, ScriptedAnswer, Think
from dragoman.values.messages import FinishReason
from dragoman.values.usage import Usage

CALL_PREFIX = "toolu_"
PAUSED = "pause_turn"

# A reason without a word of the service is sent unchanged.
_FINISH = {
    FinishReason.STOP: "end_turn",
    FinishReason.LENGTH: "max_tokens",
    FinishReason.TOOL_CALLS: "tool_use",
    FinishReason.SAFETY: "refusal",
    FinishReason.RECITATION: "refusal",
    FinishReason.REFUSAL: "refusal",
}


class AnthropicEncoder:
    """One answer as a message. The id and the name of a call are only in its block's start."""

    def __init__(self, answer: ScriptedAnswer, request: ModelRequest) -> None:
        self._request = request
        self._quirks = answer.calls
        self._usage = usage_of(answer, request)
        self._content: list[dict[str, Any]] = []
        self._open: Literal["", "text", "thinking"] = ""
        self._stop: dict[str, Any] = {"stop_reason": None, "stop_sequence": None}

    def start(self) -> list[Event]:
        usage = usage_body(self._usage) | {"output_tokens": min(self._usage.output_tokens, 1)}
        usage.pop("output_tokens_details", None)
        begin = _event("message_start", message=self._message([], self._stop, usage))
        return [begin, *(event for call in _open_searches(self._request) for event in self._find(call))]

    def say(self, piece: str) -> list[Event]:
        events = self._open_block("text", {"type": "text", "text": ""})
        self._content[-1]["text"] += piece
        return [*events, self._delta({"type": "text_delta", "text": piece})]

    def think(self, step: Think) -> list[Event]:
        if step.redacted:
            return [*self._close_block(), self._start_block({"type": "redacted_thinking", "data": step.signature}), self._stop_block()]
        events = self._open_block("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        self._content[-1]["thinking"] += step.text
        events += [self._delta({"type": "thinking_delta", "thinking": piece}) for piece in pieces(step.text, step.piece_chars) if piece]
        if step.signature:
            self._content[-1]["signature"] = step.signature
            events += [self._delta({"type": "signature_delta", "signature": step.signature}), *self._close_block()]
        return events

    def call(self, calls: Sequence[CallStep]) -> list[Event]:
        events = self._close_block()
        first = len(self._content)
        starts: list[dict[str, Any]] = [{"type": "tool_use", "id": call.id, "name": call.name, "input": {}} for call in calls]
        self._content += [start | {"input": raw_object(call.arguments) or {}} for start, call in zip(starts, calls, strict=True)]
        at = [self._index(first + number, first) for number in range(len(calls))]
        opening = [_event("content_block_start", **at[number], content_block=start) for number, start in enumerate(starts)]
        closing = [_event("content_block_stop", **index) for index in at]
        deltas = [(number, _piece(at[number], piece)) for number, piece in argument_pieces(calls, self._quirks)]
        if CallQuirk.INTERLEAVED in self._quirks:
            return [*events, *opening, *(delta for _, delta in deltas), *closing]
        for number in range(len(calls)):
            events += [opening[number], *(delta for owner, delta in deltas if owner == number), closing[number]]
        return events

    def _index(self, index: int, first: int) -> dict[str, int]:
        """The index of a call's block, or the wrong one of a server with a quirk."""
        if CallQuirk.NO_INDEX in self._quirks:
            return {}
        return {"index": first if CallQuirk.SAME_INDEX in self._quirks else index}

    def cite(self, step: Cite) -> list[Event]:
        events = self._open_block("text", {"type": "text", "text": ""})
        citation = {
            "type": "web_search_result_location",
            "cited_text": step.text,
            "url": step.uri,
            "title": step.title or None,
            "encrypted_index": self._request.id("idx_", len(self._content)),
        }
        self._content[-1].setdefault("citations", []).append(citation)
        return [*events, self._delta({"type": "citations_delta", "citation": citation})]

    def block(self, reason: str) -> list[Event]:
        return self.finish(Finish(FinishReason.REFUSAL, reason))

    def fail(self, fail: Fail) -> list[Event]:
        return [Event(to_json(faults.error_body("anthropic", fail, faults.request_id_of(self._request))), "error")]

    def finish(self, finish: Finish) -> list[Event]:
        events = self._close_block()
        if finish.reason == PAUSED:
            events += self._search()
        word = _FINISH.get(FinishReason(finish.reason), finish.reason) if finish.reason in tuple(FinishReason) else finish.reason
        details = {"type": "refusal", "category": None, "explanation": finish.detail} if word == "refusal" and finish.detail else None
        self._stop = {"stop_reason": word, "stop_sequence": None} | ({"stop_details": details} if details else {})
        usage = usage_body(self._usage)
        usage.pop("cache_creation", None)
        usage.pop("service_tier", None)
        return [*events, _event("message_delta", delta=self._stop, usage=usage), _event("message_stop")]

    def _search(self) -> list[Event]:
        """The search that the answer is paused in: it has no result yet."""
        use: dict[str, Any] = {"type": "server_tool_use", "id": self._request.id("srvtoolu_"), "name": "web_search", "input": {}}
        begin = self._start_block(use)
        self._content[-1]["input"] = {"query": "more"}
        return [begin, self._delta({"type": "input_json_delta", "partial_json": '{"query":"more"}'}), self._stop_block()]

    def _find(self, call_id: str) -> list[Event]:
        """The result of a search that an earlier answer was paused in."""
        page = {"type": "web_search_result", "url": "https://a.example/more", "title": "More", "encrypted_content": "bW9yZQ"}
        return [self._start_block({"type": "web_search_tool_result", "tool_use_id": call_id, "content": [page]}), self._stop_block()]

    def ping(self) -> Event:
        return _event("ping")

    def whole(self) -> dict[str, Any]:
        return self._message(self._content, self._stop, usage_body(self._usage))

    # --- blocks

    def _open_block(self, kind: Literal["text", "thinking"], block: dict[str, Any]) -> list[Event]:
        if self._open == kind:
            return []
        events = self._close_block()
        self._open = kind
        return [*events, self._start_block(block)]

    def _start_block(self, block: dict[str, Any]) -> Event:
        self._content.append(dict(block))
        return _event("content_block_start", index=len(self._content) - 1, content_block=block)

    def _delta(self, delta: dict[str, Any]) -> Event:
        return _event("content_block_delta", index=len(self._content) - 1, delta=delta)

    def _close_block(self) -> list[Event]:
        return [self._stop_block()] if self._open else []

    def _stop_block(self) -> Event:
        self._open = ""
        return _event("content_block_stop", index=len(self._content) - 1)

    def _message(self, content: list[dict[str, Any]], stop: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
        head = {"id": self._request.id("msg_"), "type": "message", "role": "assistant", "model": self._request.model}
        return head | {"content": content} | stop | {"usage": usage}


def _open_searches(request: ModelRequest) -> list[str]:
    """Ids of the searches that the last message waits for."""
    last = (request.body.get("messages") or [{}])[-1]
    blocks = last.get("content") if last.get("role") == "assistant" else None
    found = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    answered = {block.get("tool_use_id") for block in found}
    return [block["id"] for block in found if block.get("type") == "server_tool_use" and block["id"] not in answered]


def _piece(index: dict[str, int], piece: str) -> Event:
    delta = {"type": "input_json_delta", "partial_json": piece}
    return Event(to_json({"type": "content_block_delta", **index, "delta": delta}), "content_block_delta", delta=True)


def _event(kind: str, **fields: object) -> Event:
    return Event(to_json({"type": kind, **fields}), kind)


def usage_body(usage: Usage) -> dict[str, Any]:
    """Input excludes cached tokens; cache reads and writes are separate fields."""
    body: dict[str, Any] = {
        "input_tokens": usage.fresh_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write_tokens - usage.cache_write_1h_tokens,
            "ephemeral_1h_input_tokens": usage.cache_write_1h_tokens,
        },
        "output_tokens": usage.output_tokens,
        "service_tier": "standard",
    }
    return body | ({"output_tokens_details": {"thinking_tokens": usage.thought_tokens}} if usage.thought_tokens else {})
