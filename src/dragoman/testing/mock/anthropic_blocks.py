"""Validates the blocks of Anthropic messages: fields, ids, images, empty text, with the service's error messages."""

from __future__ import annotations

import base64
import binascii
import re

from dragoman.testing.mock.violation import IMAGE_TYPES, BodyShape, Json, Kind, Rules, Violation, find_fault, listing, sniff_image

THINKING_TYPES = ("thinking", "redacted_thinking")
CACHE_CONTROL = BodyShape({"type": ("ephemeral",)}, {"ttl": ("5m", "1h")})
MESSAGE = BodyShape({"role": ("user", "assistant", "system"), "content": "string|array"})

_CALLER: dict[str, Kind] = {"cache_control": "object?", "caller": "object"}
_RESULT = BodyShape({"type": "string", "tool_use_id": "string", "content": "any"}, _CALLER)
_BLOCKS = {
    "text": BodyShape({"type": "string", "text": "string"}, {"cache_control": "object?", "citations": "array?"}),
    "image": BodyShape({"type": "string", "source": "object"}, {"cache_control": "object?", "transformations": "object?"}),
    "document": BodyShape(
        {"type": "string", "source": "object"},
        {"cache_control": "object?", "citations": "object?", "context": "string?", "title": "string?"},
    ),
    "search_result": BodyShape(
        {"type": "string", "content": "array", "source": "string", "title": "string"}, {"cache_control": "object?", "citations": "object"}
    ),
    "thinking": BodyShape({"type": "string", "thinking": "string", "signature": "string"}),
    "redacted_thinking": BodyShape({"type": "string", "data": "string"}),
    "tool_use": BodyShape({"type": "string", "id": "string", "name": "string", "input": "object"}, {**_CALLER, "toolset_name": "string?"}),
    "tool_result": BodyShape(
        {"type": "string", "tool_use_id": "string"},
        {"cache_control": "object?", "content": "string|array", "is_error": "bool", "toolset_name": "string?"},
    ),
    "server_tool_use": BodyShape({"type": "string", "id": "string", "name": "string", "input": "object"}, _CALLER),
    "web_search_tool_result": _RESULT,
    "web_fetch_tool_result": _RESULT,
    "code_execution_tool_result": _RESULT,
    "bash_code_execution_tool_result": _RESULT,
    "text_editor_code_execution_tool_result": _RESULT,
    "tool_search_tool_result": _RESULT,
    "advisor_tool_result": _RESULT,
    "mcp_tool_use": BodyShape(
        {"type": "string", "id": "string", "name": "string", "input": "object", "server_name": "string"}, {"cache_control": "object?"}
    ),
    "mcp_tool_result": BodyShape(
        {"type": "string", "tool_use_id": "string"}, {"cache_control": "object?", "content": "string|array", "is_error": "bool"}
    ),
    "compaction": BodyShape({"type": "string"}, {"cache_control": "object?", "content": "string?", "encrypted_content": "string?"}),
    "fallback": BodyShape({"type": "string"}, {"from": "object", "to": "object", "trigger": "object?"}),
    "tool_addition": BodyShape({"type": "string", "tool": "object"}, {"cache_control": "object?"}),
    "tool_removal": BodyShape({"type": "string", "tool": "object"}, {"cache_control": "object?"}),
    "container_upload": BodyShape({"type": "string", "file_id": "string"}, {"cache_control": "object?"}),
    "tool_reference": BodyShape({"type": "string", "tool_name": "string"}, {"cache_control": "object?"}),
}
_SOURCES = {
    ("image", "base64"): BodyShape({"type": "string", "media_type": IMAGE_TYPES, "data": "string"}),
    ("image", "url"): BodyShape({"type": "string", "url": "string"}),
    ("image", "file"): BodyShape({"type": "string", "file_id": "string"}),
    ("document", "base64"): BodyShape({"type": "string", "media_type": ("application/pdf",), "data": "string"}),
    ("document", "text"): BodyShape({"type": "string", "media_type": ("text/plain",), "data": "string"}),
    ("document", "content"): BodyShape({"type": "string", "content": "string|array"}),
    ("document", "url"): BodyShape({"type": "string", "url": "string"}),
    ("document", "file"): BodyShape({"type": "string", "file_id": "string"}),
}
_SEARCH_RESULT = BodyShape(
    {"type": ("web_search_result",), "url": "string", "title": "string", "encrypted_content": "string"}, {"page_age": "string?"}
)
_SEARCH_ERROR = BodyShape({"type": ("web_search_tool_result_error",), "error_code": "string"})
_SERVER_NAMES = ("web_search", "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution", "advisor")
_SERVER_NAMES += ("tool_search_tool_regex", "tool_search_tool_bm25")
_IN_RESULT = ("text", "image", "document", "search_result", "tool_reference")
_ASSISTANT_ONLY = (*THINKING_TYPES, "tool_use", "server_tool_use", "mcp_tool_use", "compaction")
_USER_ONLY = ("tool_result", "image", "document", "search_result", "container_upload")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_SERVER_CALL_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_WANTED = {
    "string": "a valid string",
    "int": "a valid integer",
    "number": "a valid number",
    "bool": "a valid boolean",
    "object": "a valid dictionary",
    "array": "a valid list",
}


def content_of(message: Json) -> list[Json]:
    """A message's blocks; a plain string is one text block."""
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content


def shape_violation(value: object, shape: BodyShape, prefix: str, rules: Rules) -> Violation | None:
    """The service's error for an object with wrong fields."""
    if not isinstance(value, dict):
        return Violation(0, f"{prefix.rstrip('.')}: Input should be a valid dictionary")
    fault = find_fault(value, shape, rules.extra_fields)
    if fault is None:
        return None
    line = 8 if fault.field == "cache_control" else 0
    match fault.problem:
        case "missing":
            return Violation(line, f"{prefix}{fault.field}: Field required")
        case "unknown":
            return Violation(line, f"{prefix}{fault.field}: Extra inputs are not permitted")
        case "value" | "type":
            expected = fault.expected
            wanted = listing(expected, " or ") if isinstance(expected, tuple) else _WANTED[expected.split("|")[-1].rstrip("?")]
            return Violation(line, f"{prefix}{fault.field}: Input should be {wanted}")


def block_violation(block: object, path: str, role: str, rules: Rules, *, tagged: bool = True) -> Violation | None:
    """What is wrong with one block by itself: its type, fields, ids, source, and the role of its message."""
    if not isinstance(block, dict):
        return Violation(0, f"{path}: Input should be an object", paraphrase=True)
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in _BLOCKS or (kind == "tool_reference" and role != "tool_result"):
        wording = f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {listing(_BLOCKS, ', ')}"
        return Violation(0, wording, paraphrase=True)
    inner = f"{path}.{kind}" if tagged else path
    if found := shape_violation(block, _BLOCKS[kind], f"{inner}.", rules):
        return found
    if found := _role_violation(kind, path, role):
        return found
    mark = block.get("cache_control")
    if mark is not None and (fault := find_fault(mark, CACHE_CONTROL, rules.extra_fields)):
        wanted = listing(fault.expected, " or ") if isinstance(fault.expected, tuple) else "of its shape"
        return Violation(8, f"{inner}.cache_control.ephemeral.{fault.field}: Input should be {wanted}", paraphrase=True)
    match kind:
        case "tool_use":
            return _id_violation(block["id"], f"{inner}.id", _CALL_ID) or _name_violation(block["name"], f"{inner}.name")
        case "server_tool_use" if block["name"] not in _SERVER_NAMES:
            return Violation(0, f"{inner}.name: Input should be {listing(_SERVER_NAMES, ' or ')}")
        case "server_tool_use":
            return _id_violation(block["id"], f"{inner}.id", _SERVER_CALL_ID)
        case "web_search_tool_result":
            return _search_violation(block["content"], f"{inner}.content", rules)
        case "tool_result":
            return _id_violation(block["tool_use_id"], f"{inner}.tool_use_id", _CALL_ID) or _result_violation(block, inner, rules)
        case "image" | "document":
            return _source_violation(block["source"], kind, f"{inner}.source", rules)
    return None


def text_block_violation(block: Json, path: str, where: str) -> Violation | None:
    """Text must not be empty; an empty block cannot carry cache_control either."""
    text = block["text"]
    if text.strip():
        return None
    if not text and block.get("cache_control"):
        return Violation(8, f"{path}.text: cache_control cannot be set for empty text blocks")
    wording = "text content blocks must contain non-whitespace text" if text else "text content blocks must be non-empty"
    return Violation(5, f"{where}: {wording}")


def _role_violation(kind: str, path: str, role: str) -> Violation | None:
    message = path.rpartition(".content.")[0] or path
    if role == "user" and (kind in _ASSISTANT_ONLY or (kind.endswith("_tool_result"))):
        return Violation(0, f"{message}: `{kind}` blocks can only be in `assistant` messages", paraphrase=kind != "tool_use")
    if role == "assistant" and kind in _USER_ONLY:
        return Violation(0, f"{message}: `{kind}` blocks can only be in `user` messages", paraphrase=kind != "tool_result")
    if role == "tool_result" and kind not in _IN_RESULT:
        wording = f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {listing(_IN_RESULT, ', ')}"
        return Violation(0, wording, paraphrase=True)
    return None


def _id_violation(value: str, path: str, pattern: re.Pattern[str]) -> Violation | None:
    if pattern.fullmatch(value):
        return None
    return Violation(4, f"{path}: String should match pattern '^{pattern.pattern}$'")


def _name_violation(value: str, path: str) -> Violation | None:
    if _TOOL_NAME.fullmatch(value):
        return None
    return Violation(0, f"{path}: String should match pattern '^{_TOOL_NAME.pattern}$'")


def _result_violation(block: Json, path: str, rules: Rules) -> Violation | None:
    content = block.get("content", "")
    if isinstance(content, str):
        return None
    for index, part in enumerate(content):
        inner = f"{path}.content.{index}"
        if found := block_violation(part, inner, "tool_result", rules):
            return found
        if part["type"] == "text" and (found := text_block_violation(part, inner, "messages")):
            return found
    return None


def _search_violation(content: object, path: str, rules: Rules) -> Violation | None:
    if not isinstance(content, list):
        return shape_violation(content, _SEARCH_ERROR, f"{path}.", rules)
    found = (shape_violation(each, _SEARCH_RESULT, f"{path}.{index}.", rules) for index, each in enumerate(content))
    return next((each for each in found if each), None)


def _source_violation(source: Json, kind: str, path: str, rules: Rules) -> Violation | None:
    form = source.get("type")
    shape = _SOURCES.get((kind, form)) if isinstance(form, str) else None
    if shape is None:
        tags = [each for owner, each in _SOURCES if owner == kind]
        wording = f"{path}: Input tag '{form}' found using 'type' does not match any of the expected tags: {listing(tags, ', ')}"
        return Violation(0, wording, paraphrase=True)
    if found := shape_violation(source, shape, f"{path}.{form}.", rules):
        return found
    if form != "base64":
        return None
    try:
        data = base64.b64decode(source["data"], validate=True)
    except (binascii.Error, ValueError):
        return Violation(0, f"{path}.base64: invalid base64 data")
    if not data:
        return Violation(0, f"{path}.base64: {kind} cannot be empty", paraphrase=True)
    actual = sniff_image(data[:16])
    if kind == "image" and actual and actual != source["media_type"]:
        wording = f"The image was specified using the {source['media_type']} media type, but the image appears to be a {actual} image"
        return Violation(0, f"{path}.base64: {wording}")
    return None
