"""What the rooms promise each other. Protocols only: nothing here runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import msgspec

from dragoman.events import StreamEvent
from dragoman.messages import Blob, FileRef, Message, Request, Response, Text, ToolCall, ToolSpec
from dragoman.profile import Profile
from dragoman.record import Entry


class Prepared(msgspec.Struct, frozen=True):
    """The exact request that would be sent. The key is not in it: auth headers are added on the way out."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


class Provider(Protocol):
    """REQUEST → EVENTS. Failures are ProviderErrors; an answer that ended badly is still an answer, and says so."""

    @property
    def name(self) -> str:
        """The deployment, as it tags opaque payloads."""
        ...

    def profile(self, model: str) -> Profile: ...

    def prepare(self, request: Request) -> Prepared:
        """Exactly what `stream` would send. Pure: nothing is sent."""
        ...

    async def generate(self, request: Request) -> Response: ...

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Ends with ResponseFinished or raises. Consume it under `contextlib.aclosing`."""
        ...

    async def count_tokens(self, request: Request) -> int:
        """Raises Unsupported where the service does not count."""
        ...

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        """Raises Unsupported where the service does not embed."""
        ...

    async def aclose(self) -> None: ...


class Answer(Protocol):
    """An HTTP answer whose head has arrived and whose body is still coming."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""
        ...

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives, content encoding undone. Raises ConnectionFailed when it is cut."""
        ...


class Transport(Protocol):
    """HTTP, and nothing else: no retries, no meaning. Raises ConnectionFailed when no answer can be had."""

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AbstractAsyncContextManager[Answer]: ...

    async def preconnect(self, url: str) -> None:
        """Open a connection for a request that will follow. A hint: it may do nothing, and never raises."""
        ...

    async def aclose(self) -> None: ...


class BlobStore(Protocol):
    def put(self, mime: str, data: bytes) -> Blob: ...

    def get(self, sha256: str) -> bytes | None: ...


class Journal(Protocol):
    """Where entries go. `append` is synchronous, one write, and never raises: faults become an event."""

    def append(self, entry: Entry) -> None: ...

    async def sync(self) -> None:
        """Returns when everything appended is on disk."""
        ...


class ToolOutput(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool's result with its three readers kept apart."""

    content: tuple[Text | Blob | FileRef, ...] = ()
    """For the model."""
    display: str = ""
    """For the user."""
    extras: str = ""
    """For debugging: JSON text."""
    is_error: bool = False


class Tool(Protocol):
    """A failing tool returns an error output; it does not raise."""

    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, args: Mapping[str, Any]) -> ToolOutput: ...


class Allow(msgspec.Struct, frozen=True):
    arguments: str = ""
    """What to run instead, where a person edited the arguments."""


class Deny(msgspec.Struct, frozen=True):
    reason: str


Decide = Callable[[ToolCall], Awaitable[Allow | Deny]]
Ask = Callable[[ToolCall, str], Awaitable[Allow | Deny]]
Launch = Callable[[Sequence[str], Mapping[str, str]], Awaitable[Any]]
Summarize = Callable[[Sequence[Message], str], Awaitable[Message]]
