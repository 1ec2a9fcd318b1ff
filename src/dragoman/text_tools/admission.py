"""From what was written to a call that may run: the tool it means, its arguments typed, and why it is believed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dragoman.text_tools import json_text
from dragoman.text_tools.align import Mapped, Misfit, align
from dragoman.text_tools.calls import Call, Trust
from dragoman.text_tools.dialect import Dialect, table
from dragoman.text_tools.raw_calls import Raw
from dragoman.text_tools.tag_reader import SaidText, SaidValue
from dragoman.text_tools.toolset import Toolset

POSITIONAL = "arguments without names"
EXAMPLE_NAMES = frozenset(
    (
        *("tool_name", "tool-name", "function-name", "function_name", "example_function_name", "example_tool_name", "$FUNCTION_NAME"),
        *("<function-name>", "<tool-name>", "name_of_tool", "example_tool_name.example_function_name"),
    )
)
"""Names that prompts use to show the format."""


_NO_NAME = re.compile(r"""[\s<>{}"'`]""")
_ESCAPED = re.compile(r"\s*[\[{][\[{\s]*\\\"")


class Refused(msgspec.Struct, frozen=True):
    reason: str
    name: str = ""
    suggestions: tuple[str, ...] = ()


class Admission:
    """Decides for one answer."""

    def __init__(
        self, tools: Toolset | None, dialect: Dialect | None, tool_choice: str, mapping: Mapped | None = None, *, is_strict: bool = False
    ) -> None:
        self._is_strict = is_strict or dialect is not None
        self._tools = tools
        self._dialect = dialect
        self._only = tool_choice if tool_choice not in ("auto", "required", "any", "none", "") else ""
        self._mapping = mapping

    def is_negotiated(self, marker: str, raw: Raw) -> bool:
        """Whether it is written in the dialect that was asked for."""
        dialect = self._dialect
        if dialect is None or raw.form not in dialect.forms:
            return False
        if marker:
            return marker in dialect.openers
        return dialect.is_bare or dialect.in_fence or raw.form == "elements"

    def admit(self, raw: Raw, marker: str, *, at_line_start: bool, is_bare: bool) -> Call | Refused:
        """`marker` is what it began with; empty where nothing but its shape tells."""
        name = raw.name.strip()
        if not name or len(name) > 200 or (_NO_NAME.search(name) and (self._tools is None or name not in self._tools)):
            return Refused("it names no tool")
        if name in EXAMPLE_NAMES and (self._tools is None or name not in self._tools):
            return Refused("it is the example of the prompt", name)
        tool = self._tool(name)
        if isinstance(tool, Misfit):
            return Refused(tool.reason, name, tool.suggestions)
        if self._only and tool != self._only:
            return Refused(f"only {self._only} was to be called", name)
        aligned = align(name if tool == name else tool, self._args(raw, tool), self._tools, raw=raw.is_raw, mapping=self._mapping)
        if isinstance(aligned, Misfit):
            return Refused(aligned.reason, name, aligned.suggestions)
        trust: Trust = "negotiated" if self.is_negotiated(marker, raw) else "bare" if is_bare else "recognised"
        if self._is_strict and trust == "recognised":
            if not at_line_start:
                return Refused("it is written in another dialect, within a line", name)
            if self._tools is None or aligned.problems:
                return Refused("it is written in another dialect, and its arguments do not fit", name)
        renamed = () if tool == name or name in aligned.repairs else (f"{name} → {tool}",)
        repairs = tuple(dict.fromkeys((*raw.repairs, *((POSITIONAL,) if raw.positional else ()), *renamed, *aligned.repairs)))
        args = {str(key): _plain(value) for key, value in aligned.args.items()}
        return Call(tool, args, repairs, trust, self._named(marker, raw), (raw.start, raw.end), aligned.problems)

    def _tool(self, name: str) -> str | Misfit:
        """The tool meant. Some templates write a name twice, or put a module before it."""
        if self._tools is None:
            return name.removesuffix(".call") if name.endswith(".call") else name
        first: Misfit | None = None
        for each in _readings(name):
            found = align(each, {}, self._tools, mapping=self._mapping)
            if not isinstance(found, Misfit):
                return found.name
            first = first or found
        return first or Misfit(f"there is no tool called {name}")

    def _args(self, raw: Raw, tool: str) -> dict[str, Any]:
        schema = self._tools.schema(tool) if self._tools is not None else None
        properties = schema.get("properties") if schema else None
        declared: Mapping[str, Any] = properties if isinstance(properties, dict) else {}
        args = dict(raw.args)
        free = [key for key in declared if key not in args]
        args |= dict(zip(free, raw.positional, strict=False))
        if not raw.is_raw:
            return args
        return {key: _untyped(value, is_declared=key in declared, has_schema=schema is not None) for key, value in args.items()}

    def _named(self, marker: str, raw: Raw) -> str:
        """The dialect it is written in, as far as can be told."""
        if self.is_negotiated(marker, raw) and self._dialect is not None:
            return self._dialect.name
        for dialect in table().values():
            if raw.form in dialect.forms and (marker in dialect.openers if marker else dialect.is_bare or dialect.in_fence):
                return dialect.name
        return ""


def _readings(name: str) -> Iterator[str]:
    yield name
    head, dot, tail = name.partition(".")
    if dot:
        yield name.removesuffix(".call")
        yield tail
        yield name.rpartition(".")[2]
        if head == tail:
            yield head


def _untyped(value: Any, *, is_declared: bool, has_schema: bool) -> Any:
    """A value from between tags: as text where the schema will give it a type, as what it looks like where nothing says what it is."""
    if is_declared and isinstance(value, str) and _ESCAPED.match(value):
        return _unescaped(value)
    if not isinstance(value, str) or is_declared or isinstance(value, SaidText):
        return value
    if has_schema and not isinstance(value, SaidValue):
        return value
    return guessed(value)


def _unescaped(text: str) -> str:
    """JSON that was escaped once too often."""
    try:
        plain, repairs = json_text.loads(f'"{text}"')
        json_text.loads(plain)
    except json_text.NotReadable:
        return text
    return text if repairs else plain


def guessed(text: str) -> Any:
    """What text stands for where nothing declares its type: JSON where it is JSON, else itself."""
    plain = text.strip()
    if not plain or plain[0] not in '{["-0123456789tfn':
        return text
    try:
        value, repairs = json_text.loads(plain)
    except json_text.NotReadable:
        return text
    return text if repairs else value


def _plain(value: Any) -> Any:
    return str(value) if type(value) in (SaidText, SaidValue) else value
