"""The base class of providers that wrap another. What a wrapper does not override is delegated."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from dragoman.values.contracts import BlobStore, HttpRequest, Provider
from dragoman.values.events import StreamEvent
from dragoman.values.messages import Blob, FileRef, Request, Response
from dragoman.values.profile import Deployment, Profile


class WrappingProvider(Provider):
    """Delegates everything; subclasses override what they change."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    @property
    def name(self) -> str:
        return self.provider.name

    @property
    def model(self) -> str:
        return self.provider.model

    @property
    def deployment(self) -> Deployment | None:
        return self.provider.deployment

    @property
    def blobs(self) -> BlobStore | None:
        return self.provider.blobs

    def look_in(self, blobs: BlobStore) -> None:
        self.provider.look_in(blobs)

    def media_fault(self, part: Blob | FileRef, model: str) -> str:
        return self.provider.media_fault(part, model)

    @property
    def dialect(self) -> str:
        return self.provider.dialect

    def profile(self, model: str) -> Profile:
        return self.provider.profile(model)

    def prepare(self, request: Request) -> HttpRequest:
        return self.provider.prepare(request)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        return self.provider.stream(request)

    async def generate(self, request: Request) -> Response:
        return await self.provider.generate(request)

    async def count_tokens(self, request: Request) -> int:
        return await self.provider.count_tokens(request)

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        return await self.provider.embed(texts, model)

    async def preconnect(self) -> None:
        await self.provider.preconnect()

    async def aclose(self) -> None:
        await self.provider.aclose()
