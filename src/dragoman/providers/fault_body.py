"""Error bodies of many shapes → one ErrorBody: what the service says, its codes, and the field it names. Pure, and never raises."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.base.text import one_line
from dragoman.words import say

MAX_MESSAGE_CHARS = 600
_DEPTH = 4
"""How far we look into errors that wrap other errors."""


class ErrorBody(msgspec.Struct, frozen=True):
    """What an error body says."""

    message: str = ""
    """One line for a person: the service's words, and what else it tells that is not in them. Empty if it says nothing."""
    codes: tuple[str, ...] = ()
    """Its own names and numbers for the fault, the innermost first."""
    status: int = 0
    """The HTTP status the body names; 0 if it names none."""
    field: str = ""
    """The field of the request that it names as the reason, with dots."""
    details: tuple[Mapping[str, Any], ...] = ()
    """google.rpc details."""
    request_id: str = ""


def read_body(body: bytes) -> ErrorBody:
    """The fault in the body of a response."""
    try:
        return body_in(jsontext.decode(body))
    except jsontext.NotJSON:
        return ErrorBody()


def body_in(value: Any) -> ErrorBody:
    """The fault in a decoded body or event."""
    return _fault(value, _DEPTH)


def page_text(body: bytes) -> str:
    """The text of an HTML error page, without markup."""
    text = re.sub(r"<(script|style).*?</\1>|<[^<>]*>", " ", body[:20_000].decode(errors="replace"), flags=re.DOTALL | re.IGNORECASE)
    return _line(text)


def _fault(value: Any, depth: int) -> ErrorBody:
    whole = _as_object(value)
    fault = _innermost(whole, depth)
    upstream = _upstream(fault, depth)
    details = _objects(fault.get("details"))
    codes = (*upstream.codes, *_codes(fault, details))
    field = _text(fault.get("param")) or _complaint_field(fault) or upstream.field
    message = _with_upstream(_message(fault), upstream, fault)
    notes = [note for note in (_code_note(fault), field and f"param {field}") if note and note.split(" ")[-1] not in message]
    if message and (more := _debug_info(details)) and message not in more:
        notes.insert(0, more)
    if notes and message:
        message = _line(f"{message} [{'; '.join(notes)}]")
    return ErrorBody(message, codes, _status(fault) or upstream.status, field, details, _text(whole.get("request_id")))


# --- which object describes the fault -------------------------------------------------------------------------------------------


def _as_object(value: Any) -> dict[str, Any]:
    if isinstance(value, list) and value:  # Gemini streams wrap the error in an array
        value = value[0]
    return value if isinstance(value, dict) else {}


def _innermost(value: dict[str, Any], depth: int) -> dict[str, Any]:
    for _ in range(depth):
        inner = value.get("error")
        if inner is None and isinstance(value.get("response"), dict):
            inner = value["response"].get("error")
        if inner is None and not _message(value):
            inner = value.get("errors")  # a list, as gateways write it
        if isinstance(inner, list) and inner:
            inner = inner[0]
        if isinstance(inner, str) and inner.strip():
            return {**value, "message": inner}
        if not isinstance(inner, dict):
            return value
        value = inner
    return value


def _upstream(fault: Mapping[str, Any], depth: int) -> ErrorBody:
    """What the service behind a gateway said: OpenRouter keeps it in `metadata.raw`, as JSON, as JSON text or as plain text."""
    metadata = fault.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if depth <= 1 or not raw:
        return ErrorBody()
    if isinstance(raw, str):
        try:
            decoded = jsontext.decode(raw)
        except jsontext.NotJSON:
            return ErrorBody(_line(raw))
        raw = decoded if isinstance(decoded, (dict, list)) else {"message": raw}
    return _fault(raw, depth - 1)


def _with_upstream(message: str, upstream: ErrorBody, fault: Mapping[str, Any]) -> str:
    if not upstream.message or upstream.message in message:
        return message
    provider = _line(_text(fault["metadata"].get("provider_name")))
    said = f"{provider}: {upstream.message}" if provider else upstream.message
    return _line(say("providers.upstream", message=message, said=said)) if message else said


# --- its fields -----------------------------------------------------------------------------------------------------------------


def _message(fault: Mapping[str, Any]) -> str:
    for field in ("message", "detail", "msg", "error_description", "title"):
        value = fault.get(field)
        if isinstance(value, str) and value.strip():
            return _line(value)
        if isinstance(value, (list, dict)) and value:
            return _line("; ".join(_complaints(value)) or jsontext.dumps(value))
        if value and not isinstance(value, str):
            return _line(jsontext.dumps(value))
    return ""


def _complaints(value: Any) -> Iterator[str]:
    """What a server that checks fields one by one (FastAPI, Mistral) complains of."""
    for item in _complaint_items(value):
        where = _place(item.get("loc"))
        said = _text(item.get("msg")) or _text(item.get("message"))
        if said:
            yield f"{where}: {said}" if where else said


def _complaint_field(fault: Mapping[str, Any]) -> str:
    for name in ("detail", "message"):
        for item in _complaint_items(fault.get(name)):
            if place := _place(item.get("loc")):
                return place
    return ""


def _complaint_items(value: Any) -> tuple[Mapping[str, Any], ...]:
    if isinstance(value, dict):
        return _objects(value.get("detail")) or (value,)
    return _objects(value)


def _place(loc: Any) -> str:
    if not isinstance(loc, list):
        return ""
    return ".".join(str(step) for step in loc if isinstance(step, str | int) and step != "body")


def _codes(fault: Mapping[str, Any], details: tuple[Mapping[str, Any], ...]) -> Iterator[str]:
    inner = fault.get("innererror")
    for name in ("status", "code", "type"):
        if isinstance(value := fault.get(name), str | int) and str(value):
            yield str(value)
    yield from (reason for detail in details if (reason := _text(detail.get("reason"))))
    if isinstance(inner, dict) and (code := _text(inner.get("code"))):
        yield code
    if note := _code_note(fault):
        yield note


def _code_note(fault: Mapping[str, Any]) -> str:
    """Anthropic's finer name for the fault."""
    details = fault.get("details")
    return _line(_text(details.get("error_code"))) if isinstance(details, dict) else ""


def _debug_info(details: tuple[Mapping[str, Any], ...]) -> str:
    """Google says "Request contains an invalid argument" of almost anything; what it means is in the details. They may hold the key."""
    violations = [item for detail in details for item in _objects(detail.get("fieldViolations"))]
    said = [_text(item.get("description")) for item in violations] + [_text(detail.get("detail")) for detail in details]
    found = next((text for text in said if text.strip() and "api key" not in text.lower()), "")
    return _line(found.removeprefix("[ORIGINAL ERROR] ").partition(" [google.rpc.")[0])


def _status(fault: Mapping[str, Any]) -> int:
    """Some services use numbers of their own (GLM's 1302): those are not a status."""
    for name in ("code", "status_code", "status"):
        value = str(fault.get(name) or "")
        if len(value) == 3 and value.isdecimal() and value[0] in "45":
            return int(value)
    return 0


def _objects(value: Any) -> tuple[Mapping[str, Any], ...]:
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _line(text: str) -> str:
    return one_line(text, MAX_MESSAGE_CHARS)
