"""OpenAI Chat Completions, responses: chunks and whole answers → our events and Response."""

from __future__ import annotations

from typing import Any

from dragoman.base import jsontext
from dragoman.base.words import say
from dragoman.providers.answer import AnswerBuilder
from dragoman.providers.faults import error_from_event
from dragoman.providers.wire import Destination, Taken
from dragoman.values.errors import StreamBroken
from dragoman.values.events import PromptRead, StreamEvent
from dragoman.values.messages import Citation, FinishReason, Opaque, Response
from dragoman.values.usage import Usage

FINISH = {
    "stop": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.SAFETY,
    "sensitive": FinishReason.SAFETY,
    "refusal": FinishReason.REFUSAL,
}
_REASONING = ("reasoning_content", "reasoning")


class _Call:
    """A call being written. Its id and name may come with any delta."""

    def __init__(self, index: object) -> None:
        self.index = index
        self.wire_id = ""
        self.call_id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.whole = False


class Decoder:
    def __init__(self, to: Destination, taken: Taken) -> None:
        self._to = to
        self._answer = AnswerBuilder(taken)
        self._calls: list[_Call] = []
        self._finish = ""
        self._refused: list[str] = []
        self.ended = False
        self.unknown_events = 0

    @property
    def complete(self) -> bool:
        return bool(self._finish)

    def feed(self, name: str, data: bytes) -> list[StreamEvent] | None:
        if data == b"[DONE]":
            self.ended = True
            return []
        chunk = jsontext.decode(data)
        if chunk.get("error") or name == "error":
            raise error_from_event(chunk, self._to)
        choices = chunk.get("choices")
        usage = chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage")
        if choices is None and usage is None:
            self.unknown_events += 1
            return None
        events = self._answer.start(chunk.get("id") or "", chunk.get("model") or "") if not self._answer.started else []
        if progress := chunk.get("prompt_progress"):  # llama.cpp
            events.append(PromptRead(progress.get("processed") or 0, progress.get("total") or 0))
        for choice in choices or ():
            events += self._choice(choice)
        if usage:
            events += self._answer.set_usage(read_usage(usage))
        return events

    def close(self) -> list[StreamEvent]:
        if not self._finish:
            raise StreamBroken(say("providers.broke_off"), provider=self._to.deployment.name)
        events: list[StreamEvent] = []
        for call in self._calls:
            if not call.call_id:
                events += self._begin(call)
            events += self._answer.end_call(call.call_id, call.name, "".join(call.pieces))
        reason = FinishReason.REFUSAL if self._refused else FINISH.get(self._finish, FinishReason.OTHER)
        return [*events, *self._answer.close(reason, self._finish, "".join(self._refused))]

    def _choice(self, choice: dict[str, Any]) -> list[StreamEvent]:
        delta = choice.get("delta") or {}
        events: list[StreamEvent] = []
        if thinking := delta.get(_REASONING[0]) or delta.get(_REASONING[1]):
            events += self._answer.add_thought(thinking)
        if content := delta.get("content"):
            events += self._content(content)
        if refusal := delta.get("refusal"):
            self._refused.append(refusal)
            events += self._answer.add_text(refusal)
        for piece in delta.get("tool_calls") or ():
            events += self._call_delta(piece)
        for annotation in delta.get("annotations") or ():
            events += _cite(self._answer, annotation, self._to)
        if usage := choice.get("usage"):  # Kimi
            events += self._answer.set_usage(read_usage(usage))
        self._finish = choice.get("finish_reason") or self._finish
        return events

    def _content(self, content: Any) -> list[StreamEvent]:
        if isinstance(content, str):
            return self._answer.add_text(content)
        return [event for kind, text in content_pieces(content) for event in getattr(self._answer, f"add_{kind}")(text)]

    def _call_delta(self, piece: dict[str, Any]) -> list[StreamEvent]:
        function = piece.get("function") or {}
        call = self._call_for(piece, _arguments(function))
        call.wire_id = call.wire_id or piece.get("id") or ""
        call.name = call.name or function.get("name") or ""
        events: list[StreamEvent] = []
        if call.name and not call.call_id:
            events = self._begin(call)
        arguments = _arguments(function)
        if not arguments:
            return events
        call.pieces.append(arguments)
        return [*events, *self._answer.add_arguments(call.call_id, arguments)] if call.call_id else events

    def _call_for(self, piece: dict[str, Any], arguments: str) -> _Call:
        """Which call a delta belongs to: by index, else by id; with neither, it continues the last call.

        A different id begins a new call even under the same index: some servers give every call index 0, and some no id either, so
        a name begins another call if the last one's arguments are complete. If such calls are interleaved and a delta does not say
        which one it means, the stream counts as broken: we do not guess.
        """
        index, wire_id = piece.get("index"), piece.get("id") or ""
        alike = [call for call in self._calls if index is None or call.index == index]
        if wire_id:
            found = next((call for call in reversed(alike) if call.wire_id == wire_id), None)
            waiting = next((call for call in alike if not call.wire_id), None) if index is not None else None
            found = found or waiting
        else:
            found = alike[-1] if alike and not (index is None and _name_in(piece) and alike[-1].name) else None
            if found is not None and not all(map(_is_whole, alike[:-1])):
                raise self._ambiguous_error()
        if found is None:
            return self._new_call(index)
        name, begins = _name_in(piece), arguments.lstrip().startswith(("{", "["))
        renamed = bool(name and found.name and name != found.name)
        if not (name or begins) or not _is_whole(found):
            if renamed:
                raise self._ambiguous_error()
            return found
        if name and (index is None or begins or renamed):
            return self._new_call(index)
        if begins:
            raise self._ambiguous_error()
        return found

    def _ambiguous_error(self) -> StreamBroken:
        return StreamBroken(say("providers.ambiguous_call"), provider=self._to.deployment.name)

    def _new_call(self, index: object) -> _Call:
        self._calls.append(_Call(index))
        return self._calls[-1]

    def _begin(self, call: _Call) -> list[StreamEvent]:
        """The events of a call whose name is known now, and of the arguments that came before the name."""
        call.call_id, events = self._answer.begin_call(call.wire_id, call.name)
        return events + [event for piece in call.pieces for event in self._answer.add_arguments(call.call_id, piece)]


def _name_in(piece: dict[str, Any]) -> str:
    return (piece.get("function") or {}).get("name") or ""


def _arguments(function: dict[str, Any]) -> str:
    arguments = function.get("arguments")
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else jsontext.dumps(arguments)  # Ollama sends objects


def _is_whole(call: _Call) -> bool:
    """Whether a call's arguments are complete, so that what follows must belong to another call."""
    if not call.whole and call.pieces and call.pieces[-1].rstrip().endswith(("}", "]")):
        call.whole = _is_json("".join(call.pieces))
    return call.whole


def _is_json(text: str) -> bool:
    try:
        jsontext.decode(text)
    except jsontext.NotJSON:
        return False
    return True


def read_answer(data: Any, to: Destination, taken: Taken) -> Response:
    answer = AnswerBuilder(taken)
    answer.start(data.get("id") or "", data.get("model") or "")
    answer.set_usage(read_usage(data.get("usage") or {}))
    choice = data["choices"][0]
    message = choice.get("message") or {}
    if thinking := message.get(_REASONING[0]) or message.get(_REASONING[1]):
        answer.add_thought(thinking)
    content = message.get("content")
    for kind, text in content_pieces(content) if isinstance(content, list) else [("text", content or "")]:
        if text:
            getattr(answer, f"add_{kind}")(text)
    if refusal := message.get("refusal"):
        answer.add_text(refusal)
    for annotation in message.get("annotations") or ():
        _cite(answer, annotation, to)
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else jsontext.dumps(arguments or {})
        answer.add_call(call.get("id") or "", function.get("name") or "", text)
    finish = choice.get("finish_reason") or ""
    if not finish:
        raise StreamBroken(say("providers.no_finish_reason"), provider=to.deployment.name)
    reason = FinishReason.REFUSAL if refusal else FINISH.get(finish, FinishReason.OTHER)
    return answer.finish(reason, finish, refusal or "").response


def read_usage(usage: dict[str, Any]) -> Usage:
    details = usage.get("prompt_tokens_details") or {}
    read = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens") or 0
    return Usage.from_total(
        usage.get("prompt_tokens") or 0,
        cache_read=read,
        cache_write=details.get("cache_write_tokens") or details.get("cache_creation_input_tokens") or 0,
        output=usage.get("completion_tokens") or 0,
        thought=(usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0,
    )


def content_pieces(content: list[Any]) -> list[tuple[str, str]]:
    """Content in blocks (Mistral): text, and thinking that itself consists of blocks."""
    pieces: list[tuple[str, str]] = []
    for block in content:
        if block.get("type") == "thinking":
            inner = block.get("thinking")
            text = inner if isinstance(inner, str) else "".join(item.get("text") or "" for item in inner or ())
            pieces.append(("thought", text))
        elif block.get("text"):
            pieces.append(("text", block["text"]))
    return [(kind, text) for kind, text in pieces if text]


def _cite(answer: AnswerBuilder, annotation: dict[str, Any], to: Destination) -> list[StreamEvent]:
    found = annotation.get("url_citation") or {}
    opaque = Opaque(to.deployment.name, jsontext.dumps(annotation), to.model)
    start, end = found.get("start_index"), found.get("end_index")
    cited = answer.last_text[start:end] if isinstance(start, int) and isinstance(end, int) and 0 <= start < end else ""
    return answer.add_citation(Citation(found.get("url") or "", found.get("title") or "", cited, opaque))
