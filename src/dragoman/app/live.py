"""Checks a service with the user's own key: one small exchange per feature of the protocol. Has no terminal of its own.

run = LiveRun(connect("anthropic"))
run.estimate                # what it will send and cost at most; nothing is sent yet
await run.check()
run.rows                    # what worked, what did not, what the service does not have
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import msgspec

from dragoman.app.live_checks import all_checks
from dragoman.app.live_exchange import Check, LiveExchange, NotMet, Planned, Service, Skipped
from dragoman.values.contracts import Provider
from dragoman.values.errors import (
    ConnectionFailed,
    DragomanError,
    Forbidden,
    NotFound,
    QuotaExhausted,
    RateLimited,
    ServerError,
    Unauthorized,
    Unsupported,
)
from dragoman.values.usage import Usage
from dragoman.words import say

State = Literal["worked", "failed", "not_offered", "skipped", "not_tried"]
BYTES_PER_TOKEN = 2
"""Fewer than in any tokenizer, so that an estimate is never too low."""
MOST_SILENT = 2
"""After so many checks in a row without any answer, the rest is not tried."""


class LiveRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One feature, and what came of it."""

    feature: str
    state: State
    text: str = ""
    """What was seen; why it failed, in the service's own words; or why it was not tried."""
    advice: str = ""
    """What to do next, if it failed."""
    notes: tuple[str, ...] = ()
    requests: int = 0
    seconds: float = 0.0
    usage: Usage = Usage()
    cost_usd: float | None = None


class LiveEstimate(msgspec.Struct, frozen=True):
    """The most that a run can send and cost."""

    requests: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """None if the price is unknown."""
    searches: int
    """Searches of the service, which it may charge for besides."""


class LiveRun:
    """The checks of one model. `rows` grows while they run, so a cancelled run has what was seen so far."""

    def __init__(self, provider: Provider, *, exchange_s: float | None = None, recording: str = "") -> None:
        model = provider.model
        self.service = Service(provider, model, provider.profile(model), provider.deployment)
        self.exchange_s = exchange_s or self.service.exchange_s
        self.recording = recording
        """The file that a bug report should come with, if one is written."""
        self.rows: list[LiveRow] = []
        self.ended = ""
        """Why the rest was not tried, if it was not."""
        self._planned = [(check, self._plan(check)) for check in all_checks(self.service)]
        self._silent = 0

    @property
    def name(self) -> str:
        return f"{self.service.provider.name}/{self.service.model}"

    @property
    def worked(self) -> bool:
        """Whether everything that the service offers worked."""
        return not any(row.state in ("failed", "not_tried") for row in self.rows) and len(self.rows) == len(self._planned)

    @property
    def usage(self) -> Usage:
        return sum((row.usage for row in self.rows), Usage())

    @property
    def cost_usd(self) -> float | None:
        prices = self.service.profile.prices
        return prices.cost_usd(self.usage) if prices is not None else None

    @property
    def estimate(self) -> LiveEstimate:
        asked = [(check, each) for check, planned in self._planned if not isinstance(planned, LiveRow) for each in planned]
        paid = [each for check, each in asked if not check.is_free]
        usages = [Usage(fresh_tokens=self._input_tokens(each), output_tokens=each.request.settings.max_output_tokens or 0) for each in paid]
        prices = self.service.profile.prices
        return LiveEstimate(
            len(asked),
            sum(usage.input_tokens for usage in usages),
            sum(usage.output_tokens for usage in usages),
            sum(map(_written_to_cache(prices.cost_usd), usages)) if prices else None,
            sum(each.request.settings.search for each in paid),
        )

    async def check(self, on_start: Callable[[int, int, str], object] = lambda number, count, feature: None) -> None:
        """Run the checks, one after the other. `on_start` is called with the number of a check, of how many, and its feature.

        Raises the error if the key or the model is refused before anything worked: then nothing else can be learned.
        """
        for number, (check, planned) in enumerate(self._planned, 1):
            if isinstance(planned, LiveRow):
                self.rows.append(planned)
            elif self.ended:
                self.rows.append(LiveRow(check.name, "not_tried", self.ended))
            else:
                on_start(number, len(self._planned), check.name)
                self.rows.append(await self._run(check, planned))

    # --- one check

    def _plan(self, check: Check) -> list[Planned] | LiveRow:
        """What it will send, or the row that says why it sends nothing."""
        try:
            planned = check.plan(self.service)
            for each in planned if check.name != "embed" else ():
                self.service.provider.prepare(each.request)
        except Unsupported as error:
            return LiveRow(check.name, "not_offered", str(error))
        except Skipped as error:
            return LiveRow(check.name, "skipped", str(error))
        return planned

    async def _run(self, check: Check, planned: list[Planned]) -> LiveRow:
        exchange = LiveExchange(self.service, self.exchange_s, planned)
        began_s = time.monotonic()
        state: State = "failed"
        advice = ""
        try:
            text = await check.run(exchange)
            state = "worked"
        except Unsupported as error:  # said before anything was sent
            return LiveRow(check.name, "not_offered", str(error))
        except NotMet as error:
            text, advice = str(error), f"{say('live_advice_model')} {self._report_advice}"
        except DragomanError as error:
            if self._is_final(error):
                raise
            text, advice = str(error), _advice_on(error) or self._report_advice
            self._end_after(error)
        except Exception as error:  # a fault of ours in one feature must not hide the others
            text, advice = say("live_broke", reason=f"{type(error).__name__}: {error}"), self._report_advice
        else:
            self._silent = 0
        seconds = time.monotonic() - began_s
        prices = self.service.profile.prices
        cost_usd = prices.cost_usd(exchange.usage) if prices is not None else None
        return LiveRow(check.name, state, text, advice, tuple(exchange.notes), exchange.requests, seconds, exchange.usage, cost_usd)

    @property
    def _report_advice(self) -> str:
        return say("live_advice_send", path=self.recording) if self.recording else say("live_advice_report")

    def _is_final(self, error: DragomanError) -> bool:
        """Whether nothing else can work. Once something did, the same error is about one feature: a key may be restricted."""
        if any(row.state == "worked" for row in self.rows):
            return False
        return isinstance(error, Unauthorized | Forbidden | NotFound | QuotaExhausted)

    def _end_after(self, error: DragomanError) -> None:
        self._silent = self._silent + 1 if isinstance(error, ConnectionFailed) else 0
        if isinstance(error, QuotaExhausted):
            self.ended = say("live_ended_quota")
        elif self._silent >= MOST_SILENT:
            self.ended = say("live_ended_silent")

    def _input_tokens(self, planned: Planned) -> int:
        if planned.request.model != self.service.model:  # of the embedding model
            return sum(len(message.text) for message in planned.request.messages)
        return len(self.service.provider.prepare(planned.request).body) // BYTES_PER_TOKEN + planned.more_tokens


def _written_to_cache(cost_usd: Callable[[Usage], float]) -> Callable[[Usage], float]:
    """The cost of a usage if all of its input were written to the cache, where that costs more."""

    def most(usage: Usage) -> float:
        written = Usage(cache_write_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
        return max(cost_usd(usage), cost_usd(written))

    return most


def _advice_on(error: DragomanError) -> str:
    """What to do next; empty if it should be reported."""
    match error:
        case QuotaExhausted():
            return say("live_advice_quota")
        case RateLimited():
            return say("live_advice_rate")
        case ServerError():
            return say("live_advice_server")
        case ConnectionFailed():
            return say("live_advice_network")
        case Unauthorized() | Forbidden():
            return say("live_advice_key")
        case _:
            return ""
