"""Retries: bounded, announced by an event, and never sooner than the server asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias

import msgspec

from dragoman.values.contracts import Provider
from dragoman.values.errors import Overloaded, ProviderError, RateLimited
from dragoman.values.events import ResponseFinished, Retrying, StreamEvent
from dragoman.values.messages import Request, Response
from dragoman.values.wrapping import WrappingProvider
from dragoman.words import say

Decision: TypeAlias = str | bool | None
"""What a hook for persistent 429s decides: another model, True to ask the same one again at once, False or None to give up."""
On429: TypeAlias = Callable[[Any], Decision | Awaitable[Decision]]


def is_retryable(error: ProviderError) -> bool:
    return error.retryable


def keeps_refusing(error: Exception) -> bool:
    """Whether the service will take no requests for some time, after all attempts were made: then another model may go on."""
    if not isinstance(error, ProviderError):
        return False
    return isinstance(error, RateLimited | Overloaded) or (error.retry_after_s is not None and not error.retryable)


def _draw() -> float:
    import random  # not needed until something fails

    return random.random()


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often to retry and how long to wait. A server's hint replaces the backoff and may exceed its cap."""

    attempts: int = 3
    first_delay_s: float = 5.0
    max_delay_s: float = 30.0
    jitter: float = 0.3
    deadline_s: float = 60.0
    """Longest total wait. A hint beyond it fails at once with the time at which to try again."""
    retry_on_error: Callable[[Any], bool] = is_retryable
    """Called with an error: True means that the same request may succeed later."""
    retry_on_content: Callable[[Any], bool] | None = None
    """Called with whole answers: True means the answer is unusable and should be requested again."""
    on_persistent_429: On429 | None = None
    """Called once per request, with the error, where no further attempt is made after a 429 (all were used, the quota is used up, the wait
    would be too long). A function or an async one. It returns a model of the same service to go on with, True to ask the same model again
    at once (the hook has waited, or changed the key), or False or None to give up. A stream tells the change with its Retrying event."""
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep
    draw: Callable[[], float] = _draw

    def delay_s(self, failures: int, error: ProviderError | None) -> float:
        """How long to wait after so many failures. Jitter never shortens what the server said."""
        return self.delay_after_s(failures, error.retry_after_s if error is not None else None)

    def delay_after_s(self, failures: int, hint_s: float | None) -> float:
        """The same by the server's hint alone."""
        if hint_s is not None:
            return hint_s * (1 + 0.1 * self.draw())
        backoff = min(self.max_delay_s, self.first_delay_s * 2 ** (failures - 1))
        return max(0.0, backoff * (1 + self.jitter * (2 * self.draw() - 1)))


class Retry(WrappingProvider):
    """Wraps a Provider. A stream that is retried sends a Retrying event: discard what was shown before it."""

    def __init__(self, provider: Provider, policy: RetryPolicy | None = None) -> None:
        super().__init__(provider)
        self.policy = policy or RetryPolicy()

    async def generate(self, request: Request) -> Response:
        attempts = Attempts(self.policy)
        while True:
            try:
                response = await self.provider.generate(request)
            except ProviderError as error:
                request, wait_s = await attempts.after(error, request)
            else:
                if not attempts.wants_another(response):
                    return response
                wait_s = attempts.after_content()
            await self.policy.sleep(wait_s)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        attempts = Attempts(self.policy)
        while True:
            model, is_usable = request.model, True
            try:
                async with aclosing(self.provider.stream(request)) as events:
                    async for event in events:
                        if isinstance(event, ResponseFinished) and attempts.wants_another(event.response):
                            is_usable = False
                        else:
                            yield event
                if is_usable:
                    return
                wait_s, reason, may_have_cost = attempts.after_content(), str(say("providers.unusable_content")), True
            except ProviderError as error:
                request, wait_s = await attempts.after(error, request)
                reason, may_have_cost = str(error), error.may_have_cost
            switched = request.model if request.model != model else ""
            yield Retrying(attempts.failures, wait_s, reason, switched, may_have_cost)
            await self.policy.sleep(wait_s)

    async def count_tokens(self, request: Request) -> int:
        return await self._retry(lambda: self.provider.count_tokens(request), request)

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        return await self._retry(lambda: self.provider.embed(texts, model), Request(model, ()))

    async def _retry(self, call: Callable[[], Awaitable[Any]], request: Request) -> Any:
        attempts = Attempts(self.policy)
        while True:
            try:
                return await call()
            except ProviderError as error:
                _, wait_s = await attempts.after(error, request)
            await self.policy.sleep(wait_s)


class Attempts:
    """Counts failures and the time waited for one request or call."""

    def __init__(self, policy: RetryPolicy) -> None:
        self.policy = policy
        self.failures = 0
        self._waited_s = 0.0
        self._switched = False

    @property
    def is_exhausted(self) -> bool:
        return self.failures + 1 >= self.policy.attempts

    async def after(self, error: ProviderError, request: Request) -> tuple[Request, float]:
        """The request to send next and how long to wait before; raises the error if there is no further attempt."""
        if self.is_exhausted or not self.policy.retry_on_error(error):
            return await self._switch_model(error, request), 0.0
        wait_s = self.next_wait_s(error.retry_after_s)
        if wait_s is None:
            from dragoman.providers.long_waits import wait_too_long

            return await self._switch_model(wait_too_long(error, self.policy.deadline_s), request), 0.0
        return request, wait_s

    def next_wait_s(self, hint_s: float | None) -> float | None:
        """How long to wait before the next attempt, by the server's hint if it gave one; None if that is beyond the deadline."""
        wait_s = self.policy.delay_after_s(self.failures + 1, hint_s)
        if self._waited_s + wait_s > self.policy.deadline_s:
            return None
        self.failures += 1
        self._waited_s += wait_s
        return wait_s

    def wants_another(self, response: Response) -> bool:
        """Whether the content of an answer is unusable, and it may be requested again."""
        is_unusable = self.policy.retry_on_content
        return is_unusable is not None and not self.is_exhausted and is_unusable(response)

    def after_content(self) -> float:
        self.failures += 1
        return self.policy.delay_s(self.failures, None)

    async def _switch_model(self, error: ProviderError, request: Request) -> Request:
        hook = self.hook_for(error)
        if hook is None:
            raise error
        from dragoman.providers.persistent_429 import decide_about_429

        decision = await decide_about_429(hook, error)
        self.begin_again(decision, error)
        return msgspec.structs.replace(request, model=decision) if isinstance(decision, str) else request

    def hook_for(self, error: Exception) -> On429 | None:
        """The hook to ask about an error after which no attempt is left: about a 429, and only once."""
        if self._switched or self.policy.on_persistent_429 is None:
            return None
        from dragoman.providers.persistent_429 import is_429

        return self.policy.on_persistent_429 if is_429(error) else None

    def begin_again(self, decision: Decision, error: Exception) -> None:
        """Count from the beginning, as the hook decided; raises the error if it gave up."""
        if not decision:
            raise error
        self._switched, self.failures, self._waited_s = True, 0, 0.0
