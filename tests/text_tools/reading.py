"""Shared by the tests of tools as text: the cases of the corpus, ways to cut a text, and what must hold of any reading."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dragoman.text_tools.calls import CallReady, CallRejected, Event, Parsed, PlainText
from dragoman.text_tools.parser import StreamParser

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "The weather in a city",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where"},
            "days": {"type": "integer"},
            "exact": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "options": {"type": "object"},
        },
        "required": ["city"],
    },
}
READ: dict[str, Any] = {
    "name": "read_file",
    "description": "Reads a file",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}, "required": ["path"]},
}
NOW: dict[str, Any] = {"name": "now", "description": "The time", "parameters": {"type": "object", "properties": {}}}
TOOLS = [WEATHER, READ, NOW]


def cases(corpora: Path) -> list[dict[str, Any]]:
    """The corpus, upstream's own oddities aside."""
    lines = (corpora / "text_tools_dev.jsonl").read_text(encoding="utf-8").splitlines()
    return [case for case in map(json.loads, lines) if not case.get("quirk")]


def is_right(case: dict[str, Any], parsed: Parsed) -> bool:
    got = [{"name": call.name, "arguments": call.args} for call in parsed.calls]
    return same(got, [{"name": call["name"], "arguments": call["arguments"]} for call in case["expected"]])


def same(one: Any, other: Any) -> bool:
    """Equal as JSON values: true is not 1, and 3 is 3.0."""
    match one, other:
        case (bool(), _) | (_, bool()):
            return one is other
        case (int() | float(), int() | float()):
            return one == other
        case (dict(), dict()):
            return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
        case (list(), list()):
            return len(one) == len(other) and all(map(same, one, other))
        case _:
            return type(one) is type(other) and one == other


def read(
    parts: Iterable[str], tools: Any = None, *, dialect: str = "auto", finish: str = "stop", tool_choice: str = "auto"
) -> tuple[Parsed, list[Event]]:
    """Read an answer that comes in parts, and hold the reader to what it promises of any text."""
    parser = StreamParser(tools, dialect=dialect, tool_choice=tool_choice)
    events: list[Event] = []
    for part in parts:
        events += parser.feed(part)
    assert not any(isinstance(event, CallReady) for event in events)
    events += parser.finish(finish)
    parsed = parser.result
    ready = [event.call for event in events if isinstance(event, CallReady)]
    assert ready == list(parsed.calls)
    assert len([event for event in events if isinstance(event, CallRejected)]) == len(parsed.rejected)
    assert_tiled(parsed)
    if not any(piece.kind == "reasoning" and piece.start == 0 for piece in parsed.pieces):
        assert "".join(event.text for event in events if isinstance(event, PlainText)) == parsed.text
    return parsed, events


def assert_tiled(parsed: Parsed) -> None:
    """Text, reasoning, calls and markers are the answer, without a gap."""
    at = 0
    for piece in parsed.pieces:
        assert piece.start == at
        assert piece.end > piece.start
        at = piece.end
    assert at == len(parsed.original_text)


def cuts(text: str, count: int, seed: int) -> Iterator[Sequence[str]]:
    """The text character by character, by threes, and cut at random."""
    yield list(text)
    yield [text[at : at + 3] for at in range(0, len(text), 3)]
    rng = random.Random(seed)
    for _ in range(count):
        places = sorted(rng.randrange(len(text) + 1) for _ in range(rng.randint(1, 8)))
        yield [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
