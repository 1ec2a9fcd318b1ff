"""Encodes answers as OpenAI Responses: items are added, grow and are done; events are numbered; the whole response comes at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.testing.mock import faults
from dragoman.testing.mock.encode_chat import REFUSAL
from dragoman.testing.mock.wire import Comment, Event, ModelRequest, argument_pieces, to_json, usage_of
from dragoman.testing.script import pieces
from dragoman.testing.script_steps import CallQuirk, CallStep, Cite, Fail, Finish, ScriptedAnswer, Think
from dragoman.values.messages import FinishReason
from dragoman.values.usage import Usage

CALL_PREFIX = "call_"
_COMPLETED = ("completed", FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.REFUSAL)
# Why a response is incomplete. A reason without a word of the service is sent unchanged.
_INCOMPLETE = {
    FinishReason.LENGTH: "max_output_tokens",
    FinishReason.SAFETY: "content_filter",
    FinishReason.RECITATION: "content_filter",
}


class ResponsesEncoder:
    """One answer as a response. Thinking is a reasoning item: a summary, and the signature as its encrypted content."""

    def __init__(self, answer: ScriptedAnswer, request: ModelRequest) -> None:
        self._request = request
        self._quirks = answer.calls
        self._usage = usage_of(answer, request)
        self._output: list[dict[str, Any]] = []
        self._sequence = 0
        self._message: dict[str, Any] | None = None
        """The message item while it is open."""
        self._end: dict[str, Any] = {"status": "in_progress"}

    def start(self) -> list[Event]:
        return [self._event("response.created", response=self._response()), self._event("response.in_progress", response=self._response())]

    # --- text

    def say(self, piece: str) -> list[Event]:
        events = self._open_message()
        self._text_part()["text"] += piece
        return [*events, self._event("response.output_text.delta", **self._at_text(), delta=piece, logprobs=[])]

    def cite(self, step: Cite) -> list[Event]:
        events = self._open_message()
        part = self._text_part()
        start = max(part["text"].rfind(step.text), 0) if step.text else 0
        end = start + len(step.text) if step.text else len(part["text"])
        annotation = {"type": "url_citation", "start_index": start, "end_index": end, "title": step.title, "url": step.uri}
        part["annotations"].append(annotation)
        number = len(part["annotations"]) - 1
        added = self._event("response.output_text.annotation.added", **self._at_text(), annotation_index=number, annotation=annotation)
        return [*events, added]

    def _open_message(self, part: dict[str, Any] | None = None) -> list[Event]:
        if self._message is not None:
            return []
        part = part or {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
        item = {"id": self._request.id("msg_", len(self._output)), "type": "message", "status": "in_progress", "role": "assistant"}
        added = self._add_item(item | {"content": []})
        self._message = self._output[-1]
        self._message["content"] = [part]
        return [added, self._event("response.content_part.added", **self._at_text(), part=part)]

    def _close_message(self) -> list[Event]:
        if self._message is None:
            return []
        at = self._at_text()
        part = self._text_part()
        if part["type"] == "refusal":
            done = self._event("response.refusal.done", **at, refusal=part["refusal"])
        else:
            done = self._event("response.output_text.done", **at, text=part["text"], logprobs=[])
        self._message = None
        return [done, self._event("response.content_part.done", **at, part=part), self._finish_item(len(self._output) - 1)]

    def _text_part(self) -> dict[str, Any]:
        return self._output[-1]["content"][0]

    def _at_text(self) -> dict[str, Any]:
        return {"item_id": self._output[-1]["id"], "output_index": len(self._output) - 1, "content_index": 0}

    # --- thinking

    def think(self, step: Think) -> list[Event]:
        events = self._close_message()
        item: dict[str, Any] = {"id": self._request.id("rs_", len(self._output)), "type": "reasoning", "summary": []}
        if step.signature:
            item["encrypted_content"] = step.signature
        events.append(self._add_item(item))
        if step.text:
            at = {"item_id": item["id"], "output_index": len(self._output) - 1, "summary_index": 0}
            part = {"type": "summary_text", "text": step.text}
            events.append(self._event("response.reasoning_summary_part.added", **at, part=part | {"text": ""}))
            for piece in pieces(step.text, step.piece_chars):
                events.append(self._event("response.reasoning_summary_text.delta", **at, delta=piece))
            events.append(self._event("response.reasoning_summary_text.done", **at, text=step.text))
            events.append(self._event("response.reasoning_summary_part.done", **at, part=part))
            self._output[-1]["summary"] = [part]
        return [*events, self._finish_item(len(self._output) - 1)]

    # --- calls

    def call(self, calls: Sequence[CallStep]) -> list[Event]:
        events = self._close_message()
        first = len(self._output)
        sent = list(argument_pieces(calls, self._quirks))
        if CallQuirk.INTERLEAVED in self._quirks:
            events += [self._add_call(call, first) for call in calls]
            events += [self._call_delta(first + number, first, piece) for number, piece in sent]
            return events + [event for number, call in enumerate(calls) for event in self._finish_call(first + number, first, call)]
        for number, call in enumerate(calls):
            events.append(self._add_call(call, first))
            events += [self._call_delta(first + number, first, piece) for owner, piece in sent if owner == number]
            events += self._finish_call(first + number, first, call)
        return events

    def _add_call(self, call: CallStep, first: int) -> Event:
        index = len(self._output)
        item = {"id": self._request.id("fc_", index), "type": "function_call", "status": "in_progress", "arguments": ""}
        item |= {"call_id": call.id, "name": "" if CallQuirk.LATE_NAME in self._quirks else call.name}
        self._output.append(dict(item))
        return self._event("response.output_item.added", **self._index(index, first), item=item)

    def _call_delta(self, index: int, first: int, piece: str) -> Event:
        at = {"item_id": self._output[index]["id"]} | self._index(index, first)
        return msgspec.structs.replace(self._event("response.function_call_arguments.delta", **at, delta=piece), delta=True)

    def _finish_call(self, index: int, first: int, call: CallStep) -> list[Event]:
        item = self._output[index]
        item |= {"status": "completed", "arguments": call.arguments, "name": call.name}
        at = {"item_id": item["id"]} | self._index(index, first)
        done = self._event("response.function_call_arguments.done", **at, name=call.name, arguments=call.arguments)
        return [done, self._event("response.output_item.done", **self._index(index, first), item=item)]

    def _index(self, index: int, first: int) -> dict[str, int]:
        """The index of a call's item, or the wrong one of a server with a quirk."""
        if CallQuirk.NO_INDEX in self._quirks:
            return {}
        return {"output_index": first if CallQuirk.SAME_INDEX in self._quirks else index}

    # --- the end

    def block(self, reason: str) -> list[Event]:
        return self.finish(Finish(FinishReason.SAFETY, reason))

    def fail(self, fail: Fail) -> list[Event]:
        error = faults.openai_error(fail)
        code = error["code"] or error["type"]
        event = self._event("error", code=code, message=error["message"], param=None)
        self._end = {"status": "failed", "error": {"code": code, "message": error["message"]}}
        return [event, self._event("response.failed", response=self._response())]

    def finish(self, finish: Finish) -> list[Event]:
        events: list[Event] = []
        if finish.reason == FinishReason.REFUSAL:
            events += self._refuse(finish.detail or REFUSAL)
        events += self._close_message()
        self._end = _ending(finish)
        if self._end["status"] == "incomplete" and self._output and "status" in self._output[-1]:
            self._output[-1]["status"] = "incomplete"
        return [*events, self._event(f"response.{self._end['status']}", response=self._response())]

    def _refuse(self, text: str) -> list[Event]:
        events = self._close_message() + self._open_message({"type": "refusal", "refusal": ""})
        self._text_part()["refusal"] = text
        return [*events, self._event("response.refusal.delta", **self._at_text(), delta=text)]

    def ping(self) -> Comment:
        return Comment("keepalive")

    def whole(self) -> dict[str, Any]:
        return self._response()

    # --- events and items

    def _add_item(self, item: dict[str, Any]) -> Event:
        self._output.append(dict(item))
        return self._event("response.output_item.added", output_index=len(self._output) - 1, item=item)

    def _finish_item(self, index: int) -> Event:
        item = self._output[index]
        if "status" in item:
            item["status"] = "completed"
        return self._event("response.output_item.done", output_index=index, item=item)

    def _event(self, kind: str, **fields: object) -> Event:
        number = self._sequence
        self._sequence += 1
        return Event(to_json({"type": kind, **fields, "sequence_number": number}), kind)

    def _response(self) -> dict[str, Any]:
        ended = self._end["status"] != "in_progress"
        body = self._request.body
        response: dict[str, Any] = {
            "id": self._request.id("resp_"),
            "object": "response",
            "created_at": self._request.created,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "metadata": {},
            "model": self._request.model,
            "output": self._output if ended else [],
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "previous_response_id": None,
            "reasoning": body.get("reasoning") or {"effort": None, "summary": None},
            "service_tier": "default",
            "store": body.get("store", True),
            "temperature": body.get("temperature", 1.0),
            "text": body.get("text") or {"format": {"type": "text"}},
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": body.get("tools", []),
            "top_p": body.get("top_p", 1.0),
            "truncation": "disabled",
            "usage": usage_body(self._usage) if ended and self._end["status"] != "failed" else None,
            "user": None,
        }
        return response | self._end


def _ending(finish: Finish) -> dict[str, Any]:
    if finish.reason in _COMPLETED:
        return {"status": "completed"}
    if finish.reason == "failed":
        return {"status": "failed", "error": {"code": "server_error", "message": finish.detail or "The model failed to answer."}}
    reason = _INCOMPLETE.get(FinishReason(finish.reason), finish.reason) if finish.reason in tuple(FinishReason) else finish.reason
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}


def usage_body(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.thought_tokens},
        "total_tokens": usage.total_tokens,
    }
