"""Tools that are declared to the model and carried out elsewhere: by whoever holds the conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.base import jsontext
from dragoman.tools.registry import check_name
from dragoman.values.calls import Intent, Later, Show, ToolOutput
from dragoman.values.errors import InputError, shown
from dragoman.values.messages import ToolCall, ToolSpec
from dragoman.values.parts import call_in_words
from dragoman.words import say


class DeclaredTool:
    """A tool without code of ours. A call of it waits for its result."""

    is_trusted = True
    """Nobody is asked here: whoever carries it out decides."""

    def __init__(self, spec: ToolSpec) -> None:
        check_name(spec.name)
        self._spec = spec

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return Intent(call_in_words(ToolCall("", self._spec.name, jsontext.dumps(dict(args)))))

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        raise Later


def read_declarations(tool: ToolSpec | Mapping[str, Any]) -> tuple[ToolSpec, ...]:
    """Read a declaration as the services write it: {name, description, parameters}, OpenAI's with `function` around it, Anthropic's with
    `input_schema`, or Gemini's list of `functionDeclarations`. Raises InputError for anything else."""
    if isinstance(tool, ToolSpec):
        return (tool,)
    listed = tool.get("functionDeclarations", tool.get("function_declarations"))
    if isinstance(listed, (list, tuple)):
        return tuple(spec for each in listed for spec in read_declarations(_mapping(each)))
    if search := next((each for each in (*tool, tool.get("type")) if str(each).startswith(_SEARCHES)), None):
        raise InputError(say("tools.search_is_no_tool", given=repr(search)))
    inner = tool.get("function")
    body = inner if isinstance(inner, Mapping) else tool
    name, description = body.get("name"), body.get("description", "")
    parameters = next((body[key] for key in _PARAMETERS if body.get(key) is not None), _NO_PARAMETERS)
    if not isinstance(name, str) or not name or not isinstance(description, str) or not isinstance(parameters, Mapping):
        raise InputError(say("tools.not_a_declaration", given=", ".join(map(repr, tool))[:80] or "{}"))
    return (ToolSpec(name, description, jsontext.dumps(parameters)),)


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(say("tools.not_a_declaration", given=shown(value)))
    return value


_SEARCHES = ("googleSearch", "google_search", "web_search")
"""How the services begin the name of their own search."""
_PARAMETERS = ("parameters", "parametersJsonSchema", "parameters_json_schema", "input_schema", "inputSchema")
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}
