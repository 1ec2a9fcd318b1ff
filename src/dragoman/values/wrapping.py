"""Base classes for providers and tools that wrap another. What a wrapper does not override is delegated."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from dragoman.values.contracts import BlobStore, HttpRequest, Intent, Provider, Show, Tool, ToolOutput
from dragoman.values.events import StreamEvent
from dragoman.values.messages import Request, Response, ToolSpec
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


class WrappingTool:
    """A Tool around a Tool."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    @property
    def timeout_s(self) -> float:
        return getattr(self.tool, "timeout_s", 0.0)

    @property
    def runs_beside(self) -> bool:
        return getattr(self.tool, "runs_beside", False)

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return self.tool.intend(args)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        return await self.tool.run(args, show)
