"""docs/reference/python.md: every public name, a line each. `python -m checks.marked api` writes it.

The site has a page for each module besides, with signatures and the whole docstrings.
"""

from __future__ import annotations

import collections.abc
import inspect
import typing
from importlib import import_module
from typing import Any

import dragoman
from checks.marked import REFERENCE, Part, one_line, sentences, table

MODULES = ("dragoman", *(f"dragoman.{name}" for name in dragoman._MODULES))


def made() -> str:
    return "\n\n".join(map(_section, MODULES))


def names_of(module: str) -> list[str]:
    """Its public names, without the modules that are public themselves."""
    return [name for name in import_module(module).__all__ if f"{module}.{name}" not in MODULES]


def _section(module: str) -> str:
    names = names_of(module)
    about = "\n".join(sentences(one_line((inspect.getdoc(import_module(module)) or "").removeprefix("ROOM. ").split("\n\n")[0])))
    rows = [(f"`{name}`", _about(getattr(import_module(module), name))) for name in names]
    return f"## {module}\n\n{about}\n\n{table(('name', ''), rows)}"


def _about(value: Any) -> str:
    """The first sentence of what it says of itself; of a choice between words, the words."""
    if isinstance(value, str):
        return f"The version: `{value}`."
    if typing.get_origin(value) is collections.abc.Callable:
        return "A type of function."
    if members := typing.get_args(value):
        more = f" and {len(members) - 10} others" if len(members) > 10 else ""
        return "One of " + ", ".join(f"`{_shown(each)}`" for each in members[:10]) + more + "."
    is_documented = inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value)
    text = one_line((inspect.getdoc(value) if is_documented else "") or "").replace("|", "or")
    return text.split(". ")[0].rstrip(".") + "." if text else ""


def _shown(word: Any) -> str:
    return word.__name__ if inspect.isclass(word) else str(word).replace(" | ", " or ") if typing.get_origin(word) else repr(word)


PARTS = (Part(REFERENCE / "python.md", "api", made),)
