"""Routing by path, and the endpoints that need no script: counting tokens, embedding, listing models."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Sequence
from typing import Any, Literal, assert_never
from urllib.parse import parse_qs, unquote

import msgspec

from dragoman.testing.mock.http import ReceivedRequest
from dragoman.testing.mock.violation import Rules
from dragoman.testing.scripted import EMBEDDING_SIZE, embedding
from dragoman.values.profile import ProtocolName

Action = Literal["generate", "stream", "count", "embed", "embed_batch", "predict", "models"]
VertexVersion = Literal["", "v1", "v1beta1"]

_GEMINI = re.compile(r"/v1(?:beta|alpha)?/models/([^:]+):(\w+)")
_VERTEX = re.compile(r"/(v1|v1beta1)/projects/[^/]+/locations/[^/]+/publishers/google/models/([^:]+):(\w+)")
_BOTH_ACTIONS: dict[str, Action] = {
    "generateContent": "generate",
    "streamGenerateContent": "stream",
    "countTokens": "count",
    "embedContent": "embed",
}
_GEMINI_ACTIONS = _BOTH_ACTIONS | {"batchEmbedContents": "embed_batch"}
_VERTEX_ACTIONS = _BOTH_ACTIONS | {"predict": "predict"}
# Services and gateways may put any prefix before these; the longer ending comes first.
_ENDINGS: tuple[tuple[str, ProtocolName, Action], ...] = (
    ("/chat/completions", "openai_chat", "generate"),
    ("/responses/input_tokens", "openai_responses", "count"),
    ("/responses", "openai_responses", "generate"),
    ("/messages/count_tokens", "anthropic", "count"),
    ("/messages", "anthropic", "generate"),
    ("/embeddings", "openai_chat", "embed"),
)
PATHS = "/v1beta/models/{model}:streamGenerateContent, /v1/chat/completions, /v1/responses, /v1/messages, /v1/embeddings, /v1/models"


class ServiceRoute(msgspec.Struct, frozen=True):
    protocol: ProtocolName
    action: Action
    model: str = ""
    """The model, if the path names it."""
    vertex: VertexVersion = ""
    """The version of Vertex AI that the path names; empty for other services."""


def find_route(request: ReceivedRequest, path: str) -> ServiceRoute | None:
    """The route of a request; None if this server has no such path."""
    if request.method == "GET":
        return _models_route(request, path) if path.rstrip("/").endswith("/models") else None
    if request.method != "POST":
        return None
    if found := _GEMINI.fullmatch(path):
        action = _GEMINI_ACTIONS.get(found[2])
        return ServiceRoute("gemini", action, unquote(found[1])) if action else None
    if found := _VERTEX.fullmatch(path):
        version: VertexVersion = "v1" if found[1] == "v1" else "v1beta1"
        action = _VERTEX_ACTIONS.get(found[3])
        return ServiceRoute("gemini", action, unquote(found[2]), version) if action else None
    return next((ServiceRoute(protocol, action) for ending, protocol, action in _ENDINGS if path.endswith(ending)), None)


def _models_route(request: ReceivedRequest, path: str) -> ServiceRoute:
    if "anthropic-version" in request.headers:
        return ServiceRoute("anthropic", "models")
    return ServiceRoute("gemini" if "/v1beta" in path else "openai_chat", "models")


def rules_at(where: ServiceRoute, rules: Rules) -> Rules:
    """The rules of the service that a path belongs to: Vertex AI has no flag for searching, and only its v1beta1 has call ids."""
    if not where.vertex:
        return rules
    return msgspec.structs.replace(rules, call_ids=where.vertex == "v1beta1", search_flag=False)


def key_of(request: ReceivedRequest) -> str:
    """The client's API key, from any of the places where services accept it."""
    headers = request.headers
    bearer = headers.get("authorization", "").partition(" ")[2]
    in_query = parse_qs(request.query).get("key", [""])[0]
    return headers.get("x-api-key") or headers.get("x-goog-api-key") or headers.get("api-key") or bearer or in_query


# --- answers without a script --------------------------------------------------------------------------------------------


def count_body(protocol: ProtocolName, tokens: int) -> dict[str, Any]:
    match protocol:
        case "gemini":
            return {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}
        case "anthropic":
            return {"input_tokens": tokens}
        case "openai_responses" | "openai_chat":
            return {"object": "response.input_tokens", "input_tokens": tokens}
        case _:
            assert_never(protocol)


def embed_body(where: ServiceRoute, body: dict[str, Any], tokens: int) -> dict[str, Any]:
    if where.protocol == "gemini":
        if where.action == "embed_batch":
            return {"embeddings": [_gemini_vector(each) for each in body.get("requests") or []]}
        if where.action == "predict":
            return {"predictions": [_prediction(each, body) for each in body.get("instances") or []]}
        return {"embedding": _gemini_vector(body)}
    asked = body.get("input") or []
    texts = [asked] if isinstance(asked, str) else asked
    vectors = [embedding(str(text), body.get("dimensions") or EMBEDDING_SIZE) for text in texts]
    as_text = body.get("encoding_format") == "base64"
    data = [{"object": "embedding", "index": n, "embedding": _base64(v) if as_text else v} for n, v in enumerate(vectors)]
    return {"object": "list", "data": data, "model": body.get("model", ""), "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}


def _gemini_vector(asked: dict[str, Any]) -> dict[str, Any]:
    parts = (asked.get("content") or {}).get("parts") or []
    text = "".join(part.get("text", "") for part in parts)
    size = asked.get("outputDimensionality") or (asked.get("embedContentConfig") or {}).get("outputDimensionality")
    return {"values": embedding(text, size or EMBEDDING_SIZE)}


def _prediction(instance: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    size = (body.get("parameters") or {}).get("outputDimensionality") or EMBEDDING_SIZE
    values = embedding(str(instance.get("content") or ""), size)
    return {"embeddings": {"values": values, "statistics": {"truncated": False, "token_count": 1}}}


def _base64(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def models_body(protocol: ProtocolName, models: Sequence[str]) -> dict[str, Any]:
    match protocol:
        case "gemini":
            methods = ["generateContent", "countTokens", "embedContent"]
            limits = {"inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536}
            return {"models": [{"name": f"models/{m}", "displayName": m, **limits, "supportedGenerationMethods": methods} for m in models]}
        case "anthropic":
            rows = [{"type": "model", "id": m, "display_name": m, "created_at": "2025-01-01T00:00:00Z"} for m in models]
            return {"data": rows, "has_more": False, "first_id": models[0] if models else None, "last_id": models[-1] if models else None}
        case "openai_chat" | "openai_responses":
            return {"object": "list", "data": [{"id": m, "object": "model", "created": 1735689600, "owned_by": "mock"} for m in models]}
        case _:
            assert_never(protocol)
