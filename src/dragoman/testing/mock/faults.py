"""Error responses of each service: body and headers."""

from __future__ import annotations

from email.utils import formatdate
from typing import Any, assert_never

from dragoman.testing.mock.wire import ModelRequest
from dragoman.testing.script_steps import Fail
from dragoman.values.profile import ProtocolName

_ANTHROPIC = {
    400: ("invalid_request_error", "Your request is invalid."),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the Anthropic API."),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "The requested resource could not be found."),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    500: ("api_error", "Internal server error"),
    503: ("overloaded_error", "Overloaded"),
    504: ("timeout_error", "The request timed out while processing."),
    529: ("overloaded_error", "Overloaded"),
}
# type, code, message
_OPENAI = {
    400: ("invalid_request_error", None, "Your request is invalid."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: ("invalid_request_error", "unsupported_country_region_territory", "Country, region, or territory not supported"),
    404: ("invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests."),
    500: ("server_error", None, "The server had an error while processing your request. Sorry about that!"),
    503: ("service_unavailable_error", "server_is_overloaded", "The server is overloaded or not ready yet."),
}
_QUOTA = "You exceeded your current quota, please check your plan and billing details."
_GOOGLE = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
    403: ("PERMISSION_DENIED", "The caller does not have permission"),
    404: ("NOT_FOUND", "Requested entity was not found."),
    429: ("RESOURCE_EXHAUSTED", _QUOTA),
    499: ("CANCELLED", "The operation was cancelled."),
    500: ("INTERNAL", "An internal error has occurred. Please retry or report the problem."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
}


def error_body(protocol: ProtocolName, fail: Fail, request_id: str) -> dict[str, Any]:
    """The error as the service writes it, in a response of its own or inside a stream."""
    match protocol:
        case "anthropic":
            return _anthropic(fail, request_id)
        case "openai_chat" | "openai_responses":
            return {"error": openai_error(fail)}
        case "gemini":
            return _google(fail)
        case _:
            assert_never(protocol)


def error_headers(protocol: ProtocolName, fail: Fail, request_id: str, now: float) -> dict[str, str]:
    headers = request_headers(protocol, request_id)
    if fail.retry_after_s is not None:
        headers["retry-after"] = f"{fail.retry_after_s:.15g}"
    elif fail.retry_date_s is not None:
        headers["retry-after"] = formatdate(now + fail.retry_date_s, usegmt=True)
    if protocol == "anthropic":
        headers["x-should-retry"] = "true" if fail.status in (408, 409, 429) or fail.status >= 500 else "false"
    return headers


def request_headers(protocol: ProtocolName, request_id: str) -> dict[str, str]:
    """The request id headers that a service sends with every response."""
    match protocol:
        case "anthropic":
            return {"request-id": request_id}
        case "openai_chat" | "openai_responses":
            return {"x-request-id": request_id}
        case "gemini":
            return {}  # Google sends no request id
        case _:
            assert_never(protocol)


def request_id_of(request: ModelRequest) -> str:
    return request.id("req_")


def openai_error(fail: Fail) -> dict[str, Any]:
    kind, code, message = _OPENAI.get(fail.status) or _OPENAI[500 if fail.status >= 500 else 400]
    if fail.code == "insufficient_quota":
        kind, message = "insufficient_quota", _QUOTA
    return {"message": fail.message or message, "type": kind, "param": fail.param or None, "code": fail.code or code}


def _anthropic(fail: Fail, request_id: str) -> dict[str, Any]:
    kind, message = _ANTHROPIC.get(fail.status) or _ANTHROPIC[500 if fail.status >= 500 else 400]
    return {"type": "error", "error": {"type": fail.code or kind, "message": fail.message or message}, "request_id": request_id}


def _google(fail: Fail) -> dict[str, Any]:
    status, message = _GOOGLE.get(fail.status) or _GOOGLE[500 if fail.status >= 500 else 400]
    details: list[dict[str, Any]] = []
    if fail.quota_id:
        violation = {
            "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
            "quotaId": fail.quota_id,
            "quotaDimensions": {"location": "global", "model": "gemini-2.5-flash"},
            "quotaValue": "250",
        }
        details.append({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]})
    if fail.retry_info_s is not None:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{fail.retry_info_s:.15g}s"})
    error: dict[str, Any] = {"code": fail.status, "message": fail.message or message, "status": fail.code or status}
    return {"error": error | ({"details": details} if details else {})}
