"""Where test conversations go: each protocol's own service, and services that speak it with an accent."""

from __future__ import annotations

import msgspec

from dragoman.providers.connect import Connection, connect
from dragoman.testing.mock.rules import rules_of as rules_of
from dragoman.testing.mock.validate import Violation, validate
from dragoman.values.profile import Deployment

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


def violation_in(where: Connection, body: bytes) -> Violation | None:
    deployment: Deployment = where.provider.deployment  # type: ignore[attr-defined]
    return validate(deployment.protocol, msgspec.json.decode(body), rules_of(deployment, where.profile(where.model)))
