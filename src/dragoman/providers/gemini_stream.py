"""Gemini, responses: chunks and whole answers, which have one shape → our events and Response."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from dragoman.base import jsontext
from dragoman.providers.answer import AnswerBuilder, service_error
from dragoman.providers.wire import Destination, Taken
from dragoman.values.errors import StreamBroken
from dragoman.values.events import ResponseFinished, StreamEvent
from dragoman.values.messages import Citation, FinishReason, Opaque, Response, SafetyRating
from dragoman.values.parts import parse_thought
from dragoman.values.usage import Usage
from dragoman.words import say

FINISH = {
    "FINISH_REASON_UNSPECIFIED": FinishReason.OTHER,
    "STOP": FinishReason.STOP,
    "MAX_TOKENS": FinishReason.LENGTH,
    "SAFETY": FinishReason.SAFETY,
    "BLOCKLIST": FinishReason.SAFETY,
    "PROHIBITED_CONTENT": FinishReason.SAFETY,
    "SPII": FinishReason.SAFETY,
    "MODEL_ARMOR": FinishReason.SAFETY,
    "IMAGE_SAFETY": FinishReason.SAFETY,
    "IMAGE_PROHIBITED_CONTENT": FinishReason.SAFETY,
    "RECITATION": FinishReason.RECITATION,
    "IMAGE_RECITATION": FinishReason.RECITATION,
    "MALFORMED_FUNCTION_CALL": FinishReason.MALFORMED_TOOL_CALL,
    "UNEXPECTED_TOOL_CALL": FinishReason.MALFORMED_TOOL_CALL,
    "MALFORMED_RESPONSE": FinishReason.MALFORMED_TOOL_CALL,
    "CONTINUATION": FinishReason.LENGTH,  # unless the token to go on comes with it: see `Decoder.close`
    "TOO_MANY_TOOL_CALLS": FinishReason.OTHER,
    "LANGUAGE": FinishReason.OTHER,
    "NO_IMAGE": FinishReason.OTHER,
    "IMAGE_OTHER": FinishReason.OTHER,
    "OTHER": FinishReason.OTHER,
}
CONTINUATION = '{"continuationToken":'
"""How the payload begins that keeps the token of a paused answer."""

_KNOWN_FIELDS = frozenset({"candidates", "promptFeedback", "usageMetadata"})


class Decoder:
    def __init__(self, to: Destination, taken: Taken) -> None:
        self._to = to
        self._answer = AnswerBuilder(taken)
        self._grounding: dict[str, Any] = {}
        self._attributions: list[dict[str, Any]] = []
        """The sources of `citationMetadata`, each once."""
        self._texts: list[str] = []
        self._part_starts: list[int] = []
        """Byte offset of each part in the answer's text: grounding offsets count from the start of a part."""
        self._part_kind = ""
        self._text_bytes = 0
        self._usage: dict[str, Any] = {}
        self._finish = ""
        self._detail = ""
        self._blocked = False
        self._ratings: dict[str, SafetyRating] = {}
        """By category."""
        self._continuation = ""
        self.ended = False
        self.unknown_events = 0

    @property
    def complete(self) -> bool:
        return bool(self._finish)

    def feed(self, name: str, data: bytes) -> list[StreamEvent] | None:
        if data.strip() == b"[DONE]":
            return None
        chunk = jsontext.decode(data)
        if isinstance(chunk, list) or chunk.get("error"):
            raise service_error(chunk, self._to)
        if not chunk.keys() & _KNOWN_FIELDS:
            self.unknown_events += 1
            return None
        return self.read(chunk)

    def read(self, chunk: dict[str, Any]) -> list[StreamEvent]:
        answer = self._answer
        events = [] if answer.started else answer.start(chunk.get("responseId") or "", chunk.get("modelVersion") or "")
        answer.response_id = answer.response_id or chunk.get("responseId") or ""
        answer.model_version = answer.model_version or chunk.get("modelVersion") or ""
        for candidate in (chunk.get("candidates") or ())[:1]:
            for number, part in enumerate((candidate.get("content") or {}).get("parts") or ()):
                self._count(part, goes_on=number == 0)
                events += self._part(part)
            self._grounding.update(candidate.get("groundingMetadata") or {})
            cited = candidate.get("citationMetadata") or {}
            sources = _dicts(cited.get("citationSources") or cited.get("citations"))  # the Gemini API's name and Vertex AI's
            self._attributions += [source for source in sources if source not in self._attributions]
            self._continuation = candidate.get("continuationToken") or self._continuation
            self._finish = candidate.get("finishReason") or self._finish
            self._detail = candidate.get("finishMessage") or self._detail
            self._rate(candidate.get("safetyRatings"))
        if reason := (chunk.get("promptFeedback") or {}).get("blockReason"):
            self._finish, self._blocked = reason, True
            self._detail = chunk["promptFeedback"].get("blockReasonMessage") or f"the prompt was blocked: {reason}"
            self._rate(chunk["promptFeedback"].get("safetyRatings"))
        usage = chunk.get("usageMetadata")
        if usage and usage != self._usage:  # it comes with every chunk
            self._usage = usage
            events += answer.set_usage(read_usage(usage))
        return events

    def close(self) -> list[StreamEvent]:
        if not self._finish:
            raise StreamBroken(say("providers.broke_off"), provider=self._to.deployment.name)
        events: list[StreamEvent] = []
        if self._grounding:
            events += self._cite(_count_from_start(self._grounding, self._part_starts))
        events += self._attribute()
        if self._finish == "CONTINUATION" and self._continuation:
            return [*events, *self._pause()]
        reason = FinishReason.SAFETY if self._blocked else FINISH.get(self._finish, FinishReason.OTHER)
        self._answer.ratings = tuple(self._ratings.values())
        detail = "; ".join(each for each in (self._detail, self._why_blocked()) if each) if reason is FinishReason.SAFETY else self._detail
        return [*events, *self._answer.close(reason, self._finish, detail)]

    def _rate(self, ratings: object) -> None:
        """The last rating of each category counts: a stream repeats them as the answer grows."""
        for each in _dicts(ratings):
            words = (jsontext.valid_unicode(str(each.get(name) or "")) for name in ("category", "probability", "severity"))
            rating = SafetyRating(*words, blocked=each.get("blocked") is True)
            if rating.category:
                self._ratings[rating.category] = rating

    def _why_blocked(self) -> str:
        """The categories that are to blame; all that are not negligible, if the service does not say which blocked it."""
        rated = [rating for rating in self._ratings.values() if rating.blocked]
        rated = rated or [rating for rating in self._ratings.values() if rating.probability not in ("", "NEGLIGIBLE")]
        return ", ".join(f"{rating.category}: {rating.probability or 'blocked'}" for rating in rated)

    def _pause(self) -> list[StreamEvent]:
        """The end of an answer that goes on when the same request is sent again with the token."""
        self._answer.add_private(self._opaque(CONTINUATION + jsontext.dumps(self._continuation) + "}"))
        *events, finished = self._answer.close(FinishReason.OTHER, self._finish, self._detail)
        assert isinstance(finished, ResponseFinished)
        response = finished.response
        if response.message.calls:  # they are answered first, and the model goes on by itself
            return [*events, _finished(response, FinishReason.TOOL_CALLS, "")]
        return [*events, _finished(response, FinishReason.OTHER, "paused")]

    def _count(self, part: dict[str, Any], *, goes_on: bool) -> None:
        """Note where a part starts. A stream sends parts in pieces: the first of a chunk may continue the last of the previous chunk."""
        text = part.get("text") or ""
        kind = "other" if "text" not in part else "thought" if part.get("thought") else "text"
        if kind == "other" or not goes_on or kind != self._part_kind:
            self._part_starts.append(self._text_bytes)
        self._part_kind = kind
        if kind == "text":
            self._texts.append(text)
            self._text_bytes += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))

    def _cite(self, grounding: dict[str, Any]) -> list[StreamEvent]:
        """One citation per source, with the passages it supports; the first carries the service's whole grounding metadata."""
        pages = [_page(chunk) for chunk in _dicts(grounding.get("groundingChunks"))] or [("", "")]
        passages = _passages(grounding)
        events: list[StreamEvent] = []
        for number, (uri, title) in enumerate(pages):
            opaque = None if number else self._opaque(jsontext.dumps(grounding))
            if opaque is not None or uri or title:
                events += self._answer.add_citation(Citation(uri, title, "\n".join(passages.get(number, ())), opaque))
        return events

    def _attribute(self) -> list[StreamEvent]:
        """One citation per source that the answer repeats, with the words it repeats: their offsets count the bytes of the whole text."""
        if not self._attributions:
            return []
        said = "".join(self._texts).encode("utf-8", "surrogatepass")
        events: list[StreamEvent] = []
        for source in self._attributions:
            start, end = source.get("startIndex") or 0, source.get("endIndex") or 0
            words = said[start:end] if isinstance(start, int) and isinstance(end, int) and 0 <= start < end else b""
            uri, title = (jsontext.valid_unicode(str(source.get(name) or "")) for name in ("uri", "title"))
            cited = Citation(uri, title, words.decode("utf-8", "ignore"), self._opaque(jsontext.dumps(source)))
            events += self._answer.add_citation(cited)
        return events

    def _part(self, part: dict[str, Any]) -> list[StreamEvent]:
        signature = part.get("thoughtSignature")
        opaque = self._opaque(jsontext.dumps(signature)) if signature else None
        if call := part.get("functionCall"):
            arguments = call.get("args")
            return self._answer.add_call(
                call.get("id") or "", call.get("name") or "", jsontext.dumps({} if arguments is None else arguments), opaque
            )
        if (text := part.get("text")) is not None:
            return self._text(part, text, opaque)
        if part.keys() - {"thought"}:
            self._answer.add_private(self._opaque(jsontext.dumps(part)))  # code it ran by itself, and its output
        return []

    def _text(self, part: dict[str, Any], text: str, opaque: Opaque | None) -> list[StreamEvent]:
        if opaque is not None and (part.get("thought") or not text):
            self._answer.seal()  # a signature without text: kept in the part it came in
            events = self._answer.add_thought(text, *parse_thought(text)) if text else []
            self._answer.seal(self._opaque(jsontext.dumps(part)))
            return events
        if part.get("thought"):
            return self._answer.add_thought(text, *parse_thought(text)) if text else []
        if not text:
            return []
        if opaque is not None:
            self._answer.seal()
        events = self._answer.add_text(text)
        if opaque is not None:
            self._answer.seal(opaque)
        return events

    def _opaque(self, json: str) -> Opaque:
        return Opaque(self._to.deployment.name, json, self._to.model)


def _finished(response: Response, reason: FinishReason, fault: Literal["", "paused"]) -> ResponseFinished:
    return ResponseFinished(reason, msgspec.structs.replace(response, finish=reason, fault=fault))


def _passages(grounding: dict[str, Any]) -> dict[int, list[str]]:
    """The texts that each source supports, by the source's number."""
    found: dict[int, list[str]] = {}
    for support in _dicts(grounding.get("groundingSupports")):
        segment = support.get("segment")
        text = segment.get("text") if isinstance(segment, dict) else None
        numbers = support.get("groundingChunkIndices")
        if not isinstance(text, str) or not text or not isinstance(numbers, list):
            continue
        for number in numbers:
            if isinstance(number, int) and text not in (texts := found.setdefault(number, [])):
                texts.append(jsontext.valid_unicode(text))
    return found


def _page(chunk: dict[str, Any]) -> tuple[str, str]:
    pages = (chunk.get(kind) for kind in ("web", "retrievedContext", "maps"))
    page: dict[str, Any] = next((page for page in pages if isinstance(page, dict)), {})
    return jsontext.valid_unicode(str(page.get("uri") or "")), jsontext.valid_unicode(str(page.get("title") or ""))


def _count_from_start(grounding: dict[str, Any], starts: list[int]) -> dict[str, Any]:
    """The grounding with all offsets counted from the start of the answer instead of per part, because we join the parts."""
    supports = _dicts(grounding.get("groundingSupports"))
    if not any((support.get("segment") or {}).get("partIndex") for support in supports):
        return grounding
    return grounding | {"groundingSupports": [_move_support(support, starts) for support in supports]}


def _move_support(support: dict[str, Any], starts: list[int]) -> dict[str, Any]:
    segment: dict[str, Any] = dict(support.get("segment") or {})
    part = segment.get("partIndex") or 0
    if not isinstance(part, int) or not 0 <= part < len(starts):
        return support  # it is skipped when the markers are placed
    segment.pop("partIndex", None)
    offsets = {name: starts[part] + (segment.get(name) or 0) for name in ("startIndex", "endIndex")}
    return support | {"segment": segment | offsets}


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def read_answer(data: Any, to: Destination, taken: Taken) -> Response:
    decoder = Decoder(to, taken)
    decoder.read(data)
    finished = decoder.close()[-1]
    return finished.response  # type: ignore[union-attr]


def read_usage(usage: dict[str, Any]) -> Usage:
    thought = usage.get("thoughtsTokenCount") or 0
    return Usage.from_total(
        (usage.get("promptTokenCount") or 0) + (usage.get("toolUsePromptTokenCount") or 0),
        cache_read=usage.get("cachedContentTokenCount") or 0,
        output=(usage.get("candidatesTokenCount") or 0) + thought,
        thought=thought,
    )
