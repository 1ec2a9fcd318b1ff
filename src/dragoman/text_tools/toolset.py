"""The tools offered to a model, in the one form that parser, alignment and prompts use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dragoman.base import jsontext
from dragoman.values.errors import InputError, shown
from dragoman.values.messages import ToolSpec
from dragoman.words import say

Tool = ToolSpec | Mapping[str, Any]
"""A ToolSpec, or a plain dict {name, description, parameters}; the envelope of OpenAI around it, or Gemini's around several, is removed."""

_PARAMETERS = ("parameters", "parametersJsonSchema", "parameters_json_schema", "input_schema")


class Toolset:
    """Tool names in the order they were offered, each with the schema of its arguments, or None."""

    def __init__(self, schemas: Mapping[str, dict[str, Any] | None], descriptions: Mapping[str, str] | None = None) -> None:
        self._schemas = dict(schemas)
        self._descriptions = dict(descriptions or {})

    @classmethod
    def of(cls, tools: Iterable[Tool] | Toolset | None) -> Toolset | None:
        """None stays None: any tool name is then accepted."""
        if tools is None or isinstance(tools, Toolset):
            return tools
        schemas: dict[str, dict[str, Any] | None] = {}
        descriptions: dict[str, str] = {}
        for tool in _each(tools):
            name, description, schema = _read(tool)
            if name and name not in schemas:
                schemas[name], descriptions[name] = schema, description
        return cls(schemas, descriptions)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._schemas)

    def __contains__(self, name: object) -> bool:
        return name in self._schemas

    def __len__(self) -> int:
        return len(self._schemas)

    def schema(self, name: str) -> dict[str, Any] | None:
        """The JSON Schema of a tool's arguments; None if the tool is unknown or declares nothing."""
        return self._schemas.get(name)

    def description(self, name: str) -> str:
        return self._descriptions.get(name, "")


def _each(tools: Iterable[Tool]) -> Iterator[Tool]:
    """Raises InputError for what declares no tool."""
    given: Iterable[Any] = (tools,) if isinstance(tools, (str, Mapping)) else tools
    for tool in given:
        if not isinstance(tool, (ToolSpec, Mapping)):
            raise InputError(say("tools.not_a_declaration", given=shown(tool)))
        listed = tool.get("functionDeclarations", tool.get("function_declarations")) if isinstance(tool, Mapping) else None
        if isinstance(listed, (list, tuple)):
            yield from _each(listed)
        else:
            yield tool


def _read(tool: Tool) -> tuple[str, str, dict[str, Any] | None]:
    if isinstance(tool, ToolSpec):
        return tool.name, tool.description, _object(tool.parameters)
    inner = tool.get("function")
    body = inner if isinstance(inner, Mapping) else tool
    parameters = next((body[key] for key in _PARAMETERS if body.get(key) is not None), None)
    return str(body.get("name") or ""), str(body.get("description") or ""), _object(parameters)


def _object(parameters: Any) -> dict[str, Any] | None:
    """The schema as a dict; None if it is missing, null, or not an object."""
    if isinstance(parameters, str | bytes):
        text = parameters.decode("utf-8", "replace") if isinstance(parameters, bytes) else parameters
        return jsontext.decode_object(text)
    return dict(parameters) if isinstance(parameters, Mapping) else None
