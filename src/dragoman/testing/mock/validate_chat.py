"""OpenAI Chat Completions, and the many services that speak it: would `POST /chat/completions` accept this body?"""

from __future__ import annotations

import json
import re

import msgspec

from dragoman.testing.mock.accents import accent_of, audio_violation, details_violation, marks_violation, model_settings
from dragoman.testing.mock.chat_turns import reasoning_violation, results_violation, template_violation
from dragoman.testing.mock.openai_shapes import (
    CACHE_BREAKPOINT,
    EFFORTS,
    TEXT_FORMATS,
    VERBOSITIES,
    choice_violation,
    empty_array,
    fault_violation,
    format_violation,
    function_violation,
    id_violation,
    image_url_violation,
    model_violation,
    name_violation,
    shape_violation,
    unicode_violation,
    wrong_type,
    wrong_value,
)
from dragoman.testing.mock.violation import (
    BodyShape,
    Json,
    Kind,
    Rules,
    Violation,
    estimate_tokens,
    find_fault,
    first_violation,
    fits,
    is_base64,
)

_TOP = BodyShape(
    {"model": "string", "messages": "array"},
    {
        "audio": "object?",
        "frequency_penalty": "number?",
        "function_call": "string|object",
        "functions": "array",
        "logit_bias": "object?",
        "logprobs": "bool?",
        "max_completion_tokens": "int?",
        "max_tokens": "int?",
        "metadata": "object?",
        "modalities": "array?",
        "moderation": "object?",
        "n": "int?",
        "parallel_tool_calls": "bool",
        "prediction": "object?",
        "presence_penalty": "number?",
        "prompt_cache_key": "string?",
        "prompt_cache_options": "object",
        "prompt_cache_retention": "string?",
        "reasoning_effort": "string?",
        "response_format": "object",
        "safety_identifier": "string?",
        "seed": "int?",
        "service_tier": "string?",
        "stop": "string?|array",
        "store": "bool?",
        "stream": "bool?",
        "stream_options": "object?",
        "temperature": "number?",
        "tool_choice": "string|object",
        "tools": "array?",
        "top_logprobs": "int?",
        "top_p": "number?",
        "user": "string",
        "verbosity": VERBOSITIES,
        "web_search_options": "object",
    },
)
_STREAM_OPTIONS = BodyShape({}, {"include_usage": "bool", "include_obfuscation": "bool"})
_ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_PLAIN = BodyShape({"role": "string", "content": "string|array"}, {"name": "string"})
_MESSAGES = {
    "system": _PLAIN,
    "developer": _PLAIN,
    "user": _PLAIN,
    "function": BodyShape({"role": "string", "content": "string?", "name": "string"}),
    "tool": BodyShape({"role": "string", "content": "string|array", "tool_call_id": "string"}, {"name": "string"}),
}
_ASSISTANT: dict[str, Kind] = {
    "annotations": "array?",
    "parsed": "any",
    "content": "string?|array",
    "name": "string",
    "refusal": "string?",
    "audio": "object?",
    "tool_calls": "array",
    "function_call": "object?",
}
_PARTS = {
    "text": BodyShape({"type": "string", "text": "string"}, CACHE_BREAKPOINT),
    "refusal": BodyShape({"type": "string", "refusal": "string"}),
    "image_url": BodyShape({"type": "string", "image_url": "object"}, CACHE_BREAKPOINT),
    "input_audio": BodyShape({"type": "string", "input_audio": "object"}, CACHE_BREAKPOINT),
    "file": BodyShape({"type": "string", "file": "object"}, CACHE_BREAKPOINT),
}
_ROLE_PARTS = {"user": ("text", "image_url", "input_audio", "file"), "assistant": ("text", "refusal")}
_IMAGE_URL = BodyShape({"url": "string"}, {"detail": ("auto", "low", "high", "original")})
_AUDIO = BodyShape({"data": "string", "format": ("wav", "mp3")})
_FILE = BodyShape({}, {"file_data": "string", "file_id": "string", "filename": "string"})
_CALL = BodyShape({"id": "string", "type": ("function", "custom")}, {"index": "int", "function": "object", "custom": "object"})
_CALLED = BodyShape({"name": "string", "arguments": "string"}, {"parsed_arguments": "any"})
_TOOL = BodyShape({"type": ("function", "custom")}, {"function": "object", "custom": "object"})
_FUNCTION = BodyShape({"name": "string"}, {"description": "string", "parameters": "object", "strict": "bool?"})
_JSON_SCHEMA = BodyShape({"name": "string"}, {"description": "string", "schema": "object", "strict": "bool?"})
_MAX_ID = 40
_MAX_KEPT_ID = 1_000
_MAX_TOOLS = 128
_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")


def validate_chat(body: Json, rules: Rules) -> Violation | None:
    """The first violation in a Chat Completions request, or None."""
    rules = msgspec.structs.replace(rules, extra_fields=rules.extra_fields | accent_of(rules).fields)
    return first_violation(_CHECKS, body, rules)


def _fields(body: Json, rules: Rules) -> Violation | None:
    unknown = [field for field in body if field not in _TOP.required | _TOP.optional and field not in rules.extra_fields]
    if unknown:
        plural = "s" if len(unknown) > 1 else ""
        return Violation(0, f"Unrecognized request argument{plural} supplied: {', '.join(unknown)}")
    if fault := find_fault(body, _TOP, rules.extra_fields):
        return fault_violation(fault, "")
    if not body["messages"]:
        return empty_array("messages")
    if found := shape_violation(body.get("stream_options") or {}, _STREAM_OPTIONS, "stream_options", rules):
        return found
    return _limits(body, rules)


def _limits(body: Json, rules: Rules) -> Violation | None:
    old, new = "max_tokens", "max_completion_tokens"
    if body.get(old) is not None and body.get(new) is not None:
        wording = f"Setting '{old}' and '{new}' at the same time is not supported."
        return Violation(0, wording, code="invalid_parameter_combination")
    accent = accent_of(rules)
    refused = {old: new, new: old}.get(rules.max_tokens_field, "") if not accent.either_limit else ""
    if refused and body.get(refused) is not None:
        wording = f"Unsupported parameter: '{refused}' is not supported with this model. Use '{rules.max_tokens_field}' instead."
        return Violation(0, wording, code="unsupported_parameter")
    efforts = accent.efforts or EFFORTS
    words = tuple(word for word in rules.efforts if word in efforts) or efforts
    if body.get("reasoning_effort") not in (None, *words):
        return wrong_value(body["reasoning_effort"], words)
    inner = body.get("reasoning")
    if isinstance(inner, dict) and inner.get("effort") not in (None, *words):
        return wrong_value(inner["effort"], words)
    return model_settings(body)


def _format(body: Json, rules: Rules) -> Violation | None:
    form = body.get("response_format")
    if form is None:
        return None
    kind = form.get("type")
    if kind not in TEXT_FORMATS:
        return wrong_value(kind, TEXT_FORMATS)
    if kind == "json_schema":
        if "json_schema" not in form:
            return Violation(0, "Missing required parameter: 'response_format.json_schema'.", code="missing_required_parameter")
        path = "response_format.json_schema"
        found = shape_violation(form["json_schema"], _JSON_SCHEMA, path, rules)
        return found or format_violation(form["json_schema"], path, is_checked=_is_strict_checked(body, rules))
    if kind == "json_object" and "json" not in json.dumps(body["messages"]).lower():
        wording = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        return Violation(0, wording)
    return None


def _tools(body: Json, rules: Rules) -> Violation | None:
    tools = body.get("tools")
    if tools == []:
        return empty_array("tools")
    if tools and len(tools) > _MAX_TOOLS:
        wording = f"Expected an array with maximum length {_MAX_TOOLS}, but got an array with length {len(tools)} instead."
        return Violation(0, f"Invalid 'tools': array too long. {wording}", code="array_above_max_length")
    declared: list[str] = []
    accent = accent_of(rules)
    for index, tool in enumerate(tools or []):
        path = f"tools[{index}]"
        if isinstance(tool, dict) and accent.server_tools and str(tool.get("type")).startswith(accent.server_tools):
            continue
        if isinstance(tool, dict) and accent.untyped_tools:
            tool = {"type": "function", **tool}
        if found := shape_violation(tool, _TOOL, path, rules):
            return found
        if tool["type"] not in tool:
            return Violation(0, f"Missing required parameter: '{path}.{tool['type']}'.", code="missing_required_parameter")
        if tool["type"] == "custom":
            declared.append(str(tool["custom"].get("name")))
            continue
        path, function = f"{path}.function", tool["function"]
        found = shape_violation(function, _FUNCTION, path, rules)
        if found := found or function_violation(function, path, is_checked=_is_strict_checked(body, rules)):
            return found
        declared.append(function["name"])
    choice = body.get("tool_choice")
    words = ("none", "auto", "required", *accent.choices)
    if isinstance(choice, str) and choice not in words:
        return wrong_value(choice, words)
    chosen = None
    if isinstance(choice, dict) and choice.get("type") not in ("function", "custom", "allowed_tools"):
        return wrong_value(choice.get("type"), ("function", "custom", "allowed_tools"))
    if isinstance(choice, dict) and choice["type"] != "allowed_tools":
        named = choice.get(choice["type"])
        if not isinstance(named, dict) or not isinstance(named.get("name"), str):
            return Violation(0, f"Missing required parameter: 'tool_choice.{choice['type']}'.", code="missing_required_parameter")
        chosen = named["name"]
    return choice_violation(body, declared, chosen) if tools or not accent.choices else None


def _messages(body: Json, rules: Rules) -> Violation | None:
    for index, message in enumerate(body["messages"]):
        path = f"messages[{index}]"
        if not isinstance(message, dict):
            return wrong_type(path, "object", message)
        role = message.get("role")
        if "role" not in message:
            return Violation(0, f"Missing required parameter: '{path}.role'.", code="missing_required_parameter")
        if role not in _ROLES:
            return wrong_value(role, _ROLES)
        check = _assistant(message, path, rules) if role == "assistant" else shape_violation(message, _MESSAGES[role], path, rules)
        if found := check or _content(message, path, rules) or audio_violation(message, path, body["model"]):
            return found
    return None


def _is_strict_checked(body: Json, rules: Rules) -> bool:
    return body["model"].startswith(accent_of(rules).strict_models)


def _assistant(message: Json, path: str, rules: Rules) -> Violation | None:
    optional = _ASSISTANT
    if rules.reasoning_field and rules.reasoning_back != "never":
        optional = {**_ASSISTANT, "reasoning_content": "string?", "reasoning": "string?"}
    if found := details_violation(message.get("reasoning_details"), path, rules.known_signatures):
        return found
    if found := shape_violation(message, BodyShape({"role": "string"}, optional), path, rules):
        reasoning = found.code == "unknown_parameter" and found.message.endswith(("reasoning_content'.", ".reasoning'."))
        return Violation(12, found.message, code=found.code) if reasoning else found
    calls = message.get("tool_calls")
    if calls == [] and not accent_of(rules).empty_lists:
        return empty_array(f"{path}.tool_calls")
    instead = ("refusal", "audio", "function_call", "reasoning_details")
    if not calls and message.get("content") is None and not any(message.get(each) for each in instead):
        return wrong_type(f"{path}.content", "string|array", None)
    for index, call in enumerate(calls or []):
        if found := _call(call, f"{path}.tool_calls[{index}]", rules):
            return found
    return None


def _max_id(rules: Rules) -> int:
    return _MAX_KEPT_ID if rules.call_id == "kept" else _MAX_ID


def _call(call: Json, path: str, rules: Rules) -> Violation | None:
    if isinstance(call, dict) and accent_of(rules).untyped_tools:
        call = {"type": "function", **call}
    if found := shape_violation(call, _CALL, path, rules) or id_violation(call["id"], f"{path}.id", _max_id(rules), 11):
        return found
    if rules.call_id == "mistral" and not _MISTRAL_ID.fullmatch(call["id"]):
        return _not_mistral(call["id"])
    if call["type"] not in call:
        return Violation(0, f"Missing required parameter: '{path}.{call['type']}'.", code="missing_required_parameter")
    if call["type"] == "custom":
        return None
    function, path = call["function"], f"{path}.function"
    if found := shape_violation(function, _CALLED, path, rules) or name_violation(function["name"], f"{path}.name"):
        return found
    if rules.strict_template and not _is_object(function["arguments"]):
        return Violation(0, f"'{path}.arguments' is not a JSON object: the chat template cannot render it", paraphrase=True)
    return None


def _content(message: Json, path: str, rules: Rules) -> Violation | None:
    content, role = message.get("content"), message["role"]
    if role == "tool" and (found := id_violation(message["tool_call_id"], f"{path}.tool_call_id", _max_id(rules), 11)):
        return found
    if content == [] and not accent_of(rules).empty_lists:
        return empty_array(f"{path}.content")
    if content == "" and rules.empty_text_refused and not message.get("tool_calls"):
        return Violation(14, "text content is empty")
    for index, part in enumerate(content if isinstance(content, list) else []):
        if found := _part(part, role, f"{path}.content[{index}]", rules):
            return found
    return None


def _part(part: object, role: str, path: str, rules: Rules) -> Violation | None:
    if not isinstance(part, dict):
        return wrong_type(path, "object", part)
    accent = accent_of(rules)
    seen = ("image_url",) if role in accent.image_roles else ()
    kind, allowed = part.get("type"), (*_ROLE_PARTS.get(role, ("text",)), *accent.parts, *seen)
    if kind == "image_url" and role != "user" and role not in accent.image_roles:
        message = path.partition(".")[0]
        wording = f"Image URLs are only allowed for messages with role 'user', but this message with role '{role}' contains an image URL."
        return Violation(0, f"Invalid '{message}'. {wording}", code="invalid_value")
    if not isinstance(kind, str) or kind not in allowed:
        return wrong_value(kind, allowed)
    if kind == "image_url" and isinstance(part.get("image_url"), str) and fits("", accent.image_urls):
        return image_url_violation(part["image_url"], f"{path}.image_url")
    if found := shape_violation(part, accent.parts.get(kind) or _PARTS[kind], path, rules):
        return found
    match kind:
        case "text" if not part["text"] and rules.empty_text_refused:
            return Violation(14, "text content is empty")
        case "image_url":
            found = shape_violation(part["image_url"], _IMAGE_URL, f"{path}.image_url", rules)
            return found or image_url_violation(part["image_url"]["url"], f"{path}.image_url.url")
        case "input_audio":
            return shape_violation(part["input_audio"], _AUDIO, f"{path}.input_audio", rules)
        case "file":
            return _file(part["file"], f"{path}.file", rules)
    return None


def _file(file: Json, path: str, rules: Rules) -> Violation | None:
    if found := shape_violation(file, _FILE, path, rules):
        return found
    if "file_id" in file:
        return None
    data = file.get("file_data", "")
    if not re.match(r"data:[^;,]+;base64,", data) or not is_base64(data.partition(",")[2]):
        wording = f"Invalid '{path}.file_data'. Expected a base64-encoded data URL with a MIME type."
        return Violation(0, wording, paraphrase=True, code="invalid_value")
    if "filename" not in file:
        return Violation(0, f"Missing required parameter: '{path}.filename'.", paraphrase=True, code="missing_required_parameter")
    return None


def _window(body: Json, rules: Rules) -> Violation | None:
    limit = rules.context_window_tokens
    if not limit or (tokens := estimate_tokens(body)) <= limit:
        return None
    if rules.service == "llama.cpp":
        wording = f"request ({tokens} tokens) exceeds the available context size ({limit} tokens), try increasing it"
        return Violation(0, wording, code="exceed_context_size_error")
    wording = f"This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} tokens. "
    return Violation(0, f"{wording}Please reduce the length of the messages.", code="context_length_exceeded")


def _not_mistral(value: str) -> Violation:
    return Violation(13, f"Tool call id was {value} but must be a-z, A-Z, 0-9, with a length of 9.", code="3280")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


_CHECKS = (
    unicode_violation,
    _fields,
    model_violation,
    _messages,
    _tools,
    _format,
    results_violation,
    reasoning_violation,
    template_violation,
    marks_violation,
    _window,
)
