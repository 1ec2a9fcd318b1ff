"""OpenAI Responses, responses: stream events and whole answers → our events and Response."""

from __future__ import annotations

from typing import Any

from dragoman.base import jsontext
from dragoman.providers.answer import AnswerBuilder, service_error
from dragoman.providers.wire import Destination, Taken
from dragoman.values.errors import StreamBroken
from dragoman.values.events import StreamEvent
from dragoman.values.messages import Citation, FinishReason, Opaque, Response
from dragoman.values.usage import Usage
from dragoman.words import say

_CUT = {
    "max_output_tokens": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "incomplete": FinishReason.LENGTH,  # no reason given, but not at its end either
    "content_filter": FinishReason.SAFETY,
}


class _Call:
    """A call being written."""

    def __init__(self, call_id: str, name: str) -> None:
        self.call_id = call_id
        self.name = name
        self.pieces: list[str] = []


class Decoder:
    def __init__(self, to: Destination, taken: Taken) -> None:
        self._to = to
        self._answer = AnswerBuilder(taken)
        self._calls: dict[object, _Call] = {}
        """Calls still being written, by index, else by id."""
        self._items = 0
        self._written: dict[object, int] = {}
        """The output items whose deltas were seen, and how many characters these brought."""
        self._refused = ""
        self._final: dict[str, Any] | None = None
        self.unknown_events = 0

    @property
    def complete(self) -> bool:
        return self._final is not None

    @property
    def ended(self) -> bool:
        return self._final is not None

    def feed(self, name: str, data: bytes) -> list[StreamEvent] | None:
        if data.strip() == b"[DONE]":
            return None
        event = jsontext.decode(data)
        index = event.get("output_index")
        match event.get("type") or name:
            case "response.output_text.delta" | "response.refusal.delta":
                self._count_written(index, event["delta"])
                return self._answer.add_text(event["delta"])
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._count_written(index, event["delta"])
                return self._answer.add_thought(event["delta"])
            case "response.reasoning_summary_part.added":
                first = event.get("summary_index") in (None, 0)
                return [] if first else self._answer.add_thought("\n\n")
            case "response.function_call_arguments.delta":
                call = self._calls[event.get("item_id") if index is None else index]
                call.pieces.append(event["delta"])
                return self._answer.add_arguments(call.call_id, event["delta"])
            case "response.output_item.added":
                return self._begin_item(index, event["item"])
            case "response.output_item.done":
                return self._end_item(index, event["item"])
            case "response.created" | "response.queued" | "response.in_progress":
                response = event["response"]
                return self._answer.start(response.get("id") or "", response.get("model") or "")
            case "response.completed" | "response.incomplete":
                final = self._final = event["response"]
                started = self._answer.start(final.get("id") or "", final.get("model") or "")
                return started + self._answer.set_usage(read_usage(final.get("usage") or {}))
            case "response.failed" | "error":
                raise service_error(event, self._to)
            case str(kind) if kind.startswith("response."):
                return []  # progress events we have no use for: done events, searches under way
            case _:
                self.unknown_events += 1
                return None

    def close(self) -> list[StreamEvent]:
        if self._final is None:
            raise StreamBroken(say("providers.broke_off"), provider=self._to.deployment.name)
        events: list[StreamEvent] = []
        if not self._items:  # a server that streams only the final event
            for index, item in enumerate(self._final.get("output") or ()):
                events += self._end_item(index, item)
        reason, raw = read_finish(self._final)
        for call in self._calls.values():
            if reason is FinishReason.STOP:
                raise StreamBroken(say("providers.call_still_open"), provider=self._to.deployment.name)
            events += self._answer.end_call(call.call_id, call.name, "".join(call.pieces))
        return [*events, *self._answer.close(FinishReason.REFUSAL if self._refused else reason, raw, self._refused)]

    def _begin_item(self, index: object, item: dict[str, Any]) -> list[StreamEvent]:
        self._items += 1
        if item.get("type") != "function_call":
            return []
        key = item.get("id") if index is None else index
        if key in self._calls:
            raise StreamBroken(say("providers.call_in_call"), provider=self._to.deployment.name)
        call_id, events = self._answer.begin_call(item.get("call_id") or "", item.get("name") or "")
        self._calls[key] = _Call(call_id, item.get("name") or "")
        return events

    def _end_item(self, index: object, item: dict[str, Any]) -> list[StreamEvent]:
        self._items += 1
        if item.get("type") == "function_call":
            key = item.get("id") if index is None else index
            events = [] if key in self._calls else self._begin_item(index, item)
            call = self._calls.pop(key)
            arguments = item.get("arguments") or "".join(call.pieces)
            return events + self._answer.end_call(call.call_id, item.get("name") or call.name, arguments)
        self._refused = self._refused or _refusal(item)
        return _keep_item(self._answer, item, self._to, written=self._written.pop(index, 0))

    def _count_written(self, index: object, delta: str) -> None:
        self._written[index] = self._written.get(index, 0) + len(delta)


def read_answer(data: Any, to: Destination, taken: Taken) -> Response:
    if data.get("status") == "failed":
        raise service_error({"response": data}, to)
    answer = AnswerBuilder(taken)
    answer.start(data.get("id") or "", data.get("model") or "")
    answer.set_usage(read_usage(data.get("usage") or {}))
    refused = ""
    for item in data["output"]:
        if item.get("type") == "function_call":
            answer.add_call(item.get("call_id") or "", item.get("name") or "", item.get("arguments") or "")
            continue
        refused = refused or _refusal(item)
        _keep_item(answer, item, to, written=0)
    reason, raw = read_finish(data)
    return answer.finish(FinishReason.REFUSAL if refused else reason, raw, refused).response


def read_finish(response: dict[str, Any]) -> tuple[FinishReason, str]:
    if response.get("status") in ("completed", "complete"):
        return FinishReason.STOP, "completed"
    why = (response.get("incomplete_details") or {}).get("reason") or response.get("status") or ""
    return _CUT.get(why, FinishReason.OTHER), why


def read_usage(usage: dict[str, Any]) -> Usage:
    details = usage.get("input_tokens_details") or {}
    return Usage.from_total(
        usage.get("input_tokens") or 0,
        cache_read=details.get("cached_tokens") or 0,
        cache_write=details.get("cache_write_tokens") or 0,
        output=usage.get("output_tokens") or 0,
        thought=(usage.get("output_tokens_details") or {}).get("reasoning_tokens") or 0,
    )


def _keep_item(answer: AnswerBuilder, item: dict[str, Any], to: Destination, *, written: int) -> list[StreamEvent]:
    """Keep a finished item: its text, as far as the deltas have not written it, and what the service wants sent back with it."""
    events: list[StreamEvent] = []
    match item.get("type"):
        case "message":
            content = item.get("content") or ()
            text = "".join(block.get("text") or block.get("refusal") or "" for block in content)
            seen = answer.open_text if written else ""
            if len(seen) == written < len(text) and text.startswith(seen):  # the deltas brought only the beginning, or nothing
                events += answer.add_text(text[written:])
            phase = item.get("phase") if answer.open_text else None
            answer.seal(Opaque(to.deployment.name, jsontext.dumps({"phase": phase}), to.model) if phase else None)
            for block in content:
                for annotation in block.get("annotations") or ():
                    events += answer.add_citation(_citation(annotation, block.get("text") or "", to))
        case "reasoning":
            if not written:
                summary = [block.get("text") or "" for block in item.get("summary") or item.get("content") or ()]
                events += answer.add_thought("\n\n".join(summary)) if any(summary) else []
            kept = item.get("encrypted_content") or item.get("content")  # models in the open send their thoughts in plain text
            answer.seal(_opaque_item(item, to) if kept else None)
        case _:
            answer.add_private(_opaque_item(item, to))
    return events


def _opaque_item(item: dict[str, Any], to: Destination) -> Opaque:
    return Opaque(to.deployment.name, jsontext.dumps({key: value for key, value in item.items() if value is not None}), to.model)


def _refusal(item: dict[str, Any]) -> str:
    return next((block["refusal"] for block in item.get("content") or () if block.get("refusal")), "")


def _citation(annotation: dict[str, Any], text: str, to: Destination) -> Citation:
    """The citation with the cited text: its offsets count within one block, so they are useless once blocks are joined."""
    opaque = Opaque(to.deployment.name, jsontext.dumps(annotation), to.model)
    start, end = annotation.get("start_index"), annotation.get("end_index")
    cited = text[start:end] if isinstance(start, int) and isinstance(end, int) and 0 <= start < end else ""
    title = annotation.get("title") or annotation.get("filename") or ""
    return Citation(annotation.get("url") or "", title, jsontext.valid_unicode(cited), opaque)
