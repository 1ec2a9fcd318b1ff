"""Tools that other packages bring: a tool, a function, or a list of them, by entry point (`dragoman.tools`) or `module:name`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.base.plugins import PluginNotFound, load_plugin
from dragoman.tools.function import tool
from dragoman.values.calls import Tool, WrappingTool
from dragoman.values.errors import ConfigError
from dragoman.words import say

GROUP = "dragoman.tools"


class OutsideTool(WrappingTool):
    """A tool of an installed package. Unlike a function that an embedder wrote, it does not run unasked unless it is read-only."""


def load_tools(name: str) -> list[Tool]:
    """Raises ConfigError where there is nothing of that name, or it is not a tool."""
    try:
        found = load_plugin(name, GROUP)
    except PluginNotFound as error:
        raise ConfigError(say("tools.not_installed", name=name, reason=str(error))) from error
    several: Sequence[Any] = found if isinstance(found, Sequence) else (found,)
    return [OutsideTool(_as_tool(each, name)) for each in several]


def _as_tool(found: Any, name: str) -> Tool:
    if isinstance(found, Tool):
        return found
    if callable(found):
        made: Tool = tool(found)
        return made
    raise ConfigError(say("tools.not_a_tool", name=name, kind=type(found).__name__))
