"""Decides whether a raw call may run: finds its tool, types its arguments, and records why it is trusted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dragoman.text_tools import json_text
from dragoman.text_tools.align import NameMapping, UnknownTool, align
from dragoman.text_tools.calls import Call, Trust
from dragoman.text_tools.dialect import Dialect
from dragoman.text_tools.dialect_table import dialect_table
from dragoman.text_tools.raw_calls import RawCall
from dragoman.text_tools.tag_reader import DeclaredText, DeclaredValue
from dragoman.text_tools.toolset import Toolset

POSITIONAL = "arguments without names"
EXAMPLE_NAMES = frozenset(
    (
        *("tool_name", "tool-name", "function-name", "function_name", "example_function_name", "example_tool_name", "$FUNCTION_NAME"),
        *("<function-name>", "<tool-name>", "name_of_tool", "example_tool_name.example_function_name"),
    )
)
"""Placeholder names that prompts use to show the format."""


_NO_NAME = re.compile(r"""[\s<>{}"'`]""")
_ESCAPED = re.compile(r"\s*[\[{][\[{\s]*\\\"")


class CallRefusal(msgspec.Struct, frozen=True):
    reason: str
    name: str = ""
    suggestions: tuple[str, ...] = ()


class Admission:
    """Admits or refuses the calls of one answer."""

    def __init__(
        self,
        tools: Toolset | None,
        dialect: Dialect | None,
        tool_choice: str,
        mapping: NameMapping | None = None,
        *,
        is_strict: bool = False,
    ) -> None:
        self._is_strict = is_strict or dialect is not None
        self._were_requested = not is_strict
        """Whether calls as text were requested at all."""
        self._tools = tools
        self._dialect = dialect
        self._only = tool_choice if tool_choice not in ("auto", "required", "any", "none", "") else ""
        self._mapping = mapping

    def is_negotiated(self, marker: str, raw: RawCall) -> bool:
        """Whether the call is written in the requested dialect."""
        dialect = self._dialect
        if dialect is None or raw.form not in dialect.forms:
            return False
        if marker:
            return marker in dialect.openers
        return dialect.is_bare or dialect.in_fence or raw.form == "elements"

    def admit(self, raw: RawCall, marker: str, *, at_line_start: bool, is_bare: bool, beside_text: bool = False) -> Call | CallRefusal:
        """`marker` is the marker the call began with; empty if only its shape makes it a call. `beside_text`: it stands in a code fence
        beside other text."""
        name = raw.name.strip()
        if not name or len(name) > 200 or (_NO_NAME.search(name) and (self._tools is None or name not in self._tools)):
            return CallRefusal("it names no tool")
        if name in EXAMPLE_NAMES and (self._tools is None or name not in self._tools):
            return CallRefusal("it is the example of the prompt", name)
        tool = self._find_tool(name)
        if isinstance(tool, UnknownTool):
            return CallRefusal(tool.reason, name, tool.suggestions)
        if self._only and tool != self._only:
            return CallRefusal(f"only {self._only} was to be called", name)
        aligned = align(name if tool == name else tool, self._args(raw, tool), self._tools, raw=raw.is_raw, mapping=self._mapping)
        if isinstance(aligned, UnknownTool):
            return CallRefusal(aligned.reason, name, aligned.suggestions)
        trust: Trust = "negotiated" if self.is_negotiated(marker, raw) else "bare" if is_bare else "recognised"
        if beside_text and not self._were_requested:
            return CallRefusal("it stands in a code fence beside other text", name)
        if beside_text:
            trust = "fenced"
        if aligned.problems and (
            trust == "fenced" or (trust == "bare" and raw.form == "code") or self._lacks_some(tool, aligned.args, raw, trust)
        ):
            return CallRefusal(f"its arguments do not fit: {aligned.problems[0]}", name)
        if self._is_strict and trust == "recognised":
            if not at_line_start:
                return CallRefusal("it is written in another dialect, within a line", name)
            if self._tools is None or aligned.problems:
                return CallRefusal("it is written in another dialect, and its arguments do not fit", name)
        renamed = () if tool == name or name in aligned.repairs else (f"{name} → {tool}",)
        repairs = tuple(dict.fromkeys((*raw.repairs, *((POSITIONAL,) if raw.positional else ()), *renamed, *aligned.repairs)))
        args = {str(key): _drop_declared_type(value) for key, value in aligned.args.items()}
        return Call(tool, args, repairs, trust, self._dialect_of(marker, raw), (raw.start, raw.end), aligned.problems)

    def _lacks_some(self, tool: str, args: Mapping[str, Any], raw: RawCall, trust: Trust) -> bool:
        """Whether a JSON call in no agreed dialect has some arguments and lacks others: models write such calls when no tool fits."""
        schema = self._tools.schema(tool) if self._tools is not None else None
        required = schema.get("required") if schema else None
        if trust == "negotiated" or raw.form != "json" or not args or not isinstance(required, list):
            return False
        return any(key not in args for key in required)

    def _find_tool(self, name: str) -> str | UnknownTool:
        """The tool that a name means. Some templates write a name twice, or put a module before it."""
        if self._tools is None:
            return name.removesuffix(".call") if name.endswith(".call") else name
        first: UnknownTool | None = None
        for each in _candidate_names(name):
            found = align(each, {}, self._tools, mapping=self._mapping)
            if not isinstance(found, UnknownTool):
                return found.name
            first = first or found
        return first or UnknownTool(f"there is no tool called {name}")

    def _args(self, raw: RawCall, tool: str) -> dict[str, Any]:
        schema = self._tools.schema(tool) if self._tools is not None else None
        properties = schema.get("properties") if schema else None
        declared: Mapping[str, Any] = properties if isinstance(properties, dict) else {}
        args = dict(raw.args)
        if not args and len(raw.positional) == 1 and _holds_all(raw.positional[0], declared):
            return dict(raw.positional[0])
        free = [key for key in declared if key not in args]
        args |= dict(zip(free, raw.positional, strict=False))
        if not raw.is_raw:
            return args
        return {key: _infer_value(value, is_declared=key in declared, has_schema=schema is not None) for key, value in args.items()}

    def _dialect_of(self, marker: str, raw: RawCall) -> str:
        """The dialect the call is written in, or "" if unknown."""
        if self.is_negotiated(marker, raw) and self._dialect is not None:
            return self._dialect.name
        fitting = [
            dialect
            for dialect in dialect_table().values()
            if raw.form in dialect.forms and (marker in dialect.openers if marker else dialect.is_bare or dialect.in_fence)
        ]
        if raw.form == "code":  # `[f()]` is pythonic, though others take it too
            fitting.sort(key=lambda dialect: dialect.family != "code")
        return fitting[0].name if fitting else ""


def _holds_all(value: Any, declared: Mapping[str, Any]) -> bool:
    """Whether one object is all the arguments: `name({"key": value})`."""
    return isinstance(value, dict) and bool(value) and all(key in declared for key in value)


def _candidate_names(name: str) -> Iterator[str]:
    yield name
    head, dot, tail = name.partition(".")
    if dot:
        yield name.removesuffix(".call")
        yield tail
        yield name.rpartition(".")[2]
        if head == tail:
            yield head


def _infer_value(value: Any, *, is_declared: bool, has_schema: bool) -> Any:
    """A value from between tags: left as text if the schema will type it, else guessed from what it looks like."""
    if is_declared and isinstance(value, str) and _ESCAPED.match(value):
        return _unescape_json(value)
    if not isinstance(value, str) or is_declared or isinstance(value, DeclaredText):
        return value
    if has_schema and not isinstance(value, DeclaredValue):
        return value
    return guess_value(value)


def _unescape_json(text: str) -> str:
    """Unescape JSON that was escaped once too often."""
    try:
        plain, repairs = json_text.loads(f'"{text}"')
        json_text.loads(plain)
    except json_text.NotReadable:
        return text
    return text if repairs else plain


def guess_value(text: str) -> Any:
    """The value of text without a declared type: parsed if it is valid JSON, else the text itself."""
    plain = text.strip()
    if not plain or plain[0] not in '{["-0123456789tfn':
        return text
    try:
        value, repairs = json_text.loads(plain)
    except json_text.NotReadable:
        return text
    return text if repairs else value


def _drop_declared_type(value: Any) -> Any:
    return str(value) if type(value) in (DeclaredText, DeclaredValue) else value
