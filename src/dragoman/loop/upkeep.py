"""Before each request: prune outdated results, compress what is too long, and refuse to send what still does not fit.

Everything it decides is a function of the record, and everything it does is an entry of it: a resumed session does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from dragoman.context.cache import PRESSURE
from dragoman.context.decide import Decider, Decision
from dragoman.context.settings import ContextSettings
from dragoman.loop.request_size import RequestSize
from dragoman.loop.room import Emit, Room
from dragoman.loop.session import Session
from dragoman.loop.waiting_notice import ClockNotice, WaitingNotice
from dragoman.values.errors import ContextOverflow
from dragoman.values.events import TurnEvent
from dragoman.values.usage import Prices

if TYPE_CHECKING:
    from dragoman.context.cache import Cache
    from dragoman.context.plan import Plan
    from dragoman.context.view import View
    from dragoman.loop.compression import Compression
    from dragoman.tools.seen import SeenFiles

PricesOf = Callable[[str, str], Prices | None]
"""Prices by deployment and model."""


class Upkeep:
    """Keeps one session's context within bounds. It writes entries and tells what it did; it never sends a turn.

    `seen`, where there is one, forgets files that dropped out of the context. With a fallback, a summary that the service refuses raises
    the refusal, so that the run goes on with another model.
    """

    def __init__(self, session: Session, settings: ContextSettings, seen: SeenFiles | None = None, *, has_fallback: bool = False) -> None:
        self._session = session
        self._history = session.history
        self.settings = settings
        self.size = RequestSize(session)
        self.room = Room(session, self.size, settings.compress, seen, has_fallback=has_fallback)
        self._decider = Decider(settings)
        self._clock = ClockNotice(session.history)
        self._waiting = WaitingNotice(session.history, lambda view, now_ms, cache: self._decide_at(view, now_ms, cache, Decider(settings)))

    @property
    def requests(self) -> int:
        """How often a model was asked for a summary, attempts that failed included."""
        return self.room.requests

    # --- when

    async def before_request(self, emit: Emit) -> None:
        """Returns when the next request may be sent. Raises ContextOverflow where it cannot be made to fit."""
        await self.room.require_some(emit)
        self._clock.tell(emit)
        decision = self.decide()
        self._apply(decision, emit)
        self._waiting.tell(decision.waiting, emit)
        await self.room.follow(decision, emit, self._limit())
        if await self.size.measure() <= self.size.window:
            return
        if self.settings.compress.enabled:
            await self.room.make(emit)
            if await self.size.measure() <= self.size.window:
                return
        if self.size.profile.known:  # else the window is a guess, and the service may well take it
            raise self.room.overflow(emit)

    async def after_overflow(self, error: ContextOverflow, emit: Emit) -> bool:
        """The service found the request too long, whatever we had estimated. Whether it is shorter now and worth another try."""
        if not self.settings.compress.enabled:
            return False
        before = self._history.view.raw_tokens
        await self.room.make_after(error, emit)
        return self._history.view.raw_tokens < before

    async def compress(self, focus: str = "", *, force: bool = True, emit: Emit | None = None) -> Compression:
        """Have the older messages summed up now, however short the conversation is. Without `force`: only where the request is too long."""
        if not force and not self.decide().compress:
            return self.room.do_nothing("loop.not_long_enough")
        return await self.room.sum_up(focus, emit or _ignore, may_switch=False, force=force)

    def prune(self, emit: Emit | None = None) -> int:
        """Prune everything that is outdated by the rule now, whatever the schedule. Returns how many results that were."""
        at_once = msgspec.structs.replace(self.settings.prune, schedule="request")
        self._apply(decision := self.decide(Decider(msgspec.structs.replace(self.settings, prune=at_once))), emit or _ignore)
        return len(decision.prune)

    def decide(self, decider: Decider | None = None) -> Decision:
        """What is due. It changes nothing."""
        history = self._history
        return self._decide_at(history.view, history.now_ms(), history.cache, decider or self._decider)

    def _decide_at(self, view: View, now_ms: int, cache: Cache, decider: Decider) -> Decision:
        return decider.decide(view, now_ms, cache, self.size.profile, cache_kind=self._session.model.cache_kind)

    def plan(self, prices_of: PricesOf | None = None) -> Plan:
        """What the next request holds and what is left out of it."""
        from dragoman.context.plan import plan_of

        history, model, profile = self._history, self._session.model, self.size.profile
        return plan_of(
            history.view,
            history.entries,
            history.cache,
            prior=profile.token_scale,
            window=profile.prompt_window,
            decision=self.decide(),
            now_ms=history.now_ms(),
            falls_back=model.cache_kind == "breakpoints",
            prices_of=prices_of or (lambda deployment, name: model.provider.profile(name).prices),
            asks=(model.provider.name, model.name),
        )

    def _apply(self, decision: Decision, emit: Emit) -> None:
        if decision.prune:
            # What goes because the window fills up goes for models with such a window; what is outdated goes for all.
            limit = self._history.view.window if decision.reason == PRESSURE else 0
            self.room.prune(decision.prune, decision.saved_tokens, decision.reason, decision.premium_tokens, emit, limit=limit)

    def _limit(self) -> int:
        """The window that a summary at the threshold holds for; 0 where the threshold is the user's own and not the window's."""
        own, window = self.settings.compress.threshold_tokens, self._history.view.window
        return 0 if 0 < own < window else window


def _ignore(event: TurnEvent) -> None: ...
