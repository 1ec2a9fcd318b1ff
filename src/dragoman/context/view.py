"""What the model sees, as a fold over the record: the same entries give the same request, whenever they arrive.

The record holds no result messages. They are made here from ToolFinished entries, in call order, when a batch is complete; so every call
has exactly one result, right after it. Messages that an entry does not affect stay the same objects, so cached renderings stay valid.

What a small window forced is hidden from models with a larger one. The window of the model in use is on the record, and the messages are
kept for each range of windows that sees the same, so a change of model only selects among them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

import msgspec

from dragoman.context.shown import ByWindow, Item, Placeholders, Shown, ShownResult
from dragoman.context.tokens import Meter, message_tokens, text_tokens, tools_tokens
from dragoman.values.messages import Message, Request, Settings, Text, ToolCall, ToolResult, ToolSpec
from dragoman.values.notes import UNREADABLE, is_note
from dragoman.values.parts import INTERRUPTED
from dragoman.values.record import (
    About,
    AnswerRejected,
    Compressed,
    Configured,
    Entry,
    FieldRefused,
    Kept,
    ModelChanged,
    Pruned,
    Rewound,
    Said,
    ToolDecided,
    ToolFinished,
    ToolPostponed,
    ToolStarted,
    fold,
)

PLACEHOLDER = "此命令返回内容已过时"
"""The text that replaces a pruned result, unless the session sets another."""


class View:
    """Sans-IO. Feed it entries; `request` is what would be sent next."""

    def __init__(self) -> None:
        self.model = ""
        self.deployment = ""
        self.window = 0
        """The current model's window for prompts; 0: the record does not say, and every decision holds."""
        self.system = ""
        self.tools: tuple[ToolSpec, ...] = ()
        self.settings = Settings()
        self.session_id = ""
        self.placeholders = Placeholders(PLACEHOLDER)
        self.agent = ""
        """The name of the agent that has the conversation."""
        self.boundary = ""
        """What the user has said of the boundary around commands: see Configured."""
        self.dialect = ""
        """The dialect in which the model is told of tools as text; empty: natively."""
        self._retry_temperature: float | None = None
        self._unreadable_seq = 0
        """The last answer that was rejected because its call could not be read."""
        self._fed: dict[int, tuple[Entry, int]] = {}
        """By seq: the entry, and the seq it followed. After a rewind that is not the one before it."""
        self._head = 0
        self._shown = ByWindow.of(Shown([], [], set()))
        self.shown = self._shown.at(0)
        """What the current model sees."""
        self.held: frozenset[str] = frozenset()
        """Call ids of the results that a person wants kept."""
        self.raw_static = 0
        """System and tools."""
        self.refused: dict[tuple[str, str], tuple[str, ...]] = {}
        """By deployment and model: the fields its service refused."""
        self.windows: dict[tuple[str, str], int] = {}
        """By deployment and model: the window that was last recorded."""
        self._meters: dict[tuple[str, str], Meter] = {}
        self._finished: dict[str, ToolFinished] = {}
        """How the open calls ended, by their ids."""
        self._open: tuple[ToolCall, ...] = ()
        self._open_seq = -1
        self._waiting: set[str] = set()
        """Ids of the open calls that have no result yet."""
        self._results: dict[str, ToolResult] = {}
        self.started: set[str] = set()
        """Ids of the open calls that began to run."""
        self.postponed: dict[str, ToolPostponed] = {}
        """The open calls that wait for a decision or for a result, by their ids; not those that have begun since."""
        self.decided: dict[str, ToolDecided] = {}
        """What was decided about those."""

    # --- state

    @property
    def items(self) -> list[Item]:
        return self.shown.items

    @property
    def outcomes(self) -> list[ShownResult]:
        """Every result in view, in the order of the messages."""
        return self.shown.outcomes

    @property
    def pruned(self) -> set[str]:
        """Call ids of the results that were replaced."""
        return self.shown.pruned

    @property
    def raw_tokens(self) -> int:
        """The whole request, before scaling to the model."""
        return self.raw_static + self.shown.raw_tokens

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple([item.message for item in self.shown.items])  # a list first: half the time of a generator, twice each turn

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last answer that have no result yet."""
        return tuple(call for call in self._open if call.id in self._waiting)

    @property
    def received(self) -> tuple[ToolResult, ...]:
        """The results of the last answer's calls, as long as others are missing."""
        return tuple(self._results[call.id] for call in self._open if call.id in self._results)

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
        settings, choice = self.settings, self._tool_choice()
        if self._retry_temperature is not None or choice != settings.tool_choice:
            temperature = settings.temperature if self._retry_temperature is None else self._retry_temperature
            settings = msgspec.structs.replace(settings, temperature=temperature, tool_choice=choice)
        request = Request(self.model, self.messages, self.system, self.tools, settings, self.session_id, omit=self.omit)
        if self._unreadable_seq and choice != "none" and self._is_unreadable_last():
            from dragoman.values.bound_answer import constrain_request

            return constrain_request(request)
        return request

    def _tool_choice(self) -> str:
        """The choice that is set. Where the model must answer in words it is none; where it has just called, it may choose: as long as it
        must call, it cannot answer."""
        choice = self.settings.tool_choice
        for item in reversed(self.items):
            if item.about == "answer_now":
                return "none"
            if item.message.results or (item.message.role == "user" and not is_note(item.about)):
                break
        last = self.items[-1].message if self.items else None
        has_called = last is not None and (bool(last.results) or last.role == "assistant")
        return "auto" if has_called and choice not in ("", "auto", "none") else choice

    def _is_unreadable_last(self) -> bool:
        """Whether nothing but notes has come since the model failed again and again to write a call that can be read."""
        later = takewhile(lambda item: item.seq > self._unreadable_seq, reversed(self.items))
        return all(is_note(item.about) for item in later)

    def messages_for(self, window: int) -> tuple[Message, ...]:
        """What a model with this window would be sent, were it the current one."""
        return tuple(item.message for item in self._shown.at(window).items)

    # --- feeding

    def feed(self, entry: Entry) -> None:
        follows = entry.to_seq if isinstance(entry, Rewound) else self._head
        self._fed[entry.seq] = (entry, min(follows, entry.seq - 1))
        self._apply(entry)
        self._head = entry.seq

    @property
    def placeholder(self) -> str:
        """What stands for the results of commands that were pruned."""
        return self.placeholders.commands

    @fold("view")
    def _apply(self, entry: Entry) -> None:
        match entry:
            case Configured():
                self.model, self.system, self.tools, self.settings = entry.model, entry.system, entry.tools, entry.settings
                self.agent = entry.agent
                self.boundary, self.dialect = entry.boundary, entry.dialect
                self.deployment = entry.deployment or self.deployment
                self.session_id = entry.session_id or self.session_id
                if entry.placeholder:
                    self.placeholders = Placeholders(entry.placeholder, entry.other_placeholder)
                self.raw_static = round(text_tokens(entry.system)) + tools_tokens(entry.tools)
                self._look(entry.window)
            case ModelChanged(model=model, deployment=deployment):
                self.model, self.deployment, self.dialect = model, deployment or self.deployment, entry.dialect
                self._look(entry.window)
            case Said():
                self._say(entry)
            case ToolFinished():
                self._finish(entry)
            case AnswerRejected(said_seq=said_seq):
                self._reject(said_seq)
                self._retry_temperature = entry.retry_temperature
                if entry.reason == UNREADABLE:
                    self._unreadable_seq = said_seq
            case Pruned(call_ids=call_ids):
                pruned = frozenset(call_ids)
                self._change(entry.window, lambda shown: shown.prune(pruned, self.placeholders))
            case Kept(call_ids=call_ids):
                self.held = self.held | {*call_ids} if entry.held else self.held - {*call_ids}
                self._change(0, lambda shown: shown.restore(frozenset(call_ids)))
            case Compressed():
                self._change(entry.window, lambda shown: shown.compress(entry))
            case FieldRefused(deployment=deployment, model=model, field=field):
                known = self.refused.get((deployment, model), ())
                self.refused[deployment, model] = known if field in known else (*known, field)
            case Rewound(to_seq=to_seq):
                self._rewind(to_seq)
            case ToolStarted(call_id=call_id) | ToolPostponed(call_id=call_id) | ToolDecided(call_id=call_id):
                if call_id in self._waiting:
                    self._move_call(entry)
            case _:
                pass

    def _look(self, window: int) -> None:
        self.window = window
        self.windows[self.deployment, self.model] = window
        self.shown = self._shown.at(window)

    def _change(self, limit: int, change: Callable[[Shown], Shown]) -> None:
        self._shown = self._shown.change(limit, change)
        self.shown = self._shown.at(self.window)

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
        seq = 0 if about == "environment" and self.items else entry.seq  # history from elsewhere follows the environment
        item = Item(seq, message, message_tokens(message), entry.timestamp_ms, about)
        for _, shown in self._shown.steps:
            shown.add(item)

    def _move_call(self, entry: ToolStarted | ToolPostponed | ToolDecided) -> None:
        """How far an open call has come. A tool may begin and then say that its result comes later."""
        if isinstance(entry, ToolDecided):
            self.decided[entry.call_id] = entry
            return
        if isinstance(entry, ToolStarted) and entry.read_only:
            return
        self._forget_progress(entry.call_id)
        if isinstance(entry, ToolStarted):
            self.started.add(entry.call_id)
        else:
            self.postponed[entry.call_id] = entry

    def _forget_progress(self, call_id: str) -> None:
        self.started.discard(call_id)
        self.postponed.pop(call_id, None)
        self.decided.pop(call_id, None)

    def _finish(self, entry: ToolFinished) -> None:
        result = entry.result
        if result.call_id in self._waiting:
            self._waiting.discard(result.call_id)
            self._forget_progress(result.call_id)
            self._results[result.call_id] = result
            self._finished[result.call_id] = entry
            self._close_batch(entry)

    def _close_batch(self, entry: Entry, *, whatever_happened: bool = False) -> None:
        """Results reach the model together and in call order. A call that never finished is closed as interrupted."""
        if not self._open or (self._waiting and not whatever_happened):
            return
        results = tuple(self._results.get(call.id) or _interrupted_result(call) for call in self._open)
        outcomes = [_outcome(call, result, entry, self._finished.get(call.id)) for call, result in zip(self._open, results, strict=True)]
        for _, shown in self._shown.steps:
            shown.outcomes.extend(outcomes)
        self._show(entry, Message("user", results))
        self._forget_batch()

    def _reject(self, said_seq: int) -> None:
        self._change(0, lambda shown: shown.without_message(said_seq))
        if self._open_seq == said_seq:
            self._forget_batch()

    def _forget_batch(self) -> None:
        self._open = ()
        self._waiting.clear()
        self.started.clear()
        self.postponed.clear()
        self.decided.clear()
        self._results.clear()
        self._finished.clear()

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
        fresh.windows, fresh.refused = self.windows, self.refused  # what a service takes does not depend on what is said
        self.__dict__.update(fresh.__dict__)


def _outcome(call: ToolCall, result: ToolResult, entry: Entry, finished: ToolFinished | None) -> ShownResult:
    """`entry`: the one that completed the batch; `finished`: the call's own end, if it had one."""
    if finished is None:
        return ShownResult(result, entry.seq, entry.timestamp_ms)
    return ShownResult(result, entry.seq, finished.timestamp_ms, finished.command, call, finished.saw, finished.wrote)


def _interrupted_result(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, (Text(INTERRUPTED),), is_error=True)
