"""OpenAI Chat Completions, responses: chunks and whole answers → our events and Response."""

from __future__ import annotations

from typing import Any

from dragoman.base import jsontext
from dragoman.providers.answer import AnswerBuilder, Piece, ThinkTags, service_error
from dragoman.providers.wire import Destination, Taken
from dragoman.values.errors import StreamBroken
from dragoman.values.events import PromptRead, StreamEvent
from dragoman.values.messages import Citation, FinishReason, Message, Opaque, Response
from dragoman.values.usage import Usage
from dragoman.words import say

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
_PLAIN_DELTA = frozenset(("content", "role"))
_PLAIN_CHOICE = frozenset(("index", "delta", "finish_reason", "logprobs"))
_REASONING = ("reasoning_content", "reasoning")
_DETAIL_TEXTS = ("text", "summary")
"""The fields of `reasoning_details` that are streamed in fragments. A signature and encrypted data come whole."""
_DONE = b"[DONE]"
_FAILED_CALL = ("tool_use_failed", "output_parse_failed")
"""Groq's words for a call or answer of the model that could not be read: an accident of sampling, told as an error."""
_NATIVE_FAILED_CALL = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE")
"""Gemini's words for the same, as OpenRouter passes them on."""
_SHOWN_CHARS = 2_000
"""Of a call that could not be read: enough for the model to see its mistake."""


class _Call:
    """A call being written. Its id and name may come with any delta."""

    def __init__(self, index: object) -> None:
        self.index = index
        self.wire_id = ""
        self.call_id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.whole = False


class _Alike:
    """Calls that a delta may belong to, in order. What is asked of them costs the same however many there are."""

    def __init__(self) -> None:
        self.calls: list[_Call] = []
        self._by_id: dict[object, _Call] = {}
        self._with_id = 0
        """How many at the beginning have an id."""
        self._whole = 0
        """How many at the beginning are whole."""

    def find(self, wire_id: object) -> _Call | None:
        """The last with this id."""
        return self._by_id.get(_key(wire_id))

    def identify(self, call: _Call) -> None:
        self._by_id[_key(call.wire_id)] = call

    def first_without_id(self) -> _Call | None:
        while self._with_id < len(self.calls) and self.calls[self._with_id].wire_id:
            self._with_id += 1
        return self.calls[self._with_id] if self._with_id < len(self.calls) else None

    def are_whole_but_last(self) -> bool:
        while self._whole < len(self.calls) - 1 and _is_whole(self.calls[self._whole]):
            self._whole += 1
        return self._whole >= len(self.calls) - 1


def _key(value: object) -> object:
    """What a service names a call by, be it a list."""
    return value if isinstance(value, str | int | float | None) else repr(value)


class Decoder:
    def __init__(self, to: Destination, taken: Taken) -> None:
        self._to = to
        self._answer = AnswerBuilder(taken)
        self._tags = _tags_for(to)
        self._details: list[dict[str, Any]] = []
        self._calls = _Alike()
        self._by_index: dict[object, _Alike] = {}
        self._finish = ""
        self._native_finish = ""
        self._failed_call = ""
        self._refused: list[str] = []
        self.ended = False
        self.unknown_events = 0

    @property
    def complete(self) -> bool:
        return bool(self._finish)

    def feed(self, name: str, data: bytes) -> list[StreamEvent] | None:
        if data.startswith(_DONE):  # some servers add a blank
            self.ended = True
            return []
        chunk = jsontext.decode(data)
        if chunk.get("error") or name == "error":
            return self._fail(chunk)
        choices = chunk.get("choices")
        usage = chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage")
        if choices is None and usage is None:
            self.unknown_events += 1
            return None
        answer, events = self._answer, list[StreamEvent]()
        if not (answer.started and answer.response_id and answer.model_version):
            # Azure's first chunk says what its filters found, and has neither.
            response_id, model = chunk.get("id") or "", chunk.get("model") or ""
            events = answer.start(response_id, model) if response_id or model or choices else []
        if progress := chunk.get("prompt_progress"):  # llama.cpp
            events.append(PromptRead(progress.get("processed") or 0, progress.get("total") or 0))
        for choice in choices or ():
            events += self._choice(choice)
        if usage:
            events += self._answer.set_usage(read_usage(usage))
        return events

    def close(self) -> list[StreamEvent]:
        if not self._finish and not (self.ended and self._answer.started):
            raise StreamBroken(say("providers.broke_off"), provider=self._to.deployment.name)
        events = [event for piece in self._tags.close() for event in _add(self._answer, piece)]
        if self._failed_call:
            _keep_details(self._answer, self._details, self._to)
            return [*events, *self._answer.close(FinishReason.MALFORMED_TOOL_CALL, self._finish, self._failed_call)]
        for call in self._calls.calls:
            if not call.call_id:
                events += self._begin(call)
            events += self._answer.end_call(call.call_id, call.name, "".join(call.pieces))
        _keep_details(self._answer, self._details, self._to)
        refusal = "".join(self._refused)
        reason = _finish_reason(self._finish, self._native_finish, refusal, self._to)
        raw = self._native_finish if reason is FinishReason.MALFORMED_TOOL_CALL else self._finish
        return [*events, *self._answer.close(reason, raw, refusal)]

    def _fail(self, chunk: Any) -> list[StreamEvent]:
        self._failed_call = failed_call(chunk)
        if not self._failed_call:
            raise service_error(chunk, self._to)
        self._finish = _FAILED_CALL[0]
        self.ended = True
        return []

    def _choice(self, choice: dict[str, Any]) -> list[StreamEvent]:
        delta = choice.get("delta") or {}
        if self._tags.is_over and _is_plain(choice, delta):
            return self._answer.add_text(delta["content"])
        if choice.get("error"):
            return self._fail(choice)
        details = delta.get("reasoning_details") or []
        _merge_details(self._details, details)
        events: list[StreamEvent] = []
        if thinking := _thinking(delta, details):
            self._tags.leave_text_alone()
            events += self._answer.add_thought(thinking)
        for piece in _parted(delta.get("content"), self._tags):
            events += _add(self._answer, piece)
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
        self._native_finish = choice.get("native_finish_reason") or self._native_finish
        return events

    def _call_delta(self, piece: dict[str, Any]) -> list[StreamEvent]:
        function = piece.get("function") or {}
        call = self._call_for(piece, _arguments(function))
        if not call.wire_id and piece.get("id"):
            call.wire_id = piece["id"]
            for alike in (self._calls, self._by_index[_key(call.index)]):
                alike.identify(call)
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
        alike = self._calls if index is None else self._by_index.setdefault(_key(index), _Alike())
        if wire_id:
            found = alike.find(wire_id) or (alike.first_without_id() if index is not None else None)
        else:
            last = alike.calls[-1] if alike.calls else None
            found = last if last is not None and not (index is None and _name_in(piece) and last.name) else None
            if found is not None and not alike.are_whole_but_last():
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
        call = _Call(index)
        for alike in (self._calls, self._by_index.setdefault(_key(index), _Alike())):
            alike.calls.append(call)
        return call

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
    message, finish = choice.get("message") or {}, choice.get("finish_reason") or ""
    if choice.get("error"):
        raise service_error(choice, to)
    if not message and not finish:
        raise StreamBroken(say("providers.no_finish_reason"), provider=to.deployment.name)
    _read_content(answer, message, to)
    refusal = message.get("refusal") or ""
    if refusal:
        answer.add_text(refusal)
    for annotation in message.get("annotations") or ():
        _cite(answer, annotation, to)
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else jsontext.dumps(arguments or {})
        answer.add_call(call.get("id") or "", function.get("name") or "", text)
    _keep_details(answer, message.get("reasoning_details") or [], to)
    native = choice.get("native_finish_reason") or ""
    reason = _finish_reason(finish, native, refusal, to)
    return answer.finish(reason, native if reason is FinishReason.MALFORMED_TOOL_CALL else finish, refusal).response


def _read_content(answer: AnswerBuilder, message: dict[str, Any], to: Destination) -> None:
    tags = _tags_for(to)
    if thinking := _thinking(message, message.get("reasoning_details") or []):
        answer.add_thought(thinking)
        tags.leave_text_alone()
    for piece in (*_parted(message.get("content"), tags), *tags.close()):
        _add(answer, piece)


def answer_from_error(status: int, body: bytes) -> Response | None:
    """The answer that an error status stands for: Groq refuses its own model's unreadable call with 400."""
    if status != 400:
        return None
    try:
        detail = failed_call(jsontext.decode(body))
    except jsontext.NotJSON:
        return None
    return Response(Message("assistant", ()), FinishReason.MALFORMED_TOOL_CALL, _FAILED_CALL[0], detail=detail) if detail else None


def failed_call(event: Any) -> str:
    """What is wrong with the model's call, if that is all an error tells; else empty."""
    error = event.get("error") if isinstance(event, dict) else None
    if not isinstance(error, dict) or error.get("code") not in _FAILED_CALL:
        return ""
    said = str(error.get("message") or error["code"])
    written = str(error.get("failed_generation") or "").strip()
    return f"{said} It was: {written[:_SHOWN_CHARS]}" if written else said


def _finish_reason(finish: str, native: str, refusal: str, to: Destination) -> FinishReason:
    if refusal:
        return FinishReason.REFUSAL
    if not finish:
        return FinishReason.STOP  # the answer is whole, whether or not the service says why it ended
    if finish == "error":
        if native in _NATIVE_FAILED_CALL:
            return FinishReason.MALFORMED_TOOL_CALL
        raise service_error({}, to)
    return FINISH.get(finish, FinishReason.OTHER)


def read_usage(usage: dict[str, Any]) -> Usage:
    details, written = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    prompt, output = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    read = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens") or 0
    write = details.get("cache_write_tokens") or details.get("cache_creation_input_tokens") or 0
    thought = written.get("reasoning_tokens") or 0
    total = usage.get("total_tokens") or 0
    outside = total - prompt - output
    if outside > 0:  # what the total has beyond the two: input of another kind, else thinking (xAI, Gemini)
        if outside != thought and outside in (details.get("audio_tokens"), read + write):
            prompt += outside
        else:
            output += outside
            thought = thought or outside
    if total:  # the prompt is whole: some services count more cached tokens than it has, or the same ones as read and written
        read = min(read, prompt)
        write = min(write, prompt - read)
    return Usage.from_total(prompt, cache_read=read, cache_write=write, output=output, thought=thought)


def _is_plain(choice: dict[str, Any], delta: dict[str, Any]) -> bool:
    """Whether it says a piece of text and nothing else, as nearly every chunk does."""
    is_text = delta.keys() <= _PLAIN_DELTA and isinstance(delta.get("content"), str)
    return is_text and choice.keys() <= _PLAIN_CHOICE and not choice.get("finish_reason")


def _parted(content: Any, tags: ThinkTags) -> list[Piece]:
    """Content as thinking and text, with the thinking between tags taken out of the text."""
    pieces: list[Piece] = []
    for piece in content_pieces(content):
        if piece[0] == "thought":
            tags.leave_text_alone()
            pieces.append(piece)
        else:
            pieces += tags.feed(piece[1])
    return pieces


def _add(answer: AnswerBuilder, piece: Piece) -> list[StreamEvent]:
    kind, text = piece
    return answer.add_thought(text) if kind == "thought" else answer.add_text(text)


def content_pieces(content: Any) -> list[Piece]:
    """Content as text, or in blocks (Mistral): text, and thinking that itself consists of blocks."""
    if isinstance(content, str):
        return [("text", content)] if content else []
    pieces: list[Piece] = []
    for block in content or ():
        if block.get("type") == "thinking":
            inner = block.get("thinking")
            text = inner if isinstance(inner, str) else "".join(item.get("text") or "" for item in inner or ())
            pieces.append(("thought", text))
        elif block.get("text"):
            pieces.append(("text", block["text"]))
    return [piece for piece in pieces if piece[1]]


def _thinking(message: dict[str, Any], details: list[Any]) -> str:
    """The thinking in a field of its own: as text, else as far as `reasoning_details` can be read."""
    texts = (message.get(field) for field in _REASONING)
    return next((text for text in texts if isinstance(text, str) and text), "") or _details_text(details)


def _merge_details(details: list[dict[str, Any]], fragments: list[Any]) -> None:
    """Add the fragments of a delta to the `reasoning_details` so far, so that they become what the unstreamed answer would have."""
    for fragment in fragments:
        if not isinstance(fragment, dict):
            continue
        entry = _entry_for(details, fragment)
        if entry is None:
            details.append(dict(fragment))
            continue
        for field, value in fragment.items():
            if field in _DETAIL_TEXTS and isinstance(value, str):
                entry[field] = (entry.get(field) or "") + value
            elif value or field not in entry:
                entry[field] = value


def _details_text(details: list[Any]) -> str:
    """The thinking that can be read, for services that send it nowhere else."""
    texts = [str(each.get(field) or "") for each in details if isinstance(each, dict) for field in _DETAIL_TEXTS]
    return "".join(texts)


def _entry_for(details: list[dict[str, Any]], fragment: dict[str, Any]) -> dict[str, Any] | None:
    """The entry a fragment continues: of its type, index and id, and not signed yet. Encrypted entries come whole."""
    if fragment.get("type") == "reasoning.encrypted":
        return None
    for entry in reversed(details):
        if entry.get("type") != fragment.get("type") or entry.get("index") != fragment.get("index"):
            continue
        other = entry.get("id") and fragment.get("id") and entry["id"] != fragment["id"]
        return None if other or entry.get("signature") else entry
    return None


def _keep_details(answer: AnswerBuilder, details: list[Any], to: Destination) -> None:
    """Keep `reasoning_details` whole, signatures and encrypted data included, to send them back unchanged."""
    if details:
        answer.attach_to_thinking(Opaque(to.deployment.name, jsontext.dumps(details), to.model))


def _tags_for(to: Destination) -> ThinkTags:
    tags = ThinkTags(opened=to.profile.opens_thinking)
    if to.profile.tools == "text":
        tags.leave_text_alone()  # whoever reads the calls out of the text reads the thinking too
    return tags


def _cite(answer: AnswerBuilder, annotation: dict[str, Any], to: Destination) -> list[StreamEvent]:
    found = annotation.get("url_citation") or {}
    opaque = Opaque(to.deployment.name, jsontext.dumps(annotation), to.model)
    start, end = found.get("start_index"), found.get("end_index")
    cited = answer.last_text[start:end] if isinstance(start, int) and isinstance(end, int) and 0 <= start < end else ""
    return answer.add_citation(Citation(found.get("url") or "", found.get("title") or "", cited, opaque))
