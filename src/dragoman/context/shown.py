"""What models are shown of one record. Most of it is the same for all; what a small window forced is hidden from larger ones.

A decision that a window forced carries that window as its limit: models whose window is larger go on as if it had never been made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import is_not
from typing import Generic, TypeVar

import msgspec

from dragoman.context.settings import TERMINAL_TOOLS
from dragoman.context.tokens import message_tokens
from dragoman.values.messages import Message, Text, ToolCall, ToolResult
from dragoman.values.record import About, CommandOutput, Compressed

T = TypeVar("T")


class Placeholders(msgspec.Struct, frozen=True):
    """What stands for results that were pruned."""

    commands: str
    others: str = ""
    """For tools that run no commands, with `{tool}` for the name; empty: as for commands."""

    def of(self, result: ToolResult) -> str:
        if not self.others or result.name.casefold() in TERMINAL_TOOLS:
            return self.commands
        return self.others.replace("{tool}", result.name)


class Item(msgspec.Struct, frozen=True):
    """A message of the view, the entry it came with, and its size."""

    seq: int
    """Ascending in a view. 0: the environment, told to a conversation that had begun elsewhere; it stands before everything."""
    message: Message
    raw_tokens: int
    """Before scaling to the model: see `View.tokens`."""
    timestamp_ms: int = 0
    about: About = ""
    """The kind of the program's own message; empty for messages of a person, the model or a tool."""

    @property
    def is_round(self) -> bool:
        """Calls, or their results. A prompt may have come with the same entry as results, and a summary may end there."""
        return bool(self.message.calls or self.message.results)


class ShownResult(msgspec.Struct, frozen=True):
    """A result in view as it was before pruning, and when it came."""

    result: ToolResult
    seq: int
    """The seq of the message it is in: see `Item.seq`."""
    timestamp_ms: int
    command: CommandOutput | None = None
    """As in ToolFinished."""
    call: ToolCall | None = None
    """The call that it answers; None if that never ended."""
    saw: tuple[str, ...] = ()
    wrote: tuple[str, ...] = ()
    """As in ToolFinished."""


class Shown:
    """The messages that models of some range of windows see. Methods that leave something out return another Shown."""

    def __init__(self, items: list[Item], outcomes: list[ShownResult], pruned: set[str]) -> None:
        self.items = items
        self.outcomes = outcomes
        """Every result in view, in the order of the messages."""
        self.pruned = pruned
        """Call ids of the results that were replaced."""
        self.raw_tokens = sum(item.raw_tokens for item in items)

    def add(self, item: Item) -> None:
        self.items.insert(len(self.items) if item.seq else 0, item)
        self.raw_tokens += item.raw_tokens

    def without_message(self, seq: int) -> Shown:
        return Shown([item for item in self.items if item.seq != seq], [*self.outcomes], {*self.pruned})

    def compress(self, entry: Compressed) -> Shown:
        """With the summary in its place."""

        kept = frozenset(entry.kept_seqs)

        def stays(seq: int) -> bool:
            return seq <= entry.after_seq or seq > entry.through_seq or seq in kept

        before = [item for item in self.items if item.seq <= entry.after_seq or (item.seq in kept and item.is_round)]
        behind = [item for item in self.items if item.seq > entry.through_seq]
        summary = Item(entry.through_seq, entry.summary, message_tokens(entry.summary), entry.timestamp_ms)
        outcomes = [outcome for outcome in self.outcomes if stays(outcome.seq)]
        pruned = self.pruned & {outcome.result.call_id for outcome in outcomes}  # an id that is out of view may be reused
        return Shown([*before, summary, *behind], outcomes, pruned)

    def prune(self, call_ids: frozenset[str], placeholders: Placeholders) -> Shown:
        """With the placeholder for these results. Messages that hold none of them stay the same objects."""
        items: list[Item] = []
        pruned = {*self.pruned}
        for item in self.items:
            message = _prune_message(item.message, call_ids, placeholders, pruned)
            if message is not item.message:
                item = msgspec.structs.replace(item, message=message, raw_tokens=message_tokens(message))
            items.append(item)
        return Shown(items, [*self.outcomes], pruned)

    def restore(self, call_ids: frozenset[str]) -> Shown:
        """With these results whole again. Messages that hold none that had been replaced stay the same objects."""
        whole = {outcome.result.call_id: outcome.result for outcome in self.outcomes if outcome.result.call_id in call_ids & self.pruned}
        if not whole:
            return self
        items: list[Item] = []
        for item in self.items:
            parts = tuple(whole.get(part.call_id, part) if isinstance(part, ToolResult) else part for part in item.message.parts)
            if any(map(is_not, parts, item.message.parts)):
                message = Message(item.message.role, parts)
                item = msgspec.structs.replace(item, message=message, raw_tokens=message_tokens(message))
            items.append(item)
        return Shown(items, [*self.outcomes], self.pruned - whole.keys())


def _prune_message(message: Message, call_ids: frozenset[str], placeholders: Placeholders, pruned: set[str]) -> Message:
    if not any(isinstance(part, ToolResult) and part.call_id in call_ids for part in message.parts):
        return message
    parts = tuple(
        _replace_result(part, placeholders.of(part), pruned) if isinstance(part, ToolResult) and part.call_id in call_ids else part
        for part in message.parts
    )
    return Message(message.role, parts) if any(map(is_not, parts, message.parts)) else message


def _replace_result(result: ToolResult, placeholder: str, pruned: set[str]) -> ToolResult:
    if not can_be_replaced(result, placeholder):
        return result
    pruned.add(result.call_id)
    content = (Text(placeholder),)
    return result if result.content == content else msgspec.structs.replace(result, content=content)


def can_be_replaced(result: ToolResult, placeholder: str) -> bool:
    """A placeholder is never longer than what it replaces."""
    if not all(isinstance(part, Text) for part in result.content):
        return True
    return sum(len(part.text) for part in result.content if isinstance(part, Text)) > len(placeholder)


# --- which model sees what


def holds(limit: int, window: int) -> bool:
    """Whether a decision with this limit holds for a model with this window. A limit of 0 is none, a window of 0 is not known."""
    return not limit or window <= limit


class ByWindow(msgspec.Struct, Generic[T], frozen=True):
    """A value for each size of window. Values differ only where some decision has a limit."""

    steps: tuple[tuple[float, T], ...]
    """The largest window that each value is for, ascending; the last is infinite."""

    @classmethod
    def of(cls, value: T) -> ByWindow[T]:
        return cls(((math.inf, value),))

    def at(self, window: int) -> T:
        """The value for a window; for one that is not known, that with every decision."""
        return next(value for most, value in self.steps if window <= most)

    def change(self, limit: int, change: Callable[[T], T]) -> ByWindow[T]:
        """With changed values for windows up to `limit`; 0: for all."""
        steps: list[tuple[float, T]] = []
        least = 0.0
        for most, value in self.steps:
            if not limit or most <= limit:
                steps.append((most, change(value)))
            elif least < limit:
                steps += [(limit, change(value)), (most, value)]
            else:
                steps.append((most, value))
            least = most
        return ByWindow(tuple(steps))
