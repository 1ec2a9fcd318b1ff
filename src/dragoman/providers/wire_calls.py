"""Calls and tools as services take them: ids, names, arguments. Each result depends on the id, name or text alone."""

from __future__ import annotations

import re
from hashlib import sha256

import msgspec

from dragoman.base import jsontext
from dragoman.values.messages import Request, ToolCall, ToolSpec

MAX_ARGUMENTS_BYTES = 4 * 1024 * 1024
"""Longer arguments are replaced by a note of their size in later requests: no service accepts them."""
MAX_CACHE_KEY = 64

_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}\Z")
_ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def wire_id(call_id: str, max_length: int) -> str:
    """An id every service accepts. Valid ids pass unchanged; others become a digest, so that no two collide."""
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
    """A tool name every service accepts. Models invent names with paths, spaces and escape codes; the history keeps those."""
    if _NAME.match(name):
        return name
    letters = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:48].strip("_") or "unnamed"
    return f"t_{letters}_{_digest(name).hex()[:10]}"


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def cache_key(request: Request) -> str:
    """The prompt cache key of the conversation, at a length OpenAI accepts."""
    return request.cache_key if len(request.cache_key) <= MAX_CACHE_KEY else wire_id(request.cache_key, MAX_CACHE_KEY)


def declared_tools(request: Request) -> tuple[ToolSpec, ...]:
    """The tools to declare. Some services require the tools of earlier calls to be declared even when none may be called any more."""
    if request.tools:
        return request.tools
    names = {wire_name(part.name) for message in request.messages for part in message.parts if isinstance(part, ToolCall)}
    return tuple(ToolSpec(name, "No longer available.") for name in sorted(names))


def arguments_object(call: ToolCall) -> bytes:
    """The arguments as a JSON object: as the model wrote them if they are one, else wrapped in one."""
    text = call.arguments.strip() or "{}"
    data = jsontext.clean(text).encode("utf-8", "replace")
    if len(data) > MAX_ARGUMENTS_BYTES:
        return jsontext.encode({"_omitted": f"{len(data)} bytes of arguments"})
    if data.startswith(b"{") and not jsontext.is_too_deep(data) and _is_json(data):
        return data
    return jsontext.encode({"_arguments": text})


def arguments_string(call: ToolCall) -> str:
    """The arguments as JSON text, for services that carry them as a string."""
    text = jsontext.clean(call.arguments.strip() or "{}")
    if len(text) > MAX_ARGUMENTS_BYTES:
        return jsontext.dumps({"_omitted": f"{len(text)} characters of arguments"})
    data = text.encode("utf-8", "replace")
    if not jsontext.is_too_deep(data) and _is_json(data):
        return text
    return jsontext.dumps({"_arguments": text})  # local servers' chat templates parse the string and fail on invalid JSON


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True
