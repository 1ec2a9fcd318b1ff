"""Makes a request shorter: by a summary or by leaving out results; refuses it if it cannot fit the model's window.

What the window forces is recorded with that window, so that it is lost to no model that has room for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from dragoman.context.decide import Decision, has_grown, threshold_tokens
from dragoman.context.settings import CompressSettings
from dragoman.loop.request_size import RequestSize
from dragoman.loop.session import Session
from dragoman.values.calls import Deny
from dragoman.values.errors import ContextOverflow
from dragoman.values.events import CompressionStarted, ContextCompressed, ContextOverflowed, ContextPruned, TurnEvent
from dragoman.values.record import Compressed, ModelChanged, NotCompressed, Pruned, Said, ToolFinished
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.compression import Compression, Summariser
    from dragoman.tools.seen import SeenFiles
    from dragoman.values.hooks import HookCaller

Emit = Callable[[TurnEvent], None]

SHRINK_TO = 0.8
"""Where results go for want of a summary, the request falls to this share of the threshold: else the next round would be too long again."""


PARTIAL_WINDOW = 16_000
"""A smaller model is not asked to sum up what it can read in part only: on a machine of the user's own it takes minutes for that, and what
it writes would stand for a conversation that nobody has read."""


class Room:
    """The room one session's next request needs, and the ways to save some. It writes entries and tells what it did."""

    def __init__(
        self, session: Session, size: RequestSize, settings: CompressSettings, seen: SeenFiles | None = None, *, has_fallback: bool = False
    ) -> None:
        self._session = session
        self._history = session.history
        self._size = size
        self._settings = settings
        self._seen = seen
        self._has_fallback = has_fallback
        self._summariser: Summariser | None = None
        self.hooks: HookCaller | None = None

    @property
    def requests(self) -> int:
        """How often a model was asked for a summary, attempts that failed included."""
        return self._summariser.requests if self._summariser is not None else 0

    # --- whether it can fit at all

    async def require_some(self, emit: Emit, *, is_new: bool = False) -> None:
        """Raises ContextOverflow where no way leads into the window. No model is asked for anything, and nothing is recorded.

        `is_new`: the conversation was held with a larger window so far.
        """
        from dragoman.context.compress import shortest_request

        if not self._size.profile.known or not self._settings.enabled:
            return  # the window is a guess; or nothing may be left out, and the request is measured as it is
        if not self._size.may_exceed(self._size.tokens):
            return
        request, raw_tokens = shortest_request(self._history.view)
        tokens = await self._size.measure(request, raw_tokens)
        if tokens > self._size.window and not self._summary_may_do(is_new):
            raise self.overflow(emit, tokens)

    def _summary_may_do(self, is_new: bool) -> bool:
        """Whether a summary could be had, and the shortest there is would be enough."""
        from dragoman.context.compress import find_cut, raw_tokens_with_least_summary
        from dragoman.context.summarise import can_be_read

        view, size, window = self._history.view, self._size, self._size.window
        cut = find_cut(view, self._settings.keep, at_most=threshold_tokens(self._settings, window) / size.scale)
        if cut is None or size.tokens_of(raw_tokens_with_least_summary(view)) > window:
            return False
        if not is_new or (window >= PARTIAL_WINDOW and size.profile.small is None):
            return True
        return can_be_read(view.items[cut.start : cut.end], size.profile, window=window, scale=size.scale)

    def overflow(self, emit: Emit, least_tokens: int = 0) -> ContextOverflow:
        """`least_tokens`: the shortest request there is, where nothing was left out yet."""
        tokens, model, window = self._size.tokens, self._history.view.model, self._size.window
        emit(ContextOverflowed(tokens, window))
        words = say("loop.too_long", tokens=tokens, model=model, window=window)
        if least_tokens:
            words = say("loop.too_long_at_least", tokens=tokens, model=model, window=window, least=least_tokens, session=self._session.id)
        return ContextOverflow(words, provider=self._session.model.provider.name)

    # --- making some

    async def follow(self, decision: Decision, emit: Emit, limit: int) -> None:
        """Have older messages summed up if that is due; remove results if it would be and no model is asked any more."""
        if decision.compress:
            await self.sum_up("", emit, limit=limit)
        elif decision.shrink:
            self._shrink(emit, self._size.window, self._settings.min_gain)

    async def make_after(self, error: ContextOverflow, emit: Emit) -> None:
        """The service has found the request too long. Where the window is a guess, the limit that it tells is kept."""
        from dragoman.loop.told_window import keep_limit

        keep_limit(self._history, self._size, error)
        await self.make(emit, at_most=min(self._size.tokens, self._size.window))

    async def make(self, emit: Emit, at_most: int = 0) -> None:
        """All that can be done, once: a summary unless one was tried just before, then whatever results can go, then an extract."""
        window, threshold = at_most or self._size.window, threshold_tokens(self._settings, at_most or self._size.window)
        done = None if self._must_wait() else await self.sum_up("", emit, at_most, limit=self._history.view.window)
        if done is None or done.status != "compressed" or (not at_most and self._size.tokens > self._size.window):
            self._shrink(emit, window)
            if self._size.tokens > threshold:
                self._extract(emit, window)

    def _must_wait(self) -> bool:
        """Whether no model is asked for another summary yet, or no more at all."""
        cache = self._history.cache
        if not cache.useless_summaries:
            return self._just_tried()
        return not has_grown(self._settings, self._size.tokens, cache)

    def _just_tried(self) -> bool:
        """Whether nothing was said or done since the last summary: another would come out the same."""
        for entry in reversed(self._history.entries):
            if isinstance(entry, Compressed | NotCompressed):
                return True
            if isinstance(entry, Said | ToolFinished | ModelChanged):
                return False
        return False

    async def sum_up(
        self, focus: str, emit: Emit, at_most: int = 0, *, may_switch: bool = True, limit: int = 0, force: bool = False
    ) -> Compression:
        """One summary and what comes of it. If it does not help and the request is too long, results are dropped instead.

        `limit`: the window that forces it, and for which alone it holds. `force`: however short the conversation is, and however little
        the summary saves.
        """
        from dragoman.context.compress import find_cut, find_forced_cut, raw_tokens_without
        from dragoman.loop.compression import Summariser

        history, settings, size = self._history, self._settings, self._size
        original, window = size.tokens, at_most or size.window
        threshold = threshold_tokens(settings, window)
        find = find_forced_cut if force else find_cut
        cut = find(history.view, settings.keep, at_most=threshold / size.scale)
        if cut is None:
            done = self.do_nothing(self._why_nothing())
        elif not force and size.tokens_of(raw_tokens_without(history.view, cut)) > original * (1 - settings.min_gain):
            done = self.do_nothing("loop.too_little_to_sum_up")
        elif isinstance(said := await self._ask_hooks(focus, is_asked_for=not may_switch), str):
            self._summariser = self._summariser or Summariser(self._session, size, settings)
            before = self._files()
            emit(CompressionStarted(original, size.window))
            done = await self._summariser.sum_up(
                cut, said, emit, window, may_switch=may_switch and self._has_fallback, limit=limit, force=force
            )
            self._forget_missing(before)
            if self.hooks is not None:
                await self.hooks.after_compress(self._session.id, "auto" if may_switch else "manual", done.status)
        else:
            done = msgspec.structs.replace(self.do_nothing("loop.nothing_to_sum_up"), reason=said.reason)
        if done.status != "noop":
            held_for = limit if done.status == "compressed" else 0
            emit(ContextCompressed(done.status, done.original_tokens, done.new_tokens, held_for, done.reason))
            _log("%s: about %d tokens, before %d%s", done.status, done.new_tokens, original, f" ({done.reason})" if done.reason else "")
        if done.status != "compressed":
            pruned = self._shrink(emit, window) if original > threshold else 0
            done = msgspec.structs.replace(done, new_tokens=size.tokens, pruned=pruned)
        return done

    def _why_nothing(self) -> str:
        from dragoman.context.compress import SUMMARY_BEGINS

        items = self._history.view.items
        is_summary = bool(items) and items[-1].message.text.startswith(SUMMARY_BEGINS)
        return "loop.all_summed_up" if is_summary else "loop.nothing_to_sum_up"

    async def _ask_hooks(self, focus: str, *, is_asked_for: bool) -> str | Deny:
        """What hooks want the summary to focus on; or why they refuse it."""
        if self.hooks is None:
            return focus
        return await self.hooks.before_compress(self._session.id, "manual" if is_asked_for else "auto", focus)

    def do_nothing(self, key: str) -> Compression:
        from dragoman.loop.compression import Compression

        return Compression("noop", self._size.tokens, self._size.tokens, str(say(key)))

    def _shrink(self, emit: Emit, window: int, min_gain: float = 0.0) -> int:
        """Without a model: the oldest results go until the request is well below the threshold. Returns how many. `min_gain`: none go
        where the request would not be shorter by this share."""
        from dragoman.context.compress import shrink

        over = self._size.tokens - threshold_tokens(self._settings, window) * SHRINK_TO
        found = shrink(self._history.view, over / self._size.scale) if over > 0 else None
        if found is None or not found.call_ids:
            return 0
        saved, limit = round(found.raw_tokens * self._size.scale), self._history.view.window
        if saved < min_gain * self._size.tokens:
            return 0
        self.prune(found.call_ids, saved, "too long, and no summary to be had", 0, emit, limit=limit)
        return len(found.call_ids)

    def _extract(self, emit: Emit, window: int) -> None:
        """Put an extract in the place of older messages: no summary is to be had, and no result that could go would be enough."""
        from dragoman.loop.extracting import record_extract

        before = self._files()
        done = record_extract(self._history, self._size, self._settings, window)
        if done is not None:
            self._forget_missing(before)
            emit(ContextCompressed("extracted", done.original_tokens, done.new_tokens, done.window))
            _log("extracted: about %d tokens, before %d", done.new_tokens, done.original_tokens)

    def prune(self, call_ids: tuple[str, ...], saved_tokens: int, reason: str, premium_tokens: int, emit: Emit, *, limit: int = 0) -> None:
        before = self._files()
        self._history.prune(call_ids, saved_tokens, reason, premium_tokens, limit)
        self._forget_missing(before)
        self._forget_parts(before, call_ids)
        emit(ContextPruned(call_ids, saved_tokens, limit))
        pruned = [entry for entry in self._history.entries if isinstance(entry, Pruned)]
        count, total = sum(len(entry.call_ids) for entry in pruned), sum(entry.saved_tokens for entry in pruned)
        results, tokens = len(call_ids), saved_tokens
        _log("%s", say("loop.log_pruned", results=results, tokens=tokens, reason=reason, all=count, all_tokens=total))

    # --- files that drop out

    def _files(self) -> set[str]:
        if self._seen is None or not self._seen.paths:
            return set()
        from dragoman.loop.files_in_context import files_in_context

        return files_in_context(self._history.view, self._history.entries)

    def _forget_missing(self, before: set[str]) -> None:
        for path in before - self._files() if before else ():
            assert self._seen is not None
            self._seen.forget(path)

    def _forget_parts(self, before: set[str], call_ids: Iterable[str]) -> None:
        """What is left of these files in the context is no longer the whole."""
        if not before or self._seen is None:
            return
        from dragoman.loop.files_in_context import files_in_part

        for path in files_in_part(self._history.view, call_ids):
            self._seen.note_part(path)


def _log(words: str, *values: object) -> None:
    logging.getLogger("dragoman.context").info(words, *values)
