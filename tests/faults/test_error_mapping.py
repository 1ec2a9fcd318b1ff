"""What a service says when it will not answer becomes one error: its kind, its status, its request, and one line for a person."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.providers.catalog import builtin_catalog
from dragoman.providers.faults import error_from_event, error_from_status
from dragoman.providers.omitting import fields_named
from dragoman.providers.wire import Destination
from dragoman.values import errors
from dragoman.values.errors import (
    BadRequest,
    ContextOverflow,
    Forbidden,
    NotFound,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Refused,
    ServerError,
    TimedOut,
    Unauthorized,
)

CATALOG = builtin_catalog()
KEYS = [
    "error",
    "errors",
    "message",
    "detail",
    "msg",
    "loc",
    "code",
    "type",
    "param",
    "details",
    "error_code",
    "reason",
    "status",
    "status_code",
    "response",
    "metadata",
    "raw",
    "provider_name",
    "innererror",
    "violations",
    "fieldViolations",
    "description",
    "retryDelay",
    "request_id",
]
"""Names that error bodies use."""


def error(status: int, body: bytes | str | dict[str, Any] | list[Any], deployment: str = "openai", **headers: str) -> ProviderError:
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return error_from_status(status, {name.replace("_", "-"): value for name, value in headers.items()}, data, CATALOG[deployment])


def event_error(event: Any, deployment: str = "openai") -> ProviderError:
    row = CATALOG[deployment]
    return error_from_event(event, Destination(row, row.profile, "m"))


# --- bodies of many shapes --------------------------------------------------------------------------------------------------

SHAPES: dict[str, bytes | str | dict[str, Any] | list[Any]] = {
    "OpenAI": {"error": {"message": "It said no.", "type": "x", "param": None, "code": None}},
    "Anthropic": {"type": "error", "error": {"type": "x", "message": "It said no."}, "request_id": "req"},
    "Gemini": {"error": {"code": 500, "message": "It said no.", "status": "INTERNAL"}},
    "Gemini in an array": [{"error": {"code": 500, "message": "It said no.", "status": "INTERNAL"}}],
    "Ollama": {"error": "It said no."},
    "FastAPI": {"detail": "It said no."},
    "vLLM, old": {"object": "error", "message": "It said no.", "type": "x", "code": 500},
    "a gateway": {"msg": "It said no.", "code": 1},
    "plain text": "It said no.",
    "plain text over lines": "  It\r\n said\tno.\n\n",
    "HTML": "<html><head><style>b { color: red }</style><script>x()</script></head><body><h1>It said</h1>\n<p>no.</p></body></html>",
    "with control characters": {"error": {"message": "It\u2028said\x1b\x00\u0085no."}},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_services_words_are_found_in_any_shape(shape: str) -> None:
    found = error(500, SHAPES[shape], x_request_id="req-1")
    assert type(found) is ServerError
    assert found.message == "It said no."
    assert str(found) == "openai: It said no. (HTTP 500) [request req-1]"
    assert (found.status, found.request_id, found.provider) == (500, "req-1", "openai")


def test_a_list_of_complaints_is_told_whole() -> None:
    found = error(422, {"detail": [{"loc": ["body", "messages"], "msg": "field required"}]})
    assert type(found) is BadRequest
    assert "field required" in found.message
    assert "\n" not in found.message


@pytest.mark.parametrize("body", ["", "   ", b"", "<html></html>"])
def test_an_empty_body_is_told_by_its_status(body: str | bytes) -> None:
    assert error(500, body).message == "the service answered with status 500 and no explanation"


@pytest.mark.parametrize(
    "body", [b"\xff\xfe broken \xc3", b'{"error": {"message": "\xff"}}', b'{"error": {"message": "cut', b"null", b"5", b"[]", b'"text"']
)
def test_a_body_that_is_no_message_is_shown_as_it_is(body: bytes) -> None:
    found = error(503, body)
    assert type(found) is Overloaded
    found.message.encode()
    assert found.message


def test_half_a_surrogate_pair_does_not_reach_the_message() -> None:
    assert error(500, '{"error": {"message": "a\\ud83db"}}').message == "a\ufffdb"


def test_a_long_page_is_cut_and_quickly() -> None:
    start = time.process_time()
    for body in (b"<" * 250_000, b"<script" * 30_000, b"a " * 100_000, b"[" * 200_000):
        assert len(error(502, body).message) < 700
    assert time.process_time() - start < 5


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: json.dumps({"error": text}).encode()), st.integers(400, 599))
def test_no_body_breaks_the_mapping(body: bytes, status: int) -> None:
    found = error(status, body)
    found.message.encode()
    assert len(found.message.splitlines()) == 1
    assert found.status == status


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(KEYS),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    )
)
def test_no_json_breaks_the_mapping(value: Any) -> None:
    assert isinstance(error(429, json.dumps(value)), RateLimited)
    for found in (error(400, json.dumps(value)), error(422, json.dumps([value])), event_error(value), event_error({"error": value})):
        assert isinstance(found, ProviderError)
        assert len(found.message.splitlines()) == 1
        list(fields_named(found)) if isinstance(found, BadRequest) else None


@given(st.text(max_size=80), st.text(max_size=20))
def test_no_words_of_a_gateway_break_the_mapping(raw: str, name: str) -> None:
    """What stands behind OpenRouter may be JSON, JSON text, or any text at all."""
    for said in (
        raw,
        json.dumps({"error": {"message": raw}}),
        {"error": raw},
        [raw],
        {"message": {"detail": [{"loc": [raw], "msg": raw}]}},
    ):
        found = error(400, {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": said, "provider_name": name}}})
        assert len(found.message.splitlines()) == 1


# --- what services call by another name ----------------------------------------------------------------------------------------


def _behind_openrouter(raw: object, status: int = 400, name: str = "Google") -> dict[str, Any]:
    return {"error": {"message": "Provider returned error", "code": status, "metadata": {"raw": raw, "provider_name": name}}}


_GOOGLE_OVERFLOW = "The input token count (9) exceeds the maximum number of tokens allowed (8)."
_MEANT: list[tuple[str, int, Any, type[ProviderError], str]] = [
    # service, status, body, what it is, words that must be told
    ("OpenRouter, text behind it", 429, _behind_openrouter("it is busy upstream", 429), RateLimited, "(Google: it is busy upstream)"),
    (
        "OpenRouter, JSON text behind it",
        400,
        _behind_openrouter(json.dumps({"error": {"code": 400, "message": _GOOGLE_OVERFLOW}})),
        ContextOverflow,
        _GOOGLE_OVERFLOW,
    ),
    ("OpenRouter, JSON behind it", 400, _behind_openrouter([{"error": {"message": "No such tool."}}]), BadRequest, "Google: No such tool."),
    (
        "OpenRouter, a key of one's own",
        400,
        _behind_openrouter('{"error":{"code":"invalid_api_key","message":"Incorrect API key provided: abc."}}', name="xAI"),
        Unauthorized,
        "check OPENAI_API_KEY",
    ),
    ("OpenRouter, an empty account", 400, _behind_openrouter('{"detail":"Insufficient Balance"}'), QuotaExhausted, "Insufficient Balance"),
    ("OpenRouter twice", 400, _behind_openrouter(_behind_openrouter("the innermost words")), BadRequest, "the innermost words"),
    (
        "xAI, a wrong key",
        400,
        {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: ab***cd."},
        Unauthorized,
        "",
    ),
    ("DashScope, a wrong key", 400, {"error": {"code": "invalid_api_key", "message": "Incorrect API key provided."}}, Unauthorized, ""),
    (
        "Responses, an unknown model",
        400,
        {"error": {"message": "The requested model 'x' does not exist.", "param": "model", "code": "model_not_found"}},
        NotFound,
        "check the model's name",
    ),
    ("Mistral, an unknown model", 400, {"object": "error", "message": "Invalid model: x", "code": "1500"}, NotFound, ""),
    ("DeepSeek, an unknown model", 400, {"error": {"message": "Model Not Exist", "code": "invalid_request_error"}}, NotFound, ""),
    ("OpenRouter, an unknown model", 400, {"error": {"message": "x/y is not a valid model ID", "code": 400}}, NotFound, ""),
    (
        "Groq, a model that was taken away",
        400,
        {"error": {"message": "The model `x` has been decommissioned.", "code": "model_decommissioned"}},
        NotFound,
        "",
    ),
    ("Azure, a filtered prompt", 400, {"error": {"code": "content_filter", "message": "It was filtered.", "param": "prompt"}}, Refused, ""),
    (
        "Azure, by the inner code",
        400,
        {"error": {"code": "BadRequest", "message": "No.", "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
        Refused,
        "",
    ),
    (
        "OpenRouter, moderation",
        403,
        {"error": {"code": 403, "message": "Your input was flagged.", "metadata": {"reasons": ["x"]}}},
        Refused,
        "",
    ),
    ("DeepSeek, a filtered prompt", 400, {"error": {"message": "Content Exists Risk"}}, Refused, ""),
    ("Qwen, a filtered prompt", 400, {"error": {"code": "data_inspection_failed", "message": "No."}}, Refused, ""),
    (
        "Groq, over a minute's tokens",
        413,
        {"error": {"message": "Request too large for model `x`: Limit 6000, Requested 9000"}},
        ContextOverflow,
        "",
    ),
    (
        "OpenAI, over a minute's tokens",
        429,
        {"error": {"message": "Request too large for gpt-x on tokens per min (TPM): Limit 3, Requested 4.", "code": "rate_limit_exceeded"}},
        ContextOverflow,
        "",
    ),
    ("Kimi, an unpaid account", 429, {"error": {"type": "exceeded_current_quota_error", "message": "suspended"}}, QuotaExhausted, ""),
    ("Kimi, busy", 429, {"error": {"type": "engine_overloaded_error", "message": "The engine is overloaded"}}, RateLimited, ""),
    ("GLM, no balance", 429, {"error": {"code": "1113", "message": "余额不足或无可用资源包"}}, QuotaExhausted, ""),
    ("xAI, no credit", 403, {"error": "Your team has used all available credits."}, QuotaExhausted, ""),
    ("busy, with 500", 500, {"error": {"message": "The model is overloaded."}}, Overloaded, ""),
    (
        "Mistral, fields",
        422,
        {"message": {"detail": [{"loc": ["body", "n"], "msg": "Extra inputs are not permitted"}]}},
        BadRequest,
        "n: Extra",
    ),
    ("a gateway's list", 400, {"success": False, "errors": [{"code": 7, "message": "No route."}]}, BadRequest, "No route."),
    (
        "Google, vague",
        400,
        {"error": {"message": "Bad.", "details": [{"detail": "[ORIGINAL ERROR] too short"}]}},
        BadRequest,
        "Bad. [too short]",
    ),
    (
        "Google, a field",
        400,
        {"error": {"message": "Bad.", "details": [{"fieldViolations": [{"field": "a", "description": "is odd"}]}]}},
        BadRequest,
        "Bad. [is odd]",
    ),
    (
        "OpenAI, a field",
        400,
        {"error": {"message": "Not so.", "param": "reasoning.summary"}},
        BadRequest,
        "Not so. [param reasoning.summary]",
    ),
    (
        "OpenAI, a field it has named",
        400,
        {"error": {"message": "Unknown parameter: 'x'.", "param": "x"}},
        BadRequest,
        "Unknown parameter: 'x'.",
    ),
    (
        "Anthropic, its finer code",
        400,
        {"error": {"type": "invalid_request_error", "message": "No.", "details": {"error_code": "prefix_mismatch"}}},
        BadRequest,
        "No. [prefix_mismatch]",
    ),
]


@pytest.mark.parametrize(("service", "status", "body", "kind", "words"), _MEANT, ids=[row[0] for row in _MEANT])
def test_an_error_is_what_its_words_say_and_tells_them(service: str, status: int, body: Any, kind: type[ProviderError], words: str) -> None:
    found = error(status, body)
    assert type(found) is kind, found
    assert words in found.message
    assert "\n" not in found.message


def test_a_filtered_prompt_in_an_answer_with_status_200_is_not_tried_again() -> None:
    found = event_error({"error": {"message": "It was filtered.", "code": "content_filter", "status": 400}})
    assert (type(found), found.retryable, found.exit_code) == (Refused, False, 58)


def test_a_key_in_googles_details_is_not_told() -> None:
    details = [{"reason": "API_KEY_INVALID"}, {"detail": "Invalid API key: the-key"}]
    found = error(400, {"error": {"message": "API key not valid.", "details": details}}, "gemini")
    assert type(found) is Unauthorized
    assert "the-key" not in found.message


@pytest.mark.parametrize("said", ["The tool `model` was not found in tools", "max_tokens is invalid", "image was not found"])
def test_words_that_only_sound_like_it_stay_bad_requests(said: str) -> None:
    assert type(error(400, {"error": {"message": said}})) is BadRequest


# --- statuses ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "retryable", "exit_code"),
    [
        (400, BadRequest, False, 57),
        (401, Unauthorized, False, 41),
        (402, QuotaExhausted, False, 57),
        (403, Forbidden, False, 41),
        (404, NotFound, False, 57),
        (408, TimedOut, True, 57),
        (409, BadRequest, True, 57),
        (413, BadRequest, False, 57),
        (422, BadRequest, False, 57),
        (429, RateLimited, True, 57),
        (498, Overloaded, True, 57),
        (500, ServerError, True, 57),
        (502, ServerError, True, 57),
        (503, Overloaded, True, 57),
        (504, ServerError, True, 57),
        (529, Overloaded, True, 57),
    ],
)
def test_every_status_has_its_error(status: int, kind: type[ProviderError], retryable: bool, exit_code: int) -> None:
    """One tree; fatal ones carry exit codes; retry 409, 429 and 5xx, never 400."""
    found = error(status, {"error": {"message": "No."}})
    assert (type(found), found.retryable, found.exit_code, found.status) == (kind, retryable, exit_code, status)
    assert isinstance(found, errors.DragomanError)


def test_the_message_says_what_to_do() -> None:
    assert "OPENAI_API_KEY" in error(401, "").message
    assert "ANTHROPIC_API_KEY" in error(403, "", "anthropic").message
    assert "model's name" in error(404, "").message
    assert (
        "GEMINI_API_KEY or GOOGLE_API_KEY"
        in error(400, {"error": {"message": "API key not valid. Please pass a valid API key."}}, "gemini").message
    )


@pytest.mark.parametrize("header", ["request-id", "x-request-id", "x-goog-request-id"])
def test_the_request_is_named_as_the_service_names_it(header: str) -> None:
    assert error(500, "", **{header.replace("-", "_"): "abc"}).request_id == "abc"


def test_a_service_that_asks_not_to_be_asked_again_is_obeyed() -> None:
    assert not error(500, "", "anthropic", x_should_retry="false").retryable
    assert not error(409, "", "anthropic", x_should_retry="false").retryable
    assert error(500, "", "anthropic", x_should_retry="true").retryable


def test_a_service_that_asks_for_the_request_again_gets_it_when_it_says() -> None:
    found = error(400, {"error": {"message": "The cache was being written."}}, "anthropic", x_should_retry="true", retry_after="3")
    assert (type(found), found.retryable, found.retry_after_s) == (BadRequest, True, 3)


# --- quotas -----------------------------------------------------------------------------------------------------------------

QUOTA = "You exceeded your current quota, please check your plan and billing details."


def google(quota_id: str = "", delay: str = "") -> dict[str, Any]:
    details: list[dict[str, Any]] = []
    if quota_id:
        details.append({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota_id, "quotaValue": "10"}]})
    if delay:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    return {"error": {"code": 429, "message": QUOTA, "status": "RESOURCE_EXHAUSTED", "details": details}}


def test_a_limit_by_the_minute_is_waited_for_and_one_by_the_day_is_not() -> None:
    """PV03, PV04: Gemini uses the same words for both; the quota's id tells them apart."""
    minute = error(429, google("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "45.837906927s"), "gemini")
    assert (type(minute), minute.retryable, minute.retry_after_s) == (RateLimited, True, 45.837906927)
    assert type(error(429, google(delay="3s"), "gemini")) is RateLimited
    day = error(429, google("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "45s"), "gemini")
    assert (type(day), day.retryable) == (QuotaExhausted, False)
    assert "daily quota" in day.message


@pytest.mark.parametrize(
    "fault",
    [
        {"message": QUOTA, "type": "insufficient_quota", "code": "insufficient_quota"},
        {"message": "Insufficient Balance", "type": "unknown_error", "code": "invalid_request_error"},
        {"message": "Your credit balance is too low to access the Anthropic API.", "type": "invalid_request_error"},
        {"message": "Insufficient credits. Add more using https://openrouter.ai/credits"},
    ],
)
def test_an_empty_account_is_not_waited_for(fault: dict[str, Any]) -> None:
    for status in (400, 402, 429):
        found = error(status, {"error": fault})
        assert (type(found), found.retryable) == (QuotaExhausted, False)


# --- hints ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry_after": "7"}, 7, 7),
        ({"retry_after": "0"}, 0, 0),
        ({"retry_after": "1.5"}, 1.5, 1.5),
        ({"retry_after_ms": "250"}, 0.25, 0.25),
        ({"retry_after": "7", "retry_after_ms": "250"}, 7, 7),
        ({"retry_after": formatdate(0, usegmt=True)}, 0, 0),
    ],
)
def test_every_form_of_hint(headers: dict[str, str], least: float, most: float) -> None:
    """PV03: Retry-After in seconds, its sister in milliseconds, and dates that are past."""
    hint = error(429, "", **headers).retry_after_s
    assert hint is not None
    assert least <= hint <= most


def test_dates_in_every_form() -> None:
    """PV03: HTTP dates, and those without a zone are in GMT, as HTTP has them."""
    then = int(time.time()) + 3600
    for date in (formatdate(then, usegmt=True), formatdate(then), formatdate(then, localtime=True), time.asctime(time.gmtime(then))):
        hint = error(429, "", retry_after=date).retry_after_s
        assert hint is not None
        assert 3590 < hint <= 3600


@pytest.mark.parametrize("value", ["", "soon", "-5", "nan", "inf", "1e99", "Wed, 99 Foo 2015 07:28:00 GMT"])
def test_a_hint_that_makes_no_sense_is_none(value: str) -> None:
    assert error(429, "", retry_after=value).retry_after_s is None


def test_only_errors_that_may_pass_have_a_hint() -> None:
    assert error(400, "", retry_after="7").retry_after_s is None
    assert error(401, "", retry_after="7").retry_after_s is None
    assert error(503, "", retry_after="7").retry_after_s == 7


# --- the window is full -----------------------------------------------------------------------------------------------------

OVERFLOWS: list[tuple[str, int, dict[str, Any]]] = [
    ("Anthropic", 400, {"error": {"type": "invalid_request_error", "message": "prompt is too long: 205000 tokens > 200000 maximum"}}),
    (
        "Anthropic, with the output",
        400,
        {"error": {"message": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}},
    ),
    (
        "OpenAI",
        400,
        {"error": {"message": "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."}},
    ),
    ("OpenAI by code", 400, {"error": {"message": "Please shorten it.", "code": "context_length_exceeded"}}),
    (
        "OpenAI Responses",
        400,
        {"error": {"message": "Your input exceeds the context window of this model. Please adjust your input and try again."}},
    ),
    ("Gemini", 400, {"error": {"message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}),
    ("Mistral", 400, {"message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"}),
    ("DeepSeek", 400, {"error": {"message": "This model's maximum context length is 131072 tokens. However, you requested 200000 tokens"}}),
    ("Kimi", 400, {"error": {"message": "Invalid request: Your request exceeded model token limit: 131072"}}),
    ("Qwen", 400, {"error": {"message": "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]"}}),
    ("GLM", 400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}),
    ("Groq", 400, {"error": {"message": "Please reduce the length of the messages or completion.", "code": "context_length_exceeded"}}),
    ("xAI", 400, {"error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}),
    (
        "OpenRouter",
        400,
        {"error": {"message": "This endpoint's maximum context length is 128000 tokens. However, you requested about 130000 tokens"}},
    ),
    ("Copilot", 400, {"error": {"message": "prompt token count of 130000 exceeds the limit of 128000"}}),
    ("Bedrock", 400, {"message": "Input is too long for requested model."}),
    (
        "llama.cpp",
        400,
        {"error": {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error"}},
    ),
    ("vLLM", 400, {"error": {"message": "The decoder prompt (length 9000) is longer than the maximum model length of 8192."}}),
    ("SGLang", 400, {"message": "The input (9000 tokens) is longer than the model's context length (8192 tokens)."}),
    ("LM Studio", 400, {"error": "The number of tokens to keep from the initial prompt is greater than the context length."}),
    ("Ollama", 500, {"error": "the input length exceeds the context length"}),
    ("TGI", 422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens"}),
    ("Cohere", 400, {"message": "too many tokens: total number of tokens in the prompt cannot exceed 128000"}),
    ("too large a body", 413, {"error": {"message": "prompt is too long"}}),
]


@pytest.mark.parametrize(("service", "status", "body"), OVERFLOWS, ids=[service for service, _, _ in OVERFLOWS])
def test_a_full_window_is_told_in_every_services_words(service: str, status: int, body: dict[str, Any]) -> None:
    found = error(status, body)
    assert (type(found), found.retryable) == (ContextOverflow, False)
    assert isinstance(found, BadRequest)


@pytest.mark.parametrize("service", ["Anthropic", "OpenAI by code", "OpenAI Responses", "LM Studio", "llama.cpp"])
def test_a_full_window_is_told_inside_a_stream_too(service: str) -> None:
    body = next(body for name, _, body in OVERFLOWS if name == service)
    assert type(event_error(body)) is ContextOverflow


@pytest.mark.parametrize(
    "said",
    [
        "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens",
        "messages.0.content: text is required",
        "Unknown field: tokens",
    ],
)
def test_other_bad_requests_are_not_mistaken_for_it(said: str) -> None:
    assert type(error(400, {"error": {"message": said}})) is BadRequest


def test_a_rate_limit_in_tokens_is_not_mistaken_for_it() -> None:
    assert (
        type(error(429, {"error": {"message": "Rate limit reached: too many tokens per minute", "code": "rate_limit_exceeded"}}))
        is RateLimited
    )


# --- inside a stream --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "kind", "status"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, Overloaded, 529),
        ({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}, Unauthorized, 401),
        ({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "Slow."}}}, RateLimited, 429),
        ({"type": "error", "code": "invalid_api_key", "message": "No."}, Unauthorized, 401),
        ({"error": {"code": 403, "message": "No.", "status": "PERMISSION_DENIED"}}, Forbidden, 403),
        ({"error": {"code": "404", "message": "No."}}, NotFound, 404),
        ({"error": {"code": "1302", "message": "Slow."}}, ServerError, 500),
        ({"error": {"code": 20012, "message": "No."}}, ServerError, 500),
        ({"error": {"code": "²", "message": "No."}}, ServerError, 500),
        ({"error": {"message": "It broke."}}, ServerError, 500),
        ({}, ServerError, 500),
        (None, ServerError, 500),
    ],
)
def test_an_error_event_is_treated_like_its_status(event: Any, kind: type[ProviderError], status: int) -> None:
    """Error events inside a 200 stream are treated like their status; numbers that are no status are not."""
    found = event_error(event)
    assert (type(found), found.status) == (kind, status)
    assert found.message
