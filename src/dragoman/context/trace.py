"""A record as the calls that were made: what was sent when, and the size of each piece. The input of a replay.

Sizes are anchored to what the service reported. The pieces new in a request share its growth in proportion to their raw estimates, so that
every call is as large as it was reported. Growth beyond what they can account for (something was sent that the record does not show)
becomes a separate piece before them. If a request shrank and the record does not say why, the oldest results are assumed to have shrunk:
that is what other programs clear. What the first call holds beyond its pieces is the static part: system, tools, and anything else sent
ahead. A record without any reported counts is taken by its estimates alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dragoman.context.shown import Item, ShownResult, can_be_replaced
from dragoman.context.superseded import NONE_SHOWN, FilesShown, files_shown
from dragoman.context.tokens import MAX_SCALE, RESULT_TOKENS, part_tokens, text_tokens
from dragoman.context.view import View
from dragoman.values.parts import text_of
from dragoman.values.record import AnswerRejected, CommandOutput, Compressed, Configured, Entry, ModelChanged, Rewound, Said
from dragoman.values.usage import Usage

SHORTEST_LIFE_MS = 300_000
"""No service's cache expires sooner: an earlier miss has another cause."""
_MUCH = 0.1


class TracedResult(msgspec.Struct, frozen=True):
    """A tool's result, in the form that `prune_outdated` takes."""

    id: str
    tool: str = ""
    timestamp_ms: int | None = None
    content: str = ""
    is_error: bool = False
    remains: float = 0
    """Tokens that replace it once it is pruned: as many as its own if it cannot be pruned."""
    command: CommandOutput | None = None
    """As in ToolFinished."""
    files: FilesShown = NONE_SHOWN
    """What it shows of files, and which its call wrote."""


class TracedPiece(msgspec.Struct, frozen=True):
    """A message, or one result in it."""

    tokens: float
    result: TracedResult | None = None


class TracedCall(msgspec.Struct, frozen=True):
    """One request: the static part, the first `shared` pieces of the request before it, and what was added."""

    timestamp_ms: int
    added: tuple[TracedPiece, ...] = ()
    shared: int = 0
    static: float = 0
    at_prompt: bool = False
    """A person's prompt started it."""
    broken: bool = False
    """Model, system or tools changed: nothing of the request before can be read from the cache."""
    usage: Usage | None = None


def trace_calls(entries: Iterable[Entry], *, prior: float = 1.0, by_clock: bool = False) -> tuple[TracedCall, ...]:
    """The calls in a record: its answers with usage, or every answer if none has any. Summaries are not included.

    `prior`: tokens per raw token, if nothing was reported. If the service reported that much less was read from the cache than the request
    before had held, though it was sent shortly before, the prefix is assumed to have changed there, whatever the reason; with `by_clock`
    such reports are ignored. Where results were pruned in between, a partial read says only that: never pruning would have read it all.
    """
    entries = list(entries)
    view = View()
    for entry in entries:
        view.feed(entry)
    usages = [entry.usage for entry in entries if isinstance(entry, Said) and entry.usage is not None]
    reader = _Reader(view.meter.scale(prior), heeds_reads=not by_clock and any(usage.cache_read_tokens for usage in usages))
    return tuple(reader.read(entries, anchored=any(map(_reported_tokens, entries))))


def _is_answer(entry: Entry) -> bool:
    return isinstance(entry, Said) and entry.message.role == "assistant"


def _comes_first(entry: Entry) -> bool:
    """The environment stands before everything, also where it was told late."""
    return isinstance(entry, Said) and entry.about == "environment"


def _reported_tokens(entry: Entry) -> int:
    return entry.usage.input_tokens if isinstance(entry, Said) and entry.usage is not None and _is_answer(entry) else 0


def _cache_read_tokens(usage: Usage | None) -> int:
    return usage.cache_read_tokens if usage is not None else 0


_Key = tuple[int, str | int]
"""Identifies a piece: the entry it came with, and the result's call id, or which message."""


class _Reader:
    """One pass over a record."""

    def __init__(self, scale: float, *, heeds_reads: bool) -> None:
        self._scale = scale
        self._heeds_reads = heeds_reads
        self._view = View()
        self._static = 0.0
        self._raw_static = 0
        self._pieces: dict[_Key, TracedPiece] = {}
        """Every piece that was ever sent."""
        self._order: list[_Key] = []
        """Those of the last request."""
        self._sent = 0.0
        """Their total size, as sent."""
        self._items = 0
        """How many items of the view they belong to."""
        self._pruned = frozenset[str]()
        self._outcomes: dict[str, ShownResult] = {}

    def read(self, entries: Sequence[Entry], *, anchored: bool) -> Iterator[TracedCall]:
        asked_ms, at_prompt, appended = 0, False, True
        sent_to, last, pruned = None, None, frozenset[str]()
        for entry in entries:
            view, reported = self._view, _reported_tokens(entry)
            if isinstance(entry, Said) and _is_answer(entry) and (reported or not anchored):
                time = min(asked_ms, entry.timestamp_ms) or entry.timestamp_ms
                destination = (view.model, view.deployment, view.system, view.tools)
                shared = self._grow(reported, first=last is None, appended=appended)
                broken = last is not None and destination != sent_to
                is_told = pruned != view.pruned and _cache_read_tokens(entry.usage) > 0  # of results that went or came back: no miss
                if last is not None and not is_told and self._is_miss(last, time, entry.usage):
                    shared, broken = self._read_up_to(entry.usage, shared), broken or not _cache_read_tokens(entry.usage)
                added = tuple(self._pieces[key] for key in self._order[shared:])
                last = TracedCall(time, added, shared, self._static, at_prompt, broken, entry.usage)
                yield last
                at_prompt, sent_to, appended, pruned = False, destination, True, frozenset(view.pruned)
            at_prompt = at_prompt or (isinstance(entry, Said) and not _is_answer(entry))
            appended = appended and not isinstance(entry, Compressed | Rewound | AnswerRejected) and not _comes_first(entry)
            asked_ms = entry.timestamp_ms
            shown = view.shown
            view.feed(entry)
            if isinstance(entry, Configured | ModelChanged):
                appended = appended and view.shown is shown  # a model with another window may see more, or less

    def _is_miss(self, last: TracedCall, now_ms: int, usage: Usage | None) -> bool:
        """Whether much of the last request was not read from the cache, though it was recent enough."""
        if not self._heeds_reads or usage is None or last.usage is None or now_ms - last.timestamp_ms > SHORTEST_LIFE_MS:
            return False
        return usage.cache_read_tokens < (1 - _MUCH) * last.usage.input_tokens

    def _read_up_to(self, usage: Usage | None, shared: int) -> int:
        """How many pieces were read from the cache, according to the report."""
        left = _cache_read_tokens(usage) - self._static
        for position, key in enumerate(self._order[:shared]):
            left -= self._size(key)
            if left < 0:
                return position
        return shared

    def _grow(self, reported: int, *, first: bool, appended: bool) -> int:
        """Update the pieces from the view. Returns how many stayed as they were sent before."""
        self._note_static()
        shared, behind, fresh = self._difference(appended=appended)
        kept = [*self._order[:shared], *(key for key in behind if key not in fresh)]
        is_told = self._view.pruned != self._pruned
        if not appended or is_told:
            self._pruned = frozenset(self._view.pruned)
            self._sent = sum(map(self._size, kept))
        self._order[shared:] = behind
        raw, factor = sum(self._sent_raw(key, size) for key, size in fresh.items()), self._scale
        growth = reported - self._static - self._sent if reported else factor * raw
        if first and growth > factor * raw:
            self._static += growth - factor * raw
        elif growth < 0:
            changed_at = self._shrink(kept, factor * raw - growth)
            shared = shared if is_told else min(shared, changed_at)  # else our estimate of what went was a little off
        elif raw > 0 and growth / raw <= MAX_SCALE:
            factor = growth / raw
        elif growth > 0:
            self._pieces[unseen := (-1, len(self._pieces))] = TracedPiece(growth - factor * raw)
            self._order.insert(next((at for at, key in enumerate(self._order) if key in fresh), len(self._order)), unseen)
            self._sent += self._size(unseen)
        for key, size in fresh.items():
            outcome = self._outcome(key)
            self._pieces[key] = TracedPiece(size * factor, _result(outcome, factor * self._remains(outcome, size)) if outcome else None)
            self._sent += self._size(key)
        self._items = len(self._view.items)
        return shared

    def _shrink(self, keys: Sequence[_Key], excess: float) -> int:
        """Remove this much from the oldest results, then from the oldest pieces. Returns from where on something changed."""
        first = len(keys)
        for only_results in (True, False):
            for position, key in enumerate(keys):
                piece = self._pieces[key]
                least = 0.0 if piece.result is None else min(piece.result.remains, piece.tokens)
                taken = min(self._size(key) - least, excess)
                if taken <= 0 or (only_results and piece.result is None):
                    continue
                self._pieces[key] = TracedPiece(piece.tokens - taken, piece.result)
                self._sent -= taken
                excess -= taken
                first = min(first, position)
        return first

    def _note_static(self) -> None:
        raw = self._view.raw_static
        self._static, self._raw_static = max(self._static + self._scale * (raw - self._raw_static), 0.0), raw

    def _difference(self, *, appended: bool) -> tuple[int, list[_Key], dict[_Key, float]]:
        """How many pieces of the last request are unchanged; the keys after them; the raw sizes of those never sent before."""
        view = self._view
        first = self._items if appended else 0
        if not appended:
            self._outcomes.clear()
        for outcome in view.outcomes[len(self._outcomes) :]:
            self._outcomes[outcome.result.call_id] = outcome
        sizes: dict[_Key, float] = {}
        for item in view.items[first:]:
            sizes.update(self._parts(item))
        shared, keys = len(self._order), list(sizes)
        if not appended:
            shared = _common(self._order, keys)
            del keys[: sum(key[0] >= 0 for key in self._order[:shared])]
        return shared, keys, {key: sizes[key] for key in keys if key not in self._pieces}

    def _parts(self, item: Item) -> Iterator[tuple[_Key, float]]:
        """Each result as it was before it was pruned, and the rest of the message."""
        results = item.message.results
        for result in results:
            outcome = self._outcomes.get(result.call_id)
            yield (item.seq, result.call_id), part_tokens(outcome.result if outcome else result)
        rest = item.raw_tokens - sum(map(part_tokens, results))
        yield (item.seq, -1 if results else id(item.message)), max(rest, 0)

    def _outcome(self, key: _Key) -> ShownResult | None:
        return self._outcomes.get(key[1]) if isinstance(key[1], str) else None

    def _remains(self, outcome: ShownResult, size: float) -> float:
        """The raw size of what replaces a result once it is pruned."""
        placeholder = self._view.placeholders.of(outcome.result)
        return RESULT_TOKENS + text_tokens(placeholder) if can_be_replaced(outcome.result, placeholder) else size

    def _sent_raw(self, key: _Key, size: float) -> float:
        outcome = self._outcome(key)
        return self._remains(outcome, size) if outcome and outcome.result.call_id in self._view.pruned else size

    def _size(self, key: _Key) -> float:
        piece = self._pieces[key]
        return piece.result.remains if piece.result is not None and piece.result.id in self._view.pruned else piece.tokens


def _common(before: Sequence[_Key], now: Sequence[_Key]) -> int:
    """How many leading pieces are the same. A piece that the record does not show belongs to the one before it."""
    shown = 0
    for position, key in enumerate(before):
        if key[0] < 0:
            continue
        if shown == len(now) or now[shown] != key:
            return position
        shown += 1
    return len(before)


def _result(outcome: ShownResult, remains: float) -> TracedResult:
    result = outcome.result
    return TracedResult(
        result.call_id,
        result.name,
        outcome.timestamp_ms,
        text_of(result.content),
        result.is_error,
        remains,
        outcome.command,
        files_shown(outcome.call, result, outcome.saw, outcome.wrote),
    )
