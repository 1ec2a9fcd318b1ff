"""What a request says of the machine, the day and the session it comes from, and exchanges without it: so that what was recorded here can
be replayed in another folder, on another day and in another language.

A `PortablePlace` is a text that differs from run to run (a folder, a session's id) and its stand-in, which does not. In a request, places
give way to their stand-ins, and the facts of the environment message to their names. In an answer, a recording holds stand-ins, and
replaying puts the places of the moment in: a path that the model was told comes back as a path that exists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dragoman.base import jsontext
from dragoman.context.environment import READY, generic_text, told_places
from dragoman.values.notes import CHANGED_BEGINS, GREETING, KNOWN_BEGINS

_LATER = "|".join(map(re.escape, (CHANGED_BEGINS, KNOWN_BEGINS)))
_SETUP = re.compile(rf"^(?:{re.escape(GREETING)}$.*?(?:^{re.escape(READY)}$|\Z)|(?:{_LATER})$.*)", re.MULTILINE | re.DOTALL)
"""An environment message, or one about changes, also where it was joined with other text."""
_SETUP_IN_JSON = re.compile(re.escape(GREETING.encode()) + rb".*?" + re.escape(READY.encode()), re.DOTALL)
_SESSION = re.compile(r"(?<![0-9A-Za-z-])\d{8}-\d{6}-[0-9a-f]{8}(?![0-9A-Za-z-])", re.ASCII)
_OUTPUTS = re.compile(r"""[^\s"'`<>()]*[/\\]dragoman-[0-9a-f]{16}(?![0-9A-Za-z-])""", re.ASCII)
"""The folder of results that are too long, where the session is not saved."""
_LEAST_DEPTH = 3
"""Temporary folders above it (`/tmp`, `/var/tmp`) may well be meant by a prompt itself: they stay."""
_EVENT = re.compile(rb"^data: ?([^\r\n]*)", re.MULTILINE)


class PortablePlace(NamedTuple):
    stand_in: str
    real: str


# --- requests ------------------------------------------------------------------------------------------------------------


def find_places(body: str, folders: Sequence[str] = ()) -> list[PortablePlace]:
    """The places that a request's body names. `folders` are further ones, known to whoever asks."""
    data = _decoded(body)
    if data is None:
        return []
    places = [PortablePlace(f"/__place_{number}__", folder) for number, folder in enumerate(folders, 1)]
    texts = list(_strings(data))
    directories, temporary = told_places(found[0] for text in texts for found in _SETUP.finditer(text))
    places += [PortablePlace(f"/__directory_{number}__", each) for number, each in enumerate(directories, 1) if _is_path(each)]
    if _is_path(temporary) and len(re.split(r"[/\\]", temporary)) > _LEAST_DEPTH:
        places.append(PortablePlace("/__temporary__", temporary))
    places += _numbered("/__outputs_{}__", _OUTPUTS, texts)
    places += _numbered("00000000-000000-{:08x}", _SESSION, texts)
    return places


def portable_body(body: str, places: Sequence[PortablePlace]) -> str:
    """A request's body with stand-ins for its places, and with the environment message's facts by name. Idempotent."""
    data = _decoded(body)
    if data is None:
        return body
    replace = _replacing(_stand_ins(places))
    # The names of the environment message go first: they hold no path.
    changed = _mapped(data, lambda text: replace(_SETUP.sub(lambda found: generic_text(found[0]), text)))
    return body if changed == data else jsontext.encode(changed).decode()


def portable_bytes(body: bytes) -> int:
    """How long a request's body is without the environment message: the same in every folder. For counting tokens; cheap."""
    return len(body) - sum(len(found[0]) for found in _SETUP_IN_JSON.finditer(body))


def difference_path(recorded: str, sent: str) -> str:
    """Where in two JSON bodies the first difference is, as in `messages[0].content`; empty if they are not JSON."""
    one, other = _decoded(recorded), _decoded(sent)
    return "" if one is None or other is None else _path_to_difference(one, other).removeprefix(".")


def _path_to_difference(one: Any, other: Any) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *(name for name in other if name not in one)]:
            if name not in one or name not in other:
                return f".{name}"
            if one[name] != other[name]:
                return f".{name}{_path_to_difference(one[name], other[name])}"
    if isinstance(one, list) and isinstance(other, list):
        for number, (left, right) in enumerate(zip(one, other, strict=False)):
            if left != right:
                return f"[{number}]{_path_to_difference(left, right)}"
        return f"[{min(len(one), len(other))}]" if len(one) != len(other) else ""
    return ""


def _numbered(stand_in: str, pattern: re.Pattern[str], texts: Iterable[str]) -> list[PortablePlace]:
    found = dict.fromkeys(match[0] for text in texts for match in pattern.finditer(text))
    return [PortablePlace(stand_in.format(number), each) for number, each in enumerate(found, 1)]


def _stand_ins(places: Sequence[PortablePlace]) -> dict[str, str]:
    """The stand-in for each real path. If two places are the same path, the first counts."""
    return {place.real: place.stand_in for place in reversed(places)}


def _is_path(told: str) -> bool:
    """Neither the root, which is part of every path, nor the name that stands for a path in a recording."""
    return len(told) > 1 and not told.startswith("(")


# --- answers -------------------------------------------------------------------------------------------------------------


def hide_places(chunks: Sequence[bytes], places: Sequence[PortablePlace]) -> list[bytes]:
    """The chunks of an answer with stand-ins for the places of its request."""
    plain = _stand_ins(places)
    # Arguments are JSON in JSON: there a backslash is two.
    return _replace_in_answer(chunks, plain | {real.replace("\\", "\\\\"): stand_in for real, stand_in in plain.items()})


def fill_places(chunks: Sequence[bytes], recorded: Sequence[PortablePlace], now: Sequence[PortablePlace]) -> list[bytes]:
    """The chunks of a recorded answer with the places of the request it is replayed for. `recorded` are those it was recorded with."""
    # Windows takes either slash, and this one is the same in text and in JSON.
    real = {place.stand_in: place.real.replace("\\", "/") for place in now}
    return _replace_in_answer(chunks, real | {place.real: real[place.stand_in] for place in recorded if place.stand_in in real})


def _replace_in_answer(chunks: Sequence[bytes], replacements: Mapping[str, str]) -> list[bytes]:
    """Also where a stream has a text in several events: then the first of them gets all of it. Without anything to replace, the chunks stay
    as they are."""
    replacements = {old: new for old, new in replacements.items() if old != new}
    if not replacements:
        return list(chunks)
    whole = b"".join(chunks)
    spans = [match.span(1) for match in _EVENT.finditer(whole)]
    if not spans:
        return _replace_in_body(list(chunks), whole, replacements)
    events = [_decoded(whole[start:end].decode(errors="replace")) for start, end in spans]
    changed = _replace_in_events(events, replacements)
    if changed == events:
        return list(chunks)
    pieces, at = list[bytes](), 0
    for (start, end), before, after in zip(spans, events, changed, strict=True):
        pieces += [whole[at:start], whole[start:end] if before == after else jsontext.encode(after)]
        at = end
    return [piece for piece in (*pieces, whole[at:]) if piece]


def _replace_in_body(chunks: list[bytes], whole: bytes, replacements: Mapping[str, str]) -> list[bytes]:
    data = _decoded(whole.decode(errors="replace"))
    changed = None if data is None else _mapped(data, _replacing(replacements))
    return chunks if changed == data else [jsontext.encode(changed)]


def _replace_in_events(events: Sequence[Any], replacements: Mapping[str, str]) -> list[Any]:
    """Each text of an event goes on in the next event that has a text at the same path: that is how all protocols stream."""
    replace = _replacing(replacements)
    streams: dict[tuple[object, ...], list[tuple[int, str]]] = {}
    for number, event in enumerate(events):
        for path, text in _leaves(event):
            streams.setdefault(path, []).append((number, text))
    changed: dict[tuple[int, tuple[object, ...]], str] = {}
    for path, pieces in streams.items():
        for (number, before), after in zip(pieces, _replace_in_pieces([text for _, text in pieces], replace.spans), strict=True):
            if after != before:
                changed[number, path] = after
    return [_with_texts(event, {path: text for (at, path), text in changed.items() if at == number}) for number, event in enumerate(events)]


def _replace_in_pieces(pieces: Sequence[str], spans: Callable[[str], list[tuple[int, int, str]]]) -> list[str]:
    joined = "".join(pieces)
    found = spans(joined)
    made: list[str] = []
    start = 0
    for piece in pieces:
        end, at, text = start + len(piece), start, ""
        for first, last, new in found:
            if first >= end or last <= start:
                continue
            text += joined[at : max(first, start)] + (new if first >= start else "")
            at = min(last, end)
        made.append(text + joined[at:end])
        start = end
    return made


# --- texts in JSON ---------------------------------------------------------------------------------------------------------


class _replacing:  # noqa: N801  called like a function
    """Replaces whole texts: `/a/b` in `/a/b/c`, and neither in `/a/bc` nor in `/x/a/b`."""

    def __init__(self, replacements: Mapping[str, str]) -> None:
        self._replacements = {old: new for old, new in replacements.items() if old}
        longest_first = sorted(self._replacements, key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![\w.~-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-]|\.\w)") if longest_first else None

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        found = self._pattern.finditer(text) if self._pattern else ()
        return [(match.start(), match.end(), self._replacements[match[0]]) for match in found]

    def __call__(self, text: str) -> str:
        return self._pattern.sub(lambda match: self._replacements[match[0]], text) if self._pattern else text


def _decoded(text: str) -> Any:
    """An object or a list; None for anything else."""
    try:
        data = jsontext.decode(text)
    except (jsontext.NotJSON, RecursionError):
        return None
    return data if isinstance(data, (dict, list)) else None


def _strings(data: Any) -> Iterator[str]:
    yield from (text for _, text in _leaves(data))


def _leaves(data: Any, path: tuple[object, ...] = ()) -> Iterator[tuple[tuple[object, ...], str]]:
    match data:
        case str():
            yield path, data
        case dict():
            for name, item in data.items():
                yield from _leaves(item, (*path, name))
        case list():
            for number, item in enumerate(data):
                yield from _leaves(item, (*path, number))


def _mapped(data: Any, change: Callable[[str], str]) -> Any:
    match data:
        case str():
            return change(data)
        case dict():
            return {name: _mapped(item, change) for name, item in data.items()}
        case list():
            return [_mapped(item, change) for item in data]
        case _:
            return data


def _with_texts(data: Any, texts: Mapping[tuple[object, ...], str], path: tuple[object, ...] = ()) -> Any:
    if not texts:
        return data
    match data:
        case str():
            return texts.get(path, data)
        case dict():
            return {name: _with_texts(item, texts, (*path, name)) for name, item in data.items()}
        case list():
            return [_with_texts(item, texts, (*path, number)) for number, item in enumerate(data)]
        case _:
            return data
