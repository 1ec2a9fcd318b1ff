"""Any provider that knows tools, watched: a model may write a call as text all the same, because its server does not read its dialect.

The first such call is taken for what it is, and whoever listens is told, so that the conversation can go on with TextTools. After that,
text is text again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from dragoman.contracts import Prepared, Provider
from dragoman.events import ResponseFinished, Retrying, StreamEvent
from dragoman.messages import Request, Response
from dragoman.profile import Profile
from dragoman.text_tools.answering import Answering, Reading
from dragoman.text_tools.call_note import note_on
from dragoman.text_tools.dialect import AUTO
from dragoman.text_tools.parser import StreamParser
from dragoman.text_tools.toolset import Toolset


class Detector:
    """A Provider around a Provider. Requests pass untouched. `found` is the dialect a call was written in, once one was."""

    def __init__(self, provider: Provider, on_found: Callable[[str], object] | None = None) -> None:
        self.provider = provider
        self.model: str = getattr(provider, "model", "")
        self.blobs: Any = getattr(provider, "blobs", None)
        self.found = ""
        self._on_found = on_found

    @property
    def name(self) -> str:
        return self.provider.name

    def profile(self, model: str) -> Profile:
        return self.provider.profile(model)

    def prepare(self, request: Request) -> Prepared:
        return self.provider.prepare(request)

    async def generate(self, request: Request) -> Response:
        response = await self.provider.generate(request)
        return response if self.found else self._seen(self._answering(request).whole(response))

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        answering = None if self.found else self._answering(request)
        async with aclosing(self.provider.stream(request)) as events:
            async for event in events:
                if answering is None:
                    yield event
                    continue
                if isinstance(event, Retrying):
                    answering = self._answering(request)
                for told in answering.event(event):
                    if isinstance(told, ResponseFinished):
                        self._seen(told.response)
                    yield told

    async def count_tokens(self, request: Request) -> int:
        return await self.provider.count_tokens(request)

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        return await self.provider.embed(texts, model)

    async def preconnect(self) -> None:
        await self.provider.preconnect()

    async def aclose(self) -> None:
        await self.provider.aclose()

    def _answering(self, request: Request) -> Answering:
        tools = Toolset.of(request.tools) or Toolset({})
        choice = request.settings.tool_choice if request.tools else "none"
        return Answering(Reading(request, tools, AUTO, is_native=True), StreamParser(tools, tool_choice=choice, is_strict=True))

    def _seen(self, response: Response) -> Response:
        note = next((note for call in response.message.calls if (note := note_on(call)) is not None), None)
        if note is not None and not self.found:
            self.found = note.dialect
            if self._on_found is not None:
                self._on_found(note.dialect)
        return response
