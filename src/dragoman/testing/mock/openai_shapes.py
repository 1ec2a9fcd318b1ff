"""Validation that OpenAI's two protocols share: error messages for wrong fields, ids, function schemas, image URLs, tool choice."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable

from dragoman.testing.mock.openai_strict import strict_flaw
from dragoman.testing.mock.violation import (
    IMAGE_TYPES,
    BodyShape,
    Fault,
    Json,
    Kind,
    Rules,
    Violation,
    find_fault,
    is_base64,
    listing,
    lone_surrogate_at,
    sniff_image,
)

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
VERBOSITIES = ("low", "medium", "high")
TEXT_FORMATS = ("text", "json_object", "json_schema")
CACHE_BREAKPOINT: dict[str, Kind] = {"prompt_cache_breakpoint": "object?"}

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_MAX_NAME = 64
_MAX_CACHE_KEY = 64
_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
_WANTED = {
    "string": "a string",
    "int": "an integer",
    "number": "a decimal",
    "bool": "a boolean",
    "object": "an object",
    "array": "an array",
}


def unicode_violation(body: Json, _rules: Rules) -> Violation | None:
    """This service rejects lone surrogates as invalid JSON."""
    if lone_surrogate_at(body) is None:
        return None
    wording = "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. "
    wording += "The OpenAI API expects a JSON payload, but what was sent was not valid JSON."
    return Violation(24, f"{wording})")


def model_violation(body: Json, rules: Rules) -> Violation | None:
    """An unknown model, or settings it does not accept."""
    if rules.known_models is not None and body["model"] not in rules.known_models:
        wording = f"The model `{body['model']}` does not exist or you do not have access to it."
        return Violation(0, wording, status=404, code="model_not_found")
    if found := _sampling_violation(body, rules):
        return found
    if body.get("stream_options") is not None and not body.get("stream"):
        return Violation(0, "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    return too_long(body.get("prompt_cache_key") or "", "prompt_cache_key", _MAX_CACHE_KEY)


def effort_violation(effort: object, path: str, model: str, rules: Rules) -> Violation | None:
    """An effort that nobody knows, or that this model does not take."""
    if effort is None:
        return None
    if effort not in EFFORTS:
        return wrong_value(effort, EFFORTS)
    if not rules.efforts or effort in rules.efforts:
        return None
    wording = f"Unsupported value: '{effort}' is not supported with the '{model}' model. Supported values are: "
    return Violation(0, f"{wording}{listing(rules.efforts, ', and ')}.", code="unsupported_value", param=path)


def _sampling_violation(body: Json, rules: Rules) -> Violation | None:
    reasoning = body.get("reasoning")
    effort = reasoning.get("effort") if isinstance(reasoning, dict) else body.get("reasoning_effort")
    for field, limit in (("temperature", 2), ("top_p", 1)):
        value = body.get(field)
        if value is None:
            continue
        if not rules.temperature and effort != "none":
            wording = f"Unsupported parameter: '{field}' is not supported with this model."
            return Violation(0, wording, code="unsupported_parameter", param=field)
        if not 0 <= value <= limit:
            bound, sign, edge = ("above maximum", "<=", limit) if value > limit else ("below minimum", ">=", 0)
            wording = f"Invalid '{field}': decimal {bound} value. Expected a value {sign} {edge}, but got {value} instead."
            return Violation(0, wording, code=f"decimal_{'above_max' if value > limit else 'below_min'}_value", param=field)
    return None


def shape_violation(value: object, shape: BodyShape, path: str, rules: Rules) -> Violation | None:
    """The service's error for an object with wrong fields."""
    if not isinstance(value, dict):
        return wrong_type(path, "object", value)
    fault = find_fault(value, shape, rules.extra_fields)
    return fault_violation(fault, path) if fault else None


def fault_violation(fault: Fault, path: str) -> Violation:
    """A fault as this service's error message."""
    where = f"{path}.{fault.field}" if path else fault.field
    match fault.problem:
        case "missing":
            return Violation(0, f"Missing required parameter: '{where}'.", code="missing_required_parameter")
        case "unknown":
            return Violation(0, f"Unknown parameter: '{where}'.", code="unknown_parameter")
        case "value":
            assert isinstance(fault.expected, tuple)
            return wrong_value(fault.got, fault.expected)
        case "type":
            return wrong_type(where, fault.expected, fault.got)


def wrong_value(got: object, supported: Iterable[str], paraphrase: bool = False) -> Violation:
    """A value outside a list."""
    supported = tuple(supported)
    joint = " and " if len(supported) == 2 else ", and "
    wording = f"Invalid value: '{got}'. Supported values are: {listing(supported, joint)}."
    return Violation(0, wording, paraphrase, code="invalid_value")


def wrong_type(path: str, expected: Kind, got: object) -> Violation:
    """A value of another type."""
    kinds = ["string"] if isinstance(expected, tuple) else list(dict.fromkeys(each.rstrip("?") for each in expected.split("|")))
    wanted = "one of a string or array of objects" if kinds == ["string", "array"] else _WANTED[kinds[0]]
    wording = f"Invalid type for '{path}': expected {wanted}, but got {_type_of(got)} instead."
    return Violation(0, wording, code="invalid_type")


def empty_array(path: str) -> Violation:
    """An array that needs at least one item."""
    wording = f"Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    return Violation(0, wording, code="empty_array")


def too_long(text: str, path: str, limit: int, line: int = 0) -> Violation | None:
    """A string over its length."""
    if len(text) <= limit:
        return None
    wording = f"string too long. Expected a string with maximum length {limit}, but got a string with length {len(text)} instead."
    return Violation(line, f"Invalid '{path}': {wording}", code="string_above_max_length")


def id_violation(value: str, path: str, limit: int, line: int) -> Violation | None:
    """A call's id: not empty, not too long."""
    if value:
        return too_long(value, path, limit, line)
    wording = f"Invalid '{path}': empty string. Expected a string with minimum length 1, but got an empty string instead."
    return Violation(23, wording, code="empty_string")


def name_violation(name: str, path: str) -> Violation | None:
    """A function's or schema's name."""
    if not name:
        wording = f"Invalid '{path}': empty string. Expected a string with minimum length 1, but got an empty string instead."
        return Violation(0, wording, code="empty_string")
    if not _NAME.fullmatch(name):
        wording = f"Invalid '{path}': string does not match pattern. Expected a string that matches the pattern '^{_NAME.pattern}$'."
        return Violation(0, wording, code="invalid_value")
    return too_long(name, path, _MAX_NAME)


def function_violation(function: Json, path: str, *, is_checked: bool = True) -> Violation | None:
    """A function's name and parameters. `is_checked`: a strict schema must keep the rules of one."""
    name, parameters = function["name"], function.get("parameters")
    if found := name_violation(name, f"{path}.name"):
        return found
    if parameters is None:
        return None
    strict = is_checked and bool(function.get("strict"))
    return schema_violation(parameters, f"function '{name}'", "invalid_function_parameters", strict=strict)


def schema_violation(schema: Json, owner: str, code: str, *, strict: bool) -> Violation | None:
    """A JSON schema this service can compile: an object at the root; in strict mode closed, complete, and in the words it permits."""
    if schema.get("type") != "object":
        wording = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
        return Violation(0, f"Invalid schema for {owner}: {wording}", code=code)
    wording = strict_flaw(schema) if strict else _schema_flaw(schema, ())
    return Violation(0, f"Invalid schema for {owner}: {wording}", code=code) if wording else None


def format_violation(form: Json, path: str, *, is_checked: bool = True) -> Violation | None:
    """A named response schema. `is_checked`: a strict one must keep the rules of one."""
    if found := name_violation(form["name"], f"{path}.name"):
        return found
    owner = f"response_format '{form['name']}'"
    strict = is_checked and bool(form.get("strict"))
    return schema_violation(form.get("schema", {"type": "object"}), owner, "invalid_json_schema", strict=strict)


def choice_violation(body: Json, declared: list[str], chosen: str | None, *, elsewhere: bool = False) -> Violation | None:
    """Choice and parallelism need tools, and the tool chosen must be among them, unless tools are declared elsewhere too."""
    for field in ("tool_choice", "parallel_tool_calls"):
        if body.get(field) is not None and not body.get("tools") and not elsewhere:
            wording = f"Invalid value for '{field}': '{field}' is only allowed when 'tools' are specified."
            return Violation(0, wording)
    if chosen is not None and chosen not in declared and not elsewhere:
        return Violation(0, f"Tool choice '{chosen}' not found in 'tools' parameter.")
    if len(set(declared)) < len(declared):
        return Violation(0, "Invalid 'tools': tool names must be unique.", paraphrase=True)
    return None


def image_url_violation(url: str, path: str) -> Violation | None:
    """An image by web address or as a data URL."""
    if url.startswith(("http://", "https://")):
        return None
    parts = _DATA_URL.fullmatch(url)
    if parts is None:
        wording = f"Invalid '{path}'. Expected a valid URL, but got a value with an invalid format."
        return Violation(0, wording, code="invalid_value")
    media_type, data = parts.groups()
    if not media_type.startswith("image/"):
        return Violation(0, "Invalid MIME type. Only image types are supported.", code="invalid_image_format")
    if not is_base64(data):
        return Violation(0, f"Invalid '{path}'. The image data is not valid base64.", paraphrase=True, code="invalid_base64")
    if media_type not in (*IMAGE_TYPES, "image/jpg") or not sniff_image(base64.b64decode(data[:24])):
        wording = "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
        return Violation(0, f"{wording}['png', 'jpeg', 'gif', 'webp'].", code="invalid_image_format")
    return None


def _schema_flaw(schema: object, context: tuple[str, ...]) -> str:
    if not isinstance(schema, dict):
        return ""
    if schema.get("type") == "array" and "items" not in schema and "prefixItems" not in schema:
        return f"In context={context}, array schema missing items."
    for keyword in ("properties", "$defs", "definitions"):
        named = schema.get(keyword)
        for name, each in named.items() if isinstance(named, dict) else ():
            if wording := _schema_flaw(each, (*context, keyword, name)):
                return wording
    choices = schema.get("anyOf")
    for number, each in enumerate(choices if isinstance(choices, list) else ()):
        if wording := _schema_flaw(each, (*context, "anyOf", str(number))):
            return wording
    return _schema_flaw(schema.get("items"), (*context, "items"))


def _type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int():
            return "an integer"
        case float():
            return "a decimal"
        case list():
            return "an array"
        case _:
            return "an object"
