"""OpenAI Responses: would `POST /responses` accept this body?"""

from __future__ import annotations

import re

from dragoman.testing.mock.openai_shapes import (
    CACHE_BREAKPOINT,
    TEXT_FORMATS,
    VERBOSITIES,
    choice_violation,
    effort_violation,
    empty_array,
    format_violation,
    function_violation,
    id_violation,
    image_url_violation,
    model_violation,
    name_violation,
    shape_violation,
    too_long,
    unicode_violation,
    wrong_type,
    wrong_value,
)
from dragoman.testing.mock.responses_turns import input_items, reasoning_violation, results_violation, type_of_item
from dragoman.testing.mock.violation import BodyShape, Json, Kind, Rules, Violation, estimate_tokens, first_violation, is_base64

_TOP = BodyShape(
    {"model": "string"},
    {
        "access_programs": "object",
        "background": "bool?",
        "context_management": "array?",
        "conversation": "string?|object",
        "image": "object",
        "include": "array?",
        "input": "string|array",
        "instructions": "string?",
        "max_output_tokens": "int?",
        "max_tool_calls": "int?",
        "metadata": "object?",
        "moderation": "object?",
        "parallel_tool_calls": "bool?",
        "previous_response_id": "string?",
        "prompt": "object?",
        "prompt_cache_key": "string?",
        "prompt_cache_options": "object",
        "prompt_cache_retention": "string?",
        "reasoning": "object?",
        "safety_identifier": "string?",
        "service_tier": "string?",
        "store": "bool?",
        "stream": "bool?",
        "stream_options": "object?",
        "temperature": "number?",
        "text": "object",
        "tool_choice": "string|object",
        "tools": "array",
        "top_logprobs": "int?",
        "top_p": "number?",
        "truncation": "string?",
        "user": "string",
    },
)
_MOVED = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
}
"""Fields of Chat Completions, and their equivalents here."""
_INCLUDE = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)
_STREAM_OPTIONS = BodyShape({}, {"include_obfuscation": "bool"})
_UNVERIFIED = (
    "Your organization must be verified to generate reasoning summaries. "
    "Please go to: https://platform.openai.com/settings/organization/general"
)
_SUMMARIES = ("auto", "concise", "detailed")
_REASONING = BodyShape(
    {}, {"context": "string?", "effort": "string?", "generate_summary": "string?", "mode": "string", "summary": "string?"}
)
_TEXT = BodyShape({}, {"format": "object", "verbosity": VERBOSITIES})
_JSON_SCHEMA = BodyShape({"type": "string", "name": "string", "schema": "object"}, {"description": "string", "strict": "bool?"})
_FUNCTION = BodyShape(
    {"type": "string", "name": "string"},
    {
        "allowed_callers": "array?",
        "defer_loading": "bool",
        "description": "string?",
        "output_schema": "object?",
        "parameters": "object?",
        "strict": "bool?",
    },
)
_WEB_SEARCH = BodyShape(
    {"type": "string"},
    {"external_web_access": "bool", "filters": "object?", "search_context_size": VERBOSITIES, "user_location": "object?"},
)
_WEB_SEARCHES = ("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11")
_HOSTED = (
    "file_search",
    "computer",
    "computer_use_preview",
    "code_interpreter",
    "image_generation",
    "mcp",
    "local_shell",
    "shell",
    "apply_patch",
    "custom",
    "namespace",
    "tool_search",
    "programmatic_tool_calling",
)

_STATUS: dict[str, Kind] = {"id": "string?", "status": "string?"}
_STATUSES = ("in_progress", "completed", "incomplete")
_ITEMS = {
    "message": BodyShape(
        {"role": "string", "content": "string|array"}, {**_STATUS, "type": "string", "phase": ("commentary", "final_answer")}
    ),
    "function_call": BodyShape(
        {"type": "string", "call_id": "string", "name": "string", "arguments": "string"},
        {**_STATUS, "namespace": "string", "caller": "object?", "async": "bool"},
    ),
    "function_call_output": BodyShape(
        {"type": "string", "call_id": "string", "output": "string|array"},
        {**_STATUS, "name": "string?", "namespace": "string?", "caller": "object?"},
    ),
    "reasoning": BodyShape({"type": "string", "summary": "array"}, {**_STATUS, "content": "array?", "encrypted_content": "string?"}),
    "web_search_call": BodyShape({"type": "string"}, {"id": "string", "status": "string", "action": "object"}),
    "item_reference": BodyShape({"id": "string"}, {"type": "string?"}),
}
_OTHER_ITEM = re.compile(
    r"(custom_tool|file_search|computer|image_generation|code_interpreter|local_shell|shell|apply_patch|mcp|tool_search)_call(_output)?"
    r"|mcp_list_tools|mcp_approval_(request|response)|tool_search_output|compaction(_trigger)?|additional_tools|program(_output)?"
)
_ID_PREFIX = {"message": "msg", "function_call": "fc", "reasoning": "rs"}
_ROLES = ("assistant", "system", "developer", "user")
_INPUT_PARTS = {
    "input_text": BodyShape({"type": "string", "text": "string"}, CACHE_BREAKPOINT),
    "input_image": BodyShape(
        {"type": "string"},
        {**CACHE_BREAKPOINT, "detail": ("auto", "low", "high", "original"), "file_id": "string?", "image_url": "string?"},
    ),
    "input_file": BodyShape(
        {"type": "string"},
        {
            **CACHE_BREAKPOINT,
            "detail": ("auto", "low", "high"),
            "file_data": "string",
            "file_id": "string?",
            "file_url": "string",
            "filename": "string",
        },
    ),
}
_OUTPUT_PARTS = {
    "output_text": BodyShape({"type": "string", "text": "string"}, {"annotations": "array", "logprobs": "array"}),
    "refusal": BodyShape({"type": "string", "refusal": "string"}),
}
_SUMMARY = BodyShape({"type": ("summary_text",), "text": "string"})
_THOUGHT = BodyShape({"type": ("reasoning_text",), "text": "string"})
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_SOUND = re.compile(r"\.(mp3|wav|ogg|flac|m4a|aac|mp4|mov|webm|mpeg)($|[?#])", re.IGNORECASE)
_MAX_ID = 64
_MIN_OUTPUT_TOKENS = 16


def validate_responses(body: Json, rules: Rules) -> Violation | None:
    """The first violation in a Responses request, or None."""
    return first_violation(_CHECKS, body, rules)


def _fields(body: Json, rules: Rules) -> Violation | None:
    for field, place in _MOVED.items():
        if field in body and field not in rules.extra_fields:
            wording = f"Unsupported parameter: '{field}'. In the Responses API, this parameter has moved to '{place}'."
            return Violation(0, f"{wording} Try again with the new parameter.", code="unsupported_parameter")
    if found := shape_violation(body, _TOP, "", rules):
        return found
    if not any(body.get(each) for each in ("input", "previous_response_id", "prompt", "conversation")):
        if body.get("input") == []:
            return empty_array("input")
        return Violation(0, "One of 'input' or 'previous_response_id' or 'prompt' or 'conversation' must be provided.", paraphrase=True)
    tokens = body.get("max_output_tokens")
    if tokens is not None and tokens < _MIN_OUTPUT_TOKENS:
        wording = f"integer below minimum value. Expected a value >= {_MIN_OUTPUT_TOKENS}, but got {tokens} instead."
        return Violation(0, f"Invalid 'max_output_tokens': {wording}", code="integer_below_min_value")
    unknown = [each for each in body.get("include") or [] if each not in _INCLUDE]
    return wrong_value(unknown[0], _INCLUDE) if unknown else _settings(body, rules)


def _settings(body: Json, rules: Rules) -> Violation | None:
    if found := shape_violation(body.get("stream_options") or {}, _STREAM_OPTIONS, "stream_options", rules):
        return found
    reasoning = body.get("reasoning") or {}
    if found := shape_violation(reasoning, _REASONING, "reasoning", rules):
        return found
    if found := effort_violation(reasoning.get("effort"), "reasoning.effort", body["model"], rules):
        return found
    if reasoning.get("summary") not in (None, *_SUMMARIES):
        return wrong_value(reasoning["summary"], _SUMMARIES)
    if reasoning.get("summary") and not rules.verified:
        return Violation(0, f"{_UNVERIFIED} and click on Verify Organization.", code="unsupported_value", param="reasoning.summary")
    text = body.get("text") or {}
    if found := shape_violation(text, _TEXT, "text", rules):
        return found
    form = text.get("format", {"type": "text"})
    if form.get("type") not in TEXT_FORMATS:
        return wrong_value(form.get("type"), TEXT_FORMATS)
    if form["type"] == "json_schema":
        return shape_violation(form, _JSON_SCHEMA, "text.format", rules) or format_violation(form, "text.format")
    return None


def _tools(body: Json, rules: Rules) -> Violation | None:
    declared: list[str] = []
    for index, tool in enumerate(body.get("tools") or []):
        path = f"tools[{index}]"
        if not isinstance(tool, dict):
            return wrong_type(path, "object", tool)
        kind = tool.get("type")
        if kind is None:
            return Violation(0, f"Missing required parameter: '{path}.type'.", code="missing_required_parameter")
        if kind == "function":
            if found := shape_violation(tool, _FUNCTION, path, rules) or function_violation(tool, path):
                return found
            declared.append(tool["name"])
        elif kind in _WEB_SEARCHES:
            if found := shape_violation(tool, _WEB_SEARCH, path, rules):
                return found
            declared.append(kind)
        elif kind in _HOSTED:
            declared.append(str(tool.get("name") or tool.get("server_label") or kind))
        else:
            return wrong_value(kind, ("function", *_WEB_SEARCHES, *_HOSTED), paraphrase=True)
    choice = body.get("tool_choice")
    if isinstance(choice, str) and choice not in ("none", "auto", "required"):
        return wrong_value(choice, ("none", "auto", "required"))
    chosen = None
    if isinstance(choice, dict) and choice.get("type") == "function":
        if not isinstance(choice.get("name"), str):
            return Violation(0, "Missing required parameter: 'tool_choice.name'.", code="missing_required_parameter")
        chosen = choice["name"]
    elif isinstance(choice, dict) and choice.get("type") != "allowed_tools":
        chosen = str(choice.get("name") or choice.get("type"))
    elsewhere = any(
        type_of_item(item) in ("additional_tools", "tool_search_output") for item in input_items(body) if isinstance(item, dict)
    )
    return choice_violation(body, declared, chosen, elsewhere=elsewhere)


def _items(body: Json, rules: Rules) -> Violation | None:
    seen: set[str] = set()
    for index, item in enumerate(input_items(body)):
        path = f"input[{index}]"
        if not isinstance(item, dict):
            return wrong_type(path, "object", item)
        kind = type_of_item(item)
        shape = _ITEMS.get(kind)
        if shape is None:
            if _OTHER_ITEM.fullmatch(kind):
                continue
            return wrong_value(kind, _ITEMS, paraphrase=True)
        if found := shape_violation(item, shape, path, rules) or _item_id(item, kind, path, rules):
            return found
        if shape is not _ITEMS["web_search_call"] and item.get("status") not in (None, *_STATUSES):
            return wrong_value(item["status"], _STATUSES)
        if (name := item.get("id")) and kind != "item_reference":
            if name in seen:
                wording = f"Duplicate item found with id {name}. Remove duplicate items from your input and try again."
                return Violation(23, wording)
            seen.add(name)
        if found := _item(item, kind, path, rules):
            return found
    return None


def _item_id(item: Json, kind: str, path: str, rules: Rules) -> Violation | None:
    value, path = item.get("id"), f"{path}.id"
    if value is None or kind not in _ID_PREFIX or rules.free_item_ids:
        return None
    if not _ID.fullmatch(value):
        wording = "Expected an ID that contains letters, numbers, underscores, or dashes, but this value contained additional characters."
        return Violation(0, f"Invalid '{path}': '{value}'. {wording}", code="invalid_value")
    if not value.startswith(_ID_PREFIX[kind]):
        wording = f"Invalid '{path}': '{value}'. Expected an ID that begins with '{_ID_PREFIX[kind]}'."
        return Violation(0, wording, code="invalid_value")
    return too_long(value, path, _MAX_ID)


def _item(item: Json, kind: str, path: str, rules: Rules) -> Violation | None:
    match kind:
        case "message":
            return _message(item, path, rules)
        case "function_call":
            found = id_violation(item["call_id"], f"{path}.call_id", _MAX_ID, 15)
            return found or name_violation(item["name"], f"{path}.name")
        case "function_call_output":
            if found := id_violation(item["call_id"], f"{path}.call_id", _MAX_ID, 15):
                return found
            return _parts(item["output"], f"{path}.output", "user", rules) if isinstance(item["output"], list) else None
        case "reasoning":
            for index, each in enumerate(item["summary"]):
                if found := shape_violation(each, _SUMMARY, f"{path}.summary[{index}]", rules):
                    return found
            for index, each in enumerate(item.get("content") or []):
                if found := shape_violation(each, _THOUGHT, f"{path}.content[{index}]", rules):
                    return found
    return None


def _message(item: Json, path: str, rules: Rules) -> Violation | None:
    if item["role"] not in _ROLES:
        return wrong_value(item["role"], _ROLES)
    content = item["content"]
    return _parts(content, f"{path}.content", item["role"], rules) if isinstance(content, list) else None


def _parts(parts: list[object], path: str, role: str, rules: Rules) -> Violation | None:
    allowed = _OUTPUT_PARTS if role == "assistant" else _INPUT_PARTS
    for index, part in enumerate(parts):
        where = f"{path}[{index}]"
        if not isinstance(part, dict):
            return wrong_type(where, "object", part)
        kind = part.get("type")
        if not isinstance(kind, str) or kind not in allowed:
            return wrong_value(kind, allowed, paraphrase=role != "assistant")
        if found := shape_violation(part, allowed[kind], where, rules):
            return found
        if kind == "input_image" and isinstance(part.get("image_url"), str):
            if found := image_url_violation(part["image_url"], f"{where}.image_url"):
                return found
        elif kind == "input_image" and not part.get("file_id"):
            return Violation(0, f"Missing required parameter: '{where}.image_url'.", paraphrase=True, code="missing_required_parameter")
        if kind == "input_file" and _is_heard(part):
            wording = "The file type you uploaded is not supported. Please try again with a pdf"
            return Violation(0, wording, code="unsupported_file", param="input")
        if kind == "input_file" and "file_data" in part and not is_base64(part["file_data"].partition(";base64,")[2]):
            wording = f"Invalid '{where}.file_data'. Expected a base64-encoded data URL with a MIME type."
            return Violation(0, wording, paraphrase=True, code="invalid_value")
    return None


def _is_heard(part: Json) -> bool:
    """Whether a file is sound or film, by the type of its data or the end of its address."""
    return part.get("file_data", "").startswith(("data:audio/", "data:video/")) or bool(_SOUND.search(part.get("file_url", "")))


def _model(body: Json, rules: Rules) -> Violation | None:
    if rules.known_models is not None and body["model"] not in rules.known_models:
        return Violation(0, f"The requested model '{body['model']}' does not exist.", code="model_not_found", param="model")
    return model_violation(body, rules)


def _window(body: Json, rules: Rules) -> Violation | None:
    limit = rules.context_window_tokens
    if not limit or estimate_tokens(body) <= limit:
        return None
    wording = "Your input exceeds the context window of this model. Please adjust your input and try again."
    return Violation(0, wording, code="context_length_exceeded")


_CHECKS = (unicode_violation, _fields, _model, _tools, _items, results_violation, reasoning_violation, _window)
