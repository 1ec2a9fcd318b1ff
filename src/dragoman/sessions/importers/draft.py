"""A session on its way in: what another program recorded, step by step, until it is numbered and becomes a record of ours.

A step is a prompt, or an answer with the results of its calls. Sources interleave these as they like; here results stand behind their
answer, every call has exactly one, and call ids are unique. What has no place in our record is counted, under the words it is told in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar, assert_never

import msgspec

from dragoman.base.graphemes import fit
from dragoman.base.text import one_line
from dragoman.values.contracts import BlobStore
from dragoman.values.messages import Blob, FileRef, FinishReason, Message, Part, Text, ToolCall, ToolResult
from dragoman.values.parts import INTERRUPTED, unique_id
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

OPENING = "(The beginning of this conversation was not imported.)"
NOT_RUN = "not run: the answer was broken off"

_NOTHING: tuple[object, ...] = (None, False, "", [], {})
_MOST_COLUMNS = 100

ResultPart = Text | Blob | FileRef


class Result(msgspec.Struct):
    content: tuple[ResultPart, ...]
    is_error: bool
    outcome: ToolOutcome
    timestamp_ms: int
    display: str


class Prompt(msgspec.Struct):
    parts: tuple[Part, ...]
    timestamp_ms: int
    follows: Prompt | Answer | None = None
    """The step before it in its conversation; in the file another may stand there, of a branch that was left."""
    last_seq: int = 0


class Answer(msgspec.Struct):
    """What the model said. It may still grow: some programs write an answer over several lines."""

    parts: tuple[Part, ...]
    timestamp_ms: int
    model: str = ""
    deployment: str = ""
    usage: Usage | None = None
    finish: FinishReason | None = None
    raw_finish: str = ""
    response_id: str = ""
    rejected: str = ""
    """Why the model is never shown it again, where that is so."""
    unanswered: ToolOutcome = "unknown"
    """What became of its calls that have no result."""
    results: dict[str, Result] = msgspec.field(default_factory=dict)
    follows: Prompt | Answer | None = None
    last_seq: int = 0


Step = Prompt | Answer
_S = TypeVar("_S", Prompt, Answer)


class Compression(msgspec.Struct):
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


_Event = Step | Compression | Rewind | ModelChoice


class Draft:
    def __init__(self, blobs: BlobStore | None = None) -> None:
        self.source_id = ""
        self.started_ms = 0
        self.title = ""
        self.directories: tuple[str, ...] = ()
        self.versions: tuple[str, ...] = ()
        self.tip: Step | None = None
        """The last step of the conversation as it now stands: after a rewind an earlier one."""
        self.left_out: Counter[str] = Counter()
        self.fields_left_out: Counter[str] = Counter()
        self._blobs = blobs
        self._events: list[_Event] = []
        self._taken: set[str] = set()
        self._waiting: dict[str, list[tuple[Answer, str]]] = {}
        self._answered: set[str] = set()

    # --- what happened

    def leave(self, what: str, count: int = 1) -> None:
        """Say that something is not carried."""
        if count > 0:
            self.left_out[what] += count

    def leave_fields(self, record: Mapping[str, object], known: frozenset[str]) -> None:
        """Say which fields of a record that is carried are not: those beyond the known that hold something."""
        self.fields_left_out.update(key for key in record.keys() - known if record[key] not in _NOTHING)

    @property
    def not_carried(self) -> tuple[str, ...]:
        lines = [f"{count} × {printable(what)}" for what, count in self.left_out.most_common()]
        if self.fields_left_out:
            named = ", ".join(f"{printable(name)} ({count})" for name, count in sorted(self.fields_left_out.items()))
            lines.append(f"{self.fields_left_out.total()} × a field we have no place for: {named}")
        return tuple(lines)

    def prompt(self, parts: Iterable[Part], timestamp_ms: int) -> Prompt:
        return self._add(Prompt(tuple(parts), timestamp_ms))

    def answer(self, answer: Answer) -> Answer:
        if self.tip is None:  # no service takes a conversation that opens with an answer
            self.leave("a prompt that the file does not have (the conversation opens with an answer)")
            self.prompt((Text(OPENING),), answer.timestamp_ms)
        parts, answer.parts = answer.parts, ()
        self._add(answer)
        return self.extend(answer, parts)

    def extend(self, answer: Answer, parts: Iterable[Part]) -> Answer:
        answer.parts += tuple(self._with_own_id(answer, part) if isinstance(part, ToolCall) else part for part in parts)
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
        """The result of the latest open call that had this id. False, and counted, where there is none."""
        waiting = self._waiting.get(call_id)
        if not waiting:
            again = call_id in self._answered
            self.leave("a further result of a call that had one" if again else "a result whose call is not in the file")
            return False
        latest = waiting[-1][0]
        place = next(place for place, (answer, _) in enumerate(waiting) if answer is latest)
        answer, own_id = waiting.pop(place)
        self._answered.add(call_id)
        answer.results[own_id] = Result(tuple(content), is_error, outcome or ("failed" if is_error else "finished"), timestamp_ms, display)
        return True

    def has_result(self, call_id: str) -> bool:
        """Whether every call of this id has its result, and there was one."""
        return call_id in self._answered and not self._waiting.get(call_id)

    def compress(self, summary: str, timestamp_ms: int, *, before: Step | None = None, original_tokens: int = 0) -> None:
        """A summary stands for everything so far, or for what came before a step that was kept."""
        through = before.follows if before is not None else self.tip
        message = Message("user", (Text(summary),))
        self._events.append(Compression(message, timestamp_ms, through, original_tokens))

    def rewind(self, to: Step | None, timestamp_ms: int) -> None:
        """Back to how things stood after a step; None: to the beginning."""
        if to is not self.tip:
            self._events.append(Rewind(to, timestamp_ms))
            self.tip = to

    def choose_model(self, model: str, deployment: str, timestamp_ms: int) -> None:
        if model:
            self._events.append(ModelChoice(model, deployment, timestamp_ms))

    @property
    def is_empty(self) -> bool:
        return not any(isinstance(event, Prompt | Answer) for event in self._events)

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
        """Base64 as a blob. Where it cannot be kept, the model is told that something was there."""
        from base64 import b64decode

        try:
            decoded = b64decode(data, validate=True)
        except ValueError:
            decoded = b""
        if not decoded or self._blobs is None or not mime:
            self.leave("media without a place to keep it" if decoded else "media that cannot be decoded")
            return Text(f"[{mime or 'media'}: not imported]")
        return self._blobs.put(mime, decoded)

    def media_url(self, url: str, mime: str = "image/png") -> ResultPart:
        """A data: URL as a blob, any other address as what it is."""
        if not url.startswith("data:"):
            return FileRef(mime, url)
        head, _, data = url.removeprefix("data:").partition(",")
        return self.media(head.partition(";")[0], data)

    # --- as a record of ours

    def entries(self, source: str, path: str, session_id: str = "") -> tuple[Entry, ...]:
        """Numbered, in order, beginning with Started. The same file gives the same entries."""
        started_ms = self.started_ms or next((event.timestamp_ms for event in self._events if event.timestamp_ms), 0)
        own_id = session_id or _session_id(started_ms, f"{source} {self.source_id or path}")
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
                case Prompt():
                    entries.append(Said(*clock.tick(event), Message("user", event.parts)))
                    event.last_seq = clock.seq
                case Answer():
                    entries += self._answer(event, clock)
                    event.last_seq = clock.seq
                case Compression(summary=summary, through=through):
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

    def _answer(self, step: Answer, clock: _Clock) -> Iterator[Entry]:
        message = Message("assistant", step.parts)
        said_seq, said_ms = clock.tick(step)
        yield Said(said_seq, said_ms, message, step.model, step.usage, step.finish, step.raw_finish, step.response_id)
        if rejected := step.rejected or ("" if _says_something(message) else "it says nothing"):
            yield AnswerRejected(*clock.tick(step), said_seq, rejected)
        for call in message.calls:
            result = step.results.get(call.id)
            if result is None:
                self.leave("a result that the file does not have (its call is closed as interrupted)")
                words = NOT_RUN if step.unanswered == "not_run" else INTERRUPTED
                result = Result((Text(words),), True, step.unanswered, step.timestamp_ms, "")
            told = ToolResult(call.id, call.name, result.content, result.is_error)
            yield ToolFinished(*clock.tick(result), told, result.outcome, result.display)

    def _add(self, step: _S) -> _S:
        step.follows = self.tip
        self._events.append(step)
        self.tip = step
        return step

    def _with_own_id(self, answer: Answer, call: ToolCall) -> ToolCall:
        own_id = unique_id(call.id, self._taken)
        self._taken.add(own_id)
        self._waiting.setdefault(call.id, []).append((answer, own_id))
        return call if own_id == call.id else msgspec.structs.replace(call, id=own_id)


class _Clock:
    """Numbers entries, and lends the last time known to those that have none."""

    def __init__(self, seq: int, timestamp_ms: int) -> None:
        self.seq = seq
        self._timestamp_ms = timestamp_ms

    def tick(self, step: _Event | Result) -> tuple[int, int]:
        self.seq += 1
        self._timestamp_ms = step.timestamp_ms or self._timestamp_ms
        return self.seq, self._timestamp_ms


def printable(text: str) -> str:
    """Words out of a foreign file as they may be shown on a terminal."""
    return fit(one_line(text), _MOST_COLUMNS)


def _model_of(event: _Event) -> tuple[str, str] | None:
    if isinstance(event, Answer | ModelChoice) and event.model:
        return event.model, event.deployment
    return None


def _says_something(message: Message) -> bool:
    return bool(message.calls) or any(not isinstance(part, Text) or part.text.strip() for part in message.parts)


def _session_id(started_ms: int, name: str) -> str:
    from datetime import UTC, datetime
    from hashlib import sha256

    when = datetime.fromtimestamp(started_ms / 1000, UTC)
    return f"{when:%Y%m%d-%H%M%S}-{sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"
