"""What may be spent and what has been: an account that runs, agents and threads may share.

A request is entered before it is sent, with the least it can take, and again with what it took once that is known. Both happen under a
lock, so however many agents ask at once, an account is exceeded at most by what was under way when the last request was let through.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NoReturn

import msgspec

from dragoman.values.errors import BudgetExceeded
from dragoman.values.usage import Usage
from dragoman.words import say


class Budget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What may be spent; None: any amount. What surely would exceed it is not sent, and the run ends with BudgetExceeded.

    An answer under way is not cut for its tokens: a budget can be exceeded by the last answer. The time ends whatever is under way.
    """

    usd: float | None = None
    """US dollars, at the prices of the models' profiles."""
    tokens: int | None = None
    """Input and output together, as the services count them; what a service does not tell, by our own estimate."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    requests: int | None = None
    """How often a model is asked, attempts that fail included."""
    tool_calls: int | None = None
    seconds: float | None = None


class Spending(msgspec.Struct, frozen=True):
    """What has been spent so far. Where `usage.incomplete` is not 0, it is the least that can have been."""

    usage: Usage = Usage()
    usd: float | None = 0.0
    """None where the prices of a model that was used are not known."""
    requests: int = 0
    """How often a model was asked, attempts that failed included."""
    tool_calls: int = 0
    seconds: float = 0.0
    """Since the first run that was charged to it began."""


class LeastUse(msgspec.Struct, frozen=True):
    """The least that a request takes."""

    input_tokens: int = 0
    usd: float = 0.0


class Untold(msgspec.Struct, frozen=True):
    """What a service did not tell of an exchange, by our own estimate. It counts for stopping, and is never shown as spent."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Untold) -> Untold:
        return Untold(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens, self.usd + other.usd)


NOTHING_UNTOLD = Untold()


class Account:
    """A budget and what has been spent of it. One may be given to several agents, in any event loops and threads.

    shared = Account(Budget(usd=5))
    agents = [Agent(model, budget=shared) for _ in range(10)]
    """

    def __init__(self, budget: Budget, spent: Spending | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`spent` is what has been spent already; the clock starts anew."""
        spent = spent or Spending()
        self.budget = budget
        self._clock = clock
        self._began_s: float | None = None
        self._usage = spent.usage
        self._usd = spent.usd
        self._requests, self._tool_calls = spent.requests, spent.tool_calls
        self._untold = NOTHING_UNTOLD
        self._under_way: list[LeastUse] = []
        self._lock = threading.Lock()
        # What a request took may be told by the garbage collector, when it ends an abandoned stream, in a thread that holds the lock. So it
        # is put down here without the lock, and entered by whoever holds it next.
        self._told: deque[tuple[LeastUse, Usage, float | None, int, Untold]] = deque()

    def __reduce__(self) -> NoReturn:
        raise TypeError(say("loop.account_not_copied"))

    @property
    def spent(self) -> Spending:
        """What has been spent so far, without what is still under way."""
        with self._lock:
            self._enter_told()
            return Spending(self._usage, self._usd, self._requests, self._tool_calls, self._seconds())

    @property
    def left_s(self) -> float | None:
        """How many seconds are left; None where time is not limited."""
        return None if self.budget.seconds is None else self.budget.seconds - self._seconds()

    def begin(self) -> None:
        """The clock starts with the first run. Raises BudgetExceeded where the time was up before."""
        if self._began_s is None:
            self._began_s = self._clock()
        self.require_time()

    def require_time(self) -> None:
        if self.left_s is not None and self.left_s <= 0:
            raise self.out_of_time()

    def out_of_time(self) -> BudgetExceeded:
        limit = self.budget.seconds or 0
        return exceeded("seconds", limit, max(self._seconds(), limit))

    # --- requests

    def open(self, least: LeastUse) -> None:
        """A request is about to be sent. Raises BudgetExceeded, and enters nothing, where it would surely exceed the budget."""
        with self._lock:
            self._enter_told()
            self.require_time()
            self._require("requests", self._requests, 1)
            self._require_tokens(least)
            self._requests += 1
            self._under_way.append(least)

    def close(self, least: LeastUse, usage: Usage, usd: float | None, untold: Untold = NOTHING_UNTOLD) -> None:
        """What the request used, as far as the service said, and an estimate of the rest. May be called from anywhere, also by the garbage
        collector."""
        self._told.append((least, usage, usd, 0, untold))

    def withdraw(self, least: LeastUse) -> None:
        """The request was not sent after all."""
        self._told.append((least, Usage(), 0.0, -1, NOTHING_UNTOLD))

    # --- tool calls

    def take_call(self) -> None:
        """A tool is about to be called. Raises BudgetExceeded, and enters nothing, where no more may be spent."""
        with self._lock:
            self._enter_told()
            self._require("tool_calls", self._tool_calls, 1)
            self._require_tokens(LeastUse())
            self._tool_calls += 1

    def give_call_back(self) -> None:
        with self._lock:
            self._tool_calls -= 1

    # --- for the holder of the lock

    def _require_tokens(self, least: LeastUse) -> None:
        tokens, used, untold = least.input_tokens + sum(each.input_tokens for each in self._under_way), self._usage, self._untold
        self._require("input_tokens", used.input_tokens, tokens, untold.input_tokens)
        self._require("output_tokens", used.output_tokens, 1 if least.input_tokens else 0, untold.output_tokens)  # every answer has one
        self._require("tokens", used.total_tokens, tokens, untold.total_tokens)
        self._require("usd", self._usd or 0.0, least.usd + sum(each.usd for each in self._under_way), untold.usd)

    def _require(self, name: str, spent: float, more: float, estimated: float = 0) -> None:
        limit = getattr(self.budget, name)
        if limit is not None and spent + estimated + more > limit:
            raise exceeded(name, limit, spent + estimated, more, estimated)

    def _enter_told(self) -> None:
        while self._told:
            least, usage, usd, requests, untold = self._told.popleft()
            self._under_way.remove(least)
            self._usage += usage
            self._usd = None if self._usd is None or usd is None else self._usd + usd
            self._requests += requests
            self._untold += untold

    def _seconds(self) -> float:
        return 0.0 if self._began_s is None else self._clock() - self._began_s


def exceeded(name: str, limit: float, spent: float, more: float = 0.0, estimated: float = 0.0) -> BudgetExceeded:
    """`spent` includes what was `estimated`."""
    key = "loop.budget_exceeded" if spent >= limit else "loop.budget_too_small"
    shown = say("loop.spent_estimated", spent=_shown(spent), estimated=_shown(estimated)) if estimated else _shown(spent)
    error = BudgetExceeded(say(key, name=name, limit=_shown(limit), spent=shown, more=_shown(more)), name, limit, spent)
    error.estimated = estimated
    return error


def _shown(amount: float) -> str:
    return f"{amount:,}" if isinstance(amount, int) else f"{amount:,.6f}".rstrip("0").rstrip(".")


def account_of(budget: Budget | Account) -> Account:
    return budget if isinstance(budget, Account) else Account(budget)
