"""Where the cases are sent: the four protocols' own services, and the services and models that speak with an accent."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec

from destinations import rules_of
from dragoman.providers.catalog import builtin_catalog, profile_for
from dragoman.providers.connect import Connection, connect
from dragoman.testing.mock.validate import Rules, fingerprint
from dragoman.values.contracts import HttpRequest
from dragoman.values.messages import Request
from dragoman.values.profile import Deployment, Profile, ProtocolName
from wire import cases

_MADE_UP = {
    "gemini": {"models": {"subset": {"tool_schema": "subset", "thinking": "budget", "images": True, "pdfs": True}}},
    "openai": {"models": {"hearing": {"audio": True, "images": True, "max_tokens_field": "max_completion_tokens"}}},
}
CATALOG = builtin_catalog().with_rows(_MADE_UP, "the tests")


class Destination(NamedTuple):
    name: str
    """As the files in bodies/ head its section."""
    model: str
    like: str = ""
    """Another destination: bodies that differ from its bodies in the model alone are not pinned again."""

    @property
    def row(self) -> tuple[Deployment, str]:
        return CATALOG.find(self.model)

    @property
    def deployment(self) -> Deployment:
        return self.row[0]

    @property
    def profile(self) -> Profile:
        return profile_for(*self.row)

    @property
    def protocol(self) -> ProtocolName:
        return self.deployment.protocol

    def connect(self) -> Connection:
        """A fresh provider. Nothing listens at its address, and nothing is sent."""
        return connect(self.model, key="k", base_url="http://127.0.0.1:1", env={}, catalog=CATALOG, blobs=cases.BLOBS)

    def addressed(self, request: Request) -> Request:
        return msgspec.structs.replace(request, model=self.row[1])

    def prepare(self, request: Request) -> HttpRequest:
        return _warm(self).prepare(self.addressed(request))

    def body(self, request: Request) -> dict[str, Any]:
        return msgspec.json.decode(self.prepare(request).body)

    @property
    def rules(self) -> Rules:
        return _rules(self)


MAIN = (
    Destination("anthropic", "anthropic/claude-opus-5"),
    Destination("openai", "openai/gpt-5.4"),
    Destination("responses", "responses/gpt-6.1-sol"),
    Destination("gemini", "gemini/gemini-3.8-flash"),
)
OTHERS = (
    Destination("anthropic-budget", "anthropic/claude-haiku-4-5", "anthropic"),
    Destination("anthropic-adaptive", "anthropic/claude-opus-4-6", "anthropic"),
    Destination("anthropic-bound", "anthropic/claude-sonnet-5-5", "anthropic"),
    Destination("anthropic-bound-off", "anthropic/claude-haiku-5-5", "anthropic"),
    Destination("openai-sampling", "openai/gpt-4.1", "openai"),
    Destination("openai-hearing", "openai/hearing", "openai-sampling"),
    Destination("openai-stranger", "openai/gpt-99", "openai"),
    Destination("vllm", "vllm/local", "openai-stranger"),
    Destination("llamacpp", "llamacpp/local", "vllm"),
    Destination("ollama", "ollama/local", "vllm"),
    Destination("deepseek", "deepseek/deepseek-v4-pro", "vllm"),
    Destination("glm", "glm/glm-4.7", "vllm"),
    Destination("qwen", "qwen/qwen3.7-max", "vllm"),
    Destination("mistral", "mistral/mistral-medium-latest", "openai-sampling"),
    Destination("mistral-text", "mistral/devstral-latest", "vllm"),
    Destination("kimi", "kimi/kimi-k3.1-pro", "openai"),
    Destination("kimi-switch", "kimi/kimi-k2.6", "kimi"),
    Destination("openrouter", "openrouter/moonshotai/kimi-k3.1-pro", "kimi"),
    Destination("openrouter-claude", "openrouter/anthropic/claude-sonnet-5.5", "openrouter"),
    Destination("openrouter-gemini", "openrouter/google/gemini-4-argon", "openrouter"),
    Destination("openrouter-stranger", "openrouter/somebody/a-model", "openrouter"),
    Destination("glm-effort", "glm/glm-5.3", "glm"),
    Destination("groq", "groq/openai/gpt-oss-120b", "vllm"),
    Destination("groq-qwen", "groq/qwen/qwen3.8-27b", "groq"),
    Destination("together", "together/deepseek-ai/DeepSeek-V4-Pro-0813", "vllm"),
    Destination("lmstudio", "lmstudio/local", "ollama"),
    Destination("responses-other-model", "responses/gpt-5.4", "responses"),
    Destination("xai", "xai/grok-4.7", "responses"),
    Destination("gemini-2.5", "gemini/gemini-2.5-pro", "gemini"),
    Destination("gemini-subset", "gemini/subset", "gemini-2.5"),
    Destination("vertex", "vertex/gemini-3.8-flash", "gemini"),
)
DESTINATIONS = MAIN + OTHERS
BY_NAME = {each.name: each for each in DESTINATIONS}


@cache
def _warm(to: Destination) -> Connection:
    return to.connect()


_SIGNED = {
    "anthropic": {fingerprint(each) for each in (cases.ANTHROPIC_THINKING, cases.ANTHROPIC_AGAIN, cases.ANTHROPIC_REDACTED)},
    "responses": {cases.REASONING["encrypted_content"], cases.REASONING_AGAIN["encrypted_content"]},
    "openrouter": {cases.DETAILS[0]["signature"], cases.DETAILS[1]["data"]},
    "gemini": {cases.GEMINI_SIGNATURE, cases.GEMINI_THOUGHT["thoughtSignature"], cases.GEMINI_ALONE["thoughtSignature"]},
}
"""What each deployment has signed. To any other, and over Responses and OpenRouter to any other model, it is a forgery."""


@cache
def _rules(to: Destination) -> Rules:
    """The validator's rules that fit a destination, read from its profile."""
    own = to.deployment.name not in ("responses", "openrouter") or to.row[1] == cases.HOMES.get(to.deployment.name)
    signed = frozenset(_SIGNED.get(to.deployment.name, ()) if own else ())
    return msgspec.structs.replace(rules_of(to.deployment, to.profile), known_signatures=signed)
