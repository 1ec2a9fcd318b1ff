"""A provider in an attempt: it sends what the limiter lets it send, and writes down what was spent before anybody can kill it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

import msgspec

from dragoman.fleet.limiter import Ask, FleetLimiter, Known, Lease, RefusalNews, SpendingNews
from dragoman.fleet.result import SPENT_FILE, AttemptSpending
from dragoman.loop.charging import price_of
from dragoman.providers.pace import estimated_tokens
from dragoman.sessions.projects import project_name
from dragoman.values.contracts import Provider
from dragoman.values.errors import BudgetExceeded, Cancelled, QuotaExhausted, RateLimited
from dragoman.values.events import RequestDelayed, ResponseFinished, StreamEvent, UsageUpdated
from dragoman.values.messages import Request, Response, Text, ToolCall, ToolResult
from dragoman.values.notes import GREETING
from dragoman.values.usage import Usage
from dragoman.values.wrapping import WrappingProvider
from dragoman.words import say

PATIENCE_S = 6 * 3_600.0
"""How long a request may wait in all. What waits is no work, so the time of the task does not count it."""


class FleetSpent(BudgetExceeded):
    """The budget of the whole fleet is used up. The attempt can be run again when there is more."""


class AttemptMeter:
    """What an attempt sends and spends. Belongs to one event loop."""

    def __init__(self, holder: str, folder: str, copy: str, limiter: FleetLimiter | None, on_wait: Callable[[bool], None]) -> None:
        """`on_wait` is told when all there is to do is to wait for the limiter, and when that is over."""
        self._holder = holder
        self._path = os.path.join(folder, SPENT_FILE)
        self._paths = (copy, project_name(copy))
        self._limiter = limiter
        self._on_wait = on_wait
        self._lease = Lease()
        self._lease_s = 0.0
        self._waiting = 0
        self.spent = AttemptSpending()
        self.is_least = False
        self.is_closed = False
        """Set at the deadline: nothing more is sent."""
        self.under_way = 0

    async def enter(self, provider: Provider, request: Request) -> None:
        """Wait until a request may be sent, and write down that it is. Raises FleetSpent, or Cancelled after the deadline."""
        if self._limiter is not None:
            await self._wait_for_lease(self._limiter, provider, request)
        if self.is_closed:
            raise Cancelled(say("cancelled"))
        self.under_way += 1
        self._note(requests=self.spent.requests + 1, request_hash=self._hash(request))

    def leave(self, provider: Provider, model: str, usage: Usage, *, is_whole: bool) -> None:
        """The request is answered, or never will be."""
        self.under_way -= 1
        usd, before = price_of(provider, model, usage), self.spent
        self.is_least = self.is_least or not is_whole or bool(usage.incomplete)
        self._note(
            input=before.input + usage.input_tokens,
            cache_read=before.cache_read + usage.cache_read_tokens,
            output=before.output + usage.output_tokens,
            usd=None if usd is None or before.usd is None else before.usd + usd,
        )
        if self._limiter is not None and usd:
            self._limiter.spent(SpendingNews(self._holder, self.spent.usd or 0.0))

    async def refuse(self, provider: Provider, model: str, error: RateLimited) -> None:
        """The service said 429: the lease is void, and all others are told."""
        self._lease = msgspec.structs.replace(self._lease, requests=0)
        if self._limiter is not None:
            await self._limiter.refuse(RefusalNews(self._holder, f"{provider.name}/{model}", error.retry_after_s or 0.0))
        else:
            await asyncio.sleep(error.retry_after_s or 1.0)

    def _note(self, **changed: object) -> None:
        self.spent = msgspec.structs.replace(self.spent, under_way=self.under_way, **changed)
        line = msgspec.json.encode(self.spent) + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def _hash(self, request: Request) -> str:
        """Of what the conversation says. The paths of the copy are left out of it: each epoch has others."""
        digest = hashlib.sha256(request.model.encode())
        for message in request.messages:
            for part in message.parts:
                match part:
                    case Text(text=text) if not text.startswith(GREETING):  # the surroundings name folders, which each epoch has anew
                        said = text
                    case ToolCall(name=name, arguments=arguments):
                        said = f"{name} {arguments}"
                    case ToolResult(content=content):
                        said = "\n".join(each.text for each in content if isinstance(each, Text))
                    case _:
                        continue
                for path in self._paths:
                    said = said.replace(path, "")
                digest.update(said.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:16]

    async def _wait_for_lease(self, limiter: FleetLimiter, provider: Provider, request: Request) -> None:
        began_s = time.monotonic()
        self._waiting += 1
        try:
            while not self._take_leased():
                self._on_wait(self.under_way == 0)
                lease = await limiter.lease(self._ask(provider, request))
                if lease.is_spent:
                    raise FleetSpent(say("fleet.budget_is_spent"), "usd", 0, 0)
                self._lease, self._lease_s = lease, time.monotonic() + lease.after_s + lease.for_s
                if lease.after_s:
                    await asyncio.sleep(lease.after_s)
                if time.monotonic() - began_s > PATIENCE_S:
                    raise RateLimited(say("fleet.waited_too_long", hours=round(PATIENCE_S / 3_600)), provider=provider.name, retryable=True)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._on_wait(False)

    def _take_leased(self) -> bool:
        if self._lease.requests < 1 or time.monotonic() > self._lease_s:
            return False
        self._lease = msgspec.structs.replace(self._lease, requests=self._lease.requests - 1)
        return True

    def _ask(self, provider: Provider, request: Request) -> Ask:
        row = provider.deployment
        return Ask(
            self._holder,
            f"{provider.name}/{request.model}",
            estimated_tokens(request) if row is not None and row.tokens_per_minute else 0,
            self.spent.usd or 0.0,
            Known(self._lease.known.per_s),
            row.requests_per_minute if row is not None else 0,
            row.tokens_per_minute if row is not None else 0,
        )


class Leased(WrappingProvider):
    """A provider that keeps to the fleet's limiter. A 429 is no failure: the request is sent again when it may be."""

    def __init__(self, provider: Provider, meter: AttemptMeter) -> None:
        super().__init__(provider)
        self._meter = meter

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        while True:
            await self._meter.enter(self.provider, request)
            usage, has_begun, is_whole = Usage(), False, False
            try:
                async with aclosing(self.provider.stream(request)) as events:
                    async for event in events:
                        has_begun = True
                        if isinstance(event, UsageUpdated):
                            usage = event.usage
                        elif isinstance(event, ResponseFinished):
                            usage, is_whole = event.response.usage or usage, True
                        yield event
                return
            except RateLimited as error:
                is_whole = True  # refused: it cost nothing
                if isinstance(error, QuotaExhausted) or has_begun:
                    raise
                refused = error
            except Exception as error:
                is_whole = not getattr(error, "may_have_cost", False)
                raise
            finally:
                self._meter.leave(self.provider, request.model, usage, is_whole=is_whole)
            yield RequestDelayed(refused.retry_after_s or 1.0, str(refused))
            await self._meter.refuse(self.provider, request.model, refused)

    async def generate(self, request: Request) -> Response:
        while True:
            await self._meter.enter(self.provider, request)
            usage, is_whole = Usage(), False
            try:
                response = await self.provider.generate(request)
                usage, is_whole = response.usage or usage, True
                return response
            except RateLimited as error:
                is_whole = True
                if isinstance(error, QuotaExhausted):
                    raise
                refused = error
            except Exception as error:
                is_whole = not getattr(error, "may_have_cost", False)
                raise
            finally:
                self._meter.leave(self.provider, request.model, usage, is_whole=is_whole)
            await self._meter.refuse(self.provider, request.model, refused)

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        request = Request(model or self.model, ())
        await self._meter.enter(self.provider, request)
        try:
            return await self.provider.embed(texts, model)
        finally:
            self._meter.leave(self.provider, request.model, Usage(), is_whole=True)
