"""The conversation in our own types: messages and their parts, tools, settings, and the Request they make up.

Frozen values, equal by content, without ids. Provider-neutral: what only one provider understands is kept as Opaque on the part it
belongs to, sent back to that provider byte for byte, and left out for every other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from hashlib import sha256
from operator import call
from os import PathLike
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_args
from weakref import ref

import msgspec

from dragoman.base import jsontext
from dragoman.values.errors import InputError, shown
from dragoman.values.usage import Usage
from dragoman.words import say

Role = Literal["user", "assistant"]


class Opaque(msgspec.Struct, frozen=True, omit_defaults=True):
    """A payload that only the service that made it can read: a thought signature, a thinking block, an encrypted reasoning item."""

    provider: str
    """The deployment that made it; it is sent to no other."""
    json: str
    """JSON text. It is sent back byte for byte."""
    model: str = ""
    """The model that made it, for services that verify even that."""


class Attached(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a text brings along with a prompt: the content of a file, the output of a command of the user's own."""

    name: str
    """As the person named it: `@src/a.py:10-40`, `! make test`."""
    path: str = ""
    """Of a file: its absolute path."""
    digest: str = ""
    """Of a file that was read: what it was then, as in `FileVersion`."""
    lines: int | None = None
    """How many lines that had."""


class Text(msgspec.Struct, frozen=True, omit_defaults=True, tag="text"):
    """Text of a message."""

    text: str
    opaque: Opaque | None = None
    attached: Attached | None = None
    """What it is, where the person did not write it but named it. The model is sent the text alone."""


class Thought(msgspec.Struct, frozen=True, omit_defaults=True, tag="thought"):
    """The model's thinking, or other work of the provider (a server-side search) that belongs to the answer.

    With an opaque payload and no text, it is only there to be sent back to the provider.
    """

    text: str = ""
    opaque: Opaque | None = None


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True, tag="call"):
    """A call that the model wants carried out."""

    id: str
    """Unique in its conversation: duplicate and empty ids are replaced when an answer is read."""
    name: str
    arguments: str = "{}"
    """JSON text as the model wrote it, valid or not: replay stays byte-identical, and a frozen value cannot hold a dict."""
    opaque: Opaque | None = None

    @property
    def args(self) -> dict[str, Any] | None:
        """The decoded arguments, a fresh dict each time; None if they are not a JSON object."""
        return jsontext.decode_object(self.arguments or "{}")


class Blob(msgspec.Struct, frozen=True, tag="blob", dict=True):
    """Bytes kept in a BlobStore under their SHA-256. `Blob.of` makes one of bytes that no store has yet."""

    mime: str
    sha256: str
    size: int

    @classmethod
    def of(cls, mime: str, data: bytes) -> Blob:
        """A blob that carries its bytes itself, until a session or a provider's store keeps them. It equals the one without them."""
        blob = cls(mime, sha256(data).hexdigest(), len(data))
        blob.__dict__["carried"] = bytes(data)
        return blob

    @property
    def data(self) -> bytes | None:
        """The bytes, if this very value carries them: neither a copy of it nor the record does."""
        return self.__dict__.get("carried")


class Media(msgspec.Struct, frozen=True):
    """Bytes for the model, in a prompt or returned by a tool: an image, a PDF, a sound, a video. The session keeps them."""

    data: bytes
    mime: str = ""
    """Empty: told by how the bytes begin."""


class FileRef(msgspec.Struct, frozen=True, tag="file"):
    """A file the service can fetch itself: an upload to it, or a public URL. `FileRef.of(url)` tells the type by the ending."""

    mime: str
    uri: str

    @classmethod
    def of(cls, uri: str, mime: str = "") -> FileRef:
        """Raises InputError for what is no address, and where the ending does not tell what it is and no type is given."""
        from dragoman.values.media_types import type_of_name

        if not isinstance(uri, str) or not uri or uri.startswith("file:") or not (mime or "://" in uri):
            raise InputError(say("values.file_no_address", uri=shown(uri)))
        if not (mime := mime or type_of_name(uri)):
            raise InputError(say("values.file_unknown", uri=uri))
        return cls(mime, uri)


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True, tag="result"):
    """The result of a call, for the model."""

    call_id: str
    name: str
    content: tuple[Text | Blob | FileRef, ...] = ()
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part.text for part in self.content if isinstance(part, Text))


class Citation(msgspec.Struct, frozen=True, omit_defaults=True, tag="citation"):
    """The source of part of the answer. Never sent back to the service."""

    uri: str = ""
    title: str = ""
    cited_text: str = ""
    opaque: Opaque | None = None
    """The service's own record (Gemini's groundingMetadata, an annotation), whole."""


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page that an answer or a search rests on. Its number is its position in the list, from 1."""

    title: str = ""
    uri: str = ""
    cited_text: tuple[str, ...] = ()
    """The passages it stands for, where the service names them: of the answer, or (Anthropic) of the page."""

    def __str__(self) -> str:
        return f"{' '.join(self.title.split()) or 'Untitled'} ({''.join(self.uri.split()) or 'No URI'})"


Part = Text | Thought | ToolCall | ToolResult | Blob | FileRef | Citation
PART_TYPES = frozenset({Text, Thought, ToolCall, ToolResult, Blob, FileRef, Citation})


def said_text(parts: Iterable[Part]) -> str:
    """The text parts without what is attached, joined."""
    return "".join(part.text for part in parts if isinstance(part, Text) and part.attached is None)


class Message(msgspec.Struct, frozen=True, weakref=True):
    """One step of the conversation. Tool results travel in a user message."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """What a person would read: the text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def said(self) -> str:
        """The same without what a prompt brings along: what the person wrote."""
        return said_text(self.parts)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


ToolKind = Literal["read", "edit", "search", "execute", "fetch", "other"]


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool as described to the model."""

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


Effort = Literal["off", "low", "medium", "high", "max"]


class Thinking(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much the model should think, in terms that work for every service."""

    effort: Effort = "medium"
    budget_tokens: int | None = None
    """An exact budget, for services that take one; others use effort."""


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """How to generate. None means: the service's own default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_output_tokens: int | None = None
    thinking: Thinking | None = None
    """A bool, an effort or a budget in tokens may be given as well: True, "high", 8000."""
    tool_choice: str = "auto"
    """`auto`, `none`, `required`, or the name of the one tool to call."""
    response_mime: str = ""
    response_schema: str = ""
    """JSON Schema the answer must fit, as JSON text. A dict or a type may be given."""
    search: bool = False
    """Let the service search the web by itself, if it can."""
    stop: tuple[str, ...] = ()
    """Texts before which the answer ends, where the model has such."""

    if TYPE_CHECKING:

        def __init__(
            self,
            temperature: float | None = None,
            top_p: float | None = None,
            top_k: int | None = None,
            max_output_tokens: int | None = None,
            thinking: Thinking | Effort | bool | int | None = None,
            tool_choice: str = "auto",
            response_mime: str = "",
            response_schema: str | Mapping[str, Any] | type = "",
            search: bool = False,
            stop: tuple[str, ...] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        thinking, schema = self.thinking, self.response_schema
        if (thinking is None or isinstance(thinking, Thinking)) and isinstance(schema, str):
            return
        from dragoman.values.plain_settings import read_schema, read_thinking

        if not isinstance(schema, str):
            msgspec.structs.force_setattr(self, "response_schema", read_schema(schema))
        if thinking is not None and not isinstance(thinking, Thinking):
            msgspec.structs.force_setattr(self, "thinking", Thinking(**read_thinking(thinking, get_args(Effort))))


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything sent to a model: the prompt and the settings."""

    model: str
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    settings: Settings = Settings()
    cache_key: str = ""
    """Prompt cache key of the conversation, for services that use it to route to a warm cache."""
    example_count: int = 0
    """Number of leading few-shot messages: the same in every conversation, and not recorded."""
    omit: tuple[str, ...] = ()
    """Fields of the body that the service has refused and that are left out, with dots: `reasoning.summary`."""


class FinishReason(StrEnum):
    """Why an answer ended. A closed set: the service's own word is in `raw_finish`."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    SAFETY = "safety"
    RECITATION = "recitation"
    MALFORMED_TOOL_CALL = "malformed_tool_call"
    REFUSAL = "refusal"
    OTHER = "other"


Fault = Literal["", "unreadable_call", "cut_in_call", "paused"]


class SafetyRating(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a service rates a prompt or an answer in one category of harm, in the service's own words."""

    category: str
    probability: str = ""
    severity: str = ""
    blocked: bool = False


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
    """The reason, if the service explains a refusal or a filter."""
    fault: Fault = ""
    """What the reason does not say. `unreadable_call`: a call written as text could not be parsed (`detail` says why). `cut_in_call`: the
    output limit cut the answer inside a call. `paused`: the service will go on when it is sent this answer back; it is not over."""
    ratings: tuple[SafetyRating, ...] = ()
    """Empty where the service tells none."""


# --- making messages ---------------------------------------------------------------------------------------------------

Foreign = Mapping[str, Any] | Media | bytes | PathLike[str]
"""A message or part as other APIs write it; an image or another medium as bytes, or as the file that holds it."""
Content = str | Part | Message | Foreign
"""What callers may pass; `to_messages` converts it to messages."""


def user(*content: str | Part) -> Message:
    """A message of the user, from texts and parts of ours. `dragoman.user` takes what people write."""
    return Message("user", tuple(map(_part, content)))


def assistant(*content: str | Part) -> Message:
    """A message of the model, from texts and parts of ours."""
    return Message("assistant", tuple(map(_part, content)))


def tool_result(call: ToolCall, *content: str | Text | Blob | FileRef, is_error: bool = False) -> ToolResult:
    """The result of a call, from texts and parts of ours."""
    parts = tuple(Text(jsontext.valid_unicode(item)) if isinstance(item, str) else item for item in content)
    return ToolResult(call.id, call.name, parts, is_error)


def _part(item: str | Part) -> Part:
    return Text(jsontext.valid_unicode(item)) if isinstance(item, str) else item


SAID = (str, bytes, bytearray, msgspec.Struct, Mapping)
"""What is read as one thing, though some of it can be iterated over."""


def is_list(content: Any) -> bool:
    """Whether it holds what is said, and is not itself something that is said."""
    return isinstance(content, Iterable) and not isinstance(content, SAID) and not hasattr(content, "model_dump")


def unique_id(wanted: str, taken: set[str]) -> str:
    """`wanted`, or a free id like it: the next one, if those before it are taken. The result depends only on the arguments."""
    if wanted and wanted not in taken:
        return wanted
    stem = wanted or "call"
    last, number = (1, 2) if wanted else (len(taken), len(taken) + 1)
    while f"{stem}-{number}" in taken:
        last, number = number, 2 * number
    # Halved instead of counted: an answer may give thousands of calls the same id.
    while number - last > 1:
        middle = (last + number) // 2
        last, number = (middle, number) if f"{stem}-{middle}" in taken else (last, middle)
    return f"{stem}-{number}"


# --- per-message work, done once ----------------------------------------------------------------------------------------

T = TypeVar("T")


class PerMessage(Generic[T]):
    """Memoises a pure function of one message by identity, so that the cost of a request depends only on its new messages.

    A value lives as long as its message, however many conversations share the memo. It may be used from several threads at once: two may
    compute the same value, but all get the same object. A value may be its message; it must not refer to it in any other way.
    """

    def __init__(self, function: Callable[[Message], T]) -> None:
        self._function = function
        self._memo: dict[int, _MemoEntry[T]] = {}
        self._pop = self._memo.pop
        self.computed = 0
        """How often the function ran."""

    def __call__(self, message: Message) -> T:
        kept = self._memo.get(id(message))
        if kept is None or kept() is not message:
            self.computed += 1
            kept = self._keep(message, self._function(message))
        return kept.value

    def over(self, messages: Sequence[Message]) -> list[T]:
        memo = self._memo
        known = len(messages)
        while known and id(messages[known - 1]) not in memo:  # new messages are at the end
            known -= 1
        try:
            values = [kept.value if (kept := memo[id(message)])() is message else self(message) for message in messages[:known]]
        except KeyError:
            values = list(map(self, messages[:known]))
        values.extend(map(self, messages[known:]))
        return values

    def _keep(self, message: Message, value: T) -> _MemoEntry[T]:
        key = id(message)
        # Called with the reference, which becomes `pop`'s default. No Python code runs in it, so it cannot swallow a Ctrl-C.
        forget = partial(self._pop, key)
        made: _MemoEntry[T] = _SelfEntry(message, forget) if value is message else _MemoEntry(message, forget)
        if value is not message:
            made.value = value
        kept = self._memo.setdefault(key, made)
        if kept() is not message:  # the last message of this id died where the stack was full, so `forget` was not called
            kept = self._memo[key] = made
        return kept


class _MemoEntry(ref[Message], Generic[T]):
    """A value, and a weak reference to its message."""

    __slots__ = ("value",)
    value: T


class _SelfEntry(_MemoEntry[T]):
    """A message that is its own value. A strong reference to it would keep it alive, so the value is read from the weak one."""

    __slots__ = ()
    value: Any = property(call)  # pyrefly: ignore[bad-override]
