"""How much a model thinks, in the words of each service that speaks Chat Completions."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman import RetryPolicy, Settings, Thinking, build_request, connect
from dragoman.providers.catalog import builtin_catalog, profile_for
from dragoman.values.events import ResponseFinished
from dragoman.values.messages import FinishReason, Response
from loopback_http import always, answer, serving

EFFORTS = ("off", "low", "medium", "high", "max")
SETTINGS = ("reasoning_effort", "reasoning", "thinking", "enable_thinking", "chat_template_kwargs")


def asked(model: str, effort: str | None) -> dict[str, Any]:
    """The fields about thinking in what is sent."""
    thinking = Thinking(effort) if effort else None  # type: ignore[arg-type]
    connection = connect(model, key="k", env={}, base_url="http://127.0.0.1:1")
    body = json.loads(connection.prepare(build_request(connection.model, "hi", settings=Settings(thinking=thinking))).body)
    return {field: body[field] for field in SETTINGS if field in body}


def words(model: str) -> list[Any]:
    return [asked(model, effort).get("reasoning_effort") for effort in EFFORTS]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("mistral/mistral-medium-latest", ["none", "high", "high", "high", "high"]),
        ("mistral/mistral-large-4", ["high"] * 5),
        ("groq/openai/gpt-oss-120b", ["low", "low", "medium", "high", "high"]),
        ("groq/openai/gpt-oss-next", ["low", "low", "medium", "high", "high"]),
        ("groq/qwen/qwen3.8-27b", ["none", "low", "medium", "high", "high"]),
        ("groq/qwen/qwen3-32b", ["none", "default", "default", "default", "default"]),
        ("together/zai-org/GLM-5.3", ["low", "low", "medium", "high", "high"]),
        ("kimi/kimi-k3.1-pro", ["low", "low", "high", "high", "max"]),
        ("glm/glm-5.3", ["low", "low", "high", "high", "max"]),
    ],
)
def test_effort_is_asked_for_in_words_the_service_takes(model: str, expected: list[str]) -> None:
    assert words(model) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("ollama/qwen3:8b", {"reasoning_effort": "none"}),
        ("lmstudio/qwen3-8b", {"reasoning_effort": "none"}),
        ("openai/served-by-somebody", {"reasoning_effort": "none"}),
        ("vllm/Qwen/Qwen3-8B", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("sglang/Qwen/Qwen3-8B", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("llamacpp/qwen3", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("qwen/qwen3.8-max", {"enable_thinking": False}),
        ("qwen/qwen3.8-flash", {"enable_thinking": False}),
        ("qwen/qwen9-max", {"enable_thinking": False}),
        ("deepseek/deepseek-v4-pro", {"thinking": {"type": "disabled"}}),
        ("glm/glm-4.7", {"thinking": {"type": "disabled", "clear_thinking": False}}),
        ("together/deepseek-ai/DeepSeek-V4-Pro-0813", {"reasoning": {"enabled": False}}),
        ("openrouter/somebody/a-model", {"reasoning": {"effort": "none"}}),
        ("openrouter/anthropic/claude-haiku-5.5", {"reasoning": {"effort": "none"}}),
        ("openrouter/anthropic/claude-sonnet-5.5", {"reasoning": {"effort": "low"}}),
    ],
)
def test_off_is_off_wherever_it_can_be(model: str, expected: dict[str, Any]) -> None:
    """And the weakest there is where it cannot."""
    assert asked(model, "off") == expected


def test_thinking_is_left_to_the_server_where_nothing_is_asked() -> None:
    for model in ("ollama/m", "lmstudio/m", "openai/m", "vllm/m", "openrouter/m/m", "qwen/m", "groq/openai/gpt-oss-120b"):
        assert asked(model, None) == {}, model
    for model in ("ollama/m", "lmstudio/m", "openai/m"):
        assert asked(model, "high") == {}, f"{model}: Ollama refuses an effort for models that do not think"


def test_openrouter_takes_every_word() -> None:
    model = "openrouter/openai/gpt-6.1-terra"
    assert [asked(model, effort)["reasoning"]["effort"] for effort in EFFORTS] == ["none", "low", "medium", "high", "max"]


def test_glm_is_asked_to_keep_earlier_thinking_on_every_request() -> None:
    """What is sent back of it is dropped otherwise."""
    for model in ("glm/glm-5.3", "glm/glm-4.7", "glm/glm-9"):
        for effort in (None, *EFFORTS):
            assert asked(model, effort)["thinking"]["clear_thinking"] is False, model
        assert profile_for(*builtin_catalog().find(model)).reasoning_back == "given"


# --- Groq's refusal of its own model's call -------------------------------------------------------------------------------------

TOOL_USE_FAILED = {
    "error": {
        "message": "Tool call validation failed: parameters for tool f did not match schema",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": '{"name": "f", "arguments": {"y": 1}}',
    }
}


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_call_that_groq_refuses_is_an_answer_to_be_asked_for_again(is_streamed: bool) -> None:
    """An accident of sampling: the run goes on, and the model is told what was wrong."""

    async def main() -> Response:
        async with serving(always(answer(json.dumps(TOOL_USE_FAILED).encode(), "400 Bad Request"))) as server:
            connection = connect("groq/openai/gpt-oss-120b", key="k", env={}, base_url=server.url, retry=RetryPolicy(attempts=1))
            request = build_request(connection.model, "hi")
            try:
                if not is_streamed:
                    return await connection.generate(request)
                events = [event async for event in connection.stream(request)]
            finally:
                await connection.aclose()
            assert isinstance(events[-1], ResponseFinished)
            return events[-1].response

    response = asyncio.run(main())
    assert (response.finish, response.message.parts) == (FinishReason.MALFORMED_TOOL_CALL, ())
    assert "did not match schema" in response.detail
    assert '"y": 1' in response.detail
