"""Generation settings for OpenAI's two protocols, and for the services that vary Chat Completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.base import jsontext
from dragoman.providers.wire import Destination
from dragoman.values.messages import Settings, Thinking
from dragoman.values.profile import Profile


def sampling(settings: Settings, profile: Profile) -> dict[str, object]:
    if not profile.temperature and effort(settings.thinking, profile) != "none":  # OpenAI's models take them while they do not think
        return {}
    wanted = {"temperature": settings.temperature, "top_p": settings.top_p}
    return {key: value for key, value in wanted.items() if value is not None}


def effort(thinking: Thinking | None, profile: Profile) -> str | None:
    """The value of `reasoning_effort`; None to leave it out."""
    if thinking is None or profile.thinking != "effort":
        return None
    return profile.effort_word(thinking.effort)


def chat_thinking(thinking: Thinking | None, has_tools: bool, profile: Profile) -> dict[str, object]:
    if has_tools and not profile.effort_with_tools:
        return {"reasoning_effort": "none"}
    is_on = thinking is None or thinking.effort != "off" or not profile.thinking_off
    switch: dict[str, object] = {"type": "enabled" if is_on else "disabled"}
    kept: dict[str, object] = {}
    if profile.thinking_switch == "thinking.type" and profile.reasoning_back == "given":
        kept = {"thinking": {**switch, "clear_thinking": False}}  # GLM forgets earlier thinking unless every request says otherwise
    if (level := effort(thinking, profile)) is not None:
        return {**kept, "reasoning_effort": level}
    if thinking is None or profile.thinking != "switch":
        return kept
    match profile.thinking_switch:
        case "enable_thinking":
            budget: dict[str, object] = {"thinking_budget": thinking.budget_tokens} if is_on and thinking.budget_tokens else {}
            return {"enable_thinking": is_on, **budget}
        case "thinking.type":
            return kept or {"thinking": switch}
        case "chat_template_kwargs":
            return {"chat_template_kwargs": {"enable_thinking": is_on}}
        case "reasoning":
            return {"reasoning": {"effort": profile.effort_word(thinking.effort)}}
        case "reasoning.enabled":
            return {"reasoning": {"enabled": is_on}}
        case "reasoning_effort":
            return {} if is_on else {"reasoning_effort": "none"}
        case _:
            return kept


def response_format(settings: Settings, profile: Profile) -> dict[str, object] | None:
    if settings.response_schema and profile.json_schema:
        return {"type": "json_schema", "json_schema": named_schema(settings, profile)}
    if settings.response_schema or settings.response_mime == "application/json":
        return {"type": "json_object"}
    return None


def format_instruction(settings: Settings, profile: Profile) -> str:
    """An instruction for services without JSON Schema output: they reject `json_object` unless the prompt says "JSON"."""
    if response_format(settings, profile) != {"type": "json_object"}:
        return ""
    return f"Answer with one JSON object{f' that fits this schema: {settings.response_schema}' if settings.response_schema else '.'}"


def named_schema(settings: Settings, profile: Profile) -> dict[str, Any]:
    from dragoman.providers.openai_schema import object_root, strict_schema

    schema = jsontext.decode(settings.response_schema)
    strict = strict_schema(schema) if profile.strict_schema else None
    return {"name": "answer", "schema": strict or object_root(schema), "strict": strict is not None}


# --- embeddings: the same for both protocols --------------------------------------------------------------------------------


def embed_request(texts: Sequence[str], to: Destination) -> tuple[str, bytes]:
    return "/embeddings", jsontext.encode({"model": to.model, "input": list(texts), "encoding_format": "float"})


def embed_answer(data: Any) -> list[list[float]]:
    return [row["embedding"] for row in sorted(data["data"], key=lambda row: row["index"])]
