"""Anthropic Messages: would `POST /v1/messages` accept this body?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dragoman.testing.mock.anthropic_blocks import (
    CACHE_CONTROL,
    MESSAGE,
    block_violation,
    content_of,
    shape_violation,
    text_block_violation,
)
from dragoman.testing.mock.anthropic_models import abilities_of
from dragoman.testing.mock.anthropic_schemas import schema_violation
from dragoman.testing.mock.anthropic_turns import last_role_violation, results_violation, server_results_violation, thinking_violation
from dragoman.testing.mock.violation import (
    BodyShape,
    Json,
    Rules,
    Violation,
    estimate_tokens,
    find_fault,
    first_violation,
    listing,
    lone_surrogate_at,
)

_TOP = BodyShape(
    {"model": "string", "max_tokens": "int", "messages": "array"},
    {
        "cache_control": "object?",
        "container": "object?|string",
        "context_management": "object?",
        "diagnostics": "object?",
        "inference_geo": "string?",
        "mcp_servers": "array",
        "metadata": "object",
        "output_config": "object",
        "output_format": "object?",
        "service_tier": ("auto", "standard_only"),
        "speed": "string?",
        "stop_sequences": "array",
        "stream": "bool",
        "system": "string|array",
        "temperature": "number",
        "thinking": "object",
        "tool_choice": "object",
        "tools": "array",
        "top_k": "int",
        "top_p": "number",
        "user_profile_id": "string",
        "workspace_id": "string",
    },
)
_THINKING = {
    "enabled": BodyShape({"type": "string", "budget_tokens": "int"}, {"display": "string?", "block_binding": "object?"}),
    "adaptive": BodyShape({"type": "string"}, {"display": "string?", "block_binding": "object?"}),
    "disabled": BodyShape({"type": "string"}),
    "between_tools": BodyShape({"type": "string"}),
}
_BLOCK_BINDING = BodyShape({}, {"prefix_mismatch_behavior": ("error", "drop_block")})
_TOOL_CHOICE = {
    "auto": BodyShape({"type": "string"}, {"disable_parallel_tool_use": "bool"}),
    "any": BodyShape({"type": "string"}, {"disable_parallel_tool_use": "bool"}),
    "tool": BodyShape({"type": "string", "name": "string"}, {"disable_parallel_tool_use": "bool"}),
    "none": BodyShape({"type": "string"}),
}
_OUTPUT_CONFIG = BodyShape({}, {"effort": "string?", "format": "object?", "task_budget": "object?"})
_FORMAT = BodyShape({"type": ("json_schema",), "schema": "object"})
_CUSTOM_TOOL = BodyShape(
    {"name": "string", "input_schema": "object"},
    {
        "allowed_callers": "array",
        "cache_control": "object?",
        "defer_loading": "bool",
        "description": "string",
        "eager_input_streaming": "bool?",
        "input_examples": "array",
        "strict": "bool",
        "type": "string?",
    },
)
_WEB_SEARCH = BodyShape(
    {"type": "string", "name": ("web_search",)},
    {
        "allowed_callers": "array",
        "allowed_domains": "array?",
        "blocked_domains": "array?",
        "cache_control": "object?",
        "defer_loading": "bool",
        "max_uses": "int?",
        "response_inclusion": ("full", "excluded"),
        "strict": "bool",
        "user_location": "object?",
    },
)
_METADATA = BodyShape({}, {"user_id": "string?"})
_SERVER_TOOLS = ("web_search", "web_fetch", "code_execution", "tool_search_tool", "bash", "memory", "text_editor", "computer", "browser")
_SERVER_TOOLS += ("advisor",)
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_PROPERTY_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_MAX_CACHE_BLOCKS = 4


def validate_anthropic(body: Json, rules: Rules) -> Violation | None:
    """The first violation in a Messages request, or None."""
    return first_violation(_CHECKS, body, rules)


def _unicode(body: Json, _rules: Rules) -> Violation | None:
    at = lone_surrogate_at(body)
    if at is None:
        return None
    where = f"line 1 column {at + 1} (char {at})"
    return Violation(24, f"The request body is not valid JSON: no low surrogate in string: {where}")


def _fields(body: Json, rules: Rules) -> Violation | None:
    if found := shape_violation(body, _TOP, "", rules):
        return found
    if found := shape_violation(body.get("metadata", {}), _METADATA, "metadata.", rules):
        return found
    if body["max_tokens"] < 0:
        return Violation(0, "max_tokens: Input should be greater than or equal to 0")
    if any(not isinstance(each, str) for each in body.get("stop_sequences", [])):
        return Violation(0, "stop_sequences.0: Input should be a valid string")
    if any(not each.strip() for each in body.get("stop_sequences", [])):
        return Violation(0, "stop_sequences: each stop sequence must contain non-whitespace")
    if rules.known_models is not None and body["model"] not in rules.known_models:
        return Violation(0, f"model: {body['model']}", status=404, code="not_found_error")
    return None


def _sampling(body: Json, rules: Rules) -> Violation | None:
    given = [field for field in ("temperature", "top_p", "top_k") if field in body]
    if given and not rules.temperature:
        return Violation(0, f"`{given[0]}` is deprecated for this model.")
    if not 0 <= body.get("temperature", 1) <= 1:
        return Violation(0, "temperature: range: 0..1", paraphrase=True)
    if "temperature" in body and "top_p" in body and not abilities_of(body["model"]).temperature_with_top_p:
        return Violation(0, "`temperature` and `top_p` cannot both be specified for this model. Please use only one.")
    if not _thinks(body):
        return None
    if body.get("temperature", 1) != 1:
        return Violation(0, "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.")
    if "top_k" in body:
        return Violation(0, "`top_k` must be unset when thinking is enabled or in adaptive mode.")
    if body.get("top_p", 1) < 0.95:
        wording = "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled or in adaptive mode."
        return Violation(0, wording, paraphrase=True)
    return None


def _thinking_config(body: Json, rules: Rules) -> Violation | None:
    config = body.get("thinking")
    if config is None:
        return None
    kind = str(config.get("type"))
    if kind not in _THINKING:
        return _bad_tag("thinking", kind, _THINKING)
    if found := shape_violation(config, _THINKING[kind], f"thinking.{kind}.", rules):
        return found
    if found := shape_violation(config.get("block_binding") or {}, _BLOCK_BINDING, f"thinking.{kind}.block_binding.", rules):
        return found
    takes = abilities_of(body["model"])
    if kind == "enabled" and not takes.budget:
        wording = '"thinking.type.enabled" is not supported for this model. '
        return Violation(0, f'{wording}Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.')
    if kind == "adaptive" and not takes.adaptive:
        return Violation(0, "adaptive thinking is not supported on this model")
    if kind == "disabled" and not takes.thinking_off:
        return Violation(0, '"thinking.type.disabled" is not supported for this model.', paraphrase=True)
    if kind == "enabled":
        if config["budget_tokens"] < 1024:
            return Violation(0, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if config["budget_tokens"] >= body["max_tokens"]:
            return Violation(0, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    return None


def _output_config(body: Json, rules: Rules) -> Violation | None:
    config = body.get("output_config", {})
    if found := shape_violation(config, _OUTPUT_CONFIG, "output_config.", rules):
        return found
    effort, known, taken = config.get("effort"), abilities_of("").efforts, abilities_of(body["model"]).efforts
    if effort not in (None, *known):
        return Violation(0, f"output_config.effort: Input should be {listing(known, ' or ')}")
    if effort is not None and effort not in taken:
        why = f"effort level '{effort}'. Supported levels: {', '.join(taken)}." if taken else "the effort parameter."
        return Violation(0, f"This model does not support {why}")
    for where, form in (("output_config.format", config.get("format")), ("output_format", body.get("output_format"))):
        if form is None:
            continue
        if found := shape_violation(form, _FORMAT, f"{where}.", rules) or schema_violation(form["schema"], f"{where}.schema"):
            return found
    return None


def _system(body: Json, rules: Rules) -> Violation | None:
    system = body.get("system")
    if system is None:
        return None
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    for index, block in enumerate(blocks):
        if not isinstance(block, dict) or block.get("type") != "text":
            return Violation(9, f"system.{index}.type: Input should be 'text'")
        if found := block_violation(block, f"system.{index}", "system", rules, tagged=False):
            return found
        if found := text_block_violation(block, f"system.{index}", "system"):
            return found
    return None


def _tools(body: Json, rules: Rules) -> Violation | None:
    names: list[str] = []
    for index, tool in enumerate(body.get("tools", [])):
        if not isinstance(tool, dict):
            return Violation(0, f"tools.{index}: Input should be an object", paraphrase=True)
        if found := _tool(tool, index, rules):
            return found
        names += [tool["name"]] if "name" in tool else []  # a set of tools has none
    if len(set(names)) < len(names):
        return Violation(0, "tools: Tool names must be unique.")
    choice = body.get("tool_choice")
    if choice is None:
        return None
    kind = str(choice.get("type"))
    if kind not in _TOOL_CHOICE:
        return _bad_tag("tool_choice", kind, _TOOL_CHOICE)
    if found := shape_violation(choice, _TOOL_CHOICE[kind], f"tool_choice.{kind}.", rules):
        return found
    if not body.get("tools"):
        return Violation(0, "tool_choice may only be specified while providing tools.")
    if kind == "tool" and choice["name"] not in names:
        return Violation(0, f"Tool '{choice['name']}' not found in provided tools")
    return _forced(body) if kind in ("any", "tool") else None


def _forced(body: Json) -> Violation | None:
    takes = abilities_of(body["model"])
    if not takes.forced_choice:
        return Violation(0, "tool_choice: forced tool use is not supported on this model", paraphrase=True)
    if _thinks(body) and not (takes.forced_while_thinking and body["thinking"]["type"] == "adaptive"):
        return Violation(0, "Thinking may not be enabled when tool_choice forces tool use.")
    return None


def _tool(tool: Json, index: int, rules: Rules) -> Violation | None:
    kind = tool.get("type") or "custom"
    if kind == "mcp_toolset":
        return _cache_control(tool, f"tools.{index}.mcp_toolset", rules)
    if kind != "custom":
        family = next((each for each in _SERVER_TOOLS if str(kind).startswith(f"{each}_")), None)
        if family is None:
            return _bad_tag(f"tools.{index}", kind, ("custom", *_SERVER_TOOLS))
        if not isinstance(tool.get("name"), str):
            return Violation(0, f"tools.{index}.{kind}.name: Field required")
        if family == "web_search" and (found := shape_violation(tool, _WEB_SEARCH, f"tools.{index}.{kind}.", rules)):
            return found
        return _cache_control(tool, f"tools.{index}.{kind}", rules)
    path = f"tools.{index}.custom"
    if found := shape_violation(tool, _CUSTOM_TOOL, f"{path}.", rules):
        return found
    if not _TOOL_NAME.fullmatch(tool["name"]):
        return Violation(0, f"{path}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    schema = tool["input_schema"]
    if "type" not in schema:
        return Violation(0, f"{path}.input_schema.type: Field required")
    if schema["type"] != "object":
        return Violation(0, f"{path}.input_schema.type: Input should be 'object'")
    if any(word in schema for word in ("oneOf", "allOf", "anyOf")):
        return Violation(0, f"{path}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level")
    properties = schema.get("properties") or {}
    if not isinstance(properties, dict):
        return Violation(0, f"{path}.input_schema.properties: Input should be a valid dictionary")
    if not all(_PROPERTY_NAME.fullmatch(name) for name in properties):
        return Violation(0, f"{path}.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'")
    if tool.get("strict") and (found := schema_violation(schema, path)):
        return found
    return _cache_control(tool, path, rules)


def _messages(body: Json, rules: Rules) -> Violation | None:
    messages = body["messages"]
    if not messages:
        return Violation(0, "messages: at least one message is required")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            return Violation(0, f"messages.{index}: Input should be an object", paraphrase=True)
        if message.get("role") == "system" and (index == 0 or not abilities_of(body["model"]).system_messages):
            wording = 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            return Violation(9, f'{wording}not "system" as an input message role.')
        if found := shape_violation(message, MESSAGE, f"messages.{index}.", rules):
            return found
        role = message["role"]
        if role == "user" and not message["content"]:
            return Violation(5, f"messages.{index}: user messages must have non-empty content")
        for at, block in enumerate(content_of(message)):
            if found := block_violation(block, f"messages.{index}.content.{at}", role, rules):
                return found
        if found := _blank_violation(message, index):
            return found
    return None


def _blank_violation(message: Json, index: int) -> Violation | None:
    """An answer may hold blank text, which models write between other blocks; by itself it is refused, and empty text always."""
    blocks = content_of(message)
    may_be_blank = message["role"] == "assistant" and any(block["type"] != "text" or block["text"].strip() for block in blocks)
    for at, block in enumerate(blocks):
        if block["type"] != "text" or (may_be_blank and block["text"]):
            continue
        if found := text_block_violation(block, f"messages.{index}.content.{at}", "messages"):
            return found
    return None


def _cache_blocks(body: Json, rules: Rules) -> Violation | None:
    if found := _cache_control(body, "", rules):
        return found
    marks = [(path, mark) for path, mark in _marks(body) if mark]
    count = len(marks) + bool(body.get("cache_control"))
    if count > _MAX_CACHE_BLOCKS:
        return Violation(8, f"A maximum of {_MAX_CACHE_BLOCKS} blocks with cache_control may be provided. Found {count}.")
    short = False
    for path, mark in marks:
        if mark.get("ttl", "5m") == "5m":
            short = True
        elif short:
            wording = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."
            return Violation(8, f"{path}.cache_control.ttl: {wording}")
    return None


def _marks(body: Json) -> Iterator[tuple[str, Json | None]]:
    """The cache_control marks in the order the service reads them."""
    for index, tool in enumerate(body.get("tools", [])):
        yield f"tools.{index}", tool.get("cache_control")
    system = body.get("system")
    for index, block in enumerate(system if isinstance(system, list) else []):
        yield f"system.{index}", block.get("cache_control")
    for index, message in enumerate(body["messages"]):
        for at, block in enumerate(content_of(message)):
            path = f"messages.{index}.content.{at}"
            inner = block.get("content") if block["type"] == "tool_result" else None
            for nested, part in enumerate(inner if isinstance(inner, list) else []):
                yield f"{path}.content.{nested}", part.get("cache_control")
            yield path, block.get("cache_control")


def _window(body: Json, rules: Rules) -> Violation | None:
    limit = rules.context_window_tokens
    if not limit or (tokens := estimate_tokens(body)) <= limit:
        return None
    return Violation(0, f"prompt is too long: {tokens} tokens > {limit} maximum")


def _cache_control(value: Json, path: str, rules: Rules) -> Violation | None:
    mark = value.get("cache_control")
    if mark is None:
        return None
    prefix = f"{path}." if path else ""
    if not isinstance(mark, dict):
        return Violation(8, f"{prefix}cache_control: Input should be a valid dictionary")
    if found := find_fault(mark, CACHE_CONTROL, rules.extra_fields):
        return Violation(8, f"{prefix}cache_control.ephemeral.{found.field}: Input should be '5m' or '1h'", paraphrase=True)
    return None


def _thinks(body: Json) -> bool:
    return (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")


def _bad_tag(path: str, tag: object, tags: Iterable[str]) -> Violation:
    wording = f"Input tag '{tag}' found using 'type' does not match any of the expected tags: {listing(tags, ', ')}"
    return Violation(0, f"{path}: {wording}", paraphrase=True)


_CHECKS = (
    _unicode,
    _fields,
    _thinking_config,
    _sampling,
    _output_config,
    _system,
    _tools,
    _messages,
    results_violation,
    server_results_violation,
    thinking_violation,
    last_role_violation,
    _cache_blocks,
    _window,
)
