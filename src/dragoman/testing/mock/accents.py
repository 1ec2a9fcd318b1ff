"""What the services that speak Chat Completions with an accent take beyond it, and what single models of OpenAI refuse.

From recorded requests, and from the types of the services' SDKs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from dragoman.testing.mock.openai_shapes import wrong_type, wrong_value
from dragoman.testing.mock.violation import BodyShape, Json, Kind, Rules, Violation

_DETAILS = ("reasoning.text", "reasoning.summary", "reasoning.encrypted")
_OWN_MODEL = re.compile(r"(gpt-|o\d)")
_NO_STOP = re.compile(r"(o\d|gpt-5)")
_MAX_MARKS = 4
_NO_SYSTEM = ("o1-mini", "o1-preview")


class Accent(msgspec.Struct, frozen=True):
    """The differences of one service."""

    fields: frozenset[str] = frozenset()
    """Accepted at any depth, as `Rules.extra_fields`."""
    parts: dict[str, BodyShape] = {}
    """More kinds of content blocks, of any role."""
    image_urls: Kind = "object"
    image_roles: tuple[str, ...] = ()
    """Who else may show images, besides the user."""
    choices: tuple[str, ...] = ()
    """More words for `tool_choice`, which then need no tools."""
    empty_lists: bool = False
    """A message may have an empty list of calls or blocks."""
    efforts: tuple[str, ...] = ()
    """The only words for `reasoning_effort`; empty: OpenAI's."""
    untyped_tools: bool = False
    """A tool need not say that it is a function."""
    server_tools: str = ""
    """How the types of the service's own tools begin."""
    either_limit: bool = False
    """Both names for the output limit are accepted."""
    strict_models: tuple[str, ...] = ("",)
    """How the names of the models begin whose strict schemas are checked."""


_OPENROUTER = """cache_control debug eager_input_streaming image_config include_reasoning min_p models plugins preset provider reasoning
reasoning_details repetition_penalty route session_id top_a top_k trace transforms usage video_url"""
_GROQ = """citation_options compound_custom disable_tool_validation documents exclude_domains include_domains include_reasoning
reasoning_format search_settings"""
_TOGETHER = """chat_template_kwargs compliance context_length_exceeded_behavior echo min_p reasoning repetition_penalty
response_format safety_model tool_choice top_k"""
_MISTRAL = """document_image_limit document_page_limit guardrails prefix prompt_mode random_seed safe_prompt"""
_MISTRAL_PARTS = {
    "document_url": BodyShape({"type": "string", "document_url": "string|object"}, {"document_name": "string?"}),
    "thinking": BodyShape({"type": "string", "thinking": "array"}, {"closed": "bool", "signature": "string?"}),
    "reference": BodyShape({"type": "string", "reference_ids": "array"}),
}
_NONE = Accent()
_ACCENTS = {
    "openrouter": Accent(
        frozenset(_OPENROUTER.split()),
        parts={"video_url": BodyShape({"type": "string", "video_url": "object"})},
        image_roles=("tool",),
        server_tools="openrouter:",
        either_limit=True,
        strict_models=("openai/",),
    ),
    "mistral": Accent(
        frozenset(_MISTRAL.split()),
        parts=_MISTRAL_PARTS,
        image_urls="string|object",
        choices=("any",),
        empty_lists=True,
        efforts=("none", "high"),
        untyped_tools=True,
    ),
    "groq": Accent(frozenset(_GROQ.split()), efforts=("none", "default", "low", "medium", "high"), either_limit=True),
    "together": Accent(frozenset(_TOGETHER.split()), efforts=("low", "medium", "high")),
    "glm": Accent(frozenset({"clear_thinking", "do_sample", "request_id", "thinking", "tool_stream"})),
    "deepseek": Accent(frozenset({"reasoning", "reasoning_content"})),
    "kimi": Accent(efforts=("low", "high", "max")),
}


def accent_of(rules: Rules) -> Accent:
    """The accent of the service, which is told by its name, or by what only it demands."""
    if rules.call_id == "mistral":
        return _ACCENTS["mistral"]
    if rules.reasoning_field == "reasoning_details":
        return _ACCENTS["openrouter"]
    return _ACCENTS.get(rules.service, _NONE)


def model_settings(body: Json) -> Violation | None:
    """What some of OpenAI's own models refuse, and a temperature that every model does."""
    model = body["model"]
    if (hot := body.get("temperature")) is not None and not 0 <= hot <= 2:
        bound, word, least = ("maximum", "above", "<= 2") if hot > 2 else ("minimum", "below", ">= 0")
        wording = f"decimal {word} {bound} value. Expected a value {least}, but got {hot} instead."
        return Violation(0, f"Invalid 'temperature': {wording}", code=f"decimal_{word}_{bound[:3]}_value")
    if body.get("stop") and _NO_STOP.match(model):
        return Violation(0, "Unsupported parameter: 'stop' is not supported with this model.", code="unsupported_parameter")
    if model.startswith(_NO_SYSTEM) and (role := _system_role(body)):
        wording = f"Unsupported value: 'messages[0].role' does not support '{role}' with this model."
        return Violation(0, wording, code="unsupported_value")
    if body.get("web_search_options") is not None and _OWN_MODEL.match(model) and "search" not in model:
        return Violation(0, "Web search options not supported with this model.")
    return None


def _system_role(body: Json) -> str:
    first = body["messages"][0]
    role = str(first.get("role")) if isinstance(first, dict) else ""
    return role if role in ("system", "developer") else ""


def audio_violation(message: Json, path: str, model: str) -> Violation | None:
    """Only some of OpenAI's models hear."""
    content = message.get("content")
    heard = isinstance(content, list) and any(part["type"] == "input_audio" for part in content)
    if not heard or not _OWN_MODEL.match(model) or "audio" in model:
        return None
    return Violation(0, f"Invalid '{path}'. Content blocks are expected to be either text or image_url type.", code="invalid_value")


def details_violation(details: object, path: str, known: frozenset[str] | None) -> Violation | None:
    """OpenRouter's `reasoning_details`: a list of objects of known types, with the signatures that the service made."""
    if details is None:
        return None
    if not isinstance(details, list):
        return wrong_type(f"{path}.reasoning_details", "array", details)
    for each in details:
        kind = each.get("type") if isinstance(each, dict) else None
        if kind not in _DETAILS:
            return wrong_value(kind, _DETAILS)
        signed = each.get("signature") or each.get("data")
        if known is not None and signed and signed not in known:
            return Violation(12, f"{path}: Invalid `signature` in `thinking` block", paraphrase=True)
    return None


def marks_violation(body: Json, _rules: Rules) -> Violation | None:
    """Claude takes four cache breakpoints, whoever passes them on."""
    count = sum(1 for key in _keys(body) if key == "cache_control") if body["model"].startswith("anthropic/") else 0
    if count <= _MAX_MARKS:
        return None
    return Violation(8, f"A maximum of {_MAX_MARKS} blocks with cache_control may be provided. Found {count}.")


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)
