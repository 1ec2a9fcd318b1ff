"""What the model sees, as a fold over the record: the same entries give the same request, whenever they arrive.

The record holds no result messages. They are made here from ToolFinished entries, in call order, when a batch is complete; so every call
has exactly one result, right after it. Messages that an entry does not affect stay the same objects, so cached renderings stay valid.
"""

from __future__ import annotations

from operator import is_not
from typing import assert_never

import msgspec

from dragoman.context.tokens import Meter, message_tokens, text_tokens, tools_tokens
from dragoman.values.messages import Message, Request, Settings, Text, ToolCall, ToolResult, ToolSpec
from dragoman.values.parts import INTERRUPTED
from dragoman.values.record import (
    About,
    AnswerRejected,
    Compressed,
    Configured,
    Entry,
    FieldRefused,
    FilesChanged,
    FilesRestored,
    ModelChanged,
    NotCompressed,
    Pruned,
    Rewound,
    Said,
    Spent,
    Started,
    Titled,
    ToolFinished,
    ToolStarted,
    Unknown,
)

PLACEHOLDER = "此命令返回内容已过时"
"""The text that replaces a pruned result, unless the session sets another."""


class Item(msgspec.Struct, frozen=True):
    """A message of the view, the entry it came with, and its size."""

    seq: int
    message: Message
    raw_tokens: int
    """Before scaling to the model: see `View.tokens`."""
    timestamp_ms: int = 0
    about: About = ""
    """The kind of the program's own message; empty for messages of a person, the model or a tool."""


class ShownResult(msgspec.Struct, frozen=True):
    """A result in view as it was before pruning, and when it came."""

    result: ToolResult
    seq: int
    """The seq of the message it is in: see `Item.seq`."""
    timestamp_ms: int


class View:
    """Sans-IO. Feed it entries; `request` is what would be sent next."""

    def __init__(self) -> None:
        self.model = ""
        self.deployment = ""
        self.system = ""
        self.tools: tuple[ToolSpec, ...] = ()
        self.settings = Settings()
        self.session_id = ""
        self.placeholder = PLACEHOLDER
        self._retry_temperature: float | None = None
        self._fed: dict[int, tuple[Entry, int]] = {}
        """By seq: the entry, and the seq it followed. After a rewind that is not the one before it."""
        self._head = 0
        self.items: list[Item] = []
        self.outcomes: list[ShownResult] = []
        """Every result in view, in the order of the messages."""
        self.pruned: set[str] = set()
        """Call ids of the results that were replaced."""
        self.raw_static = 0
        """System and tools."""
        self.raw_tokens = 0
        """The whole request, before scaling to the model."""
        self.refused: dict[tuple[str, str], tuple[str, ...]] = {}
        """By deployment and model: the fields its service refused."""
        self._meters: dict[tuple[str, str], Meter] = {}
        self._times: dict[str, int] = {}
        self._open: tuple[ToolCall, ...] = ()
        self._open_seq = -1
        self._waiting: set[str] = set()
        """Ids of the open calls that have no result yet."""
        self._results: dict[str, ToolResult] = {}

    # --- state

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(item.message for item in self.items)

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last answer that have no result yet."""
        return tuple(call for call in self._open if call.id in self._waiting)

    @property
    def meter(self) -> Meter:
        """The token meter of the current model."""
        return self._meters.get((self.deployment, self.model)) or Meter()

    @property
    def omit(self) -> tuple[str, ...]:
        """The fields that the current model's service has refused."""
        return self.refused.get((self.deployment, self.model), ())

    def tokens(self, prior: float = 1.0) -> int:
        """About how many input tokens the next request has: the last reported count, adjusted by what changed since."""
        return self.meter.tokens(self.raw_tokens, prior)

    @property
    def request(self) -> Request:
        settings = self.settings
        if self._retry_temperature is not None:
            settings = msgspec.structs.replace(settings, temperature=self._retry_temperature)
        return Request(self.model, self.messages, self.system, self.tools, settings, self.session_id, omit=self.omit)

    # --- feeding

    def feed(self, entry: Entry) -> None:
        follows = entry.to_seq if isinstance(entry, Rewound) else self._head
        self._fed[entry.seq] = (entry, min(follows, entry.seq - 1))
        self._apply(entry)
        self._head = entry.seq

    def _apply(self, entry: Entry) -> None:
        match entry:
            case Configured():
                self.model, self.system, self.tools, self.settings = entry.model, entry.system, entry.tools, entry.settings
                self.deployment = entry.deployment or self.deployment
                self.session_id = entry.session_id or self.session_id
                self.placeholder = entry.placeholder or self.placeholder
                static = round(text_tokens(entry.system)) + tools_tokens(entry.tools)
                self.raw_tokens += static - self.raw_static
                self.raw_static = static
            case ModelChanged(model=model, deployment=deployment):
                self.model, self.deployment = model, deployment or self.deployment
            case Said():
                self._say(entry)
            case ToolFinished():
                self._finish(entry)
            case AnswerRejected(said_seq=said_seq):
                self._reject(said_seq)
                self._retry_temperature = entry.retry_temperature
            case Pruned(call_ids=call_ids):
                self._prune(frozenset(call_ids))
            case Compressed():
                self._compress(entry)
            case FieldRefused(deployment=deployment, model=model, field=field):
                known = self.refused.get((deployment, model), ())
                self.refused[deployment, model] = known if field in known else (*known, field)
            case Rewound(to_seq=to_seq):
                self._rewind(to_seq)
            case Started() | ToolStarted() | FilesChanged() | FilesRestored() | NotCompressed() | Spent() | Titled() | Unknown():
                pass  # does not affect what the model sees
            case _:
                assert_never(entry)

    def _say(self, entry: Said) -> None:
        message = entry.message
        self._close_batch(entry, whatever_happened=True)
        if message.role == "assistant":
            self._retry_temperature = None
            if entry.usage is not None and entry.usage.input_tokens > 0:
                key = (self.deployment, entry.model or self.model)
                self._meters.setdefault(key, Meter()).observe(self.raw_tokens, entry.usage.input_tokens)
        self._show(entry, message, entry.about)
        if message.role == "assistant":
            self._open, self._open_seq = message.calls, entry.seq
            self._waiting = {call.id for call in self._open}

    def _show(self, entry: Entry, message: Message, about: About = "") -> None:
        item = Item(entry.seq, message, message_tokens(message), entry.timestamp_ms, about)
        self.items.append(item)
        self.raw_tokens += item.raw_tokens

    def _finish(self, entry: ToolFinished) -> None:
        result = entry.result
        if result.call_id in self._waiting:
            self._waiting.discard(result.call_id)
            self._results[result.call_id] = result
            self._times[result.call_id] = entry.timestamp_ms
            self._close_batch(entry)

    def _close_batch(self, entry: Entry, *, whatever_happened: bool = False) -> None:
        """Results reach the model together and in call order. A call that never finished is closed as interrupted."""
        if not self._open or (self._waiting and not whatever_happened):
            return
        results = tuple(self._results.get(call.id) or _interrupted_result(call) for call in self._open)
        for result in results:
            self.outcomes.append(ShownResult(result, entry.seq, self._times.get(result.call_id, entry.timestamp_ms)))
        self._show(entry, Message("user", results))
        self._forget_batch()

    def _reject(self, said_seq: int) -> None:
        self._set_items([item for item in self.items if item.seq != said_seq])
        if self._open_seq == said_seq:
            self._forget_batch()

    def _forget_batch(self) -> None:
        self._open = ()
        self._waiting.clear()
        self._results.clear()
        self._times.clear()

    def _set_items(self, items: list[Item]) -> None:
        self.items = items
        self.raw_tokens = self.raw_static + sum(item.raw_tokens for item in items)

    def _compress(self, entry: Compressed) -> None:
        def stays(seq: int) -> bool:
            return seq <= entry.after_seq or seq > entry.through_seq

        before = [item for item in self.items if item.seq <= entry.after_seq]
        behind = [item for item in self.items if item.seq > entry.through_seq]
        summary = Item(entry.through_seq, entry.summary, message_tokens(entry.summary), entry.timestamp_ms)
        self._set_items([*before, summary, *behind])
        self.outcomes = [outcome for outcome in self.outcomes if stays(outcome.seq)]
        self.pruned &= {outcome.result.call_id for outcome in self.outcomes}  # an id that is out of view may be reused

    def _prune(self, call_ids: frozenset[str]) -> None:
        items: list[Item] = []
        for item in self.items:
            message = self._prune_message(item.message, call_ids)
            if message is not item.message:
                item = msgspec.structs.replace(item, message=message, raw_tokens=message_tokens(message))
            items.append(item)
        self._set_items(items)

    def _prune_message(self, message: Message, call_ids: frozenset[str]) -> Message:
        if not any(isinstance(part, ToolResult) and part.call_id in call_ids for part in message.parts):
            return message
        parts = tuple(
            self._replace_result(part) if isinstance(part, ToolResult) and part.call_id in call_ids else part for part in message.parts
        )
        return Message(message.role, parts) if any(map(is_not, parts, message.parts)) else message

    def _replace_result(self, result: ToolResult) -> ToolResult:
        if not can_be_replaced(result, self.placeholder):
            return result
        self.pruned.add(result.call_id)
        return (
            result if result.content == (placeholder := (Text(self.placeholder),)) else msgspec.structs.replace(result, content=placeholder)
        )

    def _rewind(self, to_seq: int) -> None:
        """Repeat the fold over the entries that led there."""
        path: list[Entry] = []
        seq = to_seq
        while seq > 0:
            found = self._fed.get(seq)
            if found is not None:
                path.append(found[0])
            seq = found[1] if found is not None else seq - 1  # an entry is missing: continue with the one before it
        fresh = View()
        for entry in reversed(path):
            if not isinstance(entry, Rewound):
                fresh._apply(entry)
        fresh._fed = self._fed
        fresh.refused = self.refused  # what a service takes does not depend on what is said
        self.__dict__.update(fresh.__dict__)


def can_be_replaced(result: ToolResult, placeholder: str) -> bool:
    """A placeholder is never longer than what it replaces."""
    if not all(isinstance(part, Text) for part in result.content):
        return True
    return sum(len(part.text) for part in result.content if isinstance(part, Text)) > len(placeholder)


def _interrupted_result(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, (Text(INTERRUPTED),), is_error=True)
