"""One simulated run through a session's calls: what is in the context at each, what was pruned, what was read and what written."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from copy import copy
from itertools import accumulate
from typing import NamedTuple

from dragoman.context.economics import Books, Pending, Rates, premium
from dragoman.context.prune import Kind, kind_of
from dragoman.context.settings import PruneRule
from dragoman.context.superseded import find_superseded
from dragoman.context.trace import TracedCall, TracedPiece


class Row(NamedTuple):
    """What is the same about a call under every policy."""

    call: TracedCall
    shared: int
    """How many pieces are unchanged from the request before ..."""
    length: int
    """... and how many there are."""
    moved: bool
    """Pieces were removed: those behind the shared ones have new positions."""
    ripe: tuple[int, ...]
    """Positions of results that may go from now on; all that may, if pieces moved."""


class Timeline:
    """Calls, and when each result may go by a rule. Once one may, it always may."""

    def __init__(self, calls: Iterable[TracedCall], rule: PruneRule) -> None:
        self.rows: list[Row] = []
        self.pieces: list[TracedPiece] = []
        """Of the latest call read."""
        self._rule = rule
        self._kinds: dict[str, Kind] = {}
        self._ripe: set[str] = set()
        self._waiting: list[tuple[float, int]] = []
        for call in calls:
            self._read(call)

    def _read(self, call: TracedCall) -> None:
        before, shared = len(self.pieces), min(call.shared, len(self.pieces))
        moved = shared < before
        self.pieces[shared:] = call.added
        if moved:
            self._waiting = []
        for position in range(0 if moved else before, len(self.pieces)):
            self._add_waiting(position)
        ripe = self._take_ripe(call.timestamp_ms)
        if moved:
            ripe = tuple(position for position in range(len(self.pieces)) if self._id(position) in self._ripe)
        self.rows.append(Row(call, shared, len(self.pieces), moved, ripe))

    def _id(self, position: int) -> str | None:
        result = self.pieces[position].result
        return None if result is None else result.id

    def _add_waiting(self, position: int) -> None:
        result = self.pieces[position].result
        if result is None or result.timestamp_ms is None:
            return
        if result.id not in self._kinds:
            self._kinds[result.id] = kind_of(result.tool, result.content, result.is_error, self._rule, result.command)
        if not self._kinds[result.id].error:
            insort(self._waiting, (result.timestamp_ms, position))

    def _superseded(self) -> frozenset[str]:
        """Ids of the results that are no longer true."""
        if not self._rule.superseded:
            return frozenset()
        results = [piece.result for piece in self.pieces if piece.result is not None]
        return frozenset(results[position].id for position in find_superseded([result.files for result in results]))

    def _take_ripe(self, now_ms: int) -> tuple[int, ...]:
        """The waiting results that are now ripe. The newest ones, which the rule keeps, never are."""
        beyond = len(self._waiting) - max(self._rule.keep, 0)
        if beyond <= 0:
            return ()
        untrue = self._superseded()
        found: list[int] = []
        stay: list[tuple[float, int]] = []
        for at, position in self._waiting[:beyond]:
            id = self._id(position) or ""
            if id in self._ripe:
                continue
            if id in untrue or (self._kinds[id].may_go and now_ms - at > self._rule.age_ms):
                self._ripe.add(id)
                found.append(position)
            elif now_ms - at <= self._rule.age_ms or self._rule.superseded:
                stay.append((at, position))
        self._waiting[:beyond] = stay
        return tuple(sorted(found))


class ReplayCut(NamedTuple):
    """Results that could be pruned with the next request."""

    positions: Sequence[int]
    removed: float
    """Tokens less in the request ..."""
    removed_cached: float
    """... and how many of these would have been read from the cache."""
    surviving: float
    """Tokens that would have been read, and are rewritten instead."""


NOTHING = ReplayCut((), 0.0, 0.0, 0.0)


class ReplayRun:
    """Call after call: `arrive` at one, see what could go, `send` it."""

    def __init__(self, timeline: Timeline, rates: Rates, *, remains: float = 0) -> None:
        self.rates = rates
        self.pieces: list[TracedPiece] = []
        self.sizes: list[float] = []
        """Of each piece, as it is sent."""
        self.row = Row(TracedCall(0), 0, 0, False, ())
        self.number = -1
        self.as_is = 0.0
        """What the call costs if nothing is pruned now ..."""
        self.as_was = 0.0
        """... and if nothing ever had been."""
        self.cost = 0.0
        self.unpruned = 0.0
        self.premiums = 0.0
        self.saved = 0.0
        """The cost is always that of never pruning, plus the premiums, minus what was saved."""
        self.moments: list[int] = []
        self.pruned = 0
        self.sent: list[tuple[float, float]] = []
        """For each call: tokens read from the cache, and the others."""
        self.sent_unpruned: list[tuple[float, float]] = []
        self._rows = timeline.rows
        self._remains = remains
        self._full, self._left = [0.0], [0.0]
        """Tokens before each position: without pruning, and as sent."""
        self._gone: set[str] = set()
        self._cached, self._static_read, self._steady = 0, 0.0, False
        self._warm_calls = 0
        self._pending: dict[int, int] = {}
        """Positions of what may go, and how many warm calls there had been when each was first read needlessly."""
        self._pending_tokens = 0.0
        self._first_pending = 0

    def fork(self) -> ReplayRun:
        """A copy, to try another way."""
        other = copy(self)
        other.pieces, other.sizes = self.pieces.copy(), self.sizes.copy()
        other.sent, other.sent_unpruned, other.moments = self.sent.copy(), self.sent_unpruned.copy(), self.moments.copy()
        other._full, other._left = self._full.copy(), self._left.copy()
        other._gone, other._pending = self._gone.copy(), self._pending.copy()
        return other

    def arrive(self, number: int) -> None:
        before, row, rates = self.row.call, self._rows[number], self.rates
        warm = self.number >= 0 and not row.call.broken and row.call.timestamp_ms - before.timestamp_ms <= rates.ttl_ms
        self._steady = warm and not row.moved
        self._cached = row.shared if self._steady or (warm and not rates.falls_back) else 0
        self._static_read = min(row.call.static, before.static) if warm else 0.0
        self.row, self.number = row, number
        self._take_over(row)
        self._note_pending(row)
        self.as_is, self.as_was = self._charge(*self._usage(self._left)), self._charge(*self._usage(self._full))

    def cut_all(self) -> ReplayCut:
        """Everything that is pending."""
        if not self._pending:
            return NOTHING
        if not self._steady:
            return self.cut(tuple(self._pending))
        cached = self._pending_tokens - sum(self.net_tokens(position) for position in self.row.ripe if position >= self._cached)
        return ReplayCut(tuple(self._pending), self._pending_tokens, cached, self._surviving(self._first_pending, cached))

    def cut(self, positions: Sequence[int]) -> ReplayCut:
        """Just these positions."""
        if not positions:
            return NOTHING
        cached = sum(self.net_tokens(position) for position in positions if position < self._cached)
        return ReplayCut(positions, sum(map(self.net_tokens, positions)), cached, self._surviving(min(positions), cached))

    @property
    def pending_share(self) -> float:
        """How much of the request is outdated and still there."""
        total = self.row.call.static + self._left[-1]
        return self._pending_tokens / total if total > 0 else 0.0

    def cached_pending(self) -> list[Pending]:
        """The pending results that would be read from the cache, as `economics.pays` takes them."""
        carried: dict[int, float] = {}
        for position, since in self._pending.items():
            if position >= self._cached:
                continue
            carried[since] = carried.get(since, 0.0) + self.net_tokens(position)
        return [Pending(tokens, self._warm_calls - since) for since, tokens in carried.items()]

    def books(self) -> Books:
        return Books(self.unpruned + self.as_was, self.premiums, self.saved + self.as_was - self.as_is)

    def extra_cost(self, cut: ReplayCut) -> float:
        """How much more the call costs with this cut than without."""
        rates = self.rates
        return premium(rates, cut.removed_cached, cut.surviving) - rates.write * (cut.removed - cut.removed_cached)

    def send(self, cut: ReplayCut = NOTHING) -> None:
        read, others = self._usage(self._left)
        self.sent.append((read - cut.surviving - cut.removed_cached, others + cut.surviving - cut.removed + cut.removed_cached))
        self.sent_unpruned.append(self._usage(self._full))
        extra_cost = self.extra_cost(cut)
        self.cost += self.as_is + extra_cost
        self.unpruned += self.as_was
        self.premiums += extra_cost
        self.saved += self.as_was - self.as_is
        if cut.positions:
            self._take_out(cut.positions)
        self._warm_calls += self._steady

    # --- the context

    def _take_over(self, row: Row) -> None:
        for totals in (self._full, self._left):
            del totals[row.shared + 1 :]
        del self.pieces[row.shared :], self.sizes[row.shared :]
        for piece in row.call.added:
            size = self._pruned_size(piece) if piece.result is not None and piece.result.id in self._gone else piece.tokens
            self.pieces.append(piece)
            self.sizes.append(size)
            self._full.append(self._full[-1] + piece.tokens)
            self._left.append(self._left[-1] + size)

    def _note_pending(self, row: Row) -> None:
        known: dict[int, int] = {}
        if row.moved:
            known, self._pending_tokens = self._pending.copy(), 0.0
            self._pending.clear()
        for position in row.ripe:
            net_tokens = self.net_tokens(position)
            if net_tokens <= 0:
                continue
            if not self._pending or position < self._first_pending:
                self._first_pending = position
            self._pending_tokens += net_tokens
            since = known.get(position) if position < row.shared else None
            first_read = self._warm_calls + (self._steady and position >= self._cached)
            self._pending[position] = first_read if since is None else since

    def _take_out(self, positions: Sequence[int]) -> None:
        self.moments.append(self.number)
        self.pruned += len(positions)
        for position in positions:
            result = self.pieces[position].result
            assert result is not None
            self._gone.add(result.id)
            self.sizes[position] -= self.net_tokens(position)
            self._pending.pop(position, None)
        first = min(positions)
        self._left[first:] = accumulate(self.sizes[first:], initial=self._left[first])
        self._pending_tokens = sum(map(self.net_tokens, self._pending))
        self._first_pending = min(self._pending, default=0)

    def _pruned_size(self, piece: TracedPiece) -> float:
        return piece.tokens if piece.result is None else min(piece.tokens, max(piece.result.remains, self._remains))

    def net_tokens(self, position: int) -> float:
        """How many tokens removing it saves."""
        return self.sizes[position] - self._pruned_size(self.pieces[position])

    # --- the cache

    def _usage(self, totals: Sequence[float]) -> tuple[float, float]:
        read = self._static_read + totals[self._cached]
        return read, self.row.call.static + totals[-1] - read

    def _charge(self, read: float, others: float) -> float:
        return self.rates.read * read + self.rates.write * others

    def _surviving(self, first: int, removed_cached: float) -> float:
        if first >= self._cached:
            return 0.0
        return self._left[self._cached] - (0.0 if self.rates.falls_back else self._left[first]) - removed_cached
