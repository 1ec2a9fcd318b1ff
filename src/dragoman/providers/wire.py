"""What the four protocols share: where a request goes, and what a protocol module provides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dragoman.base import jsontext
from dragoman.values.blobs import JoinedBlobs
from dragoman.values.contracts import BlobStore
from dragoman.values.events import StreamEvent
from dragoman.values.messages import Message, Opaque, Request, Response
from dragoman.values.profile import Deployment, Profile


class Destination(msgspec.Struct, frozen=True):
    """Where a message is sent: everything that rendering may depend on besides the message itself."""

    deployment: Deployment
    profile: Profile
    model: str
    blobs: BlobStore | JoinedBlobs | None = None

    @property
    def cache(self) -> str:
        """How the prompt cache is used: the model's own way, or that of the deployment."""
        return self.profile.cache or self.deployment.cache

    def own(self, opaque: Opaque | None, *, same_model: bool = False) -> str:
        """The payload as JSON text if this destination made it, else empty."""
        if opaque is None or opaque.provider != self.deployment.name or (same_model and opaque.model != self.model):
            return ""
        return opaque.json


class Framing(Protocol):
    """Bytes in, wire events out, each with its name and data. Sans-IO: `SSEDecoder` is one."""

    def feed(self, chunk: bytes) -> Iterable[tuple[str, bytes]]: ...

    def close(self) -> Iterable[tuple[str, bytes]]:
        """The body has ended."""
        ...

    # One that knows signs of life which are no events (the comments of server-sent events) counts them in `heartbeats`.


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
        """None for a ping or an event of unknown type: these are not progress."""
        ...

    def close(self) -> list[StreamEvent]:
        """The body has ended. Raises StreamBroken if the answer has not."""
        ...


Taken = Callable[[], set[str]]
"""Returns the call ids a conversation has already used; called only if an answer contains a call."""


class Wire(Protocol):
    """A protocol, as a module provides it. All functions are pure.

    A module may also have `answer_from_error(status, body)`: the answer that the body of an error holds, or None.
    """

    def render(self, message: Message, to: Destination) -> Any: ...

    def body(self, request: Request, rendered: Sequence[Any], to: Destination, *, stream: bool) -> bytes: ...

    def path(self, to: Destination, *, stream: bool) -> str: ...

    def headers(self, to: Destination) -> dict[str, str]: ...

    def framing(self) -> Framing:
        """How the body of a streamed answer is parted into events: a fresh one for each answer."""
        ...

    def decoder(self, to: Destination, taken: Taken) -> StreamDecoder: ...

    def from_wire(self, data: Any, to: Destination, taken: Taken) -> Response: ...

    def count_request(self, request: Request, rendered: Sequence[Any], to: Destination) -> tuple[str, bytes]: ...

    def count_answer(self, data: Any) -> int: ...

    def embed_request(self, texts: Sequence[str], to: Destination) -> tuple[str, bytes]: ...

    def embed_answer(self, data: Any) -> list[list[float]]: ...


def leave_out(tail: dict[str, object], omit: Sequence[str]) -> dict[str, object]:
    """The settings of a body without those that the service has refused: see `Request.omit`."""
    if not omit:
        return tail
    from dragoman.providers.omitting import without_fields  # most services take what they are sent

    return without_fields(tail, omit)


def joined(items: Iterable[bytes]) -> list[bytes]:
    """Items with commas between, not joined yet: a body of megabytes is joined once, at the end."""
    pieces = [piece for item in items for piece in (b",", item)]
    return pieces[1:]


def merged_object(pairs: Mapping[str, object]) -> bytes:
    """`,"a":1,"b":2`: settings as they are appended after the messages."""
    return b"".join(b"," + jsontext.encode(key) + b":" + jsontext.encode(value) for key, value in pairs.items())
