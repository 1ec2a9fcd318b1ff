"""Citations of any service: Citation parts → text with markers, and the list of sources.

Gemini cites for the whole answer, in byte offsets (groundingMetadata, citationMetadata); OpenAI per span, in characters; Anthropic for
the text block before the citation.
All are converted to the shapes that `cite` takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.tools.web.citations import CitedText, Support, cite, read_supports, source_of
from dragoman.values.messages import Citation, Message, Source, Text


def cite_message(message: Message) -> CitedText:
    """The text of a message with citation markers, and its sources. The message itself is not changed."""
    reading = _read(message)
    cited = cite(message.text, reading.supports, reading.chunks)
    return msgspec.structs.replace(cited, sources=tuple(map(reading.with_passages, range(len(cited.sources)), cited.sources)))


def supports_of(message: Message) -> tuple[Support, ...]:
    """The passages of a message that rest on sources, as data."""
    reading = _read(message)
    return read_supports(message.text, reading.supports, reading.chunks)


def _read(message: Message) -> _CitationReader:
    reading = _CitationReader()
    for part in message.parts:
        if isinstance(part, Text):
            reading.read(part.text)
        elif isinstance(part, Citation):
            reading.cite(part)
    return reading


def sources_of(citations: Iterable[Citation]) -> tuple[Source, ...]:
    """The cited pages, each once: for displaying an answer while it streams."""
    return cite_message(Message("assistant", tuple(citations))).sources


class _CitationReader:
    """Reads an answer's parts in order."""

    def __init__(self) -> None:
        self.supports: list[Any] = []
        self.chunks: list[Any] = []
        self._numbers: dict[str, int] = {}
        self._grounded: set[int] = set()
        """The sources that Gemini's grounding metadata has already placed in the text."""
        self._passages: dict[int, list[str]] = {}
        self._text = ""
        """The text part read last, with its start and end as byte offsets of the whole text."""
        self._start = self._end = 0

    def read(self, text: str) -> None:
        self._text = text
        self._start = self._end
        self._end += _size(text)

    def cite(self, citation: Citation) -> None:
        metadata = (jsontext.decode_object(citation.opaque.json) if citation.opaque is not None else None) or {}
        if "groundingChunks" in metadata or "groundingSupports" in metadata:
            self._add_grounding(metadata)
        if not (citation.uri or citation.title):
            return
        number = self._source_number(citation.uri, citation.title)
        if number in self._grounded and "endIndex" not in metadata:
            return
        if citation.cited_text:
            self._passages.setdefault(number, []).append(citation.cited_text)
        if (segment := self._segment(citation, metadata)) is not None:
            self.supports.append({"segment": segment, "groundingChunkIndices": [number]})

    def with_passages(self, number: int, source: Source) -> Source:
        """A source with the passages it stands for, each once."""
        return msgspec.structs.replace(source, cited_text=tuple(dict.fromkeys(self._passages.get(number, ()))))

    def _add_grounding(self, metadata: dict[str, Any]) -> None:
        first = len(self.chunks)
        for chunk in _list(metadata.get("groundingChunks")):
            page = source_of(chunk)
            self._numbers.setdefault(page.uri or page.title, len(self.chunks))
            self._grounded.add(len(self.chunks))
            self.chunks.append(chunk)
        for support in _list(metadata.get("groundingSupports")):
            if isinstance(support, dict):
                self._add_support(support, first)

    def _add_support(self, support: dict[str, Any], first: int) -> None:
        """One passage and its sources, which are counted from `first`."""
        indices = _list(support.get("groundingChunkIndices"))
        numbers = [first + index for index in indices if isinstance(index, int) and not isinstance(index, bool) and index >= 0]
        self.supports.append(support | {"groundingChunkIndices": numbers})
        segment = support.get("segment")
        if isinstance(segment, dict) and isinstance(text := segment.get("text"), str) and text:
            for number in numbers:
                self._passages.setdefault(number, []).append(text)

    def _source_number(self, uri: str, title: str) -> int:
        number = self._numbers.setdefault(uri or title, len(self.chunks))
        if number == len(self.chunks):
            self.chunks.append({"web": {"uri": uri, "title": title}})
        return number

    def _segment(self, citation: Citation, metadata: dict[str, Any]) -> dict[str, Any] | None:
        """The span of the whole text that a citation refers to; None if it only names a source."""
        if isinstance(last := metadata.get("endIndex"), int):  # Gemini's citationMetadata: bytes of the whole answer
            return {"startIndex": metadata.get("startIndex") or 0, "endIndex": last, "text": citation.cited_text}
        span = metadata.get("url_citation") if isinstance(metadata.get("url_citation"), dict) else metadata
        start, end = (span or {}).get("start_index"), (span or {}).get("end_index")
        if isinstance(start, int) and isinstance(end, int) and 0 <= start < end:
            first, last = (self._start + _size(self._text[:index]) for index in (start, end))
            return {"startIndex": first, "endIndex": last, "text": citation.cited_text}
        if not self._text.strip() or not (citation.cited_text or str(metadata.get("type", "")).endswith("_location")):
            return None
        # Anthropic quotes the source, not the answer: the citation refers to the whole block before it.
        quoted = citation.cited_text if citation.cited_text in self._text and not metadata else ""
        return {"startIndex": self._start, "endIndex": self._start + _size(self._text.rstrip()), "text": quoted}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
