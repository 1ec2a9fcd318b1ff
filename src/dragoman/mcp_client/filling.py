"""Expands variables in the entries of MCP servers from the environment. A project's entry never gets one of our own keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Literal

import msgspec

from dragoman.words import say

SHORTEST_KEY = 8
"""A variable with the same value as a key is a copy of it, unless the value is one of those that many variables have."""
Style = Literal["dollar", "braces", "both", "any_dollar", "none"]
"""How variables are written: `${X}` and `${X:-default}` (dollar), `{env:X}` (braces), either (both), also `$X` (any_dollar), or not."""

_DOLLAR = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_ANY_DOLLAR = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$([A-Za-z_][A-Za-z0-9_]*)")
_BRACES = re.compile(r"\{(env|file):([^}]+)\}")


class FillFrom(msgspec.Struct, frozen=True):
    """What variables of an entry are filled in from."""

    env: Mapping[str, str]
    secret: Callable[[], Collection[str]] = frozenset
    """The names of variables that hold our own keys: a project's file does not get them."""
    read_file: Callable[[str], str] | None = None
    """Reads a file that an entry of the user's own names. Raises OSError or ValueError."""


class Filling:
    """Fills in the variables of one entry, and keeps what is wrong with them."""

    def __init__(self, around: FillFrom, style: Style, *, is_project: bool) -> None:
        self._around = around
        self._style = style
        self._is_project = is_project
        self.problem = ""
        self.taken: dict[str, None] = {}
        """The variables whose values were used."""

    def fill(self, text: str) -> str:
        if self._style in ("dollar", "both"):
            text = _DOLLAR.sub(self._variable, text)
        elif self._style == "any_dollar":
            text = _ANY_DOLLAR.sub(self._variable, text)
        if self._style in ("braces", "both"):
            text = _BRACES.sub(self._named, text)
        return text

    def value(self, name: str) -> str:
        """The value of a variable that is named as such."""
        return self._value(name, None)

    def _variable(self, found: re.Match[str]) -> str:
        return self._value(found[1] or found[3], found[2])

    def _named(self, found: re.Match[str]) -> str:
        if found[1] == "env":
            return self._value(found[2].strip(), None if self._style == "both" else "")
        read = self._around.read_file
        if self._is_project or read is None:
            self.note(say("mcp_servers.no_files_for_projects", path=found[2]))
            return ""
        try:
            return read(found[2].strip()).strip()
        except (OSError, ValueError) as error:
            self.note(say("mcp_servers.file_unreadable", path=found[2], reason=error))
            return ""

    def _value(self, name: str, otherwise: str | None) -> str:
        value = self._around.env.get(name)
        if self._is_project and self._is_own_key(name, value):
            self.note(say("mcp_servers.own_key", name=name))
            return ""
        if value:
            self.taken[name] = None
        value = value or otherwise
        if value is None:
            self.note(say("mcp_servers.not_set", name=name))
        return value or ""

    def _is_own_key(self, name: str, value: str | None) -> bool:
        """Whether a variable is one of our own keys, by its name or because it has the same value."""
        names = self._around.secret()
        if name in names:
            return True
        return bool(value) and len(value or "") >= SHORTEST_KEY and any(self._around.env.get(each) == value for each in names)

    def note(self, problem: str) -> None:
        self.problem = self.problem or problem
