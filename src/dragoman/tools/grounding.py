"""An answer of any service with what it rests on: Citation parts → text with markers, and the sources.

Gemini tells of a whole answer at once, in bytes; OpenAI of one stretch at a time, in characters; Anthropic of the text block that a
citation follows. All of it comes into the shapes that `cite` takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.base import jsontext
from dragoman.tools.citations import Cited, Source, cite, source_of
from dragoman.values.messages import Citation, Message, Text


def cited_message(message: Message) -> Cited:
    """What `message.text` says, with its markers, and the sources. A pure view: the message itself stays as it is."""
    reading = _Reading()
    for part in message.parts:
        if isinstance(part, Text):
            reading.read(part.text)
        elif isinstance(part, Citation):
            reading.cite(part)
    return cite(message.text, reading.supports, reading.chunks)


def sources_of(citations: Iterable[Citation]) -> tuple[Source, ...]:
    """The pages named, each once: for what shows an answer while it comes."""
    return cited_message(Message("assistant", tuple(citations))).sources


class _Reading:
    """Goes through an answer's parts in order."""

    def __init__(self) -> None:
        self.supports: list[Any] = []
        self.chunks: list[Any] = []
        self._numbers: dict[str, int] = {}
        self._text = ""
        """The text part that was read last, and where it begins and ends: bytes of the whole."""
        self._start = self._end = 0

    def read(self, text: str) -> None:
        self._text = text
        self._start = self._end
        self._end += _size(text)

    def cite(self, citation: Citation) -> None:
        told = jsontext.decode_object(citation.opaque.json) if citation.opaque is not None else None
        if told is not None and ("groundingChunks" in told or "groundingSupports" in told):
            self._ground(told)
        if not (citation.uri or citation.title):
            return
        number = self._number(citation.uri, citation.title)
        if (segment := self._segment(citation, told or {})) is not None:
            self.supports.append({"segment": segment, "groundingChunkIndices": [number]})

    def _ground(self, told: dict[str, Any]) -> None:
        first = len(self.chunks)
        for chunk in _list(told.get("groundingChunks")):
            page = source_of(chunk)
            self._numbers.setdefault(page.uri or page.title, len(self.chunks))
            self.chunks.append(chunk)
        for support in _list(told.get("groundingSupports")):
            if not first or not isinstance(support, dict):
                self.supports.append(support)
                continue
            indices = [first + index for index in _list(support.get("groundingChunkIndices")) if isinstance(index, int) and index >= 0]
            self.supports.append(support | {"groundingChunkIndices": indices})

    def _number(self, uri: str, title: str) -> int:
        number = self._numbers.setdefault(uri or title, len(self.chunks))
        if number == len(self.chunks):
            self.chunks.append({"web": {"uri": uri, "title": title}})
        return number

    def _segment(self, citation: Citation, told: dict[str, Any]) -> dict[str, Any] | None:
        """The stretch of the whole text that a citation is about; None where it names a source and no more."""
        span = told.get("url_citation") if isinstance(told.get("url_citation"), dict) else told
        start, end = (span or {}).get("start_index"), (span or {}).get("end_index")
        if isinstance(start, int) and isinstance(end, int) and 0 <= start < end:
            first, last = (self._start + _size(self._text[:index]) for index in (start, end))
            return {"startIndex": first, "endIndex": last, "text": citation.cited_text}
        if not self._text.strip() or not (citation.cited_text or str(told.get("type", "")).endswith("_location")):
            return None
        # Anthropic quotes the source, not the answer: all of the block before it is what the quote is for.
        quoted = citation.cited_text if citation.cited_text in self._text and not told else ""
        return {"startIndex": self._start, "endIndex": self._start + _size(self._text.rstrip()), "text": quoted}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
