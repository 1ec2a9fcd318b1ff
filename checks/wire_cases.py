"""What is sent to the default model of every deployment in the catalog: a request for each thing a service can be asked."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from dragoman.base import jsontext
from dragoman.providers.catalog import builtin_catalog
from dragoman.providers.connect import Connection, connect
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.contracts import HttpRequest
from dragoman.values.errors import Unsupported
from dragoman.values.messages import (
    Message,
    Opaque,
    Part,
    Request,
    Settings,
    Text,
    Thinking,
    Thought,
    ToolCall,
    ToolSpec,
    assistant,
    tool_result,
    user,
)
from dragoman.values.profile import Deployment, Profile

EFFORTS = ("off", "low", "medium", "high", "max")
ENVIRONMENT = {"GOOGLE_CLOUD_PROJECT": "project", "AZURE_OPENAI_ENDPOINT": "https://resource.openai.azure.com"}
BLOBS = MemoryBlobs()
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PNG = BLOBS.put("image/png", base64.b64decode(_PNG))
PDF = BLOBS.put("application/pdf", b"%PDF-1.4\n%%EOF\n")

_PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
READ = ToolSpec.of("read_file", "Read a file.", _PATH)
NOW = ToolSpec.of("now", "The time.", {"type": "object", "properties": {}})
SCHEMA = jsontext.dumps(
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 1, "maxLength": 80},
            "people": {"type": "integer", "minimum": 0, "maximum": 50_000_000},
            "streets": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 5},
            "prices": {"type": "object", "additionalProperties": {"type": "number"}},
            "found": {"oneOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
        },
        "required": ["city", "people", "streets", "prices", "found"],
        "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"], "additionalProperties": False}},
    }
)
"""Bounds, a map, a union and a definition: what pydantic writes for ordinary models."""
_READING = ToolCall("call_1", "read_file", '{"path":"a.txt"}')
_ASKING = ToolCall("call_2", "now", "{}")


class Row(NamedTuple):
    """A deployment and its default model, connected to nothing."""

    deployment: Deployment
    model: str
    connection: Connection

    @property
    def name(self) -> str:
        return f"{self.deployment.name}/{self.model}"

    @property
    def profile(self) -> Profile:
        return self.connection.profile(self.model)


class Sent(NamedTuple):
    """What is sent in a case, or why nothing is."""

    case: str
    request: HttpRequest | None
    why_not: str = ""

    @property
    def body(self) -> dict[str, Any]:
        return jsontext.decode(self.request.body) if self.request is not None else {}


def rows() -> Iterator[Row]:
    for deployment in builtin_catalog().deployments.values():
        model = deployment.default_model or "any-model"
        yield Row(deployment, model, connect(f"{deployment.name}/{model}", key="key", env=ENVIRONMENT, blobs=BLOBS))


def cases(row: Row) -> dict[str, Request]:
    """The requests by what they show, without what the model cannot be asked: see `not_offered`."""
    asked = (user("What is this?"),)
    calls = (user("Look."), assistant("Looking.", _READING, _ASKING))
    made = {
        "plain": Request(row.model, asked, "Be brief."),
        "tools": Request(row.model, asked, tools=(READ, NOW)),
        "parallel results": Request(
            row.model, (*calls, user(tool_result(_READING, "one"), tool_result(_ASKING, "two"))), tools=(READ, NOW)
        ),
        "error result": Request(
            row.model, (user("Look."), assistant(_READING), user(tool_result(_READING, "no such file", is_error=True))), tools=(READ,)
        ),
        "image": Request(row.model, (user("What is this?", PNG),)),
        "PDF": Request(row.model, (user("What is this?", PDF),)),
        "thinking back": Request(row.model, (user("Look."), _thought(row), user(tool_result(_READING, "one"))), tools=(READ,)),
        "schema": _with(Request(row.model, asked), response_schema=SCHEMA),
        "forced call": _with(Request(row.model, asked, tools=(READ,)), tool_choice="read_file"),
        "cache": Request(row.model, (*asked, assistant("A ship."), user("Whose?")), "Be brief.", tools=(READ,), cache_key="conversation-1"),
        "search": _with(Request(row.model, asked), search=True),
        "search and tools": _with(Request(row.model, asked, tools=(READ,)), search=True),
        "limits": _with(Request(row.model, asked), max_output_tokens=2_000, temperature=0.5, top_p=0.9),
        "stop": _with(Request(row.model, asked), stop=("END",)),
    }
    for effort in EFFORTS:
        made[f"effort {effort}"] = _with(Request(row.model, asked), thinking=Thinking(effort))
    return made


def not_offered(row: Row, case: str) -> str:
    """Why a case says nothing about this model; empty if it does."""
    profile = row.profile
    if case == "image" and not profile.images:
        return "no images"
    if case == "PDF" and not profile.pdfs:
        return "no PDFs"
    if profile.tools == "text" and case in ("tools", "parallel results", "error result", "forced call", "search and tools", "cache"):
        return "tools as text"
    if case == "thinking back" and (profile.tools == "text" or not _thoughts(row)):
        return "thinking is not sent back"
    return ""


def sent(row: Row) -> Iterator[Sent]:
    for case, request in cases(row).items():
        if why_not := not_offered(row, case):
            yield Sent(case, None, why_not)
            continue
        try:
            prepared = row.connection.prepare(request)
        except Unsupported as error:
            yield Sent(case, None, str(error))
            continue
        is_sent = case != "stop" or prepared.body != row.connection.prepare(_with(request)).body
        yield Sent(case, prepared if is_sent else None, "" if is_sent else "the model does not take it")


def digest(row: Row) -> str:
    """Changes when anything that is sent does."""
    whole = hashlib.sha256()
    for each in sent(row):
        whole.update(each.case.encode())
        whole.update(each.request.url.encode() + each.request.body if each.request is not None else b"")
    return whole.hexdigest()[:8]


def _with(request: Request, **settings: Any) -> Request:
    return msgspec.structs.replace(request, settings=Settings(**settings))


def _thought(row: Row) -> Message:
    return assistant(*(_thoughts(row) or (Text("Looking."),)), _READING)


def _thoughts(row: Row) -> tuple[Part, ...]:
    """Thinking as the service itself would have said it, in the shape of its protocol; none where it does not come back."""
    match row.deployment.protocol:
        case "anthropic":
            payload: Any = {"type": "thinking", "thinking": "Let me look.", "signature": "c2lnbmF0dXJl"}
        case "openai_responses":
            summary = [{"type": "summary_text", "text": "Let me look."}]
            payload = {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": "gAAAAABsecret"}
        case "gemini":
            return (Thought("Let me look."),)
        case _ if row.profile.reasoning_back == "never":
            return ()
        case _ if row.profile.reasoning_field == "reasoning_details":
            payload = [
                {"type": "reasoning.text", "text": "Let me look.", "signature": "c2lnbmF0dXJl", "format": "anthropic-claude-v1", "index": 0}
            ]
        case _:
            return (Thought("Let me look."),)
    return (Thought("Let me look.", Opaque(row.deployment.name, jsontext.dumps(payload), row.model)),)
