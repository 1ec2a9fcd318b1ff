"""Where test conversations go: each protocol's own service, and services that speak it with an accent."""

from __future__ import annotations

import msgspec

from dragoman.providers.connect import Connection, connect
from dragoman.providers.mock.validate import Rules, Violation, validate

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


def rules_for(where: Connection) -> Rules:
    """What the service behind a destination insists on, by its row in the catalog."""
    deployment, profile = where.provider.deployment, where.profile(where.model)  # type: ignore[attr-defined]
    service = deployment.name if deployment.name in ("deepseek", "kimi") else ""
    return Rules(
        extra_fields=frozenset({"block_binding", "enable_thinking", "chat_template_kwargs", "thinking"}),
        temperature=profile.temperature,
        service=service,
        strict_template=profile.strict_template,
        call_id=profile.call_id,
        reasoning_field=profile.reasoning_field,
        reasoning_back=profile.reasoning_back,
        empty_text_refused=True,
        max_tokens_field=profile.max_tokens_field if deployment.protocol == "openai_chat" else "",
        thought_signatures=profile.thought_signatures,
        tool_schema=profile.tool_schema,
        call_ids=deployment.call_ids,
    )


def violation_in(where: Connection, body: bytes) -> Violation | None:
    return validate(where.provider.deployment.protocol, msgspec.json.decode(body), rules_for(where))  # type: ignore[attr-defined]
