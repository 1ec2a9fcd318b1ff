"""Before each request: decide what to prune, and whether to compress. Nothing is done here; the decision becomes entries.

The rule says what may go (`prune`), the schedule when. A decision is a function of the record, the settings and the time: the view and the
cache are folds over the record, so a resumed session decides as the live one would have.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple, assert_never

import msgspec

from dragoman.context.cache import NO_TOKENS, PRESSURE, BreakReason, Cache
from dragoman.context.economics import HOUR_MS, Pending, Rates, pays, premium, rates_of, relieves
from dragoman.context.prune import Kind, find_outdated, find_replaced, kind_of
from dragoman.context.settings import CompressSettings, ContextSettings, PruneRule, PruneSettings
from dragoman.context.shown import ShownResult
from dragoman.context.tokens import part_tokens, text_tokens
from dragoman.context.view import View
from dragoman.values.messages import Text, ToolResult
from dragoman.values.notes import is_note
from dragoman.values.parts import text_of
from dragoman.values.profile import Profile

if TYPE_CHECKING:
    from dragoman.context.superseded import FilesShown


MOST_USELESS = 3
"""After so many summaries in a row that were of no use, no more are requested."""


class Waiting(msgspec.Struct, frozen=True):
    """Results that are outdated and stay for now, because letting them go would cost more than it saves."""

    results: int
    tokens: int
    """How much shorter each request would be without them."""
    share: float
    """How much of the next request that is."""
    premium_tokens: int
    """What letting them go now would cost more with the next request, in tokens of fresh input."""
    saves_tokens: float
    """What they cost with each request as long as the cache is warm, in tokens of fresh input."""
    share_limit: float
    """They go together when they make up more than this share, or as soon after as that pays in time; 1: that does not matter."""
    pressure_tokens: int
    """They go when the request is longer than this; 0: that does not matter."""
    until_ms: int
    """They go with the first request after this time: the cache is cold then. 0: not before a prompt starts a run."""


PruneReason = BreakReason | Literal["request", "turn", "cold", "pays", "share", "pressure"]
"""Why results are pruned now; empty: they are not. request, turn: the schedule says so; cold, or why the cache is lost anyway; pays; share:
they make up too much of the request; pressure: the window fills up."""


class Decision(msgspec.Struct, frozen=True):
    """What should happen before the next request."""

    prune: tuple[str, ...] = ()
    """Ids of the calls whose results are pruned, in the order of the view."""
    saved_tokens: int = 0
    reason: PruneReason = ""
    premium_tokens: int = 0
    """The expected extra cost of writing the rest to the cache again, in tokens of fresh input."""
    tokens: int = 0
    """The approximate size of the request afterwards."""
    window: int = 0
    compress: bool = False
    """The request is over the threshold, and a model may be asked for a summary."""
    shrink: bool = False
    """The request is over the threshold, and no model is asked for a summary any more."""
    waiting: Waiting | None = None
    """What is outdated and stays; None: nothing."""


class Decider:
    """Pure in its arguments. It caches only the facts about each result, so that none is examined twice."""

    def __init__(self, settings: ContextSettings) -> None:
        self.settings = settings
        self._facts: dict[str, _Fact] = {}

    def decide(self, view: View, now_ms: int, cache: Cache, profile: Profile, *, cache_kind: str = "none") -> Decision:
        tokens, window = view.tokens(profile.token_scale), profile.prompt_window
        choice = _NOTHING
        if self.settings.prune.schedule != "off" and (pending := self._pending(view, now_ms)):
            moment = _Moment(view, now_ms, cache, profile, _rates(cache, profile, cache_kind), tokens)
            choice = self._choose(_without_shared_ids(pending, view), moment)
        saved = max(round(choice.saved), 0)
        tokens = max(tokens - saved, 0)
        return Decision(
            prune=tuple(result.call_id for result in choice.results),
            saved_tokens=saved,
            reason=choice.reason,
            premium_tokens=max(round(choice.premium), 0),
            tokens=tokens,
            window=window,
            compress=_may_compress(self.settings.compress, tokens, window, cache),
            shrink=_is_over(self.settings.compress, tokens, window) and cache.useless_summaries >= MOST_USELESS,
            waiting=choice.waiting,
        )

    def _choose(self, pending: Sequence[_OutdatedResult], moment: _Moment) -> _Choice:
        """All pending results, or none."""
        if not pending:
            return _NOTHING
        warm = _is_warm(moment)
        cut = _cut(pending, moment) if warm else _FREE
        saved = moment.scale * sum(each.raw_tokens for each in pending)
        share = saved / moment.tokens if moment.tokens else 0.0
        reason = self._reason(moment, cut, share, warm=warm)
        cost = premium(moment.rates, cut.removed, cut.surviving) if moment.rates is not None else 0.0
        if not reason:
            return _NOTHING._replace(waiting=self._waiting(len(pending), saved, share, cost, moment))
        return _Choice([each.result for each in pending], saved, reason, cost)

    def _reason(self, moment: _Moment, cut: _Cut, share: float, *, warm: bool) -> PruneReason:
        """Why now; empty: not now."""
        settings, rates = self.settings.prune, moment.rates
        match settings.schedule:
            case "off":
                return ""
            case "request":
                return "request"
            case "turn":
                return "turn" if self._is_at_prompt(moment.view) else ""
            case "economic" | "auto":
                if rates is None:
                    return "request"
                if not warm:
                    return moment.cache.break_reason or "cold"
                if not cut.pending:
                    return "pays"
                if settings.schedule == "economic":
                    return "pays" if pays(rates, cut.pending, cut.surviving) else ""
                return _auto_reason(settings, moment, cut, share, rates)
            case _:
                assert_never(settings.schedule)

    def _waiting(self, results: int, saved: float, share: float, cost: float, moment: _Moment) -> Waiting:
        settings, rates, last = self.settings.prune, moment.rates, moment.cache.last
        is_auto, by_cache = settings.schedule == "auto", settings.schedule != "turn" and rates is not None and last is not None
        return Waiting(
            results,
            round(saved),
            share,
            max(round(cost), 0),
            saved * rates.read if rates is not None else saved,
            settings.share if is_auto else 1.0,
            round(settings.pressure * moment.profile.prompt_window) if is_auto else 0,
            last.timestamp_ms + moment.cache.life_ms(rates) if by_cache and last is not None else 0,
        )

    def _is_at_prompt(self, view: View) -> bool:
        """Whether the last message is a person's prompt: a run begins."""
        if not view.items:
            return False
        last = view.items[-1]
        return last.message.role == "user" and not last.message.results and not is_note(last.about)

    def _pending(self, view: View, now_ms: int) -> list[_OutdatedResult]:
        """The results that the rule allows to go and that are still in view, in the order of the view."""
        outcomes, rule = view.outcomes, self.settings.prune.rule
        facts = self._facts_of(view)
        # An entry without a time would be as old as the epoch by its number; it does not count as outdated.
        found = find_outdated([outcome.timestamp_ms or None for outcome in outcomes], [fact.kind for fact in facts], now_ms, rule)
        if rule.superseded:
            found = self._with_superseded(found, facts, view)
        pruned, placeholders = view.pruned, view.placeholders
        read_up_to = math.inf if self.settings.prune.schedule == "request" else _last_answer(view)
        pending: list[_OutdatedResult] = []
        for position, since_ms in found:
            fact, seq = facts[position], outcomes[position].seq
            placeholder = placeholders.of(fact.result)
            saved = fact.raw_tokens - text_tokens(placeholder)
            if (
                fact.length > len(placeholder)
                and saved > 0  # a few Latin letters are fewer tokens than a Chinese placeholder
                and fact.result.call_id not in pruned
                and fact.result.call_id not in view.held
                and seq < read_up_to  # except with `request`, nothing goes that the model never saw
            ):
                pending.append(_OutdatedResult(fact.result, seq, saved, since_ms))
        return pending

    def _with_superseded(self, found: list[tuple[int, float]], facts: Sequence[_Fact], view: View) -> list[tuple[int, float]]:
        """And the readings of files that are no longer true, but for the newest results."""
        from dragoman.context.superseded import find_superseded

        outcomes, since = view.outcomes, dict(found)
        hidden = [position for position, outcome in enumerate(outcomes) if outcome.result.call_id in view.pruned]
        times = [outcome.timestamp_ms or None for outcome in outcomes]
        newer = dict(find_replaced(times, [fact.kind for fact in facts], self.settings.prune.rule))
        for position, by in find_superseded([fact.files for fact in facts], hidden).items():
            if position in newer:
                since[position] = min(since.get(position, math.inf), max(newer[position], outcomes[by].timestamp_ms))
        return sorted(since.items())

    def _facts_of(self, view: View) -> list[_Fact]:
        known, facts = self._facts, list[_Fact]()
        for outcome in view.outcomes:
            result = outcome.result
            fact = known.get(result.call_id)
            if fact is None or fact.result is not result:  # an id may be reused after a rewind
                fact = known[result.call_id] = _fact(outcome, self.settings.prune.rule)
            facts.append(fact)
        if len(known) > 4 * len(facts) + 4096:
            self._facts = {fact.result.call_id: fact for fact in facts}
        return facts


def decide(view: View, settings: ContextSettings, now_ms: int, cache: Cache, profile: Profile, *, cache_kind: str = "none") -> Decision:
    """What should happen before the next request."""
    return Decider(settings).decide(view, now_ms, cache, profile, cache_kind=cache_kind)


class _Fact(NamedTuple):
    """The facts about a result that do not change."""

    result: ToolResult
    kind: Kind
    raw_tokens: float
    """Of its content."""
    length: float
    """In characters; infinite if there is more than text. A placeholder must be shorter: see `can_be_replaced`."""
    files: FilesShown | None
    """None if nobody wants to know."""


class _OutdatedResult(NamedTuple):
    """A result that may be pruned and is still in view."""

    result: ToolResult
    seq: int
    raw_tokens: float
    """How much pruning it would save."""
    since_ms: float
    """The earliest time at which it could have been pruned."""


class _Moment(NamedTuple):
    """The inputs of a decision."""

    view: View
    now_ms: int
    cache: Cache
    profile: Profile
    rates: Rates | None
    """None if the model's cache prices are not known."""
    tokens: int
    """The current size of the request."""

    @property
    def scale(self) -> float:
        return self.view.meter.scale(self.profile.token_scale)


class _Cut(NamedTuple):
    """What pruning does to the cached prefix, in tokens."""

    removed: float
    surviving: float
    """What stays behind the first pruned result, and is written again."""
    pending: Sequence[Pending]
    """Those that were sent before; the others are not in the cache, and pruning them costs nothing."""


class _Choice(NamedTuple):
    results: Sequence[ToolResult]
    saved: float
    reason: PruneReason
    premium: float
    waiting: Waiting | None = None


_FREE = _Cut(0, 0, ())
_NOTHING = _Choice((), 0, "", 0)


def _auto_reason(settings: PruneSettings, moment: _Moment, cut: _Cut, share: float, rates: Rates) -> PruneReason:
    """Out of a warm cache: when it pays within the overhead, when the share is too large, or when the window fills up."""
    books = moment.cache.books(rates, moment.tokens)
    if pays(rates, cut.pending, cut.surviving, overhead=settings.overhead, books=books):
        return "pays"
    calls = len(moment.cache.calls)
    if share > settings.share and relieves(rates, cut.removed, cut.surviving, calls=calls, overdraft=settings.overdraft, books=books):
        return "share"
    return PRESSURE if _is_pressed(settings, moment) else ""


def _last_answer(view: View) -> int:
    """The seq of the model's last answer: everything before it has been read."""
    return next((item.seq for item in reversed(view.items) if item.message.role == "assistant"), 0)


def _fact(outcome: ShownResult, rule: PruneRule) -> _Fact:
    result = outcome.result
    text = text_of(result.content)
    length = len(text) if all(isinstance(part, Text) for part in result.content) else math.inf
    kind = kind_of(result.name, text, result.is_error, rule, outcome.command)
    files = None
    if rule.superseded:
        from dragoman.context.superseded import files_shown

        files = files_shown(outcome.call, result, outcome.saw, outcome.wrote)
    return _Fact(result, kind, sum(map(part_tokens, result.content)), length, files)


def _rates(cache: Cache, profile: Profile, cache_kind: str) -> Rates | None:
    """Adjusted by what was observed: how long the service keeps a prefix, and what a change in its middle loses."""
    if profile.prices is None:
        return None
    falls_back = cache.facts.falls_back
    last = cache.last
    return rates_of(
        profile.prices,
        ttl_ms=HOUR_MS if last is not None and last.usage.cache_write_1h_tokens else 300_000,
        # A service with explicit cache breakpoints looks for prefixes there and a little before: it finds none in the middle.
        falls_back=cache_kind == "breakpoints" if falls_back is None else falls_back,
    )


def _is_warm(moment: _Moment) -> bool:
    cache, last = moment.cache, moment.cache.last
    if moment.rates is None or last is None or last.usage.input_tokens < moment.profile.cache_min_tokens:
        return False
    return cache.is_warm(moment.now_ms, moment.rates)


def _cut(pending: Sequence[_OutdatedResult], moment: _Moment) -> _Cut:
    view, rates, last, scale = moment.view, moment.rates, moment.cache.last, moment.scale
    if rates is None or last is None:
        return _FREE
    sent = [each for each in pending if each.seq < last.seq]
    if not sent:
        return _FREE
    items = view.items
    first = 0 if rates.falls_back else bisect_left(items, sent[0].seq, key=attrgetter("seq"))
    end = bisect_left(items, last.seq, lo=first, key=attrgetter("seq"))
    removed = scale * sum(each.raw_tokens for each in sent)
    surviving = scale * sum(map(attrgetter("raw_tokens"), items[first:end])) - removed
    carried = zip(sent, moment.cache.warm_calls_since([each.since_ms for each in sent]), strict=True)
    return _Cut(removed, max(surviving, 0.0), [Pending(scale * each.raw_tokens, warm_calls) for each, warm_calls in carried])


def _is_pressed(settings: PruneSettings, moment: _Moment) -> bool:
    """Whether the window fills up; if it did before, whether it is that much fuller again."""
    window, pressed = moment.profile.prompt_window, moment.cache.pressed_tokens
    if moment.tokens <= settings.pressure * window:
        return False
    return not pressed or moment.tokens >= pressed + settings.pressure_step * window


def threshold_tokens(settings: CompressSettings, window: int) -> int:
    """The request size above which compression is tried."""
    return min(settings.threshold_tokens, window) or round(window * settings.threshold)


def _is_over(settings: CompressSettings, tokens: int, window: int) -> bool:
    return settings.enabled and tokens > threshold_tokens(settings, window)


def _may_compress(settings: CompressSettings, tokens: int, window: int, cache: Cache) -> bool:
    """Over the threshold; and after a compression, successful or not, only if the request has grown since."""
    return _is_over(settings, tokens, window) and has_grown(settings, tokens, cache)


def has_grown(settings: CompressSettings, tokens: int, cache: Cache) -> bool:
    """Whether the request has grown enough since the last compression, successful or not, for a model to be asked for a summary. It never
    has after too many that were of no use."""
    if cache.tried_tokens == NO_TOKENS or cache.useless_summaries >= MOST_USELESS:
        return False
    growth = settings.retry_growth if cache.useless_summaries == 1 else 2 * settings.retry_growth
    return tokens >= cache.tried_tokens * (1 + growth)


def _without_shared_ids(pending: list[_OutdatedResult], view: View) -> list[_OutdatedResult]:
    """Results are pruned by call id. If two share an id, as in imported sessions, both go or neither."""
    going = {each.result.call_id for each in pending}
    if len(going) == len(pending) and sum(outcome.result.call_id in going for outcome in view.outcomes) == len(going):
        return pending
    going_results = {id(each.result) for each in pending}
    staying = {outcome.result.call_id for outcome in view.outcomes if id(outcome.result) not in going_results}
    return [each for each in pending if each.result.call_id not in staying]
