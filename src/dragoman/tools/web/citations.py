"""Citations: markers `[1][2]` after the text that a source supports, and the list of sources.

Takes the Gemini API's grounding data (`groundingSupports`, `groundingChunks`) in its own JSON shapes; `grounding.py` converts other
services' citations to the same. No I/O, and malformed data never raises.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.base.graphemes import next_boundary
from dragoman.values.messages import Source

_KEY_BYTES = (32, 16, 8, 4, 2, 1)
"""A segment is searched by a prefix: the longest of these sizes that it has."""
_NEAREST = 64
"""If a prefix is too frequent, only so many occurrences on either side of the offset are compared."""
_LOOKS_PER_BYTE = 16
"""Total budget of comparisons, per byte of text, before that limit applies."""


class Support(msgspec.Struct, frozen=True, omit_defaults=True):
    """A passage of an answer and the sources it rests on: Gemini's groundingSupports, and what other services say of the kind."""

    text: str
    start: int
    """Where it stands in the answer without markers: `answer[start:end] == text`."""
    end: int
    sources: tuple[int, ...]
    """The numbers of its sources, from 1."""
    confidence: tuple[float, ...] = ()
    """How sure the service is of each of them, from 0 to 1; empty where it does not tell."""


class CitedText(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer with its markers, and the sources that they stand for."""

    text: str
    """With its markers, without the list of sources."""
    sources: tuple[Source, ...] = ()

    def with_sources(self) -> str:
        """The text followed by `Sources:` and a line `[n] Title (uri)` for each."""
        return "\n\n".join(filter(None, (self.text, source_list(self.sources))))


def source_list(sources: Sequence[Source]) -> str:
    """Empty if there are none."""
    lines = [f"[{number}] {source}" for number, source in enumerate(sources, 1)]
    return "\n".join(["Sources:", *lines]) if lines else ""


def cite(text: str | Sequence[str], supports: Iterable[Any] | None, chunks: Iterable[Any] | None) -> CitedText:
    """The text with a marker after each supported segment.

    `text` may be the texts of an answer's parts: offsets count within the part that `partIndex` names. Offsets are UTF-8 bytes. If a
    segment's own text does not end there, it is searched, and the occurrence nearest to the offset is used. Markers never split a
    grapheme. Supports that name a missing source, part or offset are skipped. Linear in the length of the text.
    """
    parts = [text] if isinstance(text, str) else list(text)
    sources = tuple(source_of(chunk) for chunk in chunks or ())
    data, placed = _place(parts, supports, len(sources))
    markers: dict[int, set[int]] = {}
    for segment, end in placed:
        markers.setdefault(end, set()).update(segment.numbers)
    return CitedText(_insert_markers("".join(parts), data, markers), sources)


def read_supports(text: str | Sequence[str], supports: Iterable[Any] | None, chunks: Iterable[Any] | None) -> tuple[Support, ...]:
    """The passages that `cite` marks, in the order of the text. The arguments are those of `cite`."""
    parts = [text] if isinstance(text, str) else list(text)
    data, placed = _place(parts, supports, len(list(chunks or ())))
    spans = [(max(end - len(segment.text), 0) if segment.text else max(segment.start, 0), end, segment) for segment, end in placed]
    at = _char_places(data, {offset for start, end, _ in spans for offset in (start, end)})
    whole = "".join(parts)
    found = [Support(whole[at[start] : at[end]], at[start], at[end], each.numbers, each.scores) for start, end, each in spans]
    return tuple(sorted(found, key=lambda support: (support.start, support.end, support.sources)))


def _place(parts: Sequence[str], supports: Iterable[Any] | None, sources: int) -> tuple[bytes, list[tuple[_Segment, int]]]:
    """The whole text in UTF-8, and each usable segment with the offset of its end in it."""
    by_part: dict[int, list[_Segment]] = {}
    for support in supports or ():
        if (segment := _segment(support, sources)) is not None:
            by_part.setdefault(segment.part, []).append(segment)
    placed: list[tuple[_Segment, int]] = []
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    before = 0
    for index, data in enumerate(encoded):
        for segment, end in _locate(data, by_part.get(index, [])):
            placed.append((msgspec.structs.replace(segment, start=before + segment.start), before + end))
        before += len(data)
    return b"".join(encoded), placed


def _char_places(data: bytes, offsets: Iterable[int]) -> dict[int, int]:
    """The place in characters of each offset in bytes; one inside a character is moved behind it. One pass over the data."""
    places: dict[int, int] = {}
    at_byte = at_char = 0
    for offset in sorted(offsets):
        end = max(_char_end(data, offset), at_byte)
        at_char += len(data[at_byte:end].decode("utf-8", "surrogatepass"))
        at_byte = end
        places[offset] = at_char
    return places


# --- reading the service's data --------------------------------------------------------------------------------------------


class _Segment(msgspec.Struct, frozen=True):
    numbers: tuple[int, ...]
    part: int
    start: int
    end: int | None
    text: bytes
    scores: tuple[float, ...] = ()

    @property
    def anchor(self) -> int:
        """Where it ends according to its offsets."""
        return self.end if self.end is not None else self.start + len(self.text)


def _segment(support: Any, sources: int) -> _Segment | None:
    """The segment of a support; None if it is unusable."""
    if not isinstance(support, Mapping):
        return None
    segment, indices = support.get("segment"), support.get("groundingChunkIndices")
    if not isinstance(segment, Mapping) or not isinstance(indices, Sequence):
        return None
    known = {index: place for place, each in enumerate(indices) if (index := _as_int(each)) is not None and 0 <= index < sources}
    text, end, part = segment.get("text"), _as_int(segment.get("endIndex")), _as_int(segment.get("partIndex") or 0)
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else b""
    if not known or part is None or (end is None and not data):
        return None
    scores = _scores(support.get("confidenceScores"), known.values())
    return _Segment(tuple(index + 1 for index in known), part, _as_int(segment.get("startIndex")) or 0, end, data, scores)


def _scores(told: Any, places: Collection[int]) -> tuple[float, ...]:
    """The scores at these places; none unless there is a number at each."""
    scores = [told[place] for place in places if place < len(told)] if isinstance(told, list) else []
    is_whole = len(scores) == len(places) and all(isinstance(each, int | float) and not isinstance(each, bool) for each in scores)
    return tuple(map(float, scores)) if is_whole else ()


def source_of(chunk: Any) -> Source:
    """The page that a grounding chunk names."""
    if not isinstance(chunk, Mapping):
        return Source()
    kinds = (chunk.get(kind) for kind in ("web", "retrievedContext", "maps"))
    page: Mapping[str, Any] = next((page for page in kinds if isinstance(page, Mapping)), {})
    title, uri = page.get("title"), page.get("uri")
    return Source(title if isinstance(title, str) else "", uri if isinstance(uri, str) else "")


def _as_int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


# --- where a segment ends --------------------------------------------------------------------------------------------------


def _locate(data: bytes, segments: Sequence[_Segment]) -> list[tuple[_Segment, int]]:
    """Each segment with the offset of its end in its part; segments that cannot be located are left out."""
    placed: list[tuple[_Segment, int]] = []
    misplaced: list[_Segment] = []
    for segment in segments:
        end = segment.anchor
        if segment.text and not (end >= len(segment.text) and data.startswith(segment.text, end - len(segment.text))):
            misplaced.append(segment)
        elif segment.text or max(segment.start, 0) <= end <= len(data):
            placed.append((segment, end))
    places = _TextIndex(data, {segment.text for segment in misplaced})
    for segment in misplaced:
        found = places.nearest(segment.text, segment.anchor - len(segment.text))
        if found is not None:
            placed.append((segment, found + len(segment.text)))
        elif segment.end is not None and max(segment.start, 0) <= segment.end <= len(data):
            placed.append((segment, segment.end))  # the text does not occur: trust the offset
    return placed


class _TextIndex:
    """Index of where texts occur in the data, built in one pass by their prefixes."""

    def __init__(self, data: bytes, texts: set[bytes]) -> None:
        self._data = data
        self._looks = _LOOKS_PER_BYTE * len(data)
        self._found: dict[bytes, list[int]] = {}
        wanted: dict[int, dict[bytes, list[int]]] = {}
        self._begins: dict[bytes, list[int]] = {}
        for text in texts:
            size = next(size for size in _KEY_BYTES if size <= len(text))
            self._begins[text] = wanted.setdefault(size, {}).setdefault(text[:size], [])
        for size, begins in wanted.items():
            for at in range(len(data) - size + 1):
                if (places := begins.get(data[at : at + size])) is not None:
                    places.append(at)

    def nearest(self, text: bytes, start: int) -> int | None:
        """The occurrence nearest to `start`, the earlier of two; None if there is none."""
        places = self._found.get(text)
        if places is None:
            begins = self._begins[text]
            cost = len(begins) * (1 + len(text) // 64)
            if cost > self._looks:
                middle = bisect_left(begins, start)
                places = self._occurrences(text, begins[max(middle - _NEAREST, 0) : middle + _NEAREST])
            else:
                self._looks -= cost
                places = self._found[text] = self._occurrences(text, begins)
        behind = bisect_left(places, start)
        return min(places[max(behind - 1, 0) : behind + 1], key=lambda place: abs(place - start), default=None)

    def _occurrences(self, text: bytes, places: Sequence[int]) -> list[int]:
        return [place for place in places if self._data.startswith(text, place)]


# --- markers ---------------------------------------------------------------------------------------------------------------


def _insert_markers(text: str, data: bytes, markers: Mapping[int, set[int]]) -> str:
    """The text with markers at byte offsets, each moved after the character it would split."""
    places: dict[int, set[int]] = {}
    at_byte = at_char = place = 0
    for offset in sorted(markers):
        end = max(_char_end(data, offset), at_byte)
        at_char += len(data[at_byte:end].decode("utf-8", "surrogatepass"))
        at_byte = end
        place = max(next_boundary(text, at_char, place), place) if at_char > place else place
        places.setdefault(place, set()).update(markers[offset])
    pieces: list[str] = []
    done = 0
    for place, numbers in places.items():
        pieces += [text[done:place], *(f"[{number}]" for number in sorted(numbers))]
        done = place
    return "".join([*pieces, text[done:]])


def _char_end(data: bytes, offset: int) -> int:
    while offset < len(data) and data[offset] & 0xC0 == 0x80:
        offset += 1
    return offset
