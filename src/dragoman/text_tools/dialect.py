"""A dialect as data: how calls are written. From one spec come the prompt, the history, the reader's trust, and the grammar."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

import msgspec

from dragoman.text_tools.raw_calls import Form

Family = Literal["json", "named", "tagged", "code"]

JsonLayout = Literal["object", "list", "name_as_key", "wrapped"]
TagLayout = Literal["function", "function_name", "invoke", "pairs", "elements", "nested", "xtml"]
CodeLayout = Literal["code_list", "code_lines", "braces"]
Layout = JsonLayout | Literal["named"] | TagLayout | CodeLayout
"""How one call is laid out."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One way of writing calls as text."""

    name: str
    family: Family
    layout: Layout
    forms: frozenset[Form]
    """What the reader takes for this dialect behind its own markers."""
    openers: tuple[str, ...] = ()
    """Its markers, in `openers.OPENERS`."""
    is_bare: bool = False
    """Whether calls may stand without any marker."""
    in_fence: bool = False
    """Whether calls stand in a ```json fence."""
    aliases: tuple[str, ...] = ()
    section: tuple[str, str] = ("", "")
    """Around all calls of an answer."""
    call: tuple[str, str] = ("", "")
    """Around each call."""
    between: str = "\n"
    """Between one call and the next."""
    name_key: str = "name"
    args_key: str = "arguments"
    name_prefix: str = ""
    name_suffix: str = ""
    separator: str = ""
    """Between the name and the arguments."""
    tags: str = ""
    """Which tags, where arguments stand between tags."""
    quote: str = '"'
    """Around strings, where strings have marks of their own."""
    layout_breaks: bool = True
    """Whether values and tags stand on lines of their own."""
    thinking: tuple[str, str] = ("<think>", "</think>")
    response: tuple[str, str] = ("<tool_response>\n", "\n</tool_response>")


AUTO = "auto"
DEFAULT = "dragoman"
SEED = "seed"


@cache
def table() -> dict[str, Dialect]:
    """All dialects by name."""
    from dragoman.text_tools.dialects_code import CODE
    from dragoman.text_tools.dialects_json import JSON
    from dragoman.text_tools.dialects_named import NAMED
    from dragoman.text_tools.dialects_tagged import TAGGED

    return {dialect.name: dialect for dialect in (*JSON, *NAMED, *TAGGED, *CODE)}


def dialects() -> tuple[str, ...]:
    """The names of all dialects."""
    return tuple(table())


def find(name: str) -> Dialect:
    """The dialect of that name, or of one close to it: `hermes`, `Qwen3-Coder`, `glm_xml`. Raises ValueError where there is none."""
    known = _names()
    folded = _folded(name)
    if folded in known:
        return table()[known[folded]]
    stems = sorted((stem for stem in known if folded.startswith(stem) and len(stem) >= 4), key=len)
    if stems:
        return table()[known[stems[-1]]]
    from dragoman.base.text import closest

    near = closest(name, dialects(), 3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise ValueError(f"no dialect is called {name!r}{hint}")


@cache
def _names() -> dict[str, str]:
    """Every way to write a name, folded, and the name itself."""
    names: dict[str, str] = {}
    for dialect in table().values():
        for each in (dialect.name, *dialect.aliases):
            names.setdefault(_folded(each), dialect.name)
    return names | {_folded(name): name for name in table()}


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
