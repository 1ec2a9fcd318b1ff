"""Citations: markers `[1][2]` behind what a source supports, at exactly the right place, and the list of sources.

Takes what the Gemini API says of an answer (`groundingSupports`, `groundingChunks`) in its own JSON shapes. `grounding.py` brings what
other services say into the same. Nothing here does I/O, and nothing a service may say raises.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.base.graphemes import next_boundary

_KEY_BYTES = (32, 16, 8, 4, 2, 1)
"""A segment is looked for by its beginning: the longest of these that it has."""
_NEAREST = 64
"""Of a beginning that stands everywhere, so many places on either side of the offset are looked at."""
_LOOKS_PER_BYTE = 16
"""How often, over all, the text may be gone over before it comes to that."""


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page that an answer rests on. Its number is its place in the list, from 1."""

    title: str = ""
    uri: str = ""

    def __str__(self) -> str:
        return f"{' '.join(self.title.split()) or 'Untitled'} ({''.join(self.uri.split()) or 'No URI'})"


class Cited(msgspec.Struct, frozen=True, omit_defaults=True):
    text: str
    """With its markers, without the list of sources."""
    sources: tuple[Source, ...] = ()

    def with_sources(self) -> str:
        """Text and list as a reader gets them: `Sources:`, and for each a line `[n] Title (uri)`."""
        return "\n\n".join(filter(None, (self.text, source_list(self.sources))))


def source_list(sources: Sequence[Source]) -> str:
    """Empty where there are none."""
    lines = [f"[{number}] {source}" for number, source in enumerate(sources, 1)]
    return "\n".join(["Sources:", *lines]) if lines else ""


def cite(text: str | Sequence[str], supports: Iterable[Any] | None, chunks: Iterable[Any] | None) -> Cited:
    """The text with a marker behind each supported segment.

    `text` may be the texts of an answer's parts: offsets are counted in the part that `partIndex` names. Offsets are UTF-8 bytes. Where
    a segment's own text does not end there, it is looked for, and the place nearest to the offset holds. Markers never part a character,
    nor what is seen as one. What names a source, a part or an offset that is not there is passed over. Linear in the length of the text.
    """
    parts = [text] if isinstance(text, str) else list(text)
    sources = tuple(source_of(chunk) for chunk in chunks or ())
    by_part: dict[int, list[_Segment]] = {}
    for support in supports or ():
        if (segment := _segment(support, len(sources))) is not None:
            by_part.setdefault(segment.part, []).append(segment)
    markers: dict[int, set[int]] = {}
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    start = 0
    for index, data in enumerate(encoded):
        for segment, end in _placed(data, by_part.get(index, [])):
            markers.setdefault(start + end, set()).update(segment.numbers)
        start += len(data)
    return Cited(_marked("".join(parts), b"".join(encoded), markers), sources)


# --- what the service says -------------------------------------------------------------------------------------------------


class _Segment(msgspec.Struct, frozen=True):
    numbers: tuple[int, ...]
    part: int
    start: int
    end: int | None
    text: bytes

    @property
    def anchor(self) -> int:
        """Where it ends, if the offsets are to be believed."""
        return self.end if self.end is not None else self.start + len(self.text)


def _segment(support: Any, sources: int) -> _Segment | None:
    """What a support says; None where it says nothing that can be used."""
    if not isinstance(support, Mapping):
        return None
    segment, indices = support.get("segment"), support.get("groundingChunkIndices")
    if not isinstance(segment, Mapping) or not isinstance(indices, Sequence):
        return None
    known = {index for each in indices if (index := _whole(each)) is not None and 0 <= index < sources}
    text, end, part = segment.get("text"), _whole(segment.get("endIndex")), _whole(segment.get("partIndex") or 0)
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else b""
    if not known or part is None or (end is None and not data):
        return None
    return _Segment(tuple(index + 1 for index in known), part, _whole(segment.get("startIndex")) or 0, end, data)


def source_of(chunk: Any) -> Source:
    """The page that a grounding chunk names."""
    if not isinstance(chunk, Mapping):
        return Source()
    kinds = (chunk.get(kind) for kind in ("web", "retrievedContext", "maps"))
    page: Mapping[str, Any] = next((page for page in kinds if isinstance(page, Mapping)), {})
    title, uri = page.get("title"), page.get("uri")
    return Source(title if isinstance(title, str) else "", uri if isinstance(uri, str) else "")


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


# --- where a segment ends --------------------------------------------------------------------------------------------------


def _placed(data: bytes, segments: Sequence[_Segment]) -> list[tuple[_Segment, int]]:
    """Each segment with the offset of its end in its part; those that have no place there are left out."""
    placed: list[tuple[_Segment, int]] = []
    astray: list[_Segment] = []
    for segment in segments:
        end = segment.anchor
        if segment.text and not (end >= len(segment.text) and data.startswith(segment.text, end - len(segment.text))):
            astray.append(segment)
        elif segment.text or max(segment.start, 0) <= end <= len(data):
            placed.append((segment, end))
    places = _Places(data, {segment.text for segment in astray})
    for segment in astray:
        found = places.nearest(segment.text, segment.anchor - len(segment.text))
        if found is not None:
            placed.append((segment, found + len(segment.text)))
        elif segment.end is not None and max(segment.start, 0) <= segment.end <= len(data):
            placed.append((segment, segment.end))  # the text is not there at all: the offset is all there is
    return placed


class _Places:
    """Where texts stand in the data: all of them found in one walk, by how they begin."""

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
        """Where it begins nearest to `start`, the earlier one of two; None where it is not there."""
        places = self._found.get(text)
        if places is None:
            begins = self._begins[text]
            cost = len(begins) * (1 + len(text) // 64)
            if cost > self._looks:
                middle = bisect_left(begins, start)
                places = self._standing(text, begins[max(middle - _NEAREST, 0) : middle + _NEAREST])
            else:
                self._looks -= cost
                places = self._found[text] = self._standing(text, begins)
        behind = bisect_left(places, start)
        return min(places[max(behind - 1, 0) : behind + 1], key=lambda place: abs(place - start), default=None)

    def _standing(self, text: bytes, places: Sequence[int]) -> list[int]:
        return [place for place in places if self._data.startswith(text, place)]


# --- markers ---------------------------------------------------------------------------------------------------------------


def _marked(text: str, data: bytes, markers: Mapping[int, set[int]]) -> str:
    """The text with markers at byte offsets, each moved behind the character it would part."""
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
