"""Anthropic Messages, responses: stream events and whole answers → our events and Response."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.base import jsontext
from dragoman.http.sse import ServerEvent, SSEDecoder
from dragoman.providers.answer import AnswerBuilder, service_error
from dragoman.providers.wire import Destination, Taken
from dragoman.values.errors import StreamBroken
from dragoman.values.events import StreamEvent
from dragoman.values.messages import Citation, FinishReason, Opaque, Response
from dragoman.values.usage import Usage
from dragoman.words import say

FINISH = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_CALLS,
    "refusal": FinishReason.REFUSAL,
}
PAUSED = "pause_turn"
_CALL_FIELDS = ("type", "id", "name", "input")


class EventsOrDocument:
    """Server-sent events; or the whole answer as one event, where a proxy does not stream and does not say so."""

    def __init__(self) -> None:
        self._events = SSEDecoder()
        self._document: bytearray | None = None
        self._is_begun = False

    @property
    def heartbeats(self) -> int:
        return self._events.heartbeats

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        if not self._is_begun and (begin := chunk.lstrip()):
            self._is_begun = True
            self._document = bytearray() if begin.startswith(b"{") else None
        if self._document is None:
            return self._events.feed(chunk)
        self._document += chunk
        return []

    def close(self) -> list[ServerEvent]:
        return self._events.close() if self._document is None else [ServerEvent("", bytes(self._document))]


class Decoder:
    def __init__(self, to: Destination, taken: Taken) -> None:
        self._to = to
        self._answer = AnswerBuilder(taken)
        self._block: dict[str, Any] = {}
        self._index: int | None = None
        self._is_open = False
        self._arguments: list[str] = []
        self._call_id = ""
        self._usage: dict[str, Any] = {}
        self._ending: dict[str, Any] = {}
        """The fields that a whole answer has at its top: `stop_reason`, `stop_details`, `input_transformations`."""
        self.ended = False
        self.unknown_events = 0

    @property
    def complete(self) -> bool:
        return self.ended

    def feed(self, name: str, data: bytes) -> list[StreamEvent] | None:
        event = jsontext.decode(data)
        match event.get("type") or name:
            case "content_block_delta":
                return self._delta(event)
            case "content_block_start":
                return self._begin_block(event)
            case "content_block_stop":
                return self._end_block(event.get("index"))
            case "message_start":
                message = event["message"]
                self._usage = dict(message.get("usage") or {})
                self._end_with(message)
                return self._answer.start(message.get("id") or "", message.get("model") or "") + self._answer.set_usage(
                    read_usage(self._usage)
                )
            case "message_delta":
                self._end_with(event.get("delta") or {})
                self._end_with(event)
                self._usage.update({key: value for key, value in (event.get("usage") or {}).items() if value is not None})
                return self._answer.set_usage(read_usage(self._usage))
            case "message_stop":
                self.ended = True
                return []
            case "message":
                self.ended = True
                self._end_with(event)
                return _add_answer(self._answer, event, self._to)
            case "error":
                raise service_error(event, self._to)
            case "ping":
                return None
            case _:
                self.unknown_events += 1
                return None

    def close(self) -> list[StreamEvent]:
        stop = self._ending.get("stop_reason")
        if not self.ended or not stop:
            raise StreamBroken(say("providers.broke_off"), provider=self._to.deployment.name)
        if self._is_open and self._block.get("type") == "tool_use":
            if FINISH.get(stop) is not FinishReason.LENGTH:
                raise StreamBroken(say("providers.call_still_open"), provider=self._to.deployment.name)
            self._answer.fault = "cut_in_call"
        events = self._end_block(self._index) if self._is_open else []
        self._answer.fault = "paused" if stop == PAUSED else self._answer.fault
        return [*events, *self._answer.close(*_finish(self._ending))]

    def _end_with(self, fields: dict[str, Any]) -> None:
        self._ending.update({key: fields[key] for key in ("stop_reason", "stop_details", "input_transformations") if fields.get(key)})

    def _begin_block(self, event: dict[str, Any]) -> list[StreamEvent]:
        if self._is_open:
            raise StreamBroken(say("providers.block_in_block"), provider=self._to.deployment.name)
        self._is_open = True
        self._index = event.get("index")
        self._block = dict(event["content_block"])
        self._answer.seal()
        match self._block.get("type"):
            case "tool_use":
                self._arguments = []
                self._call_id, events = self._answer.begin_call(self._block.get("id") or "", self._block.get("name") or "")
                return events
            case "text":
                return self._answer.add_text(self._block["text"]) if self._block.get("text") else []
            case "thinking":
                return self._answer.add_thought(self._block["thinking"]) if self._block.get("thinking") else []
            case _:
                self._arguments = []
                return []

    def _delta(self, event: dict[str, Any]) -> list[StreamEvent]:
        self._check_open(event.get("index"))
        delta, block = event["delta"], self._block
        match delta.get("type"):
            case "text_delta":
                return self._answer.add_text(delta["text"])
            case "thinking_delta":
                return self._answer.add_thought(delta["thinking"])
            case "input_json_delta":
                self._arguments.append(delta["partial_json"])
                if block.get("type") != "tool_use" or not delta["partial_json"]:
                    return []
                return self._answer.add_arguments(self._call_id, delta["partial_json"])
            case "signature_delta":
                block["signature"] = (block.get("signature") or "") + delta["signature"]
                return []
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
                return []
            case _:
                self.unknown_events += 1
                return []

    def _check_open(self, index: int | None) -> None:
        if not self._is_open or index != self._index:
            raise StreamBroken(say("providers.block_not_open"), provider=self._to.deployment.name)

    def _end_block(self, index: int | None) -> list[StreamEvent]:
        self._check_open(index)
        self._is_open = False
        block = self._block
        written = self._answer.open_text
        match block.get("type"):
            case "text":
                block["text"] = written
            case "thinking":
                block["thinking"] = written
            case "tool_use":
                block["input"] = "".join(self._arguments) or jsontext.dumps(block.get("input") or {})
                return self._answer.end_call(self._call_id, block.get("name") or "", block["input"], _beside_call(block, self._to))
            case _ if arguments := "".join(self._arguments):
                block["input"] = jsontext.decode_object(arguments) or {}  # cut by the output limit, if it is no object
            case _:
                pass
        return _keep_block(self._answer, block, self._to)


def read_answer(data: Any, to: Destination, taken: Taken) -> Response:
    answer = AnswerBuilder(taken)
    _add_answer(answer, data, to)
    if not data.get("stop_reason"):
        raise StreamBroken(say("providers.no_finish_reason"), provider=to.deployment.name)
    answer.fault = "paused" if data["stop_reason"] == PAUSED else ""
    return answer.finish(*_finish(data)).response


def _add_answer(answer: AnswerBuilder, data: dict[str, Any], to: Destination) -> list[StreamEvent]:
    events = answer.start(data.get("id") or "", data.get("model") or "") + answer.set_usage(read_usage(data.get("usage") or {}))
    for block in data.get("content") or ():
        match block.get("type"):
            case "text":
                events += answer.add_text(block["text"]) + _keep_block(answer, block, to)
            case "thinking":
                events += answer.add_thought(block["thinking"]) + _keep_block(answer, block, to)
            case "tool_use":
                arguments = jsontext.dumps(block.get("input"))
                events += answer.add_call(block.get("id") or "", block.get("name") or "", arguments, _beside_call(block, to))
            case _:
                events += _keep_block(answer, block, to)
    return events


def _finish(ending: dict[str, Any]) -> tuple[FinishReason, str, str]:
    """Why the answer ended: the reason, the service's own word, and what it says about it or about the request."""
    stop = ending["stop_reason"]
    detail = (ending.get("stop_details") or {}).get("explanation") or ""
    reason = FINISH.get(stop, FinishReason.OTHER)
    return reason, stop, detail if detail or reason is FinishReason.REFUSAL else _dropped(ending.get("input_transformations") or ())


def _dropped(transformations: Iterable[dict[str, Any]]) -> str:
    """What the service left out of the request because it no longer fitted what is before it."""
    dropped = [each for each in transformations if each.get("type") == "thinking_dropped"]
    reasons = ", ".join(sorted({each.get("reason") or "" for each in dropped}))
    return f"{len(dropped)} thinking blocks of the request were dropped: {reasons}" if dropped else ""


def _beside_call(block: dict[str, Any], to: Destination) -> Opaque | None:
    """What a call has beside its name and arguments (`caller`), to be sent back with it."""
    beside = {key: value for key, value in block.items() if key not in _CALL_FIELDS and value is not None}
    return Opaque(to.deployment.name, jsontext.dumps(beside), to.model) if beside else None


def read_usage(usage: dict[str, Any]) -> Usage:
    written = usage.get("cache_creation") or {}
    return Usage(
        fresh_tokens=usage.get("input_tokens") or 0,
        cache_read_tokens=usage.get("cache_read_input_tokens") or 0,
        cache_write_tokens=usage.get("cache_creation_input_tokens") or 0,
        output_tokens=usage.get("output_tokens") or 0,
        thought_tokens=(usage.get("output_tokens_details") or {}).get("thinking_tokens") or 0,
        cache_write_1h_tokens=written.get("ephemeral_1h_input_tokens") or 0,
    )


def _keep_block(answer: AnswerBuilder, block: dict[str, Any], to: Destination) -> list[StreamEvent]:
    """Seal the part just written, and keep the blocks that must be sent back unchanged."""
    kind = block.get("type")
    if (kind == "text" and not block.get("citations")) or (kind == "thinking" and not block.get("signature")):
        answer.seal()  # plain text; or thinking without a signature, which the service would not take back
        return []
    opaque = Opaque(to.deployment.name, jsontext.dumps(block), to.model)
    if kind in ("text", "thinking"):
        answer.seal(opaque)
    else:
        answer.add_private(opaque)  # redacted_thinking, server_tool_use, web_search_tool_result
    if kind != "text":
        return []
    return [event for citation in block["citations"] for event in answer.add_citation(_citation(citation, to))]


def _citation(citation: dict[str, Any], to: Destination) -> Citation:
    return Citation(
        uri=citation.get("url") or "",
        title=citation.get("title") or citation.get("document_title") or "",
        cited_text=citation.get("cited_text") or "",
        opaque=Opaque(to.deployment.name, jsontext.dumps(citation), to.model),
    )
