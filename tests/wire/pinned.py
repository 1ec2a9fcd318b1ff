"""What is sent, a file for each conversation: tests/wire/bodies/<case>.txt.

On top the conversation in our own words, then the body for the main destination of each protocol, then how the bodies of the others differ.

    user       text: Hello.

    == openai
    model: "gpt-5.4"
    messages:
      {"role": "user", "content": [{"type": "text", "text": "Hello."}]}

    == vllm = openai with
    model: "gpt-5.4" → "local"
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from dragoman.values.errors import Unsupported
from wire.cases import CASES
from wire.conversation import describe
from wire.destinations import BY_NAME, DESTINATIONS, MAIN, Destination
from wire.differences import apply, compare
from wire.layout import Json, abbreviate, join_lines, one_line, read_fields, write_fields

BODIES = Path(__file__).parent / "bodies"
HOW = "If the change is meant: pytest tests/wire --update-bodies, and read the diff."
NAMED = ("single_prompt", "tools")
"""Cases whose fields other files name instead of repeating them: a change to what every request has shows in one file."""

_SAID = (".messages", ".contents", ".input", ".tools", ".system")
"""Where two cases always differ in what is said."""
_HEADING = re.compile(r"== ([\w.-]+)(?: = ([\w.-]+) with)?")


def path_of(name: str) -> Path:
    return BODIES / f"{name}.txt"


# --- writing ----------------------------------------------------------------------------------------------------------------


def write(name: str) -> str:
    """What the file of a case holds."""
    sections = [list(describe(CASES[name], {each: CASES[each] for each in _named_before(name)}))]
    sections += [list(_write_section(to, name)) for to in DESTINATIONS if name in pins(to)]
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _write_section(to: Destination, name: str) -> Iterator[str]:
    body, main = bodies(to)[name], _main(to)
    if to == main:
        yield f"== {to.name}"
        yield from write_fields(body, {each: bodies(to)[each] for each in _named_before(name)})
    elif "unsupported" in body:
        yield f"== {to.name}"
        yield from write_fields(body, {})
    else:
        yield f"== {to.name} = {main.name} with"
        yield from compare(bodies(main)[name], body)


def _main(to: Destination) -> Destination:
    return next(each for each in MAIN if each.protocol == to.protocol)


def _named_before(name: str) -> tuple[str, ...]:
    return NAMED[: NAMED.index(name)] if name in NAMED else NAMED


# --- which bodies -----------------------------------------------------------------------------------------------------------


@cache
def pins(to: Destination) -> frozenset[str]:
    """The cases whose files have a section for this destination.

    A destination that is like another has sections only in the cases in which it differs in a way that it has not differed in before.
    """
    if not to.like:
        return frozenset(CASES)
    other = bodies(BY_NAME[to.like])
    seen: set[str] = set()
    found: set[str] = set()
    for name, body in bodies(to).items():
        ways = _ways(body, other[name])
        if not ways <= seen:
            found.add(name)
        seen |= ways
    return frozenset(found)


def _ways(body: Any, other: Any) -> set[str]:
    """In what two bodies differ: the fields, what the settings are, and the order of turns where that is another."""
    leaves, others = list(_leaves(body)), list(_leaves(other))
    mine, theirs = Counter(leaves), Counter(others)
    fields = {path if path.startswith(_SAID) else f"{path} {value}" for path, value in (mine - theirs) + (theirs - mine)}
    order, their_order = ([each for path, each in found if path.endswith(".role")] for found in (leaves, others))
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
            yield path, one_line(value)


@cache
def bodies(to: Destination) -> dict[str, Json]:
    """By case: what is sent, with long strings abbreviated."""
    return {name: abbreviate(_body(to, name)) for name in CASES}


def _body(to: Destination, name: str) -> Json:
    try:
        return to.body(CASES[name])
    except Unsupported as error:
        return {"unsupported": str(error)}


# --- reading ----------------------------------------------------------------------------------------------------------------


def read(name: str) -> dict[str, Json]:
    """By destination: the bodies that the file of a case says, whole."""
    found: dict[str, Json] = {}
    named = {each: read(each) for each in _named_before(name)}
    _, *sections = path_of(name).read_text(encoding="utf-8").removesuffix("\n").split("\n\n== ")
    for section in sections:
        heading, _, text = f"== {section}".partition("\n")
        parts = _HEADING.fullmatch(heading)
        assert parts, f"not a heading: {heading}"
        to, main = parts.groups()
        like = {each: found_there[to] for each, found_there in named.items() if to in found_there}
        found[to] = apply(found[main], join_lines(text)) if main else read_fields(text, like)
    return found
