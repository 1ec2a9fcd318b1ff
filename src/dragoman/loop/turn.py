"""One model round as everyone else sees it: StreamEvents in, TurnEvents out, the tool calls collected."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from dragoman.loop.chat import Chat, InvalidAnswer
from dragoman.values.events import (
    CitationAdded,
    CitationShown,
    ContentAdded,
    PromptProgress,
    PromptRead,
    ResponseFinished,
    ResponseStarted,
    Retrying,
    StreamInvalid,
    TextDelta,
    ThoughtAdded,
    ThoughtDelta,
    ToolCallRequested,
    TurnEvent,
    TurnFinished,
    TurnRetried,
)
from dragoman.values.messages import Response


class Turn:
    """Run it once. `response` is the answer when the events have ended."""

    def __init__(self, chat: Chat, prompt_id: str = "") -> None:
        self._chat = chat
        self._prompt_id = prompt_id
        self.response: Response | None = None

    async def run(self) -> AsyncGenerator[TurnEvent, None]:
        """Calls are told when the answer is complete and valid, so nobody shows one that will not run."""
        trace_id = ""
        try:
            async with aclosing(self._chat.answer()) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        yield ContentAdded(event.text, trace_id)
                    elif isinstance(event, ThoughtDelta):
                        yield ThoughtAdded(event.text, event.subject, event.description)
                    elif isinstance(event, PromptRead):
                        yield PromptProgress(event.done_tokens, event.total_tokens)
                    elif isinstance(event, ResponseStarted):
                        trace_id = event.response_id
                    elif isinstance(event, CitationAdded):
                        yield CitationShown(event.citation)
                    elif isinstance(event, Retrying):
                        yield TurnRetried(event.attempt, event.wait_s, event.reason)
                    elif isinstance(event, ResponseFinished):
                        self.response = event.response
        except InvalidAnswer as error:
            yield StreamInvalid(error.message)
            raise
        if self.response is None:
            return
        yield TurnFinished(self.response.finish, self.response.usage)
        for call in self.response.message.calls:
            yield ToolCallRequested(call, self._prompt_id)
