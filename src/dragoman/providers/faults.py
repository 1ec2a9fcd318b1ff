"""Error responses of services → our errors: the kind, whether and when to retry, and what the user can do."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC
from typing import Any

from dragoman.base import jsontext
from dragoman.base.text import one_line
from dragoman.base.words import say
from dragoman.providers.wire import Destination
from dragoman.values.errors import (
    BadRequest,
    ContextOverflow,
    Forbidden,
    NotFound,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    ServerError,
    TimedOut,
    Unauthorized,
)
from dragoman.values.profile import Deployment

MAX_MESSAGE_CHARS = 600
_STATUS_OF = {
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "timeout_error": 504,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "api_error": 500,
    "server_error": 500,
    "server_is_overloaded": 503,
    "overloaded_error": 529,
}
# Compiled when an error is first read, not while a first request waits.
_OVERFLOW = (
    r"(?i)prompt is too long|context_length_exceeded|exceed_context_size|maximum context length|context window|"
    r"(input|prompt) token count .{0,40}exceeds|exceeds the maximum number of tokens|too many tokens|exceed context limit|"
    r"(exceeded|exceeds) (model token limit|the context length|max(imum)? context length)|maximum prompt length|available context size|"
    r"prompt exceeds max length|range of input length|longer than the (maximum model length|model's context length)|"
    r"(greater than the|loaded with) context length|input is too long|tokens \+ .max_new_tokens. must be"
)
# Not "exceeded your current quota, please check your plan": Gemini says that for every limit, per-minute ones too.
_EMPTY_ACCOUNT = r"(?i)insufficient.{0,3}(quota|balance|credit)|credit balance is too low"
_BAD_KEY = r"(?i)api.?key.{0,20}(not valid|invalid|expired)|API_KEY_INVALID"


def error_from_status(status: int, headers: Mapping[str, str], body: bytes, deployment: Deployment) -> ProviderError:
    """The error for an HTTP status and body."""
    fault = _read_fault(body)
    message = _message_of(fault) or _page_text(body) or say("providers.status_without_text", status=status)
    return _error(status, message, fault, headers, deployment)


def error_from_event(event: Any, to: Destination) -> ProviderError:
    """The error for an error event in a stream with status 200: treated like the HTTP status it corresponds to."""
    fault = _fault_object(event)
    code = str(fault.get("code") or "")
    kind = str(fault.get("type") or "")
    is_status = len(code) == 3 and code.isdecimal() and code[0] in "45"  # some services use their own numbers (GLM's 1302)
    status = int(code) if is_status else _STATUS_OF.get(code) or _STATUS_OF.get(kind) or 500
    return _error(status, _message_of(fault) or say("providers.error_without_text"), fault, {}, to.deployment)


def retry_after_s(headers: Mapping[str, str], fault: Mapping[str, Any], now: float | None = None) -> float | None:
    """How long the server asks us to wait before a retry: the longest of its hints."""
    hints = [hint for hint in (*_header_hints(headers, time.time() if now is None else now), *_retry_infos(fault)) if hint is not None]
    return max(hints, default=None)


def _error(status: int, message: str, fault: dict[str, Any], headers: Mapping[str, str], deployment: Deployment) -> ProviderError:
    code = str(fault.get("status") or fault.get("code") or fault.get("type") or "")
    words = f"{message} {code} {fault.get('type', '')}"
    kind, advice = _classify(status, words, fault)
    key = " or ".join(deployment.key_env) or say("providers.the_key")
    hint = retry_after_s(headers, fault) if kind in (RateLimited, Overloaded, ServerError) else None
    return kind(
        _add_advice(message, advice, key),
        provider=deployment.name,
        status=status,
        request_id=_request_id(headers),
        code=code,
        retry_after_s=hint,
        retryable=False if headers.get("x-should-retry") == "false" else None,
    )


def _add_advice(message: str, advice: str, key: str) -> str:
    """The service's message, with advice for the user."""
    match advice:
        case "":
            return message
        case "providers.check_key" | "providers.key_not_allowed":
            return say(advice, message=message, key=key)
        case _:
            return say(advice, message=message)


def _classify(status: int, words: str, fault: dict[str, Any]) -> tuple[type[ProviderError], str]:
    """The kind of error, and the key of the sentence with advice for the user."""
    match status:
        case 401:
            return Unauthorized, "providers.check_key"
        case 402:
            return QuotaExhausted, "providers.no_credit"
        case 403:
            return Forbidden, "providers.key_not_allowed"
        case 400 | 413 | 422 | 500 if re.search(_OVERFLOW, words):
            return ContextOverflow, ""
        case 400 if re.search(_BAD_KEY, words):
            return Unauthorized, "providers.check_key"
        case 400 if re.search(_EMPTY_ACCOUNT, words):
            return QuotaExhausted, "providers.check_billing"
        case 404:
            return NotFound, "providers.check_model"
        case 408:
            return TimedOut, ""
        case 429 if _is_daily_quota(fault):
            return QuotaExhausted, "providers.daily_quota"
        case 429 if re.search(_EMPTY_ACCOUNT, words):
            return QuotaExhausted, "providers.check_billing"
        case 429:
            return RateLimited, ""
        case 503 | 529:
            return Overloaded, ""
        case _ if status >= 500:
            return ServerError, ""
        case _:
            return BadRequest, ""


# --- reading error bodies of many shapes ------------------------------------------------------------------------------------------


def _read_fault(body: bytes) -> dict[str, Any]:
    try:
        return _fault_object(jsontext.decode(body))
    except jsontext.NotJSON:
        return {}


def _fault_object(value: Any) -> dict[str, Any]:
    """The innermost object that describes the fault."""
    if isinstance(value, list) and value:  # Gemini streams wrap the error in an array
        value = value[0]
    if not isinstance(value, dict):
        return {}
    inner = value.get("error")
    if inner is None and isinstance(value.get("response"), dict):
        inner = value["response"].get("error")
    if isinstance(inner, str):
        return {**value, "message": inner}
    return inner if isinstance(inner, dict) else value


def _message_of(fault: Mapping[str, Any]) -> str:
    for field in ("message", "detail", "msg"):
        value = fault.get(field)
        if isinstance(value, str) and value.strip():
            return _line(value)
        if value:
            return _line(jsontext.dumps(value))
    return ""


def _page_text(body: bytes) -> str:
    """The text of an HTML error page, without markup."""
    text = re.sub(r"<(script|style).*?</\1>|<[^<>]*>", " ", body[:20_000].decode(errors="replace"), flags=re.DOTALL | re.IGNORECASE)
    return _line(text)


def _line(text: str) -> str:
    return one_line(text, MAX_MESSAGE_CHARS)


def _request_id(headers: Mapping[str, str]) -> str:
    return headers.get("request-id") or headers.get("x-request-id") or headers.get("x-goog-request-id") or ""


# --- hints --------------------------------------------------------------------------------------------------------------------------


def _header_hints(headers: Mapping[str, str], now: float) -> Iterator[float | None]:
    if milliseconds := headers.get("retry-after-ms"):
        seconds = _number(milliseconds)
        yield seconds / 1000 if seconds is not None else None
    if value := headers.get("retry-after"):
        seconds = _number(value)
        yield seconds if seconds is not None else _seconds_until(value, now)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None


def _seconds_until(date: str, now: float) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        when = parsedate_to_datetime(date)
        when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        return max(when.timestamp() - now, 0.0)
    except (ValueError, OverflowError):
        return None


def _details(fault: Mapping[str, Any]) -> list[dict[str, Any]]:
    details = fault.get("details")
    return [item for item in details if isinstance(item, dict)] if isinstance(details, list) else []


def _retry_infos(fault: Mapping[str, Any]) -> Iterator[float | None]:
    """google.rpc.RetryInfo: a duration such as "45.837906927s"."""
    for detail in _details(fault):
        delay = detail.get("retryDelay")
        if isinstance(delay, str):
            yield _number(delay.removesuffix("s"))


def _is_daily_quota(fault: Mapping[str, Any]) -> bool:
    violations = [item for detail in _details(fault) for item in detail.get("violations") or () if isinstance(item, dict)]
    return any("perday" in str(item.get("quotaId", "")).lower() for item in violations)
