"""Whether the newest official SDK of a service could send a body: its request types, with every unknown field refused.

Runs where the SDKs are installed (`make wire-check`). Services without an SDK of their own tell their users to take OpenAI's, and name the
fields they have beyond it; those are listed here.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple

from checks.wire_cases import Row

PACKAGES = ("openai", "anthropic", "google-genai", "mistralai", "groq", "together", "openrouter", "zai-sdk")

Check = Callable[[dict[str, Any]], str]
"""What is wrong with a body; empty if nothing is."""


class Official(NamedTuple):
    """How a service's requests are checked."""

    package: str
    check: Check
    beyond: str = ""
    """Fields that the service documents beyond the SDK's types."""

    @property
    def label(self) -> str:
        return f"{self.package} {version(self.package)}" + (f" + {self.beyond}" if self.beyond else "")


CHAT = "openai.types.chat.completion_create_params:CompletionCreateParamsStreaming"
RESPONSES = "openai.types.responses.response_create_params:ResponseCreateParamsStreaming"
MESSAGES = "anthropic.types.beta.message_create_params:MessageCreateParamsStreaming"

_USAGE = ("stream_options",)
"""Groq and Together document it, and answered 200 to it in recorded exchanges."""
_BEYOND_OPENAI: dict[str, tuple[str, ...]] = {
    "qwen": ("enable_thinking", "thinking_budget", "reasoning_content"),
    "deepseek": ("thinking", "reasoning_content"),
    "kimi": ("thinking", "reasoning_content"),
    "ollama": ("reasoning", "reasoning_content"),
    "llamacpp": ("chat_template_kwargs", "reasoning_content", "return_progress"),
    "lmstudio": ("reasoning_content",),
    "vllm": ("chat_template_kwargs", "reasoning", "reasoning_content"),
    "sglang": ("chat_template_kwargs", "reasoning_content"),
    "local": ("chat_template_kwargs", "reasoning_content", "grammar", "return_progress", "cache_prompt"),
}


def official(row: Row) -> Official:
    """The SDK that checks what is sent to a deployment."""
    match row.deployment.name, row.deployment.protocol:
        case "mistral", _:
            return Official("mistralai", _round_trip("mistralai.client.models:ChatCompletionStreamRequest"))
        case "groq", _:
            return Official("groq", _typed("groq.types.chat.completion_create_params:CompletionCreateParams", _USAGE), "`stream_options`")
        case "together", _:
            return Official("together", _together, "`stream_options`")
        case "openrouter", _:
            return Official("openrouter", _round_trip("openrouter.components:ChatRequest"))
        case "glm", _:
            return Official("zai-sdk", _glm)
        case name, "gemini":
            return Official("google-genai", _vertex if name.startswith("vertex") else _gemini)
        case _, "anthropic":
            return Official("anthropic", _typed(MESSAGES))
        case _, "openai_responses":
            return Official("openai", _responses)
        case name, _:
            extra = _BEYOND_OPENAI.get(name, ())
            return Official("openai", _typed(CHAT, extra), ", ".join(f"`{field}`" for field in extra))


# --- types → a strict check ---------------------------------------------------------------------------------------------------


def _typed(name: str, beyond: tuple[str, ...] = ()) -> Check:
    return lambda body: _fault(name, _without(body, beyond))


def _fault(name: str, body: Any) -> str:
    from pydantic_core import ValidationError

    try:
        _validator(name).validate_python(body)
    except ValidationError as error:
        return _shortest(error.errors(include_url=False, include_context=False))
    return ""


def _round_trip(name: str) -> Check:
    """For SDKs whose types keep or drop what they do not know: what they read must be all that was said."""

    def check(body: dict[str, Any]) -> str:
        from pydantic import ValidationError

        try:
            read = _kind(name).model_validate(body)
        except ValidationError as error:
            return _shortest(error.errors(include_url=False, include_context=False))
        return _difference(read.model_dump(mode="json", by_alias=True, exclude_unset=True), body)

    return check


def _kind(name: str) -> Any:
    module, _, kind = name.partition(":")
    return getattr(importlib.import_module(module), kind)


@cache
def _validator(name: str) -> Any:
    from pydantic import TypeAdapter
    from pydantic_core import SchemaValidator

    return SchemaValidator(_strict(TypeAdapter(_kind(name)).core_schema))


def _strict(schema: Any) -> Any:
    """The schema with unknown fields refused, and what is read lazily read at once."""
    match schema:
        case dict():
            inside = {key: _strict(value) for key, value in schema.items()}
            match inside.get("type"):
                case "generator":
                    return {"type": "list", **{key: inside[key] for key in ("items_schema", "ref") if key in inside}}
                case "typed-dict" | "model-fields":
                    return inside | {"extra_behavior": "allow" if "extras_schema" in inside else "forbid"}
                case "model":  # its fields alone: a model would be read by its own validator, which lets unknown ones pass
                    return inside["schema"] | ({"ref": inside["ref"]} if "ref" in inside else {})
                case _:
                    return inside
        case list():
            return [_strict(item) for item in schema]
        case tuple():
            return tuple(_strict(item) for item in schema)
        case _:
            return schema


def _without(value: Any, fields: tuple[str, ...]) -> Any:
    """The body without fields that the service has beyond the SDK: at the top, and in messages."""
    rest = {key: item for key, item in value.items() if key not in fields}
    messages = [{key: item for key, item in each.items() if key not in fields} for each in value.get("messages", ())]
    return rest | ({"messages": messages} if "messages" in rest else {})


def _shortest(errors: list[Any]) -> str:
    """Of a union every branch says what it lacks: the deepest place is where the best fitting one fails."""
    worst = max(errors, key=lambda error: len(error["loc"]))
    return f"{'.'.join(map(str, worst['loc']))}: {worst['msg']}"


# --- services whose SDK has no type of the whole body ---------------------------------------------------------------------------


def _glm(body: dict[str, Any]) -> str:
    """z.ai's SDK types the top level by its parameters, and the rest is OpenAI's."""
    from zai.api_resource.chat.completions import Completions

    known = set(inspect.signature(Completions.create).parameters)
    if unknown := sorted(set(body) - known - {"stream_options"}):
        return f"{unknown[0]}: not a parameter"
    return _typed(CHAT, ("thinking", "reasoning_content"))(body)


def _together(body: dict[str, Any]) -> str:
    """The SDK demands fields of answers in requests, which the service's pages never send: `index` of a call, `arguments` of a choice."""
    completed = {**body, "messages": [_with_index(each) for each in body["messages"]]}
    if isinstance(choice := body.get("tool_choice"), dict):
        completed["tool_choice"] = {**choice, "id": "", "index": 0, "function": {"arguments": "", **choice["function"]}}
    return _typed("together.types.chat.completion_create_params:CompletionCreateParamsStreaming", _USAGE)(completed)


def _with_index(message: dict[str, Any]) -> dict[str, Any]:
    calls = [{"index": index, **call} for index, call in enumerate(message.get("tool_calls", ()))]
    return message | ({"tool_calls": calls} if calls else {})


def _responses(body: dict[str, Any]) -> str:
    """The SDK types items as a stored conversation has them. Without storage, services took reasoning without an id, and answers without
    id and status, in dozens of recorded exchanges."""
    return _typed(RESPONSES)({**body, "input": [_stored(item) for item in body["input"]]})


def _stored(item: dict[str, Any]) -> dict[str, Any]:
    if item.get("type") == "reasoning":
        return {"id": "rs_1", **item}
    content = item.get("content")
    if isinstance(content, list) and any(block.get("type") == "output_text" for block in content):
        return {"id": "msg_1", "status": "completed", **item, "content": [{"annotations": [], **block} for block in content]}
    return item


def _gemini(body: dict[str, Any]) -> str:
    return _google(body, "_GenerateContentParameters_to_mldev")


def _vertex(body: dict[str, Any]) -> str:
    return _google(body, "_GenerateContentParameters_to_vertex")


def _google(body: dict[str, Any], converter: str) -> str:
    """The SDK makes the same body from its own types as we do."""
    from google.genai import Client, models, types
    from pydantic import ValidationError

    settings = {**body.get("generationConfig", {})}
    settings |= {key: body[key] for key in ("systemInstruction", "tools", "toolConfig", "safetySettings") if key in body}
    if unknown := sorted(set(body) - {"contents", "generationConfig", "systemInstruction", "tools", "toolConfig", "safetySettings"}):
        return f"{unknown[0]}: not a parameter"
    client = Client(api_key="key") if converter.endswith("mldev") else _vertex_client()
    try:
        config = types.GenerateContentConfig.model_validate(settings)
        contents = [types.Content.model_validate(each) for each in body["contents"]]
        asked = types._GenerateContentParameters(model="model", contents=contents, config=config)
        made = getattr(models, converter)(client._api_client, asked, None, asked)
    except (ValidationError, ValueError) as error:
        return str(error).splitlines()[0] if not isinstance(error, ValidationError) else _shortest(error.errors())
    return _difference(_ordered(_plain(made)), _ordered(_plain(body)))


@cache
def _vertex_client() -> Any:
    from google.auth.credentials import AnonymousCredentials
    from google.genai import Client

    return Client(vertexai=True, project="project", location="global", credentials=AnonymousCredentials())


def _plain(value: Any) -> Any:
    """As JSON would have it, without what is empty: the SDK's own fields (`_url`, `_query`) are not part of the body."""
    import base64
    import enum

    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case enum.Enum():
            return value.value
        case Mapping():
            return {key: _plain(item) for key, item in value.items() if not key.startswith("_") and item is not None}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return _plain(value.model_dump(by_alias=True, exclude_none=True)) if hasattr(value, "model_dump") else value


def _ordered(body: dict[str, Any]) -> dict[str, Any]:
    """Tools may come in any order, and settings may be empty."""
    return {"generationConfig": {}, **body, "tools": sorted(body.get("tools", ()), key=str)}


def _difference(theirs: Any, ours: Any, where: str = "") -> str:
    """The first place where the SDK's body differs from ours."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            if key not in theirs or key not in ours:
                return f"{where}{key}: only in {'ours' if key in ours else 'the SDK’s'}"
            if found := _difference(theirs[key], ours[key], f"{where}{key}."):
                return found
        return ""
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        found = (_difference(each, other, f"{where}{index}.") for index, (each, other) in enumerate(zip(theirs, ours, strict=True)))
        return next(filter(None, found), "")
    if theirs == ours or (isinstance(theirs, str) and isinstance(ours, str) and _folded(theirs) == _folded(ours)):
        return ""
    return f"{where.rstrip('.')}: {theirs!r} there, {ours!r} here"


def _folded(text: str) -> str:
    """Enums are taken in either case, base64 in either alphabet."""
    return text.lower().replace("-", "+").replace("_", "/")
