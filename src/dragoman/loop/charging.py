"""Keeps a run within its budgets: its requests and calls are charged to every account that applies.

Loaded only where there is a budget. Requests are charged where they are sent, by a provider around the model's own: so answers, retries,
summaries and searches all count, whoever asks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import msgspec

from dragoman.context.tokens import LEAST_ERROR, MIN_SCALE, estimate_tokens
from dragoman.loop.budget import NOTHING_UNTOLD, Account, Budget, LeastUse, Spending, Untold, account_of
from dragoman.loop.model import Model
from dragoman.values.calls import Allow, Decide, Deny, Later
from dragoman.values.contracts import Provider
from dragoman.values.errors import BudgetExceeded, InputError
from dragoman.values.events import FieldOmitted, RequestDelayed, ResponseFinished, Retrying, StreamEvent, UsageUpdated
from dragoman.values.messages import Message, Request, Response, ToolCall
from dragoman.values.record import Entry, ToolFinished, usage_of
from dragoman.values.usage import Usage, usage_told
from dragoman.values.wrapping import WrappingProvider
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.history import History

NOT_CALLED = "the budget for this is used up, and the run ends here"
"""What the model is told about a call that the budget does not cover."""


class Spender(Protocol):
    """A session, as far as its budgets go."""

    history: History
    model: Model
    purse: Purse | None


async def run_within(session: Spender, budget: Budget | Account | None, run: Callable[[], Awaitable[None]]) -> None:
    """Run with this budget, in addition to the agent's own. Raises BudgetExceeded where one of them is used up."""
    before = session.purse
    own = [account_of(budget)] if budget is not None else []
    purse = session.purse = Purse([*(before.accounts if before is not None else ()), *own], session.history)
    try:
        purse.require_prices(session.model.provider, session.model.name)
        await purse.end_in_time(run)
    finally:
        session.purse = before


def account_of_session(budget: Budget | Account, history: History, cost_usd: Callable[[Iterable[Entry]], float | None]) -> Account:
    """The account of an agent: what its session has spent before counts, as far as the record tells."""
    if isinstance(budget, Account) or not history.entries:
        return account_of(budget)
    requests = sum(usage_of(entry) is not None for entry in history.entries)
    calls = sum(isinstance(entry, ToolFinished) and entry.outcome in ("finished", "failed") for entry in history.entries)
    return Account(budget, Spending(history.usage, cost_usd(history.entries) if requests else 0.0, requests, calls))


class Purse:
    """The accounts that a run, or an agent between two runs, has to keep to."""

    def __init__(self, accounts: Sequence[Account], history: History) -> None:
        self.accounts = tuple(dict.fromkeys(accounts))  # a called agent may share one with its caller
        self._history = history
        self.exceeded: BudgetExceeded | None = None
        self._charged: set[str] = set()
        """Ids of the calls that were charged since some were given back."""
        """Set where a tool was not called, or a tool's own request not sent: the run ends when the other calls have ended."""
        self._counts_tokens = any(
            not (each.budget.usd is each.budget.tokens is each.budget.input_tokens is each.budget.output_tokens is None)
            for each in self.accounts
        )

    def charge(self, model: Model) -> Model:
        """The model; what is asked of it is charged to the accounts."""
        return Model(Charged(model.provider, self), model.name)

    def require_prices(self, provider: Provider, model: str) -> None:
        """Raises InputError where dollars are limited, and nobody knows what the model costs."""
        if any(account.budget.usd is not None for account in self.accounts) and price_of(provider, model, Usage()) is None:
            raise InputError(say("loop.budget_without_price", model=f"{provider.name}/{model}"))

    async def end_in_time(self, run: Callable[[], Awaitable[None]]) -> None:
        for account in self.accounts:
            account.begin()
        limited = [(left_s, account) for account in self.accounts if (left_s := account.left_s) is not None]
        if not limited:
            return await run()
        left_s, first = min(limited, key=lambda each: each[0])
        deadline = asyncio.timeout(left_s)
        try:
            async with deadline:
                await run()
        except TimeoutError:
            if deadline.expired():
                raise first.out_of_time() from None
            raise

    # --- requests

    def open(self, provider: Provider, request: Request, model: str) -> LeastUse:
        """Enter a request in every account, or in none: BudgetExceeded is raised where one of them has not enough left."""
        self.require_prices(provider, model)
        least = self._estimate(provider, request, model)
        opened: list[Account] = []
        try:
            for account in self.accounts:
                account.open(least)
                opened.append(account)
        except BudgetExceeded as error:
            for account in opened:
                account.withdraw(least)
            self.exceeded = error
            raise
        return least

    def close(self, least: LeastUse, usage: Usage, usd: float | None, untold: Untold = NOTHING_UNTOLD) -> None:
        for account in self.accounts:
            account.close(least, usage, usd, untold)

    def estimate_untold(self, provider: Provider, request: Request, model: str, usage: Usage, answer: Message) -> Untold:
        """What a service did not tell of an exchange that had something in it: its count of 0 must not make the budget endless."""
        missing_input = 0 if usage.input_tokens or not self._counts_tokens else estimate_tokens(request, provider.profile(model))
        missing_output = 0 if usage.output_tokens or not self._counts_tokens else estimate_tokens(answer, provider.profile(model))
        if not missing_input and not missing_output:
            return NOTHING_UNTOLD
        usd = price_of(provider, model, Usage(fresh_tokens=missing_input, output_tokens=missing_output))
        return Untold(missing_input, missing_output, usd or 0.0)

    def _estimate(self, provider: Provider, request: Request, model: str) -> LeastUse:
        if not self._counts_tokens:
            return LeastUse()
        profile = provider.profile(model)
        tokens = self._least_tokens(request, estimate_tokens(request), profile.token_scale)
        # All of it may be read from the cache. Where that has no price of its own, it costs as much as any input.
        return LeastUse(tokens, price_of(provider, model, Usage(cache_read_tokens=tokens)) or 0.0)

    def _least_tokens(self, request: Request, raw: int, scale: float) -> int:
        """No tokenizer makes less of it; where the service has counted the conversation before, its count is nearer."""
        view = self._history.view
        meter, least = view.meter, max(int(raw * MIN_SCALE), 1)
        if not meter.reported or request.model != view.model or raw < meter.raw:
            return least
        error = max([LEAST_ERROR, *map(abs, meter.errors[-20:])])
        return max(least, int(meter.tokens(raw, scale) * (1 - min(error, 1))))

    # --- tool calls

    def watch(self, decide: Decide) -> Decide:
        """`decide` for a scheduler: a call that the budget does not cover is refused, and nobody is asked about it."""

        def decide_within(call: ToolCall) -> Allow | Deny | Awaitable[Allow | Deny | Later]:
            try:
                self._take_call()
            except BudgetExceeded as error:
                self.exceeded = error
                return Deny(NOT_CALLED)
            self._charged.add(call.id)
            return decide(call)

        return decide_within

    def give_calls_back(self, call_ids: Collection[str]) -> None:
        """Calls that were put off: they are charged when they are decided."""
        for _ in self._charged.intersection(call_ids):
            for account in self.accounts:
                account.give_call_back()
        self._charged.clear()

    def _take_call(self) -> None:
        if self.exceeded is not None:
            raise self.exceeded
        taken: list[Account] = []
        try:
            for account in self.accounts:
                account.take_call()
                taken.append(account)
        except BudgetExceeded:
            for account in taken:
                account.give_call_back()
            raise

    def require_rest(self) -> None:
        """After calls have ended: raises BudgetExceeded where one of them was not made, or could not ask what it had to."""
        if self.exceeded is not None:
            raise self.exceeded


class Charged(WrappingProvider):
    """A provider whose requests are charged to the accounts of a purse, each attempt for itself."""

    def __init__(self, provider: Provider, purse: Purse) -> None:
        super().__init__(provider)
        self._purse = purse

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        attempt = _Attempt(self._purse, self.provider, request, request.model)
        try:
            async with aclosing(self.provider.stream(request)) as events:
                async for event in events:
                    if isinstance(event, ResponseFinished):
                        attempt.finish(usage_told(event.response.usage), event.response.message)
                    elif isinstance(event, Retrying):
                        attempt.end(may_have_cost=event.may_have_cost)
                        attempt = self._next_attempt(request, event, attempt)
                    else:
                        attempt.take(event)
                    yield event
        except Exception as error:
            attempt.end(may_have_cost=getattr(error, "may_have_cost", False))
            raise
        finally:
            attempt.end()

    async def generate(self, request: Request) -> Response:
        attempt = _Attempt(self._purse, self.provider, request, request.model)
        try:
            response = await self.provider.generate(request)
            attempt.finish(usage_told(response.usage), response.message)
            return response
        except Exception as error:
            attempt.end(may_have_cost=getattr(error, "may_have_cost", False))
            raise
        finally:
            attempt.end()

    def _next_attempt(self, request: Request, event: Retrying, last: _Attempt) -> _Attempt:
        try:
            return _Attempt(self._purse, self.provider, request, event.model or last.model, event.wait_s)
        except BudgetExceeded as error:
            error.may_have_cost = event.may_have_cost  # of the attempt that failed
            raise


class _Attempt:
    """One request under way, sent at once or after a wait. It is closed once, with the usage that was reported by then."""

    def __init__(self, purse: Purse, provider: Provider, request: Request, model: str, wait_s: float = 0.0) -> None:
        self.model = model
        self._usage = Usage()
        self._has_begun = False
        self._sent_s = time.monotonic() + wait_s
        self._purse = purse
        self._provider = provider
        self._request = request
        self._least = purse.open(provider, request, model)
        self._is_open = True

    def take(self, event: StreamEvent) -> None:
        if isinstance(event, RequestDelayed):
            self._sent_s = time.monotonic() + event.wait_s
        elif isinstance(event, UsageUpdated):
            self._usage = event.usage
        self._has_begun = self._has_begun or not isinstance(event, FieldOmitted | RequestDelayed)

    def end(self, *, may_have_cost: bool = True) -> None:
        """It ended before the service had reported everything; one that was refused, or not sent yet, used nothing."""
        was_sent = self._has_begun or (may_have_cost and time.monotonic() >= self._sent_s)
        self.finish(msgspec.structs.replace(self._usage, incomplete=1) if was_sent else Usage())

    def finish(self, usage: Usage, answer: Message | None = None) -> None:
        """`answer` is what came, where it came whole."""
        if self._is_open:
            self._is_open = False
            untold = NOTHING_UNTOLD
            if answer is not None:
                untold = self._purse.estimate_untold(self._provider, self._request, self.model, usage, answer)
            self._purse.close(self._least, usage, price_of(self._provider, self.model, usage), untold)


def price_of(provider: Provider, model: str, usage: Usage) -> float | None:
    """What it costs; nothing for a model on this machine, and None where its prices are not known."""
    prices = provider.profile(model).prices
    if prices is not None:
        return prices.cost_usd(usage)
    deployment = provider.deployment
    return 0.0 if deployment is not None and (deployment.local or deployment.in_process) else None
