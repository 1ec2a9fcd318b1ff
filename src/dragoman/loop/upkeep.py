"""Before each request: prune outdated results, compress what is too long, and refuse to send what still does not fit.

Everything it decides is a function of the record, and everything it does is an entry of it: a resumed session does the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from dragoman.base.words import say
from dragoman.context.decide import Decider, Decision
from dragoman.context.settings import ContextSettings
from dragoman.loop.request_size import RequestSize
from dragoman.loop.session import Session
from dragoman.values.errors import ContextOverflow
from dragoman.values.events import ContextCompressed, ContextOverflowed, ContextPruned, TurnEvent
from dragoman.values.record import Compressed, NotCompressed, Pruned, Said, ToolFinished
from dragoman.values.usage import Prices

if TYPE_CHECKING:
    from dragoman.context.plan import Plan
    from dragoman.loop.compression import Compression, Summariser
    from dragoman.tools.seen import SeenFiles

Emit = Callable[[TurnEvent], None]
PricesOf = Callable[[str, str], Prices | None]
"""Prices by deployment and model."""

SHRINK_TO = 0.8
"""Where results go for want of a summary, the request falls to this share of the threshold: else the next round would be too long again."""


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
        self._seen = seen
        self._has_fallback = has_fallback
        self._decider = Decider(settings)
        self._summariser: Summariser | None = None

    @property
    def requests(self) -> int:
        """How often a model was asked for a summary, attempts that failed included."""
        return self._summariser.requests if self._summariser is not None else 0

    # --- when

    async def before_request(self, emit: Emit) -> None:
        """Returns when the next request may be sent. Raises ContextOverflow where it cannot be made to fit."""
        decision = self.decide()
        self._apply(decision, emit)
        if decision.compress:
            await self._compress("", emit)
        if await self.size.measure() <= self.size.window:
            return
        if self.settings.compress.enabled:
            await self._make_room(emit)
            if await self.size.measure() <= self.size.window:
                return
        if self.size.profile.known:  # else the window is a guess, and the service may well take it
            raise self._overflow(emit)

    async def after_overflow(self, error: ContextOverflow, emit: Emit) -> bool:
        """The service found the request too long, whatever we had estimated. Whether it is shorter now and worth another try."""
        if not self.settings.compress.enabled:
            return False
        before = self._history.view.raw_tokens
        await self._make_room(emit, at_most=min(self.size.tokens, self.size.window))
        return self._history.view.raw_tokens < before

    async def compress(self, focus: str = "", *, force: bool = True, emit: Emit | None = None) -> Compression:
        """Have the older messages summed up now. Without `force`: only where the request is longer than it should be."""
        if not force and not self.decide().compress:
            return self._do_nothing("loop.not_long_enough")
        return await self._compress(focus, emit or _ignore, may_switch=False)

    def prune(self, emit: Emit | None = None) -> int:
        """Prune everything that is outdated by the rule now, whatever the schedule. Returns how many results that were."""
        at_once = msgspec.structs.replace(self.settings.prune, schedule="request")
        decision = self.decide(Decider(msgspec.structs.replace(self.settings, prune=at_once)))
        self._apply(decision, emit or _ignore)
        return len(decision.prune)

    def decide(self, decider: Decider | None = None) -> Decision:
        """What is due. It changes nothing."""
        history = self._history
        return (decider or self._decider).decide(
            history.view, history.now_ms(), history.cache, self.size.profile, cache_kind=self._session.model.cache_kind
        )

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
        )

    # --- making it shorter

    async def _make_room(self, emit: Emit, at_most: int = 0) -> None:
        """All that can be done, once: a summary unless one was just tried, then whatever results can go."""
        done = None if self._just_tried() else await self._compress("", emit, at_most)
        if done is None or done.status != "compressed" or (not at_most and self.size.tokens > self.size.window):
            self._shrink(emit, at_most or self.size.window)

    def _just_tried(self) -> bool:
        """Whether nothing was said or done since the last summary: another would come out the same."""
        for entry in reversed(self._history.entries):
            if isinstance(entry, Compressed | NotCompressed):
                return True
            if isinstance(entry, Said | ToolFinished):
                return False
        return False

    async def _compress(self, focus: str, emit: Emit, at_most: int = 0, *, may_switch: bool = True) -> Compression:
        """One summary and what comes of it. Where it is of no use and the request too long, results go instead."""
        from dragoman.context.compress import find_cut, raw_tokens_without, threshold_tokens
        from dragoman.loop.compression import Summariser

        history, settings, size = self._history, self.settings.compress, self.size
        original, window = size.tokens, at_most or size.window
        threshold = threshold_tokens(settings, window)
        cut = find_cut(history.view, settings.keep, at_most=threshold / size.scale)
        if cut is None:
            done = self._do_nothing("loop.nothing_to_sum_up")
        elif size.tokens_of(raw_tokens_without(history.view, cut)) > original * (1 - settings.min_gain):
            done = self._do_nothing("loop.too_little_to_sum_up")
        else:
            self._summariser = self._summariser or Summariser(self._session, size, settings)
            before = self._files()
            done = await self._summariser.sum_up(cut, focus, emit, window, may_switch=may_switch and self._has_fallback)
            self._forget_missing(before)
        if done.status != "noop":
            emit(ContextCompressed(done.status, done.original_tokens, done.new_tokens))
            _log("%s: about %d tokens, before %d%s", done.status, done.new_tokens, original, f" ({done.reason})" if done.reason else "")
        if done.status != "compressed" and original > threshold:
            self._shrink(emit, window)
        return done

    def _do_nothing(self, key: str) -> Compression:
        from dragoman.loop.compression import Compression

        return Compression("noop", self.size.tokens, self.size.tokens, str(say(key)))

    # --- what goes

    def _apply(self, decision: Decision, emit: Emit) -> None:
        if decision.prune:
            self._prune(decision.prune, decision.saved_tokens, decision.reason, decision.premium_tokens, emit)

    def _shrink(self, emit: Emit, window: int) -> None:
        """Without a model: the oldest results go until the request is well below the threshold."""
        from dragoman.context.compress import shrink, threshold_tokens

        over = self.size.tokens - threshold_tokens(self.settings.compress, window) * SHRINK_TO
        found = shrink(self._history.view, over / self.size.scale) if over > 0 else None
        if found is not None and found.call_ids:
            self._prune(found.call_ids, round(found.raw_tokens * self.size.scale), "too long, and no summary to be had", 0, emit)

    def _prune(self, call_ids: tuple[str, ...], saved_tokens: int, reason: str, premium_tokens: int, emit: Emit) -> None:
        before = self._files()
        self._history.prune(call_ids, saved_tokens, reason, premium_tokens)
        self._forget_missing(before)
        emit(ContextPruned(call_ids, saved_tokens))
        pruned = [entry for entry in self._history.entries if isinstance(entry, Pruned)]
        count, total = sum(len(entry.call_ids) for entry in pruned), sum(entry.saved_tokens for entry in pruned)
        words = "pruned %d results, about %d tokens (%s); so far %d results, about %d tokens"
        _log(words, len(call_ids), saved_tokens, reason, count, total)

    def _files(self) -> set[str]:
        if self._seen is None or not self._seen.paths:
            return set()
        from dragoman.loop.files_in_context import files_in_context

        return files_in_context(self._history.view, self._history.entries)

    def _forget_missing(self, before: set[str]) -> None:
        for path in before - self._files() if before else ():
            assert self._seen is not None
            self._seen.forget(path)

    def _overflow(self, emit: Emit) -> ContextOverflow:
        tokens, model, window = self.size.tokens, self._history.view.model, self.size.window
        emit(ContextOverflowed(tokens, window))
        return ContextOverflow(
            say("loop.too_long", tokens=tokens, model=model, window=window),
            provider=self._session.model.provider.name,
        )


def _ignore(event: TurnEvent) -> None:
    pass


def _log(words: str, *values: object) -> None:
    logging.getLogger("dragoman.context").info(words, *values)
