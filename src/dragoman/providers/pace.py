"""A rate limiter that all agents of a process share: requests and tokens per minute of one service and key.

Loaded only where a limit is set. Nobody is let through who would make it more than the limit within any 60 seconds; the others wait, first
come, first served, in whatever event loop and thread they are. A service that answers 429 and says how long to wait is believed by all.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from weakref import WeakValueDictionary

import msgspec

from dragoman.base.turnstile import Turnstile
from dragoman.values.contracts import Provider
from dragoman.values.errors import InputError, RateLimited
from dragoman.values.events import RequestDelayed, ResponseFinished, StreamEvent, UsageUpdated
from dragoman.values.messages import Blob, FileRef, Part, Request, Response, Text, Thought, ToolCall, ToolResult
from dragoman.values.usage import Usage
from dragoman.values.wrapping import WrappingProvider
from dragoman.words import say

MINUTE_S = 60.0
CHECK_S = 1.0
"""How often a waiter looks again: an answer may have taken fewer tokens than was thought."""
CHARS_PER_TOKEN = 4
FILE_TOKENS = 1_600


class RateLimit(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a service takes per minute from one key; None: any number. With neither, only its 429s are shared."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    """Input and output. The input is estimated when a request is sent, and all of it corrected when the answer tells what it took."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise InputError(say("providers.rate_wrong", name=name, given=repr(value)))


class Sent:
    """A request that counts for a minute."""

    __slots__ = ("at_s", "tokens")

    def __init__(self, at_s: float, tokens: int) -> None:
        self.at_s = at_s
        self.tokens = tokens


class _Lane:
    """Requests for one model: services limit models one by one, so a 429 holds up those for the same model alone."""

    def __init__(self) -> None:
        self.line = Turnstile(1)
        self.held_until_s = 0.0
        self.held_by: RateLimited | None = None


class Limiter:
    """Counts what was sent in the last minute. All methods may be called from any event loop and thread."""

    def __init__(self, limit: RateLimit, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._clock = clock
        self._sent: tuple[Sent, ...] = ()
        """In the order of sending. Only who is first in line puts another in its place."""
        self._line = Turnstile(1)
        self._lanes: dict[str, _Lane] = {}

    async def enter(self, model: str, tokens: int = 0, *, patience_s: float = float("inf")) -> Sent:
        """Wait until a request may be sent, and count it. Raises what the service said where it asked to wait longer than `patience_s`."""
        lane = self._lane(model)
        async with lane.line.place():
            while True:
                while (held_s := self.require_patience(model, patience_s)) > 0:
                    await _pause(held_s)
                async with self._line.place():
                    while (wait_s := self._wait_s(tokens)) > 0:
                        await _pause(wait_s)
                    if self._held_s(lane) <= 0:
                        return self._count(tokens)

    def expect_s(self, model: str, tokens: int = 0) -> float | None:
        """About how long `enter` would wait; None: not at all."""
        lane = self._lane(model)
        ahead = self._line.inside + self._line.waiting + lane.line.waiting
        wait_s = max(self._held_s(lane), self._wait_s(tokens), self._turn_s(ahead))
        return wait_s if wait_s > 0 or ahead or lane.line.inside else None

    def require_patience(self, model: str, patience_s: float) -> float:
        """How long the service has asked to wait from now on. Raises what it said where that is longer than `patience_s`."""
        lane = self._lane(model)
        held_s = self._held_s(lane)
        if held_s > patience_s and lane.held_by is not None:
            raise _said_again(lane.held_by, held_s)
        return held_s

    def hold(self, model: str, error: RateLimited) -> None:
        """The service has asked to wait: so do all who would ask for this model."""
        lane, until_s = self._lane(model), self._clock() + (error.retry_after_s or 0.0)
        if until_s > lane.held_until_s:
            lane.held_by, lane.held_until_s = error, until_s

    @property
    def is_idle(self) -> bool:
        """Whether nothing was sent within a minute, and no service has asked to wait."""
        return not self._recent() and all(self._held_s(lane) <= 0 for lane in list(self._lanes.values()))

    def _lane(self, model: str) -> _Lane:
        return self._lanes.get(model) or self._lanes.setdefault(model, _Lane())

    def _held_s(self, lane: _Lane) -> float:
        return lane.held_until_s - self._clock()

    def _count(self, tokens: int) -> Sent:
        sent = Sent(self._clock(), tokens)
        self._sent = (*self._recent(), sent)
        return sent

    def _wait_s(self, tokens: int) -> float:
        """How long until there is room for one more request with so many tokens. One larger than the limit goes when no other counts."""
        recent, wait_s = self._recent(), 0.0
        requests, limit = self.limit.requests_per_minute, self.limit.tokens_per_minute
        if requests is not None and len(recent) >= requests:
            wait_s = self._left_s(recent[len(recent) - requests])
        if limit is not None:
            used = sum(each.tokens for each in recent)
            for each in recent:
                if used + tokens <= limit:
                    break
                used -= each.tokens
                wait_s = max(wait_s, self._left_s(each))
        return wait_s

    def _turn_s(self, ahead: int) -> float:
        """How long it takes until all ahead have gone, by the number of requests."""
        recent, limit = self._recent(), self.limit.requests_per_minute
        if limit is None or len(recent) + ahead < limit:
            return 0.0
        rounds, place = divmod(len(recent) + ahead - limit, max(len(recent), limit))
        return rounds * MINUTE_S + (self._left_s(recent[place]) if place < len(recent) else MINUTE_S)

    def _left_s(self, sent: Sent) -> float:
        return max(sent.at_s + MINUTE_S - self._clock(), 0.0)

    def _recent(self) -> list[Sent]:
        since_s = self._clock() - MINUTE_S
        return [each for each in self._sent if each.at_s > since_s]


class Paced(WrappingProvider):
    """A provider that keeps to a limiter: each attempt waits for its turn, and tells by a RequestDelayed that it does."""

    def __init__(self, provider: Provider, limiter: Limiter, *, patience_s: float = float("inf")) -> None:
        super().__init__(provider)
        self.limiter = limiter
        self._patience_s = patience_s

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        tokens, limiter = self._tokens(request), self.limiter
        limiter.require_patience(request.model, self._patience_s)
        if (wait_s := limiter.expect_s(request.model, tokens)) is not None:
            yield RequestDelayed(wait_s, str(say("providers.request_waits", name=self.name, seconds=max(wait_s, 1.0))))
        sent = await limiter.enter(request.model, tokens, patience_s=self._patience_s)
        try:
            async with aclosing(self.provider.stream(request)) as events:
                async for event in events:
                    if isinstance(event, UsageUpdated):
                        sent.tokens = max(sent.tokens, event.usage.total_tokens)
                    elif isinstance(event, ResponseFinished):
                        _correct(sent, event.response.usage)
                    yield event
        except RateLimited as error:
            limiter.hold(request.model, error)
            raise

    async def generate(self, request: Request) -> Response:
        sent = await self.limiter.enter(request.model, self._tokens(request), patience_s=self._patience_s)
        try:
            response = await self.provider.generate(request)
        except RateLimited as error:
            self.limiter.hold(request.model, error)
            raise
        _correct(sent, response.usage)
        return response

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        await self.limiter.enter(model, sum(map(len, texts)) // CHARS_PER_TOKEN, patience_s=self._patience_s)
        try:
            return await self.provider.embed(texts, model)
        except RateLimited as error:
            self.limiter.hold(model, error)
            raise

    def _tokens(self, request: Request) -> int:
        return estimated_tokens(request) if self.limiter.limit.tokens_per_minute is not None else 0


_limiters: WeakValueDictionary[tuple[str, str, str], Limiter] = WeakValueDictionary()
_kept: list[Limiter] = []
"""The same, so that they outlive the connections that used them: what was sent by one that is closed counts for a minute too."""
KEPT = 100
"""Of more than so many, those are let go that have nothing to remember."""
_lock = threading.Lock()


def limiter_for(name: str, base_url: str, secrets: Iterable[str], limit: RateLimit) -> Limiter:
    """The limiter of a service and a key, the same for all. If another limit was given before, the new one counts."""
    credential = hashlib.sha256("\n".join(secrets).encode("utf-8", "surrogatepass")).hexdigest()
    with _lock:
        limiter = _limiters.get((name, base_url, credential))
        if limiter is None:
            limiter = _limiters[name, base_url, credential] = Limiter(limit)
            if len(_kept) >= KEPT:
                _kept[:] = [each for each in _kept if not each.is_idle]
            _kept.append(limiter)
        limiter.limit = limit
        return limiter


def estimated_tokens(request: Request) -> int:
    """About how many tokens a request has. Rough: what it took is known once it is answered."""
    chars = len(request.system) + sum(len(tool.description) + len(tool.parameters) for tool in request.tools)
    files = 0
    for part in _all_parts(part for message in request.messages for part in message.parts):
        match part:
            case Text(text=text) | Thought(text=text):
                chars += len(text)
            case ToolCall(arguments=arguments):
                chars += len(arguments)
            case Blob() | FileRef():
                files += 1
            case _:
                pass
    return max(chars // CHARS_PER_TOKEN + files * FILE_TOKENS, 1)


def _all_parts(parts: Iterable[Part]) -> Iterable[Part]:
    for part in parts:
        if isinstance(part, ToolResult):
            yield from part.content
        else:
            yield part


async def _pause(seconds: float) -> None:
    await asyncio.sleep(min(seconds, CHECK_S))


def _correct(sent: Sent, usage: Usage | None) -> None:
    if usage is not None and usage.total_tokens:
        sent.tokens = usage.total_tokens


def _said_again(error: RateLimited, left_s: float) -> RateLimited:
    """What the service said to somebody else, with the time that is left."""
    again = type(error)(
        error.message,
        provider=error.provider,
        status=error.status,
        request_id=error.request_id,
        code=error.code,
        retry_after_s=left_s,
        retryable=error.retryable,
    )
    again.__cause__ = error
    return again
