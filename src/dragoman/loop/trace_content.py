"""Prompts, answers, arguments and results as traces have them: JSON text by the schemas of the conventions, with keys redacted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, assert_never
from weakref import WeakKeyDictionary, WeakSet

import msgspec

from dragoman.base import jsontext
from dragoman.providers.catalog import builtin_catalog, secret_variables
from dragoman.providers.http_provider import HttpProvider
from dragoman.providers.redact import redact
from dragoman.values.contracts import Provider
from dragoman.values.messages import (
    Blob,
    Citation,
    FileRef,
    FinishReason,
    Message,
    Part,
    PerMessage,
    Request,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from dragoman.values.wrapping import WrappingProvider

if TYPE_CHECKING:
    from dragoman.loop.harness import Harness

Clean = Callable[[str], str]
"""Redacts keys."""
FINISH_REASONS = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.TOOL_CALLS: "tool_call",
    FinishReason.SAFETY: "content_filter",
    FinishReason.RECITATION: "content_filter",
    FinishReason.REFUSAL: "content_filter",
    FinishReason.MALFORMED_TOOL_CALL: "error",
    FinishReason.OTHER: "error",
}
"""Ours in the words of the conventions."""
agent_names: WeakKeyDictionary[Harness, str] = WeakKeyDictionary()
"""What agents are called in traces, by what each is put together of."""


class Cleaner:
    """Redacts what looks like a key, the keys in the environment, and those of the providers it knows."""

    def __init__(self) -> None:
        self._variables = secret_variables(builtin_catalog())
        self._senders: WeakSet[HttpProvider] = WeakSet()
        self._lock = Lock()  # agents in several threads share it
        self._secrets: tuple[str, ...] = ()
        self._messages = PerMessage(self._message_text)

    def know(self, provider: Provider) -> None:
        """Redact this provider's keys from now on."""
        if (sender := sender_of(provider)) is not None:
            with self._lock:
                self._senders.add(sender)

    def __call__(self, text: str) -> str:
        self._look_up()
        return redact(text, self._secrets)

    def messages(self, messages: Sequence[Message]) -> str:
        """As JSON. A conversation is sent again and again: what was cleaned before is kept, until there are other keys."""
        self._look_up()
        return f"[{','.join(self._messages.over(messages))}]"

    def _look_up(self) -> None:
        with self._lock:
            senders = tuple(self._senders)
        known = sorted(secret for sender in senders for secret in sender.secrets())
        secrets = (*filter(None, map(os.environ.get, self._variables)), *known)
        if secrets != self._secrets:
            self._secrets, self._messages = secrets, PerMessage(self._message_text)

    def _message_text(self, message: Message) -> str:
        return redact(jsontext.dumps(_message(message)), self._secrets)


def request_content(request: Request, clean: Cleaner) -> dict[str, str]:
    content = {"gen_ai.input.messages": clean.messages(request.messages)}
    if request.system:
        content["gen_ai.system_instructions"] = as_text([{"type": "text", "content": request.system}], clean)
    if request.tools:
        tools = [
            {"type": "function", "name": tool.name, "description": tool.description, "parameters": _decoded(tool.parameters)}
            for tool in request.tools
        ]
        content["gen_ai.tool.definitions"] = as_text(tools, clean)
    return content


def prompt_content(message: Message, clean: Clean) -> dict[str, str]:
    return {"gen_ai.input.messages": as_text([_message(message)], clean)}


def answer_content(message: Message, finish: FinishReason, clean: Clean) -> dict[str, str]:
    return {"gen_ai.output.messages": as_text([_message(message) | {"finish_reason": FINISH_REASONS[finish]}], clean)}


def as_text(value: object, clean: Clean) -> str:
    return clean(value if isinstance(value, str) else jsontext.dumps(value))


def sender_of(provider: Provider) -> HttpProvider | None:
    """What sends the requests, whatever is wrapped around it; None for a provider of another kind, of which nothing more is known."""
    while isinstance(provider, WrappingProvider):
        provider = provider.provider
    return provider if isinstance(provider, HttpProvider) else None


def _message(message: Message) -> dict[str, Any]:
    parts = [_part(part) for part in message.parts]
    role = "tool" if parts and all(isinstance(part, ToolResult) for part in message.parts) else message.role
    return {"role": role, "parts": parts}


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "content": part.text}
        case Thought():
            return {"type": "reasoning", "content": part.text}
        case ToolCall():
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": _decoded(part.arguments)}
        case ToolResult():
            return {"type": "tool_call_response", "id": part.call_id, "response": result_content(part.content)}
        case FileRef():
            return {"type": "uri", "mime_type": part.mime, "modality": _modality(part.mime), "uri": part.uri}
        case Blob():
            # Its bytes would make the span larger than any collector accepts: only its type and hash are recorded.
            return {"type": "file", "mime_type": part.mime, "modality": _modality(part.mime), "file_id": part.sha256}
        case Citation():
            return {"type": "citation", "uri": part.uri, "title": part.title}
        case _:
            assert_never(part)


def result_content(content: Iterable[Text | Blob | FileRef]) -> object:
    """Text where it is text alone, as most results are; else its parts."""
    parts = [_part(part) for part in content]
    return "".join(part["content"] for part in parts) if all(part["type"] == "text" for part in parts) else parts


def _modality(mime: str) -> str:
    kind = mime.partition("/")[0]
    return kind if kind in ("image", "video", "audio") else "document"


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text  # a call that could not be parsed is recorded as it was written
