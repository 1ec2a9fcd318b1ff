"""The conversation in our own words: messages and their parts, tools, settings, and the Request they make up.

Frozen values, equal by content, without ids of their own. Provider-neutral: what only one provider understands rides along
as Opaque on the part it belongs to, goes back to that provider byte for byte, and is left out for every other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from operator import call
from typing import Any, Generic, Literal, TypeVar
from weakref import ref

import msgspec

from dragoman.base import jsontext
from dragoman.values.usage import Usage

Role = Literal["user", "assistant"]


class Opaque(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something only its maker can read: a thought signature, a thinking block, an encrypted reasoning item."""

    provider: str
    """The deployment that made it; nobody else is sent it."""
    json: str
    """JSON text. It goes back as it stands here, byte for byte."""
    model: str = ""
    """The model that made it, for services that verify even that."""


class Text(msgspec.Struct, frozen=True, omit_defaults=True, tag="text"):
    text: str
    opaque: Opaque | None = None


class Thought(msgspec.Struct, frozen=True, omit_defaults=True, tag="thought"):
    """The model's thinking, or other work of the provider's own (a server-side search) that belongs to the answer.

    With an opaque payload and no text it is something the provider wants back and nobody can read.
    """

    text: str = ""
    opaque: Opaque | None = None


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True, tag="call"):
    id: str
    """Unique in its conversation: duplicate and empty ids are replaced when an answer is read."""
    name: str
    arguments: str = "{}"
    """JSON text as the model wrote it, valid or not: replay stays byte-identical, and a frozen value holds no dict."""
    opaque: Opaque | None = None

    @property
    def args(self) -> dict[str, Any] | None:
        """The decoded arguments, a fresh dict each time; None where they are not a JSON object."""
        return jsontext.decode_object(self.arguments or "{}")


class Blob(msgspec.Struct, frozen=True, tag="blob"):
    """Bytes kept in a BlobStore under their SHA-256."""

    mime: str
    sha256: str
    size: int


class FileRef(msgspec.Struct, frozen=True, tag="file"):
    """A file the service can reach by itself: its own upload, or a public address."""

    mime: str
    uri: str


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True, tag="result"):
    call_id: str
    name: str
    content: tuple[Text | Blob | FileRef, ...] = ()
    is_error: bool = False


class Citation(msgspec.Struct, frozen=True, omit_defaults=True, tag="citation"):
    """Where part of the answer came from. Never sent back as such."""

    uri: str = ""
    title: str = ""
    cited_text: str = ""
    opaque: Opaque | None = None
    """The service's own record (Gemini's groundingMetadata, an annotation), whole."""


Part = Text | Thought | ToolCall | ToolResult | Blob | FileRef | Citation


class Message(msgspec.Struct, frozen=True, weakref=True):
    """One step of the conversation. Tool results travel in a user message."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """What a person would read: the text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


ToolKind = Literal["read", "edit", "search", "execute", "fetch", "other"]


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the model is told of a tool."""

    name: str
    description: str
    parameters: str = '{"type":"object","properties":{}}'
    """JSON Schema of the arguments, as JSON text. `ToolSpec.of` takes a dict."""
    display_name: str = ""
    kind: ToolKind = "other"
    read_only: bool = False

    @classmethod
    def of(
        cls,
        name: str,
        description: str,
        parameters: dict[str, Any],
        *,
        display_name: str = "",
        kind: ToolKind = "other",
        read_only: bool = False,
    ) -> ToolSpec:
        return cls(name, description, jsontext.dumps(parameters), display_name, kind, read_only)

    @property
    def schema(self) -> dict[str, Any]:
        """The parameters, decoded: a fresh dict each time."""
        return jsontext.decode(self.parameters)


class Thinking(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much the model should think, in the words every service can be told in."""

    effort: Literal["off", "low", "medium", "high", "max"] = "medium"
    budget_tokens: int | None = None
    """An exact budget, for services that count; others go by effort."""


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """How to generate. None means: the service's own default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_output_tokens: int | None = None
    thinking: Thinking | None = None
    tool_choice: str = "auto"
    """`auto`, `none`, `required`, or the name of the one tool to call."""
    response_mime: str = ""
    response_schema: str = ""
    """JSON Schema the answer must fit, as JSON text."""
    search: bool = False
    """Let the service search the web by itself, where it can."""


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything a model is told, and how it should answer."""

    model: str
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    settings: Settings = Settings()
    cache_key: str = ""
    """Names the conversation for services that route by it to a warm cache."""
    shown: int = 0
    """How many of the first messages are examples: the same in every conversation, and in no record."""


class FinishReason(StrEnum):
    """Why an answer ended. Closed: the service's own word is kept beside it."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    SAFETY = "safety"
    RECITATION = "recitation"
    MALFORMED_TOOL_CALL = "malformed_tool_call"
    REFUSAL = "refusal"
    OTHER = "other"


class Response(msgspec.Struct, frozen=True, omit_defaults=True):
    """A whole answer."""

    message: Message
    finish: FinishReason
    raw_finish: str = ""
    """The service's own word for it."""
    usage: Usage = Usage()
    response_id: str = ""
    model_version: str = ""
    detail: str = ""
    """Why, where the service explains a refusal or a filter."""


# --- making messages ---------------------------------------------------------------------------------------------------

Content = str | Part | Message
"""What people write; `to_messages` makes messages of it."""


def user(*content: str | Part) -> Message:
    return Message("user", tuple(map(_part, content)))


def assistant(*content: str | Part) -> Message:
    return Message("assistant", tuple(map(_part, content)))


def result(call: ToolCall, *content: str | Text | Blob | FileRef, is_error: bool = False) -> ToolResult:
    parts = tuple(Text(jsontext.valid_unicode(item)) if isinstance(item, str) else item for item in content)
    return ToolResult(call.id, call.name, parts, is_error)


def _part(item: str | Part) -> Part:
    return Text(jsontext.valid_unicode(item)) if isinstance(item, str) else item


# --- per-message work, done once ----------------------------------------------------------------------------------------

T = TypeVar("T")


class PerMessage(Generic[T]):
    """Memoises a pure function of one message by identity, so that a request costs what is new and not what is old.

    A value lives as long as its message, however many conversations share the memo. It may be used from several threads at once: two may
    compute the same value, and all are given the same object. A value may be its message; it must not hold it in any other way.
    """

    def __init__(self, function: Callable[[Message], T]) -> None:
        self._function = function
        self._memo: dict[int, _Kept[T]] = {}
        self._pop = self._memo.pop
        self.computed = 0
        """How often the function ran: what a request really cost."""

    def __call__(self, message: Message) -> T:
        kept = self._memo.get(id(message))
        if kept is None or kept() is not message:
            self.computed += 1
            kept = self._keep(message, self._function(message))
        return kept.value

    def over(self, messages: Sequence[Message]) -> list[T]:
        memo = self._memo
        known = len(messages)
        while known and id(messages[known - 1]) not in memo:  # what is new stands at the end
            known -= 1
        try:
            values = [kept.value if (kept := memo[id(message)])() is message else self(message) for message in messages[:known]]
        except KeyError:
            values = list(map(self, messages[:known]))
        values.extend(map(self, messages[known:]))
        return values

    def _keep(self, message: Message, value: T) -> _Kept[T]:
        key = id(message)
        # Called with the reference, which is then `pop`'s default. No Python code runs in it, so it cannot swallow a Ctrl-C.
        forget = partial(self._pop, key)
        made: _Kept[T] = _Itself(message, forget) if value is message else _Kept(message, forget)
        if value is not message:
            made.value = value
        kept = self._memo.setdefault(key, made)
        if kept() is not message:  # the last message of this id died where the stack was full, so `forget` was not called
            kept = self._memo[key] = made
        return kept


class _Kept(ref[Message], Generic[T]):
    """A value, and a weak reference to its message."""

    __slots__ = ("value",)
    value: T


class _Itself(_Kept[T]):
    """A message that is its own value. Held here, it would never die, so the value is what is referred to."""

    __slots__ = ()
    value: Any = property(call)  # pyrefly: ignore[bad-override]
