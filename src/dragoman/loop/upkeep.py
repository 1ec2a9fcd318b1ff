"""Before each request: what is outdated goes, what is too long is summed up, and what still does not fit is not sent.

Everything it decides is a function of the record, and everything it does is an entry of it: a resumed session does the same.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.context.decide import Decider, Decision
from dragoman.context.settings import ContextSettings
from dragoman.values.errors import ContextOverflow, DragomanError, StreamBroken
from dragoman.values.events import ContextCompressed, ContextOverflowed, ContextPruned, ResponseFinished, Retrying, TurnEvent, TurnRetried
from dragoman.values.messages import FinishReason, Message, Request, Response
from dragoman.values.profile import Profile
from dragoman.values.record import Compressed, NotCompressed, Pruned, Said, ToolFinished

if TYPE_CHECKING:
    from dragoman.context.compress import Cut
    from dragoman.context.plan import Plan
    from dragoman.loop.agent import Agent

Emit = Callable[[TurnEvent], None]
Status = Literal["noop", "compressed", "inflated", "empty", "truncated", "failed"]

SHRINK_TO = 0.8
"""Where results go for want of a summary, the request falls to this share of the threshold: else the next round would be too long again."""
UNANCHORED = 0.6
"""While a model has not counted a request itself, an estimate above this share of its window is checked."""
LEAST_ERROR = 0.02
"""An estimate is never taken to be better than this."""
COUNTING_S = 15.0
_PROMPT = os.path.join(os.path.dirname(__file__), "prompts", "summary.md")


class Compression(msgspec.Struct, frozen=True):
    """What became of an attempt to make the conversation shorter."""

    status: Status
    original_tokens: int = 0
    new_tokens: int = 0
    reason: str = ""


class Upkeep:
    """One per agent. It writes entries and tells what it did; it never sends a turn."""

    def __init__(self, agent: Agent, settings: ContextSettings) -> None:
        self._agent = agent
        self._history = agent.history
        self.settings = settings
        self._decider = Decider(settings)
        self._counted: tuple[int, int, int] | None = None
        """The last exact count: the entries there were, the raw estimate, the count."""
        self.requests = 0
        """How often a model was asked for a summary, attempts that failed included."""

    # --- when

    async def before_request(self, emit: Emit) -> None:
        """Returns when the next request may be sent. Raises ContextOverflow where it cannot be made to fit."""
        decision = self.decide()
        self._apply(decision, emit)
        if decision.compress:
            await self._compress("", emit)
        if await self._measured() <= self._window:
            return
        if self.settings.compress.enabled:
            await self._make_room(emit)
            if await self._measured() <= self._window:
                return
        if self._profile.known:  # else the window is a guess, and the service may well take it
            raise self._overflow(emit)

    async def after_overflow(self, error: ContextOverflow, emit: Emit) -> bool:
        """The service found the request too long, whatever we thought of it. Whether it is shorter now and worth another try."""
        if not self.settings.compress.enabled:
            return False
        before = self._history.view.raw_tokens
        await self._make_room(emit, at_most=min(self.tokens, self._window))
        return self._history.view.raw_tokens < before

    async def compress(self, focus: str = "", *, force: bool = True, emit: Emit | None = None) -> Compression:
        """Have the older messages summed up now. Without `force`: only where the request is longer than it should be."""
        if not force and not self.decide().compress:
            return self._noop("it is not long enough")
        return await self._compress(focus, emit or _nobody)

    def prune(self, emit: Emit | None = None) -> int:
        """Everything that is outdated by the rule goes now, whatever the schedule. Returns how many results that were."""
        at_once = msgspec.structs.replace(self.settings.prune, schedule="request")
        decision = self.decide(Decider(msgspec.structs.replace(self.settings, prune=at_once)))
        self._apply(decision, emit or _nobody)
        return len(decision.prune)

    def decide(self, decider: Decider | None = None) -> Decision:
        """What is due. It changes nothing."""
        history = self._history
        return (decider or self._decider).decide(
            history.view, history.now_ms(), history.cache, self._profile, cache_kind=cache_kind_of(self._agent.provider)
        )

    def plan(self) -> Plan:
        """What the next request holds and what is left out of it."""
        from dragoman.context.plan import plan_of

        history, provider, profile = self._history, self._agent.provider, self._profile
        return plan_of(
            history.view,
            history.entries,
            history.cache,
            prior=profile.token_scale,
            window=profile.context_window,
            decision=self.decide(),
            now_ms=history.now_ms(),
            falls_back=cache_kind_of(provider) == "breakpoints",
            prices_of=lambda deployment, model: provider.profile(model).prices,
        )

    # --- how long it is

    @property
    def tokens(self) -> int:
        return self._tokens_of(self._history.view.raw_tokens)

    @property
    def _profile(self) -> Profile:
        return self._agent.provider.profile(self._history.view.model or self._agent.model)

    @property
    def _window(self) -> int:
        return self._profile.context_window

    @property
    def _scale(self) -> float:
        return self._history.view.meter.scale(self._profile.token_scale)

    def _tokens_of(self, raw_tokens: int) -> int:
        """From the last count, be it one the service was asked for or one it gave with an answer."""
        if self._counted is not None and not self._answered_since(self._counted[0]):
            return max(round(self._counted[2] + self._scale * (raw_tokens - self._counted[1])), 0)
        return self._history.view.meter.tokens(raw_tokens, self._profile.token_scale)

    def _answered_since(self, entries: int) -> bool:
        """Whether something came that a count of before knows nothing of: an answer with a count of its own, or another model."""
        return any(not isinstance(entry, Pruned | Compressed | NotCompressed | ToolFinished) for entry in self._history.entries[entries:])

    async def _measured(self) -> int:
        """The size of the next request; counted by the service where the estimate comes near the window."""
        tokens, view = self.tokens, self._history.view
        if not view.meter.reported:
            near = tokens > self._window * UNANCHORED
        else:
            near = tokens * (1 + max([LEAST_ERROR, *map(abs, view.meter.errors[-20:])])) > self._window
        if not near or (self._counted is not None and self._counted[:2] == (len(self._history.entries), view.raw_tokens)):
            return tokens
        try:
            async with asyncio.timeout(COUNTING_S):
                counted = await self._agent.provider.count_tokens(view.request)
        except (DragomanError, TimeoutError):
            return tokens  # the estimate is all there is
        self._counted = len(self._history.entries), view.raw_tokens, counted
        return counted

    # --- making it shorter

    async def _make_room(self, emit: Emit, at_most: int = 0) -> None:
        """All that can be done, once: a summary unless one was just tried, then whatever results can go."""
        done = None if self._just_tried() else await self._compress("", emit, at_most)
        if done is None or done.status != "compressed" or (not at_most and self.tokens > self._window):
            self._shrink(emit, at_most or self._window)

    def _just_tried(self) -> bool:
        """Whether nothing was said or done since the last summary: another would come out the same."""
        for entry in reversed(self._history.entries):
            if isinstance(entry, Compressed | NotCompressed):
                return True
            if isinstance(entry, Said | ToolFinished):
                return False
        return False

    async def _compress(self, focus: str, emit: Emit, at_most: int = 0) -> Compression:
        """One summary and what comes of it. Where it is of no use and the request too long, results go instead."""
        from dragoman.context.compress import find_cut, raw_without, threshold_tokens

        history, settings = self._history, self.settings.compress
        original, window = self.tokens, at_most or self._window
        threshold = threshold_tokens(settings, window)
        cut = find_cut(history.view, settings.keep, at_most=threshold / self._scale)
        if cut is None:
            done = self._noop("there is nothing to sum up yet")
        elif self._tokens_of(raw_without(history.view, cut)) > original * (1 - settings.min_gain):
            done = self._noop("what could be summed up is too little to matter")
        else:
            done = await self._summed_up(cut, focus, emit, window)
        if done.status != "noop":
            emit(ContextCompressed(done.status, done.original_tokens, done.new_tokens))
            _log("%s: about %d tokens, before %d%s", done.status, done.new_tokens, original, f" ({done.reason})" if done.reason else "")
        if done.status != "compressed" and original > threshold:
            self._shrink(emit, window)
        return done

    @property
    def _summaries(self) -> list[Message]:
        return [entry.summary for entry in self._history.entries if isinstance(entry, Compressed)]

    def _noop(self, reason: str) -> Compression:
        return Compression("noop", self.tokens, self.tokens, reason)

    async def _summed_up(self, cut: Cut, focus: str, emit: Emit, window: int) -> Compression:
        from dragoman.context.compress import MAX_PROMPT_TOKENS, PROMPT_SHARE, is_gain, raw_with, spoken_through, summary_message
        from dragoman.context.summarise import read_snapshot, summary_request

        view, original = self._history.view, self.tokens
        model, known = view.model or self._agent.model, {id(summary) for summary in self._summaries}
        request = summary_request(
            model,
            _prompt(),
            [item.message for item in view.items[cut.start : cut.end]],
            self._profile,
            window=window,
            scale=self._scale,
            focus=focus,
            is_summary=lambda message: id(message) in known,
        )
        try:
            response = await self._asked(request, emit)
        except DragomanError as error:
            return self._refused("failed", str(error), model, None)
        status, reason = _fault_of(response)
        if status is not None:
            return self._refused(status, reason, model, response)
        snapshot = read_snapshot(response.message.text)
        if not snapshot:
            return self._refused("empty", "the model wrote no snapshot", model, response)
        room = min(MAX_PROMPT_TOKENS, window * PROMPT_SHARE) / self._scale
        summary = summary_message(snapshot, spoken_through(self._history.entries, cut.through_seq), room)
        new = self._tokens_of(raw_with(view, cut, summary))
        if not is_gain(original, new, self.settings.compress):
            return self._refused("inflated", f"it would be {new:,} tokens, after {original:,}", model, response, new)
        before = self._files()
        self._history.compress(cut.through_seq, summary, original, new, after=cut.after_seq, model=model, usage=response.usage)
        self._forget(before)
        return Compression("compressed", original, new)

    def _refused(
        self, status: Literal["inflated", "empty", "truncated", "failed"], reason: str, model: str, response: Response | None, new: int = 0
    ) -> Compression:
        tokens = self.tokens
        self._history.not_compressed(status, tokens, reason, model=model, usage=response.usage if response is not None else None)
        return Compression(status, tokens, new or tokens, reason)

    async def _asked(self, request: Request, emit: Emit) -> Response:
        self.requests += 1
        response: Response | None = None
        async with aclosing(self._agent.provider.stream(request)) as events:
            async for event in events:  # to its end: so the connection can serve the turn that follows
                if isinstance(event, Retrying):
                    self.requests += 1
                    emit(TurnRetried(event.attempt, event.wait_s, event.reason))
                elif isinstance(event, ResponseFinished):
                    response = event.response
        if response is None:
            raise StreamBroken("the stream ended without an answer", provider=self._agent.provider.name)
        return response

    # --- what goes

    def _apply(self, decision: Decision, emit: Emit) -> None:
        if decision.prune:
            self._prune(decision.prune, decision.saved_tokens, decision.reason, decision.premium_tokens, emit)

    def _shrink(self, emit: Emit, window: int) -> None:
        """Without a model: the oldest results go until the request is well below the threshold."""
        from dragoman.context.compress import shrink, threshold_tokens

        over = self.tokens - threshold_tokens(self.settings.compress, window) * SHRINK_TO
        found = shrink(self._history.view, over / self._scale) if over > 0 else None
        if found is not None and found.call_ids:
            self._prune(found.call_ids, round(found.raw_tokens * self._scale), "too long, and no summary to be had", 0, emit)

    def _prune(self, call_ids: tuple[str, ...], saved_tokens: int, reason: str, premium_tokens: int, emit: Emit) -> None:
        before = self._files()
        self._history.prune(call_ids, saved_tokens, reason, premium_tokens)
        self._forget(before)
        emit(ContextPruned(call_ids, saved_tokens))
        pruned = [entry for entry in self._history.entries if isinstance(entry, Pruned)]
        count, total = sum(len(entry.call_ids) for entry in pruned), sum(entry.saved_tokens for entry in pruned)
        words = "pruned %d results, about %d tokens (%s); so far %d results, about %d tokens"
        _log(words, len(call_ids), saved_tokens, reason, count, total)

    def _files(self) -> set[str]:
        if not self._agent.seen.paths:
            return set()
        from dragoman.loop.files_in_view import files_in_view

        return files_in_view(self._history.view, self._history.entries, self._agent.workspace)

    def _forget(self, before: set[str]) -> None:
        for path in before - self._files() if before else ():
            self._agent.seen.forget(path)

    def _overflow(self, emit: Emit) -> ContextOverflow:
        tokens, model = self.tokens, self._history.view.model
        emit(ContextOverflowed(tokens, self._window))
        return ContextOverflow(
            f"the conversation has about {tokens:,} tokens, {model} takes {self._window:,}, and nothing more can be left out: "
            "start a new session, choose a model with a larger window (-m), or go back to an earlier point and ask for less at once",
            provider=self._agent.provider.name,
        )


def cache_kind_of(provider: object) -> str:
    """How the prompt cache of the service behind a provider is addressed, whatever is wrapped around it."""
    while provider is not None:
        if (deployment := getattr(provider, "deployment", None)) is not None:
            return str(deployment.cache)
        provider = getattr(provider, "provider", None) or getattr(provider, "_provider", None)
    return "none"


def _fault_of(response: Response) -> tuple[Literal["truncated", "failed"] | None, str]:
    match response.finish:
        case FinishReason.LENGTH:
            return "truncated", "the summary was cut at the output limit"
        case FinishReason.SAFETY | FinishReason.RECITATION | FinishReason.REFUSAL:
            return "failed", f"the summary was refused ({response.raw_finish or response.finish.value})"
        case _:
            return None, ""


def _prompt() -> str:
    with open(_PROMPT, encoding="utf-8") as file:
        return file.read().strip()


def _nobody(event: TurnEvent) -> None:
    pass


def _log(words: str, *values: object) -> None:
    import logging

    logging.getLogger("dragoman.context").info(words, *values)
