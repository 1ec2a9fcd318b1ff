"""What is sent, as files that a person can read and compare: tests/wire/bodies/<destination>/<case>.json."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from dragoman.values.errors import Unsupported
from wire.cases import CASES
from wire.destinations import BY_NAME, MAIN, OTHERS, Destination

BODIES = Path(__file__).parent / "bodies"
HOW = "If the change is meant: pytest tests/wire --update-bodies, and read the diff."

_LONGEST = 240
_SAID = (".messages", ".contents", ".input", ".tools", ".system")
"""Where two cases always differ in what is said."""


def path_of(to: Destination, name: str) -> Path:
    return BODIES / to.name / f"{name}.json"


@cache
def pins(to: Destination) -> dict[str, str]:
    """By case: what the file of its body holds.

    A destination that is like another has files only for the cases in which it differs in a way that it has not differed in before.
    """
    bodies = _bodies(to)
    if not to.like:
        return {name: pretty(body) for name, body in bodies.items()}
    other = _bodies(BY_NAME[to.like])
    seen: set[str] = set()
    found: dict[str, str] = {}
    for name, body in bodies.items():
        ways = _ways(body, other[name])
        if not ways <= seen:
            found[name] = pretty(body)
        seen |= ways
    return found


def _ways(body: Any, other: Any) -> set[str]:
    """In what two bodies differ: the fields, what the settings are, and the order of turns where that is another."""
    mine, theirs = Counter(_leaves(body)), Counter(_leaves(other))
    fields = {path if path.startswith(_SAID) else f"{path} {value}" for path, value in (mine - theirs) + (theirs - mine)}
    order, their_order = ([each for path, each in _leaves(value) if path.endswith(".role")] for value in (body, other))
    return fields if order == their_order else {*fields, " ".join(order)}


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    match value:
        case dict() if value:
            for key, item in value.items():
                yield from _leaves(item, f"{path}.{key}")
        case list() if value:
            for item in value:
                yield from _leaves(item, f"{path}[]")
        case _:
            yield path, json.dumps(value)


def expected() -> set[Path]:
    return {path_of(to, name) for to in (*MAIN, *OTHERS) for name in pins(to)}


def pretty(body: object) -> str:
    """Fields in the order they are sent, long strings as their beginning and digest, what cannot be seen as escapes."""
    text = json.dumps(_abbreviated(body), indent=2, ensure_ascii=False)
    seen = "".join(char if char.isprintable() or char == "\n" else f"\\u{ord(char):04x}" for char in text)
    return seen + "\n"


@cache
def _bodies(to: Destination) -> dict[str, Any]:
    return {name: _body(to, name) for name in CASES}


def _body(to: Destination, name: str) -> Any:
    try:
        return to.body(CASES[name])
    except Unsupported as error:
        return {"unsupported": str(error)}


def _abbreviated(value: object) -> object:
    match value:
        case str() if len(value) > _LONGEST:
            return f"{value[:60]}… ({len(value)} characters, sha256 {sha256(value.encode()).hexdigest()[:16]})"
        case dict():
            return {key: _abbreviated(item) for key, item in value.items()}
        case list():
            return [_abbreviated(item) for item in value]
        case _:
            return value
