"""A provider in an attempt: it sends what the limiter lets it send, and writes down what was spent before anybody can kill it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Literal

import msgspec

from dragoman.context.tokens import estimate_tokens
from dragoman.fleet import files
from dragoman.fleet.limiter import Ask, FleetLimiter, HolderSpending, Known, Lease, RefusalNews, SpendingNews
from dragoman.fleet.result import SPENT_FILE, AttemptSpending
from dragoman.loop.charging import price_of
from dragoman.providers.pace import estimated_tokens
from dragoman.sessions.projects import project_name
from dragoman.values.contracts import Provider
from dragoman.values.errors import BudgetExceeded, Cancelled, QuotaExhausted, RateLimited
from dragoman.values.events import FieldOmitted, RequestDelayed, ResponseFinished, StreamEvent, UsageUpdated
from dragoman.values.messages import Message, Request, Response, Text, ToolCall, ToolResult, user
from dragoman.values.notes import GREETING
from dragoman.values.usage import Usage
from dragoman.values.wrapping import WrappingProvider
from dragoman.words import say

PATIENCE_S = 6 * 3_600.0
"""How long a request may wait in all. What waits is no work, so the time of the task does not count it."""


class FleetSpent(BudgetExceeded):
    """The budget of the whole fleet is used up. The attempt can be run again when there is more."""


HowEnded = Literal["answered", "cut", "refused"]
"""How a request ended: with a whole answer, in the middle of it, or without any work of the service, which costs nothing."""


class SentRequest:
    """A request under way, and what it counts: an estimate, until the service tells."""

    def __init__(self, provider: Provider, request: Request, estimated_usd: float | None) -> None:
        """None: nobody knows the prices."""
        self.provider = provider
        self.request = request
        self.estimated_usd = estimated_usd
        self.usd = estimated_usd
        self.is_told = False

    def price(self, usage: Usage) -> float | None:
        return price_of(self.provider, self.request.model, usage)

    @property
    def is_free(self) -> bool:
        return self.price(Usage(1_000_000, output_tokens=1_000_000)) == 0


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
        self._sent: list[SentRequest] = []
        self._answered: dict[str, tuple[Request, Usage]] = {}
        """Of each model: the last request that it answered, and what it told of it."""
        self._ended = AttemptSpending()
        """By requests that have ended, as far as prices are known."""
        self._is_unpriced = False
        self._spending = HolderSpending()
        self.spent = AttemptSpending()
        self.is_closed = False
        """Set at the deadline: nothing more is sent."""

    @property
    def under_way(self) -> int:
        return len(self._sent)

    async def enter(self, provider: Provider, request: Request) -> SentRequest:
        """Wait until a request may be sent, and write down that it is, with an estimate of what it costs: whoever kills us now must find
        that. Raises FleetSpent, or Cancelled after the deadline."""
        sent = SentRequest(provider, request, self._estimate_usd(provider, request))
        if self._limiter is not None:
            await self._wait_for_lease(self._limiter, sent)
        if self.is_closed:
            raise Cancelled(say("cancelled"))
        self._sent.append(sent)
        self._ended = msgspec.structs.replace(self._ended, requests=self._ended.requests + 1, request_hash=self._hash(request))
        self._note()
        return sent

    def take(self, sent: SentRequest, usage: Usage) -> None:
        """The service has told of a request under way what it has used so far, which its estimate is no more needed for."""
        if usage.input_tokens and not sent.is_told:
            sent.is_told, sent.usd = True, sent.price(usage)
            self._note()

    def leave(self, sent: SentRequest, usage: Usage, how: HowEnded, answer: Message | None = None) -> None:
        """The request has ended. What the service has not told of it stays estimated."""
        self._sent.remove(sent)
        missing_usd, usd = self._missing_usd(sent, usage, how, answer), sent.price(usage)
        is_whole = how == "refused" or (how == "answered" and not usage.incomplete and not missing_usd)
        if usage.input_tokens and how == "answered":
            self._answered[sent.request.model] = sent.request, usage
        self._is_unpriced = self._is_unpriced or ((usd is None or missing_usd is None) and how != "refused")
        before, estimated_usd = self._ended, missing_usd or 0.0
        self._ended = msgspec.structs.replace(
            before,
            input=before.input + usage.input_tokens,
            cache_read=before.cache_read + usage.cache_read_tokens,
            output=before.output + usage.output_tokens,
            usd=(before.usd or 0.0) + (usd or 0.0) + estimated_usd,
            estimated_usd=before.estimated_usd + estimated_usd,
            is_least=before.is_least or not (is_whole or sent.is_free),
        )
        self._note()

    def _missing_usd(self, sent: SentRequest, usage: Usage, how: HowEnded, answer: Message | None) -> float | None:
        """About what the service has not told of a request that it worked at."""
        if how == "refused":
            return 0.0
        input_usd = 0.0 if usage.input_tokens else sent.estimated_usd
        output_tokens = estimate_tokens(answer, sent.provider.profile(sent.request.model)) if answer and not usage.output_tokens else 0
        output_usd = sent.price(Usage(output_tokens=output_tokens))
        return None if input_usd is None or output_usd is None else input_usd + output_usd

    def _estimate_usd(self, provider: Provider, request: Request) -> float | None:
        """What the input of a request costs. What the service told of one that this one goes on with is nearer than any estimate, and says
        whether it keeps a cache."""
        profile, told = provider.profile(request.model), self._answered.get(request.model)
        if told is not None and _goes_on(request, told[0]):
            known = told[1].input_tokens
            cached = known if told[1].cache_read_tokens or told[1].cache_write_tokens else 0
            new = estimate_tokens(request.messages[len(told[0].messages) :], profile)
            return price_of(provider, request.model, Usage(known - cached + new, cached))
        return price_of(provider, request.model, Usage(estimate_tokens(request, profile)))

    async def refuse(self, provider: Provider, model: str, error: RateLimited) -> None:
        """The service said 429: the lease is void, and all others are told."""
        self._lease = msgspec.structs.replace(self._lease, requests=0)
        if self._limiter is not None:
            await self._limiter.refuse(RefusalNews(self._holder, f"{provider.name}/{model}", error.retry_after_s or 0.0))
        else:
            await asyncio.sleep(error.retry_after_s or 1.0)

    def _note(self) -> None:
        """Write down what is spent by now, and tell the limiter."""
        ended, sent = self._ended, self._sent
        in_flight_usd = sum(each.usd or 0.0 for each in sent)
        known_usd = (ended.usd or 0.0) + in_flight_usd
        self.spent = msgspec.structs.replace(
            ended,
            usd=None if self._is_unpriced or any(each.usd is None for each in sent) else known_usd,
            estimated_usd=ended.estimated_usd + sum(each.usd or 0.0 for each in sent if not each.is_told),
            in_flight_usd=in_flight_usd,
            under_way=len(sent),
            is_least=ended.is_least or not all(each.is_free for each in sent),
            step=self.spent.step + 1,
        )
        self._spending = HolderSpending(known_usd, in_flight_usd, self.spent.step)
        files.append(self._path, msgspec.json.encode(self.spent) + b"\n")
        if self._limiter is not None:
            self._limiter.spent(SpendingNews(self._holder, self._spending))

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

    async def _wait_for_lease(self, limiter: FleetLimiter, sent: SentRequest) -> None:
        began_s = time.monotonic()
        self._waiting += 1
        try:
            while not self._take_leased():
                self._on_wait(self.under_way == 0)
                lease = await limiter.lease(self._ask(sent))
                if lease.is_spent:
                    raise FleetSpent(say("fleet.budget_is_spent"), "usd", 0, 0)
                self._lease, self._lease_s = lease, time.monotonic() + lease.after_s + lease.for_s
                if lease.after_s:
                    await asyncio.sleep(lease.after_s)
                if time.monotonic() - began_s > PATIENCE_S:
                    reason = say("fleet.waited_too_long", hours=round(PATIENCE_S / 3_600))
                    raise RateLimited(reason, provider=sent.provider.name, retryable=True)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._on_wait(False)

    def _take_leased(self) -> bool:
        if self._lease.requests < 1 or time.monotonic() > self._lease_s:
            return False
        self._lease = msgspec.structs.replace(self._lease, requests=self._lease.requests - 1)
        return True

    def _ask(self, sent: SentRequest) -> Ask:
        row = sent.provider.deployment
        return Ask(
            self._holder,
            f"{sent.provider.name}/{sent.request.model}",
            estimated_tokens(sent.request) if row is not None and row.tokens_per_minute else 0,
            self._spending,
            sent.usd or 0.0,
            Known(self._lease.known.per_s),
            row.requests_per_minute if row is not None else 0,
            row.tokens_per_minute if row is not None else 0,
        )


def _goes_on(request: Request, before: Request) -> bool:
    """Whether a request is another one with more messages behind."""
    count = len(before.messages)
    return request.messages[:count] == before.messages and request.system == before.system and request.tools == before.tools


class Leased(WrappingProvider):
    """A provider that keeps to the fleet's limiter. A 429 is no failure: the request is sent again when it may be."""

    def __init__(self, provider: Provider, meter: AttemptMeter) -> None:
        super().__init__(provider)
        self._meter = meter

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        while True:
            sent = await self._meter.enter(self.provider, request)
            usage, has_begun, is_answering, answer = Usage(), False, False, None
            how: HowEnded = "cut"
            try:
                async with aclosing(self.provider.stream(request)) as events:
                    async for event in events:
                        has_begun = True
                        is_answering = is_answering or not isinstance(event, FieldOmitted | RequestDelayed)
                        if isinstance(event, UsageUpdated):
                            usage = event.usage
                            self._meter.take(sent, usage)
                        elif isinstance(event, ResponseFinished):
                            usage, how, answer = event.response.usage or usage, "answered", event.response.message
                        yield event
                return
            except RateLimited as error:
                how = "cut" if is_answering else "refused"
                if isinstance(error, QuotaExhausted) or has_begun:
                    raise
                refused = error
            except Exception as error:
                how = "cut" if is_answering or getattr(error, "may_have_cost", False) else "refused"
                raise
            finally:
                self._meter.leave(sent, usage, how, answer)
            yield RequestDelayed(refused.retry_after_s or 1.0, str(refused))
            await self._meter.refuse(self.provider, request.model, refused)

    async def generate(self, request: Request) -> Response:
        while True:
            sent = await self._meter.enter(self.provider, request)
            usage, answer = Usage(), None
            how: HowEnded = "cut"
            try:
                response = await self.provider.generate(request)
                usage, how, answer = response.usage or usage, "answered", response.message
                return response
            except RateLimited as error:
                how = "refused"
                if isinstance(error, QuotaExhausted):
                    raise
                refused = error
            except Exception as error:
                how = "cut" if getattr(error, "may_have_cost", False) else "refused"
                raise
            finally:
                self._meter.leave(sent, usage, how, answer)
            await self._meter.refuse(self.provider, request.model, refused)

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        sent = await self._meter.enter(self.provider, Request(model or self.model, (user(*texts),)))
        how: HowEnded = "cut"
        try:
            vectors = await self.provider.embed(texts, model)
            how = "answered"
            return vectors
        except Exception as error:
            how = "cut" if getattr(error, "may_have_cost", False) else "refused"
            raise
        finally:
            self._meter.leave(sent, Usage(), how)
