"""The validator's rules for a row of the catalog."""

from __future__ import annotations

from typing import Literal

from dragoman.testing.mock.violation import Rules
from dragoman.values.profile import Deployment, Profile

_SWITCHES: dict[str, set[str]] = {
    "enable_thinking": {"enable_thinking", "thinking_budget"},
    "thinking.type": {"thinking"},
    "chat_template_kwargs": {"chat_template_kwargs"},
    "reasoning": {"reasoning"},
    "reasoning.enabled": {"reasoning"},
}
_SERVICES: dict[str, Literal["deepseek", "kimi", "llama.cpp", "mistral", "groq", "together", "glm", "openrouter"]] = {
    "deepseek": "deepseek",
    "kimi": "kimi",
    "llamacpp": "llama.cpp",
    "mistral": "mistral",
    "groq": "groq",
    "together": "together",
    "glm": "glm",
    "openrouter": "openrouter",
}
"""Whose accent and error messages a row of the catalog has."""


def rules_of(deployment: Deployment, profile: Profile) -> Rules:
    """What the service behind a row of the catalog insists on."""
    bound = {"block_binding"} if profile.thinking_bound else set[str]()
    return Rules(
        extra_fields=frozenset(_SWITCHES.get(profile.thinking_switch, set[str]()) | bound | set(deployment.extra_body)),
        temperature=profile.temperature,
        service=_SERVICES.get(deployment.name, ""),
        strict_template=profile.strict_template,
        call_id=profile.call_id,
        reasoning_field=profile.reasoning_field,
        reasoning_back=profile.reasoning_back,
        efforts=profile.efforts if profile.thinking == "effort" and profile.effort_with_tools else (),
        empty_text_refused=True,
        max_tokens_field=profile.max_tokens_field if deployment.protocol == "openai_chat" else "",
        thought_signatures=profile.thought_signatures,
        tool_schema=profile.tool_schema,
        call_ids=deployment.call_ids,
        search_flag=deployment.search_flag,
        our_results=deployment.protocol == "gemini",
        free_item_ids=deployment.name == "xai",
    )
