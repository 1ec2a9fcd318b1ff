"""All dialects, by name and by the names others have for them."""

from __future__ import annotations

import re
from functools import cache

from dragoman.base.text import closest
from dragoman.text_tools.dialect import FENCED_JSON, Dialect
from dragoman.text_tools.dialects_code import CODE
from dragoman.text_tools.dialects_json import JSON
from dragoman.text_tools.dialects_named import NAMED
from dragoman.text_tools.dialects_tagged import TAGGED
from dragoman.words import say

_RENAMED = {"seed": FENCED_JSON}
"""Old names, still found in the logs of earlier versions."""


@cache
def dialect_table() -> dict[str, Dialect]:
    """All dialects by name."""
    return {dialect.name: dialect for dialect in (*JSON, *NAMED, *TAGGED, *CODE)}


def current_name(name: str) -> str:
    """The current name of a dialect, given the name in a log."""
    return _RENAMED.get(name, name)


def dialects() -> tuple[str, ...]:
    """The names of all dialects."""
    return tuple(dialect_table())


def find_dialect(name: str) -> Dialect:
    """The dialect of that name, or of one close to it: `hermes`, `Qwen3-Coder`, `glm_xml`. Raises ValueError if there is none."""
    known = _names()
    folded = _fold(name)
    if folded in known:
        return dialect_table()[known[folded]]
    stems = sorted((stem for stem in known if folded.startswith(stem) and len(stem) >= 4), key=len)
    if stems:
        return dialect_table()[known[stems[-1]]]
    near = closest(name, dialects(), 3)
    hint = say("text_tools.did_you_mean", names=" or ".join(near)) if near else ""
    raise ValueError(say("text_tools.unknown_dialect", name=name, hint=hint))


@cache
def _names() -> dict[str, str]:
    """Every folded name and alias → the dialect's name."""
    names: dict[str, str] = {}
    for dialect in dialect_table().values():
        for each in (dialect.name, *dialect.aliases):
            names.setdefault(_fold(each), dialect.name)
    return names | {_fold(name): name for name in dialect_table()}


def _fold(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
