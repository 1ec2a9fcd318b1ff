"""What a model's service is reached through: providers, the HTTP beneath them, and the store with the bytes of images and files.

Tools and their calls are in `calls`, starting commands in `commands`, the journal in `record`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Protocol, runtime_checkable

import msgspec

from dragoman.values.errors import Unsupported
from dragoman.values.events import ResponseFinished, StreamEvent
from dragoman.values.messages import Blob, FileRef, Request, Response
from dragoman.values.profile import Deployment, Profile
from dragoman.words import say


class HttpRequest(msgspec.Struct, frozen=True):
    """The exact request that would be sent, without the key: authentication headers are added on sending."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


@runtime_checkable
class Provider(Protocol):
    """Request → events. Failures are ProviderErrors; an answer that ended badly is still an answer, with its finish reason.

    A custom provider inherits from this class and implements `name`, `profile`, `prepare` and `stream`; the rest has defaults.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The deployment, as used to tag opaque payloads."""
        ...

    @abstractmethod
    def profile(self, model: str) -> Profile: ...

    @abstractmethod
    def prepare(self, request: Request) -> HttpRequest:
        """Exactly what `stream` would send. Pure: nothing is sent."""
        ...

    @abstractmethod
    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Ends with ResponseFinished or raises. Consume it under `contextlib.aclosing`."""
        ...

    async def generate(self, request: Request) -> Response:
        """The whole answer; by default, collected from the stream."""
        async with aclosing(self.stream(request)) as events:
            async for event in events:
                if isinstance(event, ResponseFinished):
                    return event.response
        raise AssertionError("a stream ends with ResponseFinished or raises")

    async def count_tokens(self, request: Request) -> int:
        """Raises Unsupported if the service does not count tokens."""
        raise Unsupported(say("values.no_counting", name=self.name))

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        """Raises Unsupported if the service has no embeddings."""
        raise Unsupported(say("values.no_embeddings", name=self.name))

    async def preconnect(self) -> None:
        """Open a connection for a request that will follow. A hint: it may do nothing, and never raises."""
        return

    async def aclose(self) -> None:
        return

    # --- what it was connected for

    @property
    def model(self) -> str:
        """The model it was connected for; empty if it serves any."""
        return ""

    @property
    def deployment(self) -> Deployment | None:
        """Protocol, URL and cache of the service, if there is one."""
        return None

    @property
    def blobs(self) -> BlobStore | None:
        """The store with the bytes of images and files."""
        return None

    def look_in(self, blobs: BlobStore) -> None:
        """Find the bytes of images and files in this store too. An agent asks this of a provider it is given, so that what its tools have
        read can be sent. By default nothing happens: a provider that sends no bytes needs none."""
        return

    def media_fault(self, part: Blob | FileRef, model: str) -> str:
        """Why the model, or its service, cannot be sent this image or file, in a sentence that names what it takes; empty: it can.

        A prompt with such a part is refused before anything of it is recorded. By default nothing is refused.
        """
        return ""

    @property
    def dialect(self) -> str:
        """How tools are described and called as text; empty: natively."""
        return ""


class HttpResponse(Protocol):
    """An HTTP response whose head has arrived and whose body is still being received."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""
        ...

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives, decompressed. Raises ConnectionFailed if it is cut off."""
        ...


class Transport(Protocol):
    """Plain HTTP: no retries, no interpretation of the response. Raises ConnectionFailed if there is no answer."""

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AbstractAsyncContextManager[HttpResponse]: ...

    async def preconnect(self, url: str) -> None:
        """Open a connection for a request that will follow. A hint: it may do nothing, and never raises."""
        ...

    async def aclose(self) -> None: ...


Pin = Callable[[str], Transport]
"""Makes a transport whose connections all go to this IP address, whatever a URL's host resolves to by then; TLS still verifies the host.
With a proxy, the proxy is given the address. An empty address: the host is resolved by name, unpinned."""


class BlobStore(Protocol):
    """Keeps the bytes of images and files, by their SHA-256. Neither method raises; both may be called from any thread."""

    def put(self, mime: str, data: bytes) -> Blob:
        """The same bytes twice are kept once."""
        ...

    def get(self, sha256: str) -> bytes | None:
        """The bytes, or None if they are not here."""
        ...
