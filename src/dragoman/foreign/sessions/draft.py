"""A draft of an imported session: what another program recorded, step by step, until it is numbered and becomes a record of ours.

A step is a prompt, or an answer with the results of its calls. Sources interleave these freely; here results follow their answer, every
call has exactly one, and call ids are unique. What has no place in our record is counted, by the sentence that describes it.
"""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import TypeVar, assert_never

import msgspec

from dragoman.base.graphemes import fit
from dragoman.base.text import one_line
from dragoman.values.contracts import BlobStore
from dragoman.values.messages import Blob, FileRef, FinishReason, Message, Part, Text, ToolCall, ToolResult, unique_id
from dragoman.values.parts import INTERRUPTED
from dragoman.values.record import (
    AnswerRejected,
    Compressed,
    Configured,
    Entry,
    ModelChanged,
    Rewound,
    Said,
    Started,
    Titled,
    ToolFinished,
    ToolOutcome,
)
from dragoman.values.usage import Usage
from dragoman.words import change_values, say

OPENING = "(The beginning of this conversation was not imported.)"
NOT_RUN = "not run: the answer was broken off"

_NOTHING: tuple[object, ...] = (None, False, "", [], {})
_MOST_COLUMNS = 100

ResultPart = Text | Blob | FileRef


class DraftResult(msgspec.Struct):
    content: tuple[ResultPart, ...]
    is_error: bool
    outcome: ToolOutcome
    timestamp_ms: int
    display: str


class DraftPrompt(msgspec.Struct):
    parts: tuple[Part, ...]
    timestamp_ms: int
    follows: DraftPrompt | DraftAnswer | None = None
    """The step before it in its conversation; in the file the line before it may belong to an abandoned branch."""
    last_seq: int = 0


class DraftAnswer(msgspec.Struct):
    """What the model said. It can still grow: some programs write an answer over several lines."""

    parts: tuple[Part, ...]
    timestamp_ms: int
    model: str = ""
    deployment: str = ""
    usage: Usage | None = None
    finish: FinishReason | None = None
    raw_finish: str = ""
    response_id: str = ""
    rejected: str = ""
    """Why the model is never shown it again; empty if it is."""
    unanswered: ToolOutcome = "unknown"
    """The outcome of its calls that have no result."""
    results: dict[str, DraftResult] = msgspec.field(default_factory=dict)
    follows: DraftPrompt | DraftAnswer | None = None
    last_seq: int = 0


Step = DraftPrompt | DraftAnswer
_S = TypeVar("_S", DraftPrompt, DraftAnswer)


class DraftCompression(msgspec.Struct):
    summary: Message
    timestamp_ms: int
    through: Step | None
    original_tokens: int


class Rewind(msgspec.Struct):
    to: Step | None
    timestamp_ms: int


class ModelChoice(msgspec.Struct):
    model: str
    deployment: str
    timestamp_ms: int


_Event = Step | DraftCompression | Rewind | ModelChoice


class Draft:
    def __init__(self, blobs: BlobStore | None = None) -> None:
        self.source_id = ""
        self.started_ms = 0
        self.title = ""
        self.directories: tuple[str, ...] = ()
        self.versions: tuple[str, ...] = ()
        self.tip: Step | None = None
        """The last step of the current conversation: after a rewind, an earlier one."""
        self.left_out: Counter[str] = Counter()
        self.fields_left_out: Counter[str] = Counter()
        self._blobs = blobs
        self._events: list[_Event] = []
        self._taken: set[str] = set()
        self._waiting: dict[str, list[tuple[DraftAnswer, str]]] = {}
        self._answered: set[str] = set()

    # --- what happened

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count something that is not carried over."""
        if count > 0:
            self.left_out[what] += count

    def leave_out_fields(self, record: Mapping[str, object], known: frozenset[str]) -> None:
        """Count the fields of a record that are not carried over: those not in `known` that have a value."""
        self.fields_left_out.update(key for key in record.keys() - known if record[key] not in _NOTHING)

    @property
    def not_carried(self) -> tuple[str, ...]:
        lines = [
            say("sessions.left_count", count=count, what=change_values(what, printable)) for what, count in self.left_out.most_common()
        ]
        if self.fields_left_out:
            named = ", ".join(f"{printable(name)} ({count})" for name, count in sorted(self.fields_left_out.items()))
            what = say("sessions.left_fields", names=named)
            lines.append(say("sessions.left_count", count=self.fields_left_out.total(), what=what))
        return tuple(lines)

    def prompt(self, parts: Iterable[Part], timestamp_ms: int) -> DraftPrompt:
        return self._add(DraftPrompt(tuple(parts), timestamp_ms))

    def answer(self, answer: DraftAnswer) -> DraftAnswer:
        if self.tip is None:  # no service accepts a conversation that begins with an answer
            self.leave_out(say("sessions.left_missing_prompt"))
            self.prompt((Text(OPENING),), answer.timestamp_ms)
        parts, answer.parts = answer.parts, ()
        self._add(answer)
        return self.extend(answer, parts)

    def extend(self, answer: DraftAnswer, parts: Iterable[Part]) -> DraftAnswer:
        answer.parts += tuple(self._make_id_unique(answer, part) if isinstance(part, ToolCall) else part for part in parts)
        return answer

    def result(
        self,
        call_id: str,
        content: Sequence[ResultPart],
        timestamp_ms: int,
        *,
        is_error: bool = False,
        outcome: ToolOutcome | None = None,
        display: str = "",
    ) -> bool:
        """Add the result of the latest open call with this id. If there is none, count it as not carried and return False."""
        waiting = self._waiting.get(call_id)
        if not waiting:
            again = call_id in self._answered
            self.leave_out(say("sessions.left_second_result" if again else "sessions.left_stray_result"))
            return False
        latest = waiting[-1][0]
        place = next(place for place, (answer, _) in enumerate(waiting) if answer is latest)
        answer, own_id = waiting.pop(place)
        self._answered.add(call_id)
        answer.results[own_id] = DraftResult(
            tuple(content), is_error, outcome or ("failed" if is_error else "finished"), timestamp_ms, display
        )
        return True

    def has_result(self, call_id: str) -> bool:
        """Whether there was a call with this id and every such call has its result."""
        return call_id in self._answered and not self._waiting.get(call_id)

    def compress(self, summary: str, timestamp_ms: int, *, before: Step | None = None, original_tokens: int = 0) -> None:
        """A summary replaces everything so far, or everything before a step that was kept."""
        through = before.follows if before is not None else self.tip
        message = Message("user", (Text(summary),))
        self._events.append(DraftCompression(message, timestamp_ms, through, original_tokens))

    def rewind(self, to: Step | None, timestamp_ms: int) -> None:
        """Go back to the state after a step; None: to the beginning."""
        if to is not self.tip:
            self._events.append(Rewind(to, timestamp_ms))
            self.tip = to

    def choose_model(self, model: str, deployment: str, timestamp_ms: int) -> None:
        if model:
            self._events.append(ModelChoice(model, deployment, timestamp_ms))

    @property
    def steps(self) -> list[Step]:
        """Prompts and answers in the order of the file."""
        return [event for event in self._events if isinstance(event, DraftPrompt | DraftAnswer)]

    @property
    def is_empty(self) -> bool:
        return not any(isinstance(event, DraftPrompt | DraftAnswer) for event in self._events)

    def conversation(self) -> list[Step]:
        """The steps that led to the tip, from the beginning."""
        steps: list[Step] = []
        step = self.tip
        while step is not None:
            steps.append(step)
            step = step.follows
        return steps[::-1]

    # --- bytes

    def media(self, mime: str, data: str) -> Blob | Text:
        """Base64 as a blob. If it cannot be stored, a text tells the model that something was there."""
        try:
            decoded = b64decode(data, validate=True)
        except ValueError:
            decoded = b""
        if not decoded or self._blobs is None or not mime:
            self.leave_out(say("sessions.left_media_no_place" if decoded else "sessions.left_media_undecodable"))
            return Text(f"[{mime or 'media'}: not imported]")
        return self._blobs.put(mime, decoded)

    def media_url(self, url: str, mime: str = "image/png") -> ResultPart:
        """A data: URL as a blob, any other URL as a file reference."""
        if not url.startswith("data:"):
            return FileRef(mime, url)
        head, _, data = url.removeprefix("data:").partition(",")
        return self.media(head.partition(";")[0], data)

    # --- conversion to our record

    def entries(self, source: str, path: str, session_id: str = "", changed_ms: int = 0) -> tuple[Entry, ...]:
        """The entries, numbered in order, beginning with Started. The same file gives the same entries.

        Where the source tells no time, entries have none (0). Only the id is made from when the file was changed: it has to have some date.
        """
        started_ms = self.started_ms or next((event.timestamp_ms for event in self._events if event.timestamp_ms), 0)
        own_id = session_id or _session_id(started_ms or changed_ms, f"{source} {self.source_id or path}")
        chosen = first = next((each for event in self._events if (each := _model_of(event))), ("", ""))
        entries: list[Entry] = [
            Started(1, started_ms, own_id, directories=self.directories, versions=self.versions, imported_from=f"{source} {path}"),
            Configured(2, started_ms, first[0], session_id=own_id, deployment=first[1]),
        ]
        if self.title:
            entries.append(Titled(3, started_ms, self.title))
        clock = _Clock(len(entries), started_ms)
        beginning = clock.seq
        chosen_after: dict[int, tuple[str, str]] = {beginning: first}
        for event in self._events:
            if (model := _model_of(event)) and model != chosen:
                chosen = model
                entries.append(ModelChanged(*clock.tick(event), *chosen))
            match event:
                case DraftPrompt():
                    entries.append(Said(*clock.tick(event), Message("user", event.parts), by="person"))
                    event.last_seq = clock.seq
                case DraftAnswer():
                    entries += self._answer(event, clock)
                    event.last_seq = clock.seq
                case DraftCompression(summary=summary, through=through):
                    last = through.last_seq if through is not None else beginning
                    entries.append(Compressed(*clock.tick(event), last, summary, event.original_tokens))
                case Rewind(to=to):
                    back = to.last_seq if to is not None else beginning
                    entries.append(Rewound(*clock.tick(event), back))
                    chosen = chosen_after.get(back, first)
                case ModelChoice():
                    pass
                case _:
                    assert_never(event)
            chosen_after[clock.seq] = chosen
        return tuple(entries)

    def _answer(self, step: DraftAnswer, clock: _Clock) -> Iterator[Entry]:
        message = Message("assistant", step.parts)
        said_seq, said_ms = clock.tick(step)
        yield Said(said_seq, said_ms, message, step.model, step.usage, step.finish, step.raw_finish, step.response_id, by="model")
        if rejected := step.rejected or ("" if _has_content(message) else "it says nothing"):
            yield AnswerRejected(*clock.tick(step), said_seq, rejected)
        for call in message.calls:
            result = step.results.get(call.id)
            if result is None:
                self.leave_out(say("sessions.left_missing_result"))
                words = NOT_RUN if step.unanswered == "not_run" else INTERRUPTED
                result = DraftResult((Text(words),), True, step.unanswered, step.timestamp_ms, "")
            tool_result = ToolResult(call.id, call.name, result.content, result.is_error)
            yield ToolFinished(*clock.tick(result), tool_result, result.outcome, result.display)

    def _add(self, step: _S) -> _S:
        step.follows = self.tip
        self._events.append(step)
        self.tip = step
        return step

    def _make_id_unique(self, answer: DraftAnswer, call: ToolCall) -> ToolCall:
        own_id = unique_id(call.id, self._taken)
        self._taken.add(own_id)
        self._waiting.setdefault(call.id, []).append((answer, own_id))
        return call if own_id == call.id else msgspec.structs.replace(call, id=own_id)


class _Clock:
    """Numbers entries, and gives those without a time the last known one."""

    def __init__(self, seq: int, timestamp_ms: int) -> None:
        self.seq = seq
        self._timestamp_ms = timestamp_ms

    def tick(self, step: _Event | DraftResult) -> tuple[int, int]:
        self.seq += 1
        self._timestamp_ms = step.timestamp_ms or self._timestamp_ms
        return self.seq, self._timestamp_ms


def printable(text: str) -> str:
    """Text from a foreign file, made safe to show on a terminal."""
    return fit(one_line(text), _MOST_COLUMNS)


def _model_of(event: _Event) -> tuple[str, str] | None:
    if isinstance(event, DraftAnswer | ModelChoice) and event.model:
        return event.model, event.deployment
    return None


def _has_content(message: Message) -> bool:
    return bool(message.calls) or any(not isinstance(part, Text) or part.text.strip() for part in message.parts)


def _session_id(started_ms: int, name: str) -> str:
    when = datetime.fromtimestamp(started_ms / 1000, UTC)
    return f"{when:%Y%m%d-%H%M%S}-{sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"
