"""One check against a live service: what it plans, what it sends, and what that costs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

import msgspec

from dragoman.values.contracts import Provider
from dragoman.values.errors import BadRequest, TimedOut
from dragoman.values.events import FieldOmitted, ResponseFinished, Retrying, StreamEvent, TextDelta
from dragoman.values.messages import FinishReason, Message, Request, Response, Settings, user
from dragoman.values.profile import Deployment, Profile
from dragoman.values.usage import Usage
from dragoman.words import say

T = TypeVar("T")
EXCHANGE_S, LOCAL_EXCHANGE_S = 90.0, 600.0
"""The longest that one request may take, waiting for a retry included."""
SHORT_TOKENS, THINKING_TOKENS = 128, 768
"""Output limits: of a model that does not think, and of one that does."""
LIMIT_TOKENS = 16
"""The smallest limit that every service takes."""


class NotMet(Exception):
    """The service answered, but not with what was asked for. The message is for the user."""


class CutByLimit(NotMet):
    """The model thought until our limit was reached, and the service gave no answer at all."""


class Skipped(Exception):
    """The check is left out, and the message says why."""


class Service(msgspec.Struct, frozen=True):
    """What is checked."""

    provider: Provider
    model: str
    profile: Profile
    deployment: Deployment | None = None

    @property
    def cache(self) -> str:
        return self.profile.cache or (self.deployment.cache if self.deployment else "none")

    @property
    def exchange_s(self) -> float:
        return LOCAL_EXCHANGE_S if self.deployment is not None and self.deployment.local else EXCHANGE_S

    def request(self, *content: str | Message, limit: int = 0, **settings: object) -> Request:
        messages = tuple(each if isinstance(each, Message) else user(each) for each in content)
        room = SHORT_TOKENS if self.profile.thinking == "none" else THINKING_TOKENS
        return Request(self.model, messages, settings=Settings(max_output_tokens=limit or room, **settings))  # type: ignore[arg-type]


class Planned(msgspec.Struct, frozen=True):
    """One request a check will send, or one like it."""

    request: Request
    more_tokens: int = 0
    """Input that the request does not hold yet: an answer that is sent back, media, what a search finds."""


class Check(msgspec.Struct, frozen=True):
    """One feature that `dragoman doctor --live` tries."""

    name: str
    plan: Callable[[Service], list[Planned]]
    """What `run` will send at most. Raises Unsupported if the model or service has no such feature, Skipped with another reason."""
    run: Callable[[LiveExchange], Awaitable[str]]
    """Do it, and say what was seen. Raises NotMet or a ProviderError."""
    is_free: bool = False


class LiveExchange:
    """The requests of one check, with what they cost."""

    def __init__(self, service: Service, exchange_s: float, planned: list[Planned]) -> None:
        self.service = service
        self.exchange_s = exchange_s
        self.requests = 0
        self.usage = Usage()
        self.notes: list[str] = []
        self._planned = planned

    @property
    def request(self) -> Request:
        """The first request, as planned."""
        return self._planned[0].request

    def note(self, text: str) -> None:
        if text and text not in self.notes:
            self.notes.append(text)

    async def generate(self, request: Request) -> Response:
        return self._take(await self.wait_for(self.service.provider.generate(request)))

    async def stream(self, request: Request) -> tuple[Response, list[str]]:
        """The answer, and its text in the pieces it came in."""
        response, pieces = await self.wait_for(self._stream(request))
        return self._take(response), pieces

    async def wait_for(self, exchange: Awaitable[T]) -> T:
        """Wait for one exchange, but not for ever."""
        self.requests += 1
        try:
            async with asyncio.timeout(self.exchange_s):
                return await exchange
        except BadRequest as error:
            if "could not finish the message" in error.message.lower():  # OpenAI's words, with status 400
                raise CutByLimit(say("live_cut_short")) from error
            raise
        except TimeoutError:
            raise TimedOut(say("live_timed_out", seconds=self.exchange_s), provider=self.service.provider.name) from None

    async def _stream(self, request: Request) -> tuple[Response, list[str]]:
        pieces: list[str] = []
        response: Response | None = None
        async with aclosing(self.service.provider.stream(request)) as events:
            async for event in events:
                self.note(_note_on(event))
                match event:
                    case TextDelta(text=text):
                        pieces.append(text)
                    case Retrying():
                        pieces.clear()
                    case ResponseFinished(response=whole):
                        response = whole
        assert response is not None, "a stream ends with ResponseFinished or raises"
        return response, pieces

    def _take(self, response: Response) -> Response:
        self.usage += response.usage
        if response.finish not in (FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.LENGTH):
            detail = response.detail or say("live_no_detail")
            raise NotMet(say("live_ended_badly", finish=response.raw_finish or response.finish, detail=detail))
        if not response.usage.total_tokens:
            self.note(say("live_no_usage"))
        if not (response.message.text.strip() or response.message.calls or response.finish == FinishReason.LENGTH):
            raise NotMet(say("live_empty"))
        if response.finish == FinishReason.LENGTH and self.request.settings.max_output_tokens != LIMIT_TOKENS:
            self.note(say("live_cut"))
        return response


def _note_on(event: StreamEvent) -> str:
    """What the user should know of an event besides the answer."""
    if isinstance(event, Retrying):
        return say("live_retried", reason=event.reason)
    if isinstance(event, FieldOmitted):
        return say("live_omitted", field=event.field, reason=event.reason)
    return ""
