"""Constrained decoding of one call: for models too small to write a readable call, and the last resort for others.

The answer is requested as JSON of a schema: `{"reply": …}`, which is either `answer`, or `name` and `arguments` of one tool. Servers read
the schema from `Settings.response_schema`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.values.messages import Request, ToolSpec

ANSWER, REPLY = "answer", "reply"


def call_schema(tools: Sequence[ToolSpec], choice: str = "auto") -> str:
    """JSON Schema of an answer that is a call of one of these tools, or text; `choice` may allow only one of the two."""
    forms: list[Any] = [_object({ANSWER: {"type": "string"}})] if choice in ("auto", "none") else []
    definitions: dict[str, Any] = {}
    for tool in tools:
        if choice not in ("auto", "required", tool.name):
            continue
        schema = jsontext.decode_object(tool.parameters) or {"type": "object"}
        definitions[tool.name] = _rebase_references(schema, f"#/$defs/{_escape_pointer(tool.name)}")
        forms.append(_object({"name": {"const": tool.name}, "arguments": {"$ref": f"#/$defs/{_escape_pointer(tool.name)}"}}))
    return jsontext.dumps({**_object({REPLY: {"anyOf": forms}}), "$defs": definitions})  # OpenAI accepts only an object at the top


def constrain_request(request: Request) -> Request:
    """The same request with its answer constrained to one call or text, as its tool choice allows."""
    schema = call_schema(request.tools, request.settings.tool_choice)
    settings = msgspec.structs.replace(request.settings, response_mime="application/json", response_schema=schema)
    return msgspec.structs.replace(request, settings=settings)


def is_constrained(request: Request) -> bool:
    settings = request.settings
    return bool(request.tools and settings.response_schema) and settings.response_schema == call_schema(request.tools, settings.tool_choice)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _rebase_references(value: Any, place: str) -> Any:
    """Adjust a schema's references for its new location."""
    match value:
        case dict():
            return {
                key: place + item[1:]
                if key == "$ref" and isinstance(item, str) and item.startswith("#")
                else _rebase_references(item, place)
                for key, item in value.items()
            }
        case list():
            return [_rebase_references(item, place) for item in value]
        case _:
            return value


def _escape_pointer(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
