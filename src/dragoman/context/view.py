"""What the model sees, as a fold over the record: same entries, same request, however they arrive.

The record holds no result messages. They are made here from ToolFinished entries, in call order, when a batch is complete; so every call
has exactly one result, right behind it. Messages an entry does not touch stay the same objects, so what was rendered stays so.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from dragoman.context.repair import INTERRUPTED
from dragoman.messages import Message, Request, Settings, Text, ToolCall, ToolResult, ToolSpec
from dragoman.record import (
    AnswerRejected,
    Compressed,
    Configured,
    Entry,
    FilesChanged,
    FilesRestored,
    ModelChanged,
    Pruned,
    Rewound,
    Said,
    Started,
    Titled,
    ToolFinished,
    ToolStarted,
    Unknown,
)

PLACEHOLDER = "此命令返回内容已过时"
"""What stands in a pruned result's place, unless the session says otherwise."""


class _Seen(msgspec.Struct, frozen=True):
    """A message of the view, and the entry that brought it."""

    seq: int
    message: Message


class View:
    """Sans-IO. Feed it entries; `request` is what would be sent next."""

    def __init__(self) -> None:
        self.model = ""
        self.deployment = ""
        self.system = ""
        self.tools: tuple[ToolSpec, ...] = ()
        self.settings = Settings()
        self.session_id = ""
        self._placeholder = PLACEHOLDER
        self._retry_temperature: float | None = None
        self._fed: dict[int, tuple[Entry, int]] = {}
        """By seq: the entry, and the seq it followed. After a rewind that is not the one before it."""
        self._head = 0
        self._seen: list[_Seen] = []
        self._open: tuple[ToolCall, ...] = ()
        self._open_seq = -1
        self._results: dict[str, ToolResult] = {}

    # --- what it shows

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(seen.message for seen in self._seen)

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last answer that have no result yet."""
        return tuple(call for call in self._open if call.id not in self._results)

    @property
    def request(self) -> Request:
        settings = self.settings
        if self._retry_temperature is not None:
            settings = msgspec.structs.replace(settings, temperature=self._retry_temperature)
        return Request(self.model, self.messages, self.system, self.tools, settings, self.session_id)

    # --- what it is fed

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
                self._placeholder = entry.placeholder or self._placeholder
            case ModelChanged(model=model, deployment=deployment):
                self.model, self.deployment = model, deployment or self.deployment
            case Said(seq=seq, message=message):
                self._say(seq, message)
            case ToolFinished(seq=seq, result=result):
                self._finish(seq, result)
            case AnswerRejected(said_seq=said_seq):
                self._reject(said_seq)
                self._retry_temperature = entry.retry_temperature
            case Pruned(call_ids=call_ids):
                self._prune(frozenset(call_ids))
            case Compressed(through_seq=through_seq, summary=summary):
                kept = [seen for seen in self._seen if seen.seq > through_seq]
                self._seen = [_Seen(through_seq, summary), *kept]
            case Rewound(to_seq=to_seq):
                self._rewind(to_seq)
            case Started() | ToolStarted() | FilesChanged() | FilesRestored() | Titled() | Unknown():
                pass  # nothing the model sees
            case _:
                assert_never(entry)

    def _say(self, seq: int, message: Message) -> None:
        self._close_batch(seq, whatever_happened=True)
        if message.role == "assistant":
            self._retry_temperature = None
        self._seen.append(_Seen(seq, message))
        if message.role == "assistant":
            self._open, self._open_seq = message.calls, seq

    def _finish(self, seq: int, result: ToolResult) -> None:
        if any(call.id == result.call_id for call in self._open):
            self._results.setdefault(result.call_id, result)
            self._close_batch(seq)

    def _close_batch(self, seq: int, *, whatever_happened: bool = False) -> None:
        """Results reach the model together and in call order. A call that was never finished is closed as interrupted."""
        if not self._open or (self.open_calls and not whatever_happened):
            return
        results = tuple(self._results.get(call.id) or _interrupted(call) for call in self._open)
        self._seen.append(_Seen(seq, Message("user", results)))
        self._forget_batch()

    def _reject(self, said_seq: int) -> None:
        self._seen = [seen for seen in self._seen if seen.seq != said_seq]
        if self._open_seq == said_seq:
            self._forget_batch()

    def _forget_batch(self) -> None:
        self._open = ()
        self._results.clear()

    def _prune(self, call_ids: frozenset[str]) -> None:
        self._seen = [_Seen(seen.seq, self._pruned(seen.message, call_ids)) for seen in self._seen]

    def _pruned(self, message: Message, call_ids: frozenset[str]) -> Message:
        if not any(isinstance(part, ToolResult) and part.call_id in call_ids for part in message.parts):
            return message
        parts = (self._outdated(part) if isinstance(part, ToolResult) and part.call_id in call_ids else part for part in message.parts)
        return Message(message.role, tuple(parts))

    def _outdated(self, result: ToolResult) -> ToolResult:
        if all(isinstance(part, Text) for part in result.content) and len(_text_of(result)) <= len(self._placeholder):
            return result  # a placeholder is never longer than what it replaces
        return msgspec.structs.replace(result, content=(Text(self._placeholder),))

    def _rewind(self, to_seq: int) -> None:
        """The same fold again, over what led there."""
        path: list[Entry] = []
        seq = to_seq
        while seq > 0:
            found = self._fed.get(seq)
            if found is not None:
                path.append(found[0])
            seq = found[1] if found is not None else seq - 1  # an entry that was lost: what stood before it
        fresh = View()
        for entry in reversed(path):
            if not isinstance(entry, Rewound):
                fresh._apply(entry)
        fresh._fed = self._fed
        self.__dict__.update(fresh.__dict__)


def _text_of(result: ToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, Text))


def _interrupted(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, (Text(INTERRUPTED),), is_error=True)
