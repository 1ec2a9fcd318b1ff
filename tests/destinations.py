"""Where test conversations go: each protocol's own service, and services that speak it with an accent."""

from __future__ import annotations

import msgspec

from dragoman.providers.connect import Connection, connect
from dragoman.testing.mock.validate import Rules, Violation, validate
from dragoman.values.profile import Deployment, Profile

MAIN = {
    "gemini": "gemini/gemini-3.8-flash",
    "openai_chat": "openai/gpt-4.1",
    "openai_responses": "responses/gpt-6.1-sol",
    "anthropic": "anthropic/claude-opus-5",
}
ACCENTED = {
    "vllm": "vllm/any-model",
    "mistral": "mistral/mistral-medium-latest",
    "deepseek": "deepseek/deepseek-v4-pro",
    "kimi": "kimi/kimi-k3",
    "vertex": "vertex/gemini-3.8-flash",
    "anthropic-budget": "anthropic/claude-haiku-4-5",
    "anthropic-bound": "anthropic/claude-fable-5-1",
}
ALL = MAIN | ACCENTED
_ENV = {"GOOGLE_CLOUD_PROJECT": "project"}


def connection(name: str, base_url: str = "http://127.0.0.1:9", **options: object) -> Connection:
    return connect(ALL[name], key="key-for-tests", base_url=base_url, env=_ENV, **options)  # type: ignore[arg-type]


_SWITCHES = {
    "enable_thinking": {"enable_thinking", "thinking_budget"},
    "thinking.type": {"thinking"},
    "chat_template_kwargs": {"chat_template_kwargs"},
    "reasoning": {"reasoning"},
    "reasoning.enabled": {"reasoning"},
}
_SERVICES = ("deepseek", "kimi", "mistral", "groq", "together", "glm", "openrouter")


def rules_of(deployment: Deployment, profile: Profile) -> Rules:
    """What the service behind a row of the catalog insists on."""
    bound = {"block_binding"} if profile.thinking_bound else set()
    return Rules(
        extra_fields=frozenset(_SWITCHES.get(profile.thinking_switch, set()) | bound | set(deployment.extra_body)),
        temperature=profile.temperature,
        service="llama.cpp" if deployment.name == "llamacpp" else deployment.name if deployment.name in _SERVICES else "",  # type: ignore[arg-type]
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


def violation_in(where: Connection, body: bytes) -> Violation | None:
    deployment: Deployment = where.provider.deployment  # type: ignore[attr-defined]
    return validate(deployment.protocol, msgspec.json.decode(body), rules_of(deployment, where.profile(where.model)))
