"""A provider that cannot send: only what the catalog says about a service, without a key or a connection."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from dragoman.values.contracts import HttpRequest, Provider
from dragoman.values.errors import Unsupported
from dragoman.values.events import StreamEvent
from dragoman.values.messages import Request
from dragoman.values.profile import Deployment, Profile
from dragoman.words import say


class OfflineProvider(Provider):
    """For inspecting a conversation: profile and cache are known, and nothing can be sent."""

    def __init__(self, deployment: Deployment | None, profile: Profile) -> None:
        self._deployment = deployment
        self._profile = profile

    @property
    def name(self) -> str:
        return self._deployment.name if self._deployment is not None else ""

    @property
    def deployment(self) -> Deployment | None:
        return self._deployment

    def profile(self, model: str) -> Profile:
        return self._profile

    def prepare(self, request: Request) -> HttpRequest:
        raise Unsupported(say("providers.offline"))

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.prepare(request)
        yield  # pyrefly: ignore[invalid-yield]
