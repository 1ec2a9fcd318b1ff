"""Shared by the validators of all protocols: the verdict, the differences between services, and checks that any JSON service makes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import msgspec

Json = dict[str, Any]
Kind = str | tuple[str, ...]
"""A field's type (`string`, `string?` if null is allowed, `string|array`), or the values it may take."""

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")

_IMAGE_BYTES = 4_000
"""The bytes an image counts in the token estimate, whatever its size."""
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_LONE_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2})")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


class Violation(msgspec.Struct, frozen=True):
    """Why the service refuses a request, as its error message."""

    line: int
    """Number of the wire rule it violates, 1 to 24; 0 for a general error of shape."""
    message: str
    paraphrase: bool = False
    """True if the service's own wording is unknown, or if the rule is ours and the service would accept the request."""
    status: int = 400
    code: str = ""
    """The error's code, if the service sends one."""
    param: str = ""
    """The field it names, if the service does that."""


class Rules(msgspec.Struct, frozen=True):
    """Differences between services and models of one protocol. The defaults are the protocol's own service."""

    extra_fields: frozenset[str] = frozenset()
    """Fields this service accepts beyond the protocol's, at any depth (`enable_thinking`, `chat_template_kwargs`, `cache_control`)."""
    known_models: frozenset[str] | None = None
    """If set, any other model is not found."""
    context_window_tokens: int = 0
    """Above 0: a longer prompt is refused, by a rough estimate of its tokens."""
    temperature: bool = True
    """False: the model refuses temperature, top_p and top_k. OpenAI's take them while they do not think."""
    efforts: tuple[str, ...] = ()
    """The words for effort that the model takes; empty: all that the protocol has."""
    refused_settings: dict[str, str] = {}
    """Fields, with dots, that this service or account refuses, and its words for that."""
    known_signatures: frozenset[str] | None = None
    """What the service has signed: `fingerprint` of each Anthropic thinking block, OpenAI's encrypted content, Gemini's signatures."""

    # --- OpenAI Chat
    service: Literal["", "deepseek", "kimi", "llama.cpp", "mistral", "groq", "together", "glm", "openrouter"] = ""
    """Whose accent (see `accents`) and error messages to use."""
    strict_template: bool = False
    """One system message, first; user and assistant alternate; arguments are JSON objects."""
    call_id: Literal["free", "mistral", "kept"] = "free"
    """mistral: exactly nine alphanumerics. kept: of any length."""
    reasoning_field: str = ""
    reasoning_back: Literal["never", "calls", "always", "given"] = "never"
    """Which assistant messages must have reasoning_field. given: none must, any may."""
    empty_text_refused: bool = False
    max_tokens_field: Literal["", "max_tokens", "max_completion_tokens"] = ""
    """The only one of the two that the model accepts; empty: either."""

    # --- OpenAI Responses
    verified: bool = True
    """False: an organisation that OpenAI has not verified gets no summaries of reasoning."""
    free_item_ids: bool = False
    """True for xAI, whose items have ids of any form and length."""
    reasoning_items: dict[str, str] = {}
    """Id of an item from the service → id of the reasoning item that must accompany it."""

    # --- Gemini
    thought_signatures: bool = False
    """Gemini 3: the first function call of each step of the current turn must be signed."""
    tool_schema: Literal["json_schema", "subset"] = "json_schema"
    call_ids: bool = True
    """False for Vertex v1, which has no id in functionCall and functionResponse. Vertex v1beta1 has."""
    search_flag: bool = True
    """False for Vertex, which has no `includeServerSideToolInvocations` and needs none. Vertex v1 never has it."""
    our_results: bool = False
    """Ours, the service takes any object: a functionResponse holds `output` or `error`."""


class BodyShape(msgspec.Struct, frozen=True):
    """The fields of an object."""

    required: dict[str, Kind] = {}
    optional: dict[str, Kind] = {}


class Fault(msgspec.Struct, frozen=True):
    """How an object's fields are wrong, not yet in any service's wording."""

    problem: Literal["missing", "unknown", "type", "value"]
    field: str
    expected: Kind = ""
    got: Any = None


Check = Callable[[Json, Rules], Violation | None]


def refused_setting(body: Json, rules: Rules) -> Violation | None:
    """The first field that this service refuses, whatever the protocol says."""
    for field, message in rules.refused_settings.items():
        inner: Any = body
        for step in field.split("."):
            inner = inner.get(step) if isinstance(inner, dict) else None
        if inner is not None:
            return Violation(0, message, code="unsupported_parameter", param=field)
    return None


def first_violation(checks: Iterable[Check], body: Json, rules: Rules) -> Violation | None:
    """The result of the first failing check. Later checks may rely on what earlier ones guarantee."""
    return next((found for check in checks if (found := check(body, rules))), None)


def find_fault(value: Json, shape: BodyShape, extra: frozenset[str] = frozenset()) -> Fault | None:
    """The first thing wrong with an object's fields."""
    for field, kind in shape.required.items():
        if field not in value:
            return Fault("missing", field, kind)
    for field, item in value.items():
        if field in extra:
            continue
        kind = shape.required.get(field) or shape.optional.get(field)
        if kind is None:
            return Fault("unknown", field)
        if not fits(item, kind):
            wrong_value = isinstance(kind, tuple) and isinstance(item, str)
            return Fault("value" if wrong_value else "type", field, kind, item)
    return None


def fits(value: object, kind: Kind) -> bool:
    """Whether a value is of a kind."""
    if isinstance(kind, tuple):
        return value in kind
    return any(_is_a(value, each) for each in kind.split("|"))


def _is_a(value: object, kind: str) -> bool:
    if kind.endswith("?"):
        return value is None or _is_a(value, kind[:-1])
    match kind:
        case "any":
            return True
        case "string":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
    raise ValueError(f"no such kind: {kind}")


def fingerprint(block: Json) -> str:
    """A block as one comparable string, as in `Rules.known_signatures` for Anthropic's thinking."""
    return msgspec.json.encode(block, order="sorted").decode()


def strings(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Every string in a body with its key, and every key."""
    match value:
        case str():
            yield key, value
        case dict():
            for name, item in value.items():
                yield "", name
                yield from strings(item, name)
        case list():
            for item in value:
                yield from strings(item, key)


def lone_surrogate_at(body: Json) -> int | None:
    """Position of a lone surrogate in the compact JSON of a body, including one escaped inside `arguments`; None if there is none."""
    if not any(_has_surrogate(text) or (key == "arguments" and _escapes_surrogate(text)) for key, text in strings(body)):
        return None
    found = _LONE_ESCAPE.search(json.dumps(body, separators=(",", ":")))
    return found.start(1) if found else 0


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _escapes_surrogate(text: str) -> bool:
    if not _SURROGATE_ESCAPE.search(text):
        return False
    try:
        return any(_has_surrogate(each) for _, each in strings(json.loads(text)))
    except ValueError:
        return False


def estimate_tokens(body: Json) -> int:
    """Tokens of a prompt at four bytes each; images count flat."""
    total = 0
    for key, text in strings(body):
        binary = key in ("data", "file_data") or text.startswith("data:")
        total += _IMAGE_BYTES if binary else len(text.encode(errors="replace"))
    return -(-total // 4)


def is_base64(text: str) -> bool:
    """Whether a text is base64 in either alphabet, with or without padding, and not empty."""
    return _BASE64.fullmatch(text) is not None and len(text.rstrip("=")) % 4 != 1


def sniff_image(data: bytes) -> str:
    """The type of an image by its first bytes; empty if unknown."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return ""


def listing(values: Iterable[str], last: str) -> str:
    """`'a', 'b' or 'c'`, with `last` before the last."""
    quoted = [f"'{value}'" for value in values]
    return last.join([", ".join(quoted[:-1]), quoted[-1]]) if len(quoted) > 1 else "".join(quoted)
