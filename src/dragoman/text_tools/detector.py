"""Detects text calls from a provider with native tools: a model may write a call as text because its server cannot parse its dialect.

The first such call is turned into a tool call and reported to the listener, so that the conversation can switch to TextTools. After that,
text stays text.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from dragoman.values.contracts import Provider
from dragoman.values.events import ResponseFinished, Retrying, StreamEvent, TextDelta
from dragoman.values.messages import Request, Response
from dragoman.values.wrapping import WrappingProvider

if TYPE_CHECKING:
    from dragoman.text_tools.answering import AnswerReader

_BEGINNINGS = frozenset("<[{(✿◁")
"""Every call contains one of these: until one is seen, the parser need not be loaded."""


class Detector(WrappingProvider):
    """A Provider around a Provider. Requests pass unchanged. `found_dialect` is the dialect of the first text call, or ""."""

    def __init__(self, provider: Provider, on_found: Callable[[str], object] | None = None) -> None:
        super().__init__(provider)
        self.found_dialect = ""
        self._on_found = on_found
        self._calls_natively = False
        """Whether the model has made a native call: its server reads its dialect, so what it writes as text is text."""

    async def generate(self, request: Request) -> Response:
        response = await self.provider.generate(request)
        return self._note_dialect(self._reader_for(request).read_response(response)) if self._is_watching else response

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        is_watching, passed, reader = self._is_watching, list[StreamEvent](), None
        async with aclosing(self.provider.stream(request)) as events:
            async for event in events:
                if isinstance(event, Retrying):
                    passed.clear()
                    reader = None
                if reader is None and is_watching and isinstance(event, TextDelta) and not _BEGINNINGS.isdisjoint(event.text):
                    reader = self._reader_for(request)
                    for before in passed:
                        reader.read_event(before)  # already yielded
                if reader is None:
                    if is_watching:
                        passed.append(event)
                    if isinstance(event, ResponseFinished):
                        self._note_dialect(event.response)
                    yield event
                    continue
                for out in reader.read_event(event):
                    if isinstance(out, ResponseFinished):
                        self._note_dialect(out.response)
                    yield out

    @property
    def _is_watching(self) -> bool:
        return not self.found_dialect and not self._calls_natively

    def _reader_for(self, request: Request) -> AnswerReader:
        from dragoman.text_tools.answering import AnswerReader, ReaderOptions
        from dragoman.text_tools.parser import StreamParser
        from dragoman.text_tools.toolset import Toolset

        tools = Toolset.of(request.tools) or Toolset({})
        choice = request.settings.tool_choice if request.tools else "none"
        return AnswerReader(ReaderOptions(request, tools, "auto", is_native=True), StreamParser(tools, tool_choice=choice, is_strict=True))

    def _note_dialect(self, response: Response) -> Response:
        if not response.message.calls:
            return response
        from dragoman.text_tools.call_note import read_note

        notes = [read_note(call) for call in response.message.calls]
        self._calls_natively = self._calls_natively or None in notes
        note = next((note for note in notes if note is not None), None)
        if note is not None and not self.found_dialect:
            self.found_dialect = note.dialect
            if self._on_found is not None:
                self._on_found(note.dialect)
        return response
