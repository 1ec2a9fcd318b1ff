"""The available tools by name, in registration order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dragoman.base import jsontext
from dragoman.base.text import closest
from dragoman.values.calls import Tool
from dragoman.values.errors import InputError
from dragoman.values.messages import ToolSpec
from dragoman.words import say

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}\Z")


def check_name(name: str) -> None:
    """Raises InputError for a name that some service would not accept."""
    if not _NAME.match(name):
        raise InputError(say("tools.wrong_name", name=name))


class Registry:
    """Names are unique. `specs` stays the same object until a tool is added or removed: prompt caches depend on it."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._specs: tuple[ToolSpec, ...] | None = None
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool, *, replace: bool = False) -> None:
        """Add a tool. With `replace` it replaces a tool of the same name, in the same position."""
        spec = tool.spec
        check_name(spec.name)
        if spec.name in self._tools and not replace:
            raise InputError(say("tools.name_taken", name=spec.name))
        _check_parameters(spec)
        self._tools[spec.name] = tool
        self._specs = None

    def remove(self, name: str) -> Tool | None:
        """Remove a tool and return it, or None if there is none."""
        self._specs = None
        return self._tools.pop(name, None)

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def nearest(self, name: str) -> list[str]:
        """The tools that may have been meant, likeliest first: wrong case, an extra prefix (`functions.edit`), a typo."""
        bare = re.split(r"[.:/]", name[-200:])[-1]
        names = [*self._tools, *(each for tool in self._tools.values() for each in getattr(tool, "carried", ()))]
        return list(dict.fromkeys([*closest(name, names, 3), *closest(bare, names, 3)]))[:3]

    def carry(self, name: str, args: Mapping[str, Any]) -> tuple[Tool | None, dict[str, Any], list[str]]:
        """The tool that calls others by name, if it knows one called `name`; the arguments with which it does, and what was changed."""
        for tool in self._tools.values():
            carry = getattr(tool, "carry", None)
            if carry is not None and (carried := carry(name, args)) is not None:
                return tool, carried, [f"{name[:80]} → {tool.spec.name}"]
        return None, {}, []

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        if self._specs is None:
            self._specs = tuple(tool.spec for tool in self._tools.values())
        return self._specs

    def __iter__(self) -> Iterator[Tool]:
        return iter(tuple(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools


def _check_parameters(spec: ToolSpec) -> None:
    try:
        schema = jsontext.decode(spec.parameters)
    except jsontext.NotJSON as error:
        raise InputError(say("tools.parameters_not_json", name=spec.name, reason=error)) from error
    if not isinstance(schema, dict):
        raise InputError(say("tools.parameters_not_a_schema", name=spec.name))
