"""What a service says when it will not answer → our errors: whose fault, whether to try again, when, and what to do."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.base import jsontext
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
_OVERFLOW = re.compile(
    r"prompt is too long|context_length_exceeded|exceed_context_size|maximum context length|context window|"
    r"(input|prompt) token count .{0,40}exceeds|exceeds the maximum number of tokens|too many tokens|exceed context limit|"
    r"(exceeded|exceeds) (model token limit|the context length|max(imum)? context length)|maximum prompt length|available context size|"
    r"prompt exceeds max length|range of input length|longer than the (maximum model length|model's context length)|"
    r"(greater than the|loaded with) context length|input is too long|tokens \+ .max_new_tokens. must be",
    re.IGNORECASE,
)
# Not "exceeded your current quota, please check your plan": Gemini says so of every limit, a minute's too.
_EMPTY_ACCOUNT = re.compile(r"insufficient.{0,3}(quota|balance|credit)|credit balance is too low", re.IGNORECASE)
_BAD_KEY = re.compile(r"api.?key.{0,20}(not valid|invalid|expired)|API_KEY_INVALID", re.IGNORECASE)


def error_from_status(status: int, headers: Mapping[str, str], body: bytes, deployment: Deployment) -> ProviderError:
    """The error an HTTP answer stands for."""
    fault = _fault_in(body)
    message = _message_of(fault) or _plain(body) or f"the service answered with status {status} and no explanation"
    return _error(status, message, fault, headers, deployment)


def error_from_event(event: Any, to: Destination) -> ProviderError:
    """An error event inside a 200 stream is treated like its status."""
    fault = _inner(event)
    code = str(fault.get("code") or "")
    kind = str(fault.get("type") or "")
    is_status = len(code) == 3 and code.isdecimal() and code[0] in "45"  # others have numbers of their own (GLM's 1302)
    status = int(code) if is_status else _STATUS_OF.get(code) or _STATUS_OF.get(kind) or 500
    return _error(status, _message_of(fault) or "the service broke off with an error", fault, {}, to.deployment)


def retry_after_s(headers: Mapping[str, str], fault: Mapping[str, Any], now: float | None = None) -> float | None:
    """How long the server asks us to wait: the longest of what it says, so that no hint is undercut."""
    hints = [hint for hint in (*_header_hints(headers, time.time() if now is None else now), *_retry_infos(fault)) if hint is not None]
    return max(hints, default=None)


def _error(status: int, message: str, fault: dict[str, Any], headers: Mapping[str, str], deployment: Deployment) -> ProviderError:
    code = str(fault.get("status") or fault.get("code") or fault.get("type") or "")
    words = f"{message} {code} {fault.get('type', '')}"
    kind, advice = _classify(status, words, fault, deployment)
    hint = retry_after_s(headers, fault) if kind in (RateLimited, Overloaded, ServerError) else None
    return kind(
        f"{message}{advice}",
        provider=deployment.name,
        status=status,
        request_id=_request_id(headers),
        code=code,
        retry_after_s=hint,
        retryable=False if headers.get("x-should-retry") == "false" else None,
    )


def _classify(status: int, words: str, fault: dict[str, Any], deployment: Deployment) -> tuple[type[ProviderError], str]:
    """The kind of error, and what a person can do about it."""
    key = " or ".join(deployment.key_env) or "the key"
    match status:
        case 401:
            return Unauthorized, f" — check {key}"
        case 402:
            return QuotaExhausted, " — the account has no credit left"
        case 403:
            return Forbidden, f" — {key} may not use this model or service"
        case 400 | 413 | 422 | 500 if _OVERFLOW.search(words):
            return ContextOverflow, ""
        case 400 if _BAD_KEY.search(words):
            return Unauthorized, f" — check {key}"
        case 400 if _EMPTY_ACCOUNT.search(words):
            return QuotaExhausted, " — check plan and billing"
        case 404:
            return NotFound, " — check the model's name and the base URL"
        case 408:
            return TimedOut, ""
        case 429 if _daily(fault):
            return QuotaExhausted, " — the daily quota is used up; it is reset once a day, or choose another model"
        case 429 if _EMPTY_ACCOUNT.search(words):
            return QuotaExhausted, " — check plan and billing"
        case 429:
            return RateLimited, ""
        case 503 | 529:
            return Overloaded, ""
        case _ if status >= 500:
            return ServerError, ""
        case _:
            return BadRequest, ""


# --- reading error bodies of many shapes ------------------------------------------------------------------------------------------


def _fault_in(body: bytes) -> dict[str, Any]:
    try:
        return _inner(jsontext.decode(body))
    except jsontext.NotJSON:
        return {}


def _inner(value: Any) -> dict[str, Any]:
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


def _plain(body: bytes) -> str:
    """The text of an error page, without its markup."""
    text = re.sub(r"<(script|style).*?</\1>|<[^<>]*>", " ", body[:20_000].decode(errors="replace"), flags=re.DOTALL | re.IGNORECASE)
    return _line(text)


def _line(text: str) -> str:
    from dragoman.base.text import one_line  # only where something is wrong already

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
        yield seconds if seconds is not None else _until(value, now)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None


def _until(date: str, now: float) -> float | None:
    from datetime import UTC
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


def _daily(fault: Mapping[str, Any]) -> bool:
    violations = [item for detail in _details(fault) for item in detail.get("violations") or () if isinstance(item, dict)]
    return any("perday" in str(item.get("quotaId", "")).lower() for item in violations)
