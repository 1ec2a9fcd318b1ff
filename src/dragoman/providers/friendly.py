"""Errors of other libraries as ours: by the answer of a service that they carry, or by what they say of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from dragoman.base import jsontext
from dragoman.providers.faults import error_from_status
from dragoman.values.errors import Cancelled, ConnectionFailed, DragomanError, TimedOut
from dragoman.values.profile import Deployment
from dragoman.words import say

_STATUS = ("status_code", "status", "http_status", "code")
_BODY = ("content", "data", "body", "text", "details")


def friendly_error(error: object, *, provider: str = "") -> object:
    """Turn an error into the one of ours that fits (the documents' toFriendlyError): by its HTTP status and the service's words, whichever
    library raised it (requests, httpx, the SDKs, a decoded body), or as a lost connection, a time-out or a cancel.

    An error of ours, and one that says nothing of a service, comes back as it is. The original is its `__cause__`.
    """
    if isinstance(error, DragomanError):
        return error
    friendly = _friendly(error, provider)
    if friendly is None:
        return error
    if isinstance(error, BaseException):
        friendly.__cause__ = error
    return friendly


def _friendly(error: object, provider: str) -> DragomanError | None:
    if (found := _answer_of(error)) is not None:
        status, headers, body = found
        return error_from_status(status, headers, body, Deployment(provider, "", ""))
    match error:
        case asyncio.CancelledError():
            return Cancelled(say("loop.cancelled"))
        case TimeoutError():
            return TimedOut(str(error) or say("providers.stalled"), provider=provider)
        case ConnectionError():
            return ConnectionFailed(str(error) or type(error).__name__, provider=provider)
        case _:
            return None


def _answer_of(error: object) -> tuple[int, Mapping[str, str], bytes] | None:
    """The status, headers and body of the service's answer; None where there is none."""
    response = _get(error, "response")
    for holder in (response, error):
        if holder is None:
            continue
        status = next((value for name in _STATUS if (value := _status(_get(holder, name))) is not None), None)
        body = next((value for name in _BODY if (value := _bytes(_get(holder, name))) is not None), b"")
        if status is None:
            status = _status_in(body) if body else _status_in(_bytes(error) or b"") if isinstance(error, Mapping) else None
        if status is not None:
            headers = _get(holder, "headers")
            named = {str(key).lower(): str(value) for key, value in headers.items()} if isinstance(headers, Mapping) else {}
            return status, named, body or _bytes(error) or jsontext.encode({"error": {"message": str(error)}})
    return None


def _get(holder: object, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _status(value: object) -> int | None:
    is_status = isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599
    return value if is_status else None  # type: ignore[return-value]


def _status_in(body: bytes) -> int | None:
    """The status that a body names: `{"error": {"code": 401, …}}`."""
    from dragoman.providers.fault_body import read_body

    return _status(read_body(body).status)


def _bytes(value: object) -> bytes | None:
    match value:
        case bytes():
            return value
        case str() if value:
            return value.encode("utf-8", "replace")
        case dict() | list():
            return jsontext.encode(value)
        case _:
            return None
