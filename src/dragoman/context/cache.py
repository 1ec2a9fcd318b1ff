"""What the service's prompt cache holds of the conversation: a fold over the record, beside the view.

No service says so directly. It is inferred from the cache reads reported with each answer: how long an unused prefix lives, what a change
in its middle costs, and whether there is a cache at all. The clock alone is trusted only until a report contradicts it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.context.shown import ByWindow, holds
from dragoman.context.tokens import text_tokens, tools_tokens
from dragoman.values.messages import ToolSpec
from dragoman.values.record import (
    Compressed,
    Configured,
    Entry,
    Kept,
    ModelChanged,
    NotCompressed,
    Pruned,
    Rewound,
    Said,
    fold,
)
from dragoman.values.usage import Usage

if TYPE_CHECKING:
    from dragoman.context.economics import Books, Rates

BreakReason = Literal["", "model", "system", "tools", "environment", "compressed", "rewound", "pruned"]
"""Why a prefix that a service has kept cannot be read any more; empty: it can."""
PRESSURE: Literal["pressure"] = "pressure"
"""The reason of a Pruned entry that was made because the window filled up."""
NO_TOKENS = -1
"""Not counted yet: the next answer will say."""

_APART = 1_024
"""Two lengths this close cannot be distinguished by the reported reads."""
_MISSES = 2
"""After this many misses of a prefix that must have been there, and not one hit, there is no cache."""
_LIFE_MS = 300_000
"""How long a prefix is assumed to live before anything is known."""


class AnsweredCall(msgspec.Struct, frozen=True):
    """A request that was answered, and what the service counted."""

    seq: int
    timestamp_ms: int
    """When the answer arrived."""
    usage: Usage
    warm: bool
    """Most of what was sent before was read from the cache."""
    model: str
    deployment: str
    asked_ms: int = 0
    """When the request was ready: the time of the entry before the answer."""


class CacheFacts(msgspec.Struct, frozen=True):
    """What one model's reports have shown about its cache."""

    alive_ms: int = 0
    """The longest unused time after which a prefix was still cached."""
    dead_ms: int | None = None
    """The shortest unused time after which it was gone."""
    reads: bool = False
    """Something was read, even if only the static prefix."""
    misses: int = 0
    falls_back: bool | None = None
    """Whether a change in the middle loses everything after the static prefix; None until one was observed."""


class _State(msgspec.Struct, frozen=True):
    """The state that a rewind restores."""

    model: str = ""
    deployment: str = ""
    window: int = 0
    """The model's; 0: not known."""
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    static_tokens: int = 0
    """An upper bound for system and tools, whatever the model's tokenizer does."""
    lost: BreakReason = ""
    """What has happened to the sent prefix since the last call."""
    pruned: ByWindow[int] = ByWindow.of(0)
    """Tokens no longer in view because they were pruned."""
    pressed_tokens: int = 0
    """The smallest request since the window last filled up; 0 if it has not."""
    tried_tokens: int = 0
    """The size of the request after the last compression, successful or not; 0 if there was none."""
    useless_summaries: int = 0
    """How many summaries in a row were of no use."""

    @property
    def pruned_tokens(self) -> int:
        return self.pruned.at(self.window)


class Cache:
    """Sans-IO. Feed it the entries the view is fed."""

    def __init__(self) -> None:
        self.calls: list[AnsweredCall] = []
        """All calls in order, including those a rewind has undone: they were paid for."""
        self._state = _State()
        self._seqs: list[int] = []
        self._states: list[_State] = []
        """The state from each of those entries on."""
        self._sent = _State()
        """The state when the last call was made."""
        self._facts: dict[tuple[str, str], CacheFacts] = {}
        self._warm_ms: list[int] = []
        """When each warm call was requested; never decreasing, even if the clock went back."""
        self._spent = Usage()
        self._premiums = 0
        self._saved_tokens = 0
        """Tokens not sent because they were pruned, summed over all calls after the one that paid for the pruning."""
        self._base_tokens = 0
        """The shortest input since model, system and tools last changed: no less than the static prefix."""
        self._made_by: dict[str, tuple[AnsweredCall, int]] = {}
        """By tool call id: the request it answered, and how much had been pruned by then."""
        self._changed: tuple[AnsweredCall, int] | None = None
        """The same for the first result pruned since the last call."""
        self._previous_ms: int | None = None

    # --- state

    @property
    def last(self) -> AnsweredCall | None:
        return self.calls[-1] if self.calls else None

    @property
    def break_reason(self) -> BreakReason:
        """Why the last prefix cannot be read."""
        if not self.calls:
            return ""
        state, sent = self._state, self._sent
        if (state.deployment, state.model) != (sent.deployment, sent.model):
            return "model"
        if state.system != sent.system:
            return "system"
        if state.tools != sent.tools:
            return "tools"
        return state.lost

    @property
    def facts(self) -> CacheFacts:
        """What is known about the current model's cache."""
        return self._facts.get((self._state.deployment, self._state.model)) or CacheFacts()

    @property
    def pressed_tokens(self) -> int:
        """The smallest request since everything was pruned because the window filled up; 0: it did not, -1: not counted yet."""
        return self._state.pressed_tokens

    @property
    def tried_tokens(self) -> int:
        """The size of the request when it was last compressed, or when that was last tried; 0 and -1 as above."""
        return self._state.tried_tokens

    @property
    def useless_summaries(self) -> int:
        """How many summaries in a row this model has written, or failed to write, that could not be used."""
        return self._state.useless_summaries

    def life_ms(self, rates: Rates | None = None) -> int:
        """How long an unused prefix lives, as far as is known."""
        facts = self.facts
        life = max(rates.ttl_ms if rates is not None else _LIFE_MS, facts.alive_ms)
        return life if facts.dead_ms is None else min(life, facts.dead_ms - 1)

    def is_warm(self, now_ms: int, rates: Rates | None = None) -> bool:
        """Whether the last request's prefix would be read from the cache now."""
        if not self.calls or self.break_reason:
            return False
        facts = self.facts
        if not facts.reads and facts.misses >= _MISSES:
            return False
        return now_ms - self.calls[-1].timestamp_ms <= self.life_ms(rates)

    def warm_calls_since(self, moments_ms: Iterable[float]) -> list[int]:
        """For each moment: how many of the calls requested then or later found their prefix in the cache."""
        warm_ms, count = self._warm_ms, len(self._warm_ms)
        return [count - bisect_left(warm_ms, moment_ms) for moment_ms in moments_ms]

    def books(self, rates: Rates, next_tokens: float) -> Books:
        """The costs and savings of pruning so far, including a next request of this size that changes nothing."""
        from dragoman.context.economics import Books

        last = self.calls[-1].usage.input_tokens if self.calls else 0
        gone = self._state.pruned_tokens
        saved = rates.read * (self._saved_tokens + gone)
        paid = self._spent.fresh_tokens + rates.read * self._spent.cache_read_tokens + rates.write * self._spent.cache_write_tokens
        coming = rates.read * min(last, next_tokens) + rates.write * max(next_tokens - last, 0)
        return Books(paid + coming - self._premiums + saved, self._premiums, saved)

    # --- feeding

    @fold("cache")
    def feed(self, entry: Entry) -> None:
        match entry:
            case Configured():
                self._configure(entry)
            case ModelChanged(model=model, deployment=deployment, window=window):
                deployment = deployment or self._state.deployment
                self._change(
                    entry, model=model, deployment=deployment, window=window, pressed_tokens=0, tried_tokens=0, useless_summaries=0
                )
            case Said(message=message) if message.role == "assistant":
                self._answer(entry)
            case Said(about="environment") if self.calls:
                self._change(entry, lost="environment")  # it stands before everything that was sent
            case Pruned():
                self._prune(entry)
            case Kept():
                self._restore(entry)
            case Compressed():
                self._compress(entry)
            case NotCompressed(tokens=tokens):
                self._change(entry, tried_tokens=tokens or NO_TOKENS, useless_summaries=self._state.useless_summaries + 1)
            case Rewound(to_seq=to_seq):
                self._rewind(entry, to_seq)
            case _:
                pass
        self._previous_ms = entry.timestamp_ms

    def _change(self, entry: Entry, **changes: object) -> None:
        self._set(entry, msgspec.structs.replace(self._state, **changes))

    def _set(self, entry: Entry, state: _State) -> None:
        if state == self._state:
            return
        self._state = state
        self._seqs.append(entry.seq)
        self._states.append(state)

    def _configure(self, entry: Configured) -> None:
        state = self._state
        deployment = entry.deployment or state.deployment
        changes: dict[str, object] = {"model": entry.model, "deployment": deployment, "window": entry.window}
        changes |= {"system": entry.system, "tools": entry.tools}
        changes["static_tokens"] = round(1.5 * (text_tokens(entry.system) + tools_tokens(entry.tools))) + _APART
        if (entry.model, deployment, entry.window) != (state.model, state.deployment, state.window):
            changes |= {"pressed_tokens": 0, "tried_tokens": 0, "useless_summaries": 0}  # another window size
        self._change(entry, **changes)

    def _compress(self, entry: Compressed) -> None:
        changes: dict[str, object] = {"pruned": self._state.pruned.change(entry.window, lambda tokens: 0)}
        changes["useless_summaries"] = 0 if entry.model else self._state.useless_summaries  # an extract is no summary
        if holds(entry.window, self._state.window):
            changes |= {"lost": "compressed", "pressed_tokens": 0, "tried_tokens": entry.new_tokens or NO_TOKENS}
        self._change(entry, **changes)

    def _prune(self, entry: Pruned) -> None:
        if not entry.call_ids:
            return
        changes: dict[str, object] = {"pruned": self._state.pruned.change(entry.window, lambda tokens: tokens + max(entry.saved_tokens, 0))}
        if not holds(entry.window, self._state.window):
            return self._change(entry, **changes)
        self._break_at(entry.call_ids)
        self._premiums += entry.premium_tokens
        if entry.reason == PRESSURE:
            changes["pressed_tokens"] = NO_TOKENS
        self._change(entry, lost=self._state.lost or "pruned", **changes)

    def _restore(self, entry: Kept) -> None:
        """Results that come back change what was sent from their place on, as those that go do."""
        if not entry.restored_tokens:
            return
        pruned = self._state.pruned.change(0, lambda tokens: max(tokens - entry.restored_tokens, 0))
        self._break_at(entry.call_ids)
        self._change(entry, lost=self._state.lost or "pruned", pruned=pruned)

    def _break_at(self, call_ids: Iterable[str]) -> None:
        """What was sent differs from the first of these results on."""
        found = [self._made_by[call_id] for call_id in call_ids if call_id in self._made_by]
        if self._changed is not None and self._state.lost == "pruned":
            found.append(self._changed)
        self._changed = min(found, key=lambda made: made[0].seq, default=None)

    def _rewind(self, entry: Rewound, to_seq: int) -> None:
        position = bisect_right(self._seqs, min(to_seq, entry.seq - 1))
        state = self._states[position - 1] if position else _State()
        if self.calls and self.calls[-1].seq > to_seq:
            state = msgspec.structs.replace(state, lost="rewound")
        self._set(entry, state)

    def _answer(self, entry: Said) -> None:
        usage = entry.usage
        if usage is None or usage.input_tokens <= 0:
            return  # interrupted, or a service that does not report usage
        state, last = self._state, self.last
        asked_ms = entry.timestamp_ms if self._previous_ms is None else min(self._previous_ms, entry.timestamp_ms)
        warm = last is not None and self._is_hit(usage.cache_read_tokens, last.usage.input_tokens)
        if last is not None:
            self._learn(usage, last, asked_ms - last.timestamp_ms, warm=warm)
        if usage.cache_read_tokens:
            self._update_facts(reads=True)
        is_new = last is None or self.break_reason in ("model", "system", "tools")
        self._base_tokens = usage.input_tokens if is_new else min(self._base_tokens, usage.input_tokens)
        made = AnsweredCall(entry.seq, entry.timestamp_ms, usage, warm, entry.model or state.model, state.deployment, asked_ms)
        self.calls.append(made)
        if warm:
            self._warm_ms.append(max(asked_ms, self._warm_ms[-1] if self._warm_ms else asked_ms))
        self._spent += usage
        self._saved_tokens += min(self._sent.pruned_tokens, state.pruned_tokens)
        for call in entry.message.calls:
            self._made_by[call.id] = (made, state.pruned_tokens)
        tokens, pressed, tried = usage.input_tokens, state.pressed_tokens, state.tried_tokens
        lowest = min(pressed, tokens) if pressed > 0 else tokens if pressed else 0  # since the window filled up, this call's input included
        self._change(entry, lost="", pressed_tokens=lowest, tried_tokens=tokens if tried == NO_TOKENS else tried)
        self._sent = self._state

    def _is_hit(self, read: int, expected: int) -> bool:
        """Whether this is a cache hit: at least half of what was expected, and more than the static prefix, which others keep warm."""
        return 2 * read >= expected and (read > self._base_tokens or expected <= self._base_tokens + _APART)

    def _learn(self, usage: Usage, last: AnsweredCall, gap_ms: int, *, warm: bool) -> None:
        from dragoman.context.cache_facts import fallback_of, life_of

        read, expected, broken = usage.cache_read_tokens, last.usage.input_tokens, self.break_reason
        if broken == "pruned" and self._changed is not None:
            made, pruned_then = self._changed
            kept = made.usage.input_tokens - max(self._sent.pruned_tokens - pruned_then, 0)
            self._update_facts(**fallback_of(read, kept, min(self._state.static_tokens, self._base_tokens), _APART))
        if not broken:
            is_whole = expected > self._base_tokens + _APART  # else only the static prefix may have survived
            facts = self.facts
            self._update_facts(
                **life_of((facts.alive_ms, facts.dead_ms, facts.misses), read, expected, gap_ms, warm=warm, is_whole=is_whole)
            )

    def _update_facts(self, **changes: object) -> None:
        self._facts[self._state.deployment, self._state.model] = msgspec.structs.replace(self.facts, **changes)
