"""Any provider that knows tools, watched: a model may write a call as text all the same, because its server does not read its dialect.

The first such call is taken for what it is, and whoever listens is told, so that the conversation can go on with TextTools. After that,
text is text again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from dragoman.values.contracts import Prepared, Provider
from dragoman.values.events import ResponseFinished, Retrying, StreamEvent, TextDelta
from dragoman.values.messages import Request, Response
from dragoman.values.profile import Profile

if TYPE_CHECKING:
    from dragoman.text_tools.answering import Answering

_BEGINNINGS = frozenset("<[{(✿◁")
"""No call is written without one of these: until one is seen, all that reads calls need not be loaded."""


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
        is_watching, passed, answering = not self.found, list[StreamEvent](), None
        async with aclosing(self.provider.stream(request)) as events:
            async for event in events:
                if isinstance(event, Retrying):
                    passed.clear()
                    answering = None
                if answering is None and is_watching and isinstance(event, TextDelta) and not _BEGINNINGS.isdisjoint(event.text):
                    answering = self._answering(request)
                    for before in passed:
                        answering.event(before)  # told already, as it came
                if answering is None:
                    if is_watching:
                        passed.append(event)
                    yield event
                    continue
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
        from dragoman.text_tools.answering import Answering, Reading
        from dragoman.text_tools.parser import StreamParser
        from dragoman.text_tools.toolset import Toolset

        tools = Toolset.of(request.tools) or Toolset({})
        choice = request.settings.tool_choice if request.tools else "none"
        return Answering(Reading(request, tools, "auto", is_native=True), StreamParser(tools, tool_choice=choice, is_strict=True))

    def _seen(self, response: Response) -> Response:
        from dragoman.text_tools.call_note import note_on

        note = next((note for call in response.message.calls if (note := note_on(call)) is not None), None)
        if note is not None and not self.found:
            self.found = note.dialect
            if self._on_found is not None:
                self._on_found(note.dialect)
        return response
