"""Which row of the catalog stands for the service behind a recorded host, and what that service insists on."""

from __future__ import annotations

import re

import msgspec

from destinations import rules_of
from dragoman.providers.catalog import builtin_catalog, profile_for
from dragoman.testing.mock.validate import Rules
from dragoman.values.profile import Deployment, Profile
from recorded.exchanges import Exchange

_CHAT = {
    "api.openai.com": "openai",
    "api.mistral.ai": "mistral",
    "api.groq.com": "groq",
    "api.deepseek.com": "deepseek",
    "openrouter.ai": "openrouter",
    "api.moonshot.ai": "kimi",
    "api.z.ai": "glm",
    "ollama.com": "ollama",
    "dashscope-intl.aliyuncs.com": "qwen",
    "api.together.xyz": "together",
    # Fixtures have no host, only the name of the service.
    "openai.fixture": "openai",
    "mistral.fixture": "mistral",
    "groq.fixture": "groq",
    "deepseek.fixture": "deepseek",
    "openrouter.fixture": "openrouter",
    "z.fixture": "glm",
}
_ANY_CHAT = "vllm"
"""Read answers of services without a row as those of any other server that speaks Chat Completions."""


def deployment_of(exchange: Exchange) -> Deployment:
    """The row whose provider reads this answer."""
    return builtin_catalog()[_own_row(exchange) or _nearest_row(exchange)]


def profile_of(exchange: Exchange) -> Profile:
    return profile_for(deployment_of(exchange), exchange.model or "")


def rules_for(exchange: Exchange) -> Rules | None:
    """What the service of a recorded request insists on; None for a service that has no row."""
    name = _own_row(exchange)
    if not name:
        return None
    deployment = builtin_catalog()[name]
    profile = profile_for(deployment, exchange.model or "")
    rules = rules_of(deployment, profile)
    if exchange.protocol == "gemini":
        # What the service demands of a model without a row goes by its generation, and v1beta1 of Vertex takes ids where v1 does not.
        signed = bool(re.match(r"gemini-[3-9]", exchange.model or ""))
        call_ids = rules.call_ids or exchange.path.startswith("/v1beta")
        rules = msgspec.structs.replace(rules, thought_signatures=signed, call_ids=call_ids, our_results=False)
    if not profile.known:
        # Nothing is known of such a model but its service, so it is held to nothing that only some models insist on.
        rules = msgspec.structs.replace(rules, temperature=True, max_tokens_field="")
    return rules


def _own_row(exchange: Exchange) -> str:
    host = exchange.host
    match exchange.protocol:
        case "anthropic":
            return "anthropic" if host in ("api.anthropic.com", "anthropic.fixture") else ""
        case "gemini":
            if host == "aiplatform.googleapis.com":
                return "vertex"
            if host.endswith("-aiplatform.googleapis.com"):
                return "vertex_region"
            return "gemini" if host in ("generativelanguage.googleapis.com", "gemini.fixture") else ""
        case "openai_responses":
            if host.endswith(".openai.azure.com"):
                return "azure"
            return {"api.openai.com": "responses", "openai.fixture": "responses", "api.x.ai": "xai"}.get(host, "")
        case "openai_chat":
            return _CHAT.get(host, "")


def _nearest_row(exchange: Exchange) -> str:
    return {"anthropic": "anthropic", "gemini": "gemini", "openai_responses": "responses", "openai_chat": _ANY_CHAT}[exchange.protocol]
