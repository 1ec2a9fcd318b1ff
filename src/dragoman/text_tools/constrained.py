"""Constrained decoding of one call: for models too small to write a readable call, and the last resort for others.

The answer is requested as JSON of a schema: `{"reply": …}`, which is either `answer`, or `name` and `arguments` of one tool. Servers read
the schema from `Settings.response_schema`; the answer is validated nevertheless.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.text_tools.render import CallLike, dumps
from dragoman.values.messages import Request, ToolSpec

ANSWER, REPLY = "answer", "reply"
MAX_FRAME_CHARS = 200
"""Maximum length of the JSON before the answer text."""
_FRAME = re.compile(r'\s*\{\s*"reply"\s*:\s*\{\s*"answer"\s*:\s*"')
_STRING = re.compile(r'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_HALF_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")


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


def render_reply(item: str | CallLike) -> str:
    """Text or a call as written under the grammar."""
    reply = {ANSWER: item} if isinstance(item, str) else {"name": item.name, "arguments": dict(item.args or {})}
    return dumps({REPLY: reply})


def read_constrained(text: str) -> str | tuple[str, dict[str, Any]] | None:
    """The text, or the name and arguments of the call; None if it is neither."""
    value = jsontext.decode_object(text.strip())
    match value.get(REPLY, value) if value is not None else None:
        case {"answer": str(words)}:
            return words
        case {"name": str(name), "arguments": dict(arguments)}:
            return name, arguments
        case _:
            return None


class PartialAnswer:
    """The text of an answer while it streams. `feed` returns what is new; nothing if the answer is a call."""

    def __init__(self) -> None:
        self.text = ""
        self._text = ""
        self.has_begun = self._is_over = False

    def feed(self, piece: str) -> str:
        if self._is_over:
            return ""
        self._text += piece
        if not self.has_begun:
            begun = _FRAME.match(self._text)
            if begun is None:
                self._is_over = len(self._text) > MAX_FRAME_CHARS
                return ""
            self.has_begun, self._text = True, self._text[begun.end() :]
        found = _STRING.match(self._text)
        raw = found.group() if found else ""
        if not self._text.startswith('"', len(raw)):
            raw = _HALF_PAIR.sub("", raw)
        self._text = self._text[len(raw) :]
        self._is_over = self._text.startswith('"')
        words = jsontext.valid_unicode(jsontext.decode(f'"{raw}"'))
        self.text += words
        return words


def words_so_far(text: str) -> str | None:
    """The text of a truncated answer; None if the answer was not text."""
    words = PartialAnswer()
    words.feed(text)
    return words.text if words.has_begun else None


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
