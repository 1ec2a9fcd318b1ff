"""What the rooms promise each other. Protocols only: nothing here runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol

import msgspec

from dragoman.values.events import StreamEvent
from dragoman.values.messages import Blob, FileRef, Request, Response, Text, ToolCall, ToolResult, ToolSpec
from dragoman.values.profile import Profile
from dragoman.values.record import Entry, ToolOutcome


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

    async def preconnect(self) -> None:
        """Open a connection for a request that will follow. A hint: it may do nothing, and never raises."""
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


Pin = Callable[[str], Transport]
"""A transport whose connections go to this IP address and nowhere else, whatever a URL's host resolves to by then; TLS is spoken with
the host all the same. Behind a proxy it is the proxy that is told the address. An empty address: by the host's name, unpinned."""


class BlobStore(Protocol):
    def put(self, mime: str, data: bytes) -> Blob: ...

    def get(self, sha256: str) -> bytes | None: ...


class Journal(Protocol):
    """Where entries go. `append` is synchronous, one write, and never raises: faults become an event."""

    def append(self, entry: Entry) -> None: ...

    async def sync(self) -> None:
        """Returns when everything appended is on disk."""
        ...


class Ledger(Protocol):
    """Where the scheduler writes down what its calls do. History is one."""

    def start_tool(self, call: ToolCall, arguments: str = "") -> object: ...

    def finish_tool(self, result: ToolResult, outcome: ToolOutcome = "finished", display: str = "", extras: str = "") -> object: ...

    async def sync(self) -> None: ...


class ToolOutput(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool's result with its three readers kept apart."""

    content: tuple[Text | Blob | FileRef, ...] = ()
    """For the model."""
    display: str = ""
    """For the user."""
    extras: str = ""
    """For debugging: JSON text."""
    is_error: bool = False
    error_type: str = ""
    """A short name a program can key on: `not_found`, `stale`, `ambiguous` …"""
    output_file: str = ""
    """Where the whole output lies, when the model was given only its head and tail."""
    changed: tuple[str, ...] = ()
    """Files that were written, created or removed: absolute paths."""


class Intent(msgspec.Struct, frozen=True):
    """What a call would do, worked out without doing it. People approve this, and rules judge it."""

    title: str = ""
    """One line: `read_file src/a.py`, `$ make test`."""
    preview: str = ""
    """The whole of it: the full command, or the diff."""
    writes: tuple[str, ...] = ()
    """Files it would change: absolute paths, symlinks resolved."""
    scope: str = ""
    """What allowing the like of it covers, where that is less than the tool: the host that is fetched from."""
    problem: str = ""
    """Why it cannot work (a path outside the workspace, text that is not there), where that is already known: nobody need be asked."""


Show = Callable[[str], None]
"""Takes output as it comes, for the user's eyes, while a tool runs."""


class Tool(Protocol):
    """A failing tool returns an error output; it does not raise."""

    @property
    def spec(self) -> ToolSpec: ...

    def intend(self, args: Mapping[str, Any]) -> Intent:
        """What `run` would do with these arguments, which fit the schema. It changes nothing and does not raise."""
        ...

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        """Do it. When cancelled, it leaves nothing running behind and lets CancelledError through."""
        ...


class Allow(msgspec.Struct, frozen=True):
    arguments: str = ""
    """What to run instead, as JSON text, where a person edited the arguments."""
    remember: Literal["once", "session", "saved"] = "once"
    """Whether the like of it may run unasked from now on: in this session, or in this folder for good."""


class Deny(msgspec.Struct, frozen=True):
    reason: str


Decide = Callable[[ToolCall], Allow | Deny | Awaitable[Allow | Deny]]
"""May it run? An answer, or the promise of one: then a person is being asked."""
Ask = Callable[[ToolCall, Intent], Awaitable[Allow | Deny]]
"""Puts a call before a person. Supplied by the front end; headless, it denies."""
AskUser = Callable[[str, Sequence[str]], Awaitable[str]]
"""Puts the model's own question, with its choices, before a person, and returns what they answered."""
Launch = Callable[[Sequence[str], Mapping[str, str]], Awaitable[Any]]
