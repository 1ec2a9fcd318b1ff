"""What the four protocols share: where a request goes, how ids and names are written, what stands in for what cannot be sent."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from dragoman import jsontext
from dragoman.contracts import BlobStore
from dragoman.events import StreamEvent
from dragoman.messages import Blob, FileRef, Message, Opaque, Request, Response, Text, ToolCall, ToolResult
from dragoman.profile import Deployment, Profile

EMPTY_MESSAGE = "(empty message)"
NO_OUTPUT = "(no output)"
MAX_ARGUMENTS_BYTES = 4 * 1024 * 1024
"""Arguments longer than this are named in later requests, not repeated: no service takes them back."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_IMAGE_HEADS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
MAX_CACHE_KEY = 64


class Destination(msgspec.Struct, frozen=True):
    """Where a message is going: all that rendering may depend on besides the message itself."""

    deployment: Deployment
    profile: Profile
    model: str
    blobs: BlobStore | None = None

    def own(self, opaque: Opaque | None, *, same_model: bool = False) -> str:
        """What this destination made itself, as JSON text; empty for what is another's."""
        if opaque is None or opaque.provider != self.deployment.name or (same_model and opaque.model != self.model):
            return ""
        return opaque.json


class StreamDecoder(Protocol):
    """Wire events in, StreamEvents out. Sans-IO."""

    @property
    def complete(self) -> bool:
        """The service has said why the answer ended; what may still come is trailing."""
        ...

    @property
    def ended(self) -> bool:
        """The terminal event was seen: nothing more will come."""
        ...

    def feed(self, name: str, data: bytes) -> list[StreamEvent] | None:
        """None where the event is a ping or of an unknown type: no sign of progress."""
        ...

    def close(self) -> list[StreamEvent]:
        """The body has ended. Raises StreamBroken if the answer has not."""
        ...


Taken = Callable[[], set[str]]
"""The call ids a conversation has already used; asked for only when an answer holds a call."""


class Wire(Protocol):
    """A protocol, as a module provides it. All functions are pure."""

    def render(self, message: Message, to: Destination) -> Any: ...

    def body(self, request: Request, rendered: Sequence[Any], to: Destination, *, stream: bool) -> bytes: ...

    def path(self, to: Destination, *, stream: bool) -> str: ...

    def headers(self, to: Destination) -> dict[str, str]: ...

    def decoder(self, to: Destination, taken: Taken) -> StreamDecoder: ...

    def from_wire(self, data: Any, to: Destination, taken: Taken) -> Response: ...

    def count_request(self, request: Request, rendered: Sequence[Any], to: Destination) -> tuple[str, bytes]: ...

    def count_answer(self, data: Any) -> int: ...

    def embed_request(self, texts: Sequence[str], to: Destination) -> tuple[str, bytes]: ...

    def embed_answer(self, data: Any) -> list[list[float]]: ...


# --- ids and names: functions of the id or name alone -----------------------------------------------------------------------

_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}\Z")
_ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def wire_id(call_id: str, max_length: int) -> str:
    """An id every service accepts. Good ids pass as they are; the others become a digest, so that no two collide."""
    if len(call_id) <= max_length and not call_id.startswith("dx-") and _ID.match(call_id):
        return call_id
    return "dx-" + _digest(call_id).hex()[: min(max_length, 40) - 3]


def mistral_id(call_id: str) -> str:
    """Mistral takes exactly nine alphanumerics."""
    if len(call_id) == 9 and call_id.isascii() and call_id.isalnum():
        return call_id
    number = int.from_bytes(_digest(call_id)[:16], "big")
    return "".join(_ALPHANUMERIC[number // 62**place % 62] for place in range(9))


def wire_name(name: str) -> str:
    """A tool name every service accepts. Models invent names with paths, spaces and escape codes; history keeps them."""
    if _NAME.match(name):
        return name
    letters = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:48].strip("_") or "unnamed"
    return f"t_{letters}_{_digest(name).hex()[:10]}"


def _digest(text: str) -> bytes:
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogatepass")).digest()


# --- arguments ---------------------------------------------------------------------------------------------------------------


def arguments_object(call: ToolCall) -> bytes:
    """The arguments as a JSON object, spliced in as the model wrote them where they are one."""
    text = call.arguments.strip() or "{}"
    data = jsontext.clean(text).encode("utf-8", "replace")
    if len(data) > MAX_ARGUMENTS_BYTES:
        return jsontext.encode({"_omitted": f"{len(data)} bytes of arguments"})
    if data.startswith(b"{") and jsontext.depth(data) <= jsontext.MAX_DEPTH and _parses(data):
        return data
    return jsontext.encode({"_arguments": text})


def arguments_string(call: ToolCall) -> str:
    """The arguments as JSON text, for services that carry them as a string."""
    text = jsontext.clean(call.arguments.strip() or "{}")
    if len(text) > MAX_ARGUMENTS_BYTES:
        return jsontext.dumps({"_omitted": f"{len(text)} characters of arguments"})
    data = text.encode("utf-8", "replace")
    if jsontext.depth(data) <= jsontext.MAX_DEPTH and _parses(data):
        return text
    return jsontext.dumps({"_arguments": text})  # templates of local servers parse the string and fail on what is not JSON


def _parses(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


# --- what stands in for what cannot be sent ----------------------------------------------------------------------------------


def blob_data(blob: Blob, to: Destination) -> bytes | None:
    return to.blobs.get(blob.sha256) if to.blobs is not None else None


def image_type(data: bytes, mime: str) -> str:
    """What the first bytes say an image is, whatever it was called; `mime` where they say nothing."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((found for head, found in _IMAGE_HEADS.items() if data.startswith(head)), mime)


def base64(data: bytes) -> bytes:
    return b64encode(data)


def note(part: Blob | FileRef, why: str) -> str:
    what = part.uri if isinstance(part, FileRef) else f"{part.size} bytes"
    return f"[{part.mime}, {what}: {why}]"


def takes(part: Blob | FileRef, profile: Profile) -> bool:
    """Whether the model can be shown this kind of thing at all."""
    if part.mime in IMAGE_TYPES:
        return profile.images
    if part.mime == "application/pdf":
        return profile.pdfs
    return part.mime.startswith("audio/") and profile.audio


def result_text(result: ToolResult) -> str:
    """What a result says in words, whatever else it holds."""
    text = "".join(part.text for part in result.content if isinstance(part, Text))
    if text.strip():
        return text
    others = [part for part in result.content if not isinstance(part, Text)]
    if not others:
        return NO_OUTPUT
    return f"Binary content of type {others[0].mime} was processed." if len(others) == 1 else "Tool execution succeeded."


def attachments(result: ToolResult) -> Iterator[Blob | FileRef]:
    return (part for part in result.content if not isinstance(part, Text))


def merged_object(pairs: Mapping[str, object]) -> bytes:
    """`,"a":1,"b":2`: settings, as they are spliced in behind the messages."""
    return b"".join(b"," + jsontext.encode(key) + b":" + jsontext.encode(value) for key, value in pairs.items())


def cache_key(request: Request) -> str:
    """The conversation's key, at the length OpenAI takes."""
    return request.cache_key if len(request.cache_key) <= MAX_CACHE_KEY else wire_id(request.cache_key, MAX_CACHE_KEY)


@lru_cache(maxsize=1024)
def tool_schema(parameters: str) -> bytes:
    """A tool's schema as every service takes it: an object at the root, no alternatives beside it. Others pass as they are written."""
    text = jsontext.clean(parameters)  # (24)
    schema = jsontext.decode(text)
    combined = {key: [part for part in schema.get(key) or () if isinstance(part, dict)] for key in ("anyOf", "oneOf", "allOf")}
    if schema.get("type") == "object" and not any(combined.values()):
        return text.encode()
    sure = [schema, *combined["allOf"]]
    properties = {
        key: value for part in (*combined["anyOf"], *combined["oneOf"], *sure) for key, value in (part.get("properties") or {}).items()
    }
    required = {key: None for part in sure for key in part.get("required") or ()}
    rest = {key: value for key, value in schema.items() if key not in combined}
    return jsontext.encode({**rest, "type": "object", "properties": properties, **({"required": list(required)} if required else {})})


def closed_schema(schema: Any) -> Any:
    """The schema with every object closed that does not say otherwise: Anthropic takes no other."""
    match schema:
        case dict():
            closed = {key: closed_schema(value) for key, value in schema.items()}
            return {**closed, "additionalProperties": False} if schema.get("type") == "object" else closed
        case list():
            return [closed_schema(item) for item in schema]
        case _:
            return schema


def is_strict_schema(schema: Any) -> bool:
    """Whether OpenAI's strict mode would take the schema: every object closed, every property required."""
    match schema:
        case dict():
            if "properties" in schema:
                closed = schema.get("additionalProperties") is False
                if not closed or set(schema.get("required", ())) != set(schema["properties"]):
                    return False
            return all(map(is_strict_schema, schema.values()))
        case list():
            return all(map(is_strict_schema, schema))
        case _:
            return True
