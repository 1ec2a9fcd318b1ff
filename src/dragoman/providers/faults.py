"""Error responses of services → our errors: the kind, whether and when to retry, and what the user can do."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Any

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
    Refused,
    ServerError,
    TimedOut,
    Unauthorized,
)
from dragoman.values.profile import Deployment
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.providers.fault_body import ErrorBody

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
# One request alone is over the limit of a minute: waiting does not help, a shorter request does.
_OVER_MINUTE = r"(?i)request too large for |tokens must be reduced in order to run"
_LIMITS = (
    r"> ?([\d,]+)",
    r"\[1, ?([\d,]+)\]",
    r"(?i)(?:maximum|limit|allowed|context (?:window|length|size)|more than)\D{0,40}?([\d,]{3,})",
)
"""Where an overflow names the limit, the most telling form first."""
# Not "exceeded your current quota, please check your plan": Gemini says that for every limit, per-minute ones too.
_EMPTY_ACCOUNT = (
    r"(?i)insufficient.{0,3}(quota|balance|credit)|credit balance is too low|requires more credits|used all available credits|"
    r"exceeded_current_quota|billing_(hard_limit|not_active)|arrearage|余额不足"
)
_BAD_KEY = r"(?i)api.?key.{0,20}(not valid|invalid|expired)|API_KEY_INVALID|(incorrect|invalid|wrong) api.?key"
_NO_MODEL = (
    r"(?i)model_not_found|model_decommissioned|not a valid model|\b(invalid|unknown) model\b|\bmodel not (exist|found)|"
    r"\bmodel .{1,100} (does not exist|not found|has been decommissioned)|模型不存在"
)
_FILTERED = (
    r"(?i)content_filter|content_policy_violation|ResponsibleAIPolicy|data_?inspection_?failed|content exists risk|"
    r"\bflagged (as|by|for)\b|input was flagged|content management policy|responsible ai practices"
)
_BUSY = r"(?i)overloaded|at capacity|capacity exceeded|over capacity"


def error_from_status(status: int, headers: Mapping[str, str], body: bytes, deployment: Deployment) -> ProviderError:
    """The error for an HTTP status and body."""
    from dragoman.providers.fault_body import page_text, read_body  # not needed until something fails

    fault = read_body(body)
    message = fault.message or page_text(body) or say("providers.status_without_text", status=status)
    return _error(status, message, fault, headers, deployment)


def error_from_event(event: Any, to: Destination) -> ProviderError:
    """The error for an error event in a stream with status 200: treated like the HTTP status it corresponds to."""
    from dragoman.providers.fault_body import body_in

    fault = body_in(event)
    named = (_STATUS_OF[code] for code in fault.codes if code in _STATUS_OF)
    status = fault.status or next(named, 500)
    return _error(status, fault.message or say("providers.error_without_text"), fault, {}, to.deployment)


def retry_after_s(headers: Mapping[str, str], fault: ErrorBody, now: float | None = None) -> float | None:
    """How long the server asks us to wait before a retry: the longest of its hints."""
    hints = [hint for hint in (*_header_hints(headers, time.time() if now is None else now), *_retry_infos(fault)) if hint is not None]
    return max(hints, default=None)


def named_limit(message: str) -> int:
    """Return the number of tokens that an overflow names as the most; 0 if it names none."""
    found = next((found for form in _LIMITS if (found := re.search(form, message)) is not None), None)
    return int(found[1].replace(",", "") or 0) if found is not None else 0


def _error(status: int, message: str, fault: ErrorBody, headers: Mapping[str, str], deployment: Deployment) -> ProviderError:
    kind, advice = _classify(status, " ".join((message, *fault.codes)), fault)
    key = say("providers.or").join((*deployment.key_env, *deployment.token_env)) or say("providers.the_key")
    retryable = _asked_to_retry(status, headers)
    may_pass = kind in (RateLimited, Overloaded, ServerError) or retryable is True
    return kind(
        _add_advice(message, advice, key),
        provider=deployment.name,
        status=status,
        request_id=_request_id(headers) or fault.request_id,
        code=next(iter(fault.codes), ""),
        field=fault.field,
        retry_after_s=retry_after_s(headers, fault) if may_pass else None,
        retryable=retryable,
    )


def _asked_to_retry(status: int, headers: Mapping[str, str]) -> bool | None:
    """Whether the service wants the request again. A conflict (409) is one of locks that are soon released."""
    match headers.get("x-should-retry"):
        case "true":
            return True
        case "false":
            return False
        case _:
            return True if status == 409 else None


def _add_advice(message: str, advice: str, key: str) -> str:
    """The service's message, with advice for the user."""
    match advice:
        case "":
            return message
        case "providers.check_key" | "providers.key_not_allowed":
            return say(advice, message=message, key=key)
        case _:
            return say(advice, message=message)


def _classify(status: int, words: str, fault: ErrorBody) -> tuple[type[ProviderError], str]:
    """The kind of error, and the key of the sentence with advice for the user."""
    match status:
        case 401:
            return Unauthorized, "providers.check_key"
        case 402:
            return QuotaExhausted, "providers.no_credit"
        case 404:
            return NotFound, "providers.check_model"
        case 408:
            return TimedOut, ""
        case 409:
            return BadRequest, ""
        case 429:
            return _classify_limit(words, fault)
        case 503 | 529 | 498:  # 498: Groq, for its flexible tier
            return Overloaded, ""
        case 400 | 413 | 422 | 500 if re.search(_OVERFLOW, words) or (status == 413 and re.search(_OVER_MINUTE, words)):
            return ContextOverflow, ""
        case _ if status < 500:
            return _classify_refusal(status, words)
        case _:
            return (Overloaded if re.search(_BUSY, words) else ServerError), ""


def _classify_limit(words: str, fault: ErrorBody) -> tuple[type[ProviderError], str]:
    if _is_daily_quota(fault):
        return QuotaExhausted, "providers.daily_quota"
    if re.search(_EMPTY_ACCOUNT, words):
        return QuotaExhausted, "providers.check_billing"
    return (ContextOverflow if re.search(_OVER_MINUTE, words) else RateLimited), ""


def _classify_refusal(status: int, words: str) -> tuple[type[ProviderError], str]:
    """400, 403, 422 …: services use them for much that has a status of its own elsewhere."""
    if re.search(_FILTERED, words):
        return Refused, ""
    if re.search(_EMPTY_ACCOUNT, words):
        return QuotaExhausted, "providers.check_billing"
    if status == 403:
        return Forbidden, "providers.key_not_allowed"
    if re.search(_BAD_KEY, words):
        return Unauthorized, "providers.check_key"
    if re.search(_NO_MODEL, words):
        return NotFound, "providers.check_model"
    return BadRequest, ""


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


_SECONDS = re.compile(r"\d+(\.\d*)?", re.ASCII)
MAX_HINT_S = 1e18
"""A longer wait is as long as this one: nobody waits it out, and a clock cannot hold it."""


def _number(text: str) -> float | None:
    return min(float(text), MAX_HINT_S) if _SECONDS.fullmatch(text.strip()) else None


def _seconds_until(date: str, now: float) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        when = parsedate_to_datetime(date)
        when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        return max(when.timestamp() - now, 0.0)
    except (ValueError, OverflowError):
        return None


def _retry_infos(fault: ErrorBody) -> Iterator[float | None]:
    """google.rpc.RetryInfo: a duration such as "45.837906927s"."""
    for detail in fault.details:
        delay = detail.get("retryDelay")
        if isinstance(delay, str):
            yield _number(delay.removesuffix("s"))


def _is_daily_quota(fault: ErrorBody) -> bool:
    found = (detail.get("violations") for detail in fault.details)
    violations = [item for items in found if isinstance(items, list) for item in items if isinstance(item, dict)]
    return any("perday" in str(item.get("quotaId", "")).lower() for item in violations)
