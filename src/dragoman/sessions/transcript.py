"""A session as a person saw it: entries in, steps out, including rejected, cancelled and rewound ones.

`TranscriptReader` takes entries as they come and says which steps are new or changed, so that a view follows a record as it grows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Literal

import msgspec

from dragoman.sessions.last_run import LastRun, next_run
from dragoman.sessions.titles import own_words
from dragoman.values.messages import Blob, Citation, FileRef, Part, Text, Thought, ToolCall, said_text
from dragoman.values.notes import is_note, is_setup
from dragoman.values.parts import text_of
from dragoman.values.record import (
    AnswerRejected,
    AnswerUnchecked,
    AttemptFailed,
    CommandOutput,
    Compressed,
    Configured,
    Entry,
    FieldRefused,
    FilesChanged,
    FilesRestored,
    Kept,
    ModelChanged,
    Pruned,
    Rewound,
    RunEnded,
    Said,
    Started,
    Titled,
    ToolFinished,
    ToolOutcome,
    ToolPostponed,
    ToolStarted,
    Unknown,
    fold,
    usage_of,
)
from dragoman.values.usage import Usage


class _Step(msgspec.Struct, frozen=True):
    seq: int
    timestamp_ms: int
    taken_back: bool
    """A rewind went back to before it: the model no longer sees it."""


class Prompt(_Step, frozen=True):
    parts: tuple[Part, ...]
    is_setup: bool = False
    """The program's first message, which describes the surroundings to the model."""
    is_note: bool = False
    """Another message from the program to the model, during a run."""

    @property
    def text(self) -> str:
        """What was written, without what it brings along."""
        return said_text(self.parts)


class Reply(_Step, frozen=True):
    parts: tuple[Part, ...]
    model: str = ""
    usage: Usage | None = None
    rejected: str = ""
    """Why the answer does not count; empty if it does."""
    broken_off: str = ""
    """`cancelled` or `broken off` if it is incomplete."""
    sent_ms: int = 0
    """This and the next: as in Said."""
    first_ms: int = 0

    @property
    def text(self) -> str:
        return text_of(self.parts)

    @property
    def thoughts(self) -> tuple[str, ...]:
        return tuple(part.text for part in self.parts if isinstance(part, Thought) and part.text)

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(part for part in self.parts if isinstance(part, Citation))


class ToolCallStep(_Step, frozen=True):
    """A call and its outcome. The arguments are those it ran with."""

    call: ToolCall
    outcome: ToolOutcome | Literal["waits_for_decision", "waits_for_result"]
    content: tuple[Text | Blob | FileRef, ...] = ()
    display: str = ""
    """What the person saw, if that differs from what the model got."""
    has_result: bool = False
    finished_ms: int = 0
    outside: bool = False
    """It ran a command outside the sandbox."""
    command: CommandOutput | None = None
    """As in ToolFinished."""
    started_ms: int = 0
    """When it began to run. 0: it did not, or it changes nothing and its log is of an earlier version."""
    changed: tuple[str, ...] = ()
    """Files it wrote."""

    @property
    def output(self) -> str:
        return text_of(self.content)


NoteKind = Literal[
    "model",
    "pruned",
    "kept",
    "not_kept",
    "compressed",
    "rewound",
    "restored",
    "redone",
    "field_refused",
    "unchecked",
    "attempt_failed",
    "run_ended",
    "unknown",
]


class Note(_Step, frozen=True):
    """An event in the conversation that is not a message."""

    kind: NoteKind
    about: str = ""
    window: int = 0
    """It holds for models with a window up to this one only; 0: for all."""
    of: AttemptFailed | RunEnded | None = None
    """The entry, where it has more to say."""


Step = Prompt | Reply | ToolCallStep | Note


class Transcript(msgspec.Struct, frozen=True):
    steps: tuple[Step, ...]
    session_id: str = ""
    project: str = ""
    directories: tuple[str, ...] = ()
    imported_from: str = ""
    """The program and the file it came from; empty if it is our own."""
    title: str = ""
    """Empty if it was never given one."""
    model: str = ""
    """The last one that was set."""
    started_ms: int = 0
    updated_ms: int = 0
    usage: Usage = Usage()
    run: LastRun = LastRun()
    """How its last run stands, by its record alone."""
    parent: str = ""
    """The session in which its agent was called,"""
    parent_call: str = ""
    """and the call there."""

    @property
    def first_prompt(self) -> str:
        prompts = (step.text for step in self.steps if isinstance(step, Prompt) and not step.is_setup and not step.is_note)
        return next(filter(str.strip, map(own_words, prompts) if self.imported_from else prompts), "")


def read_transcript(entries: Iterable[Entry]) -> Transcript:
    reading = TranscriptReader()
    for entry in entries:
        reading.take(entry)
    return reading.transcript


class TranscriptReader:
    """Entries in, one after the other; `steps` and `transcript` are how the session looks so far."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._changed: set[int] = set()
        """Indices of the steps that the last entry added or changed."""
        self._places: dict[str, int] = {}
        """Call ids → index of the step of the last call with that id."""
        self._done: set[int] = set()
        """Indices of the calls that have their result."""
        self._replies: dict[int, int] = {}
        """Seqs of answers → index of the step."""
        self._rejected: dict[int, str] = {}
        self._path = _Path()
        self._head = Started(0, 0, "")
        self._session_id = self._title = self._model = ""
        self._directories: tuple[str, ...] = ()
        self._began_ms: int | None = None
        self._updated_ms = 0
        self._usage = Usage()
        self._run = LastRun()

    def take(self, entry: Entry) -> list[int]:
        """Returns the indices of the steps that are new or changed, in order. Steps never change places."""
        self._changed.clear()
        self._began_ms = entry.timestamp_ms if self._began_ms is None else self._began_ms
        self._updated_ms = entry.timestamp_ms
        self._run = next_run(self._run, entry)
        turned = self._path.take(entry)
        self._read(entry)
        if turned:
            self._mark_taken_back()
        return sorted(self._changed)

    @fold("transcript")
    def _read(self, entry: Entry) -> None:
        self._usage += usage_of(entry) or Usage()
        match entry:
            case Started():
                self._head = entry
            case Configured():
                self._session_id = entry.session_id or self._session_id
                self._directories = entry.directories or self._directories
                self._change_model(entry, entry.model, entry.deployment)
            case ModelChanged():
                self._change_model(entry, entry.model, entry.deployment)
            case Titled(title=title):
                self._title = title
            case Said(message=message) if message.role == "user":
                self._add(Prompt(*self._place(entry), message.parts, is_setup(entry.about), is_note(entry.about)))
            case Said():
                self._answer(entry)
            case AnswerRejected():
                self._reject(entry)
            case ToolStarted():
                self._start(entry)
            case ToolPostponed():
                self._postpone(entry)
            case ToolFinished():
                self._finish(entry)
            case FilesChanged():
                self._note_files(entry)
            case Pruned(call_ids=call_ids):
                self._note(entry, "pruned", str(len(call_ids)), entry.window)
            case Kept(call_ids=call_ids):
                self._note(entry, "kept" if entry.held else "not_kept", str(len(call_ids)))
            case Compressed(summary=summary):
                self._note(entry, "compressed", summary.text, entry.window)
            case Rewound(to_seq=to_seq):
                self._note(entry, "rewound", str(to_seq))
            case FilesRestored(seqs=seqs):
                self._note(entry, "redone" if entry.redoes else "restored", str(len(seqs)))
            case Unknown(json=json):
                self._note(entry, "unknown", json)
            case AnswerUnchecked(reason=reason):
                self._note(entry, "unchecked", reason)
            case FieldRefused():
                self._note(entry, "field_refused", f"{entry.deployment}/{entry.model}: {entry.field}")
            case AttemptFailed(words=words):
                self._add(Note(*self._place(entry), "attempt_failed", words, of=entry))
            case RunEnded(outcome=outcome, words=words) if outcome not in ("answered", "pending"):  # its answer says it, or its calls
                self._add(Note(*self._place(entry), "run_ended", words, of=entry))
            case _:
                pass

    @property
    def transcript(self) -> Transcript:
        return self._facts(tuple(self.steps))

    @property
    def facts(self) -> Transcript:
        """The same without its steps: it costs nothing to ask for it again and again."""
        return self._facts(())

    def _facts(self, steps: tuple[Step, ...]) -> Transcript:
        return Transcript(
            steps,
            session_id=self._head.session_id or self._session_id,
            project=self._head.project,
            directories=self._head.directories or self._directories,
            imported_from=self._head.imported_from,
            title=self._title,
            model=self._model,
            started_ms=self._began_ms or 0,
            updated_ms=self._updated_ms,
            usage=self._usage,
            run=self._run,
            parent=self._head.parent,
            parent_call=self._head.parent_call,
        )

    def _answer(self, entry: Said) -> None:
        broken_off = entry.raw_finish if entry.raw_finish in ("cancelled", "broken off") else ""
        rejected = self._rejected.get(entry.seq, "")
        place = self._place(entry)
        parts = tuple(part for part in entry.message.parts if not isinstance(part, ToolCall))
        self._replies[entry.seq] = len(self.steps)
        self._add(Reply(*place, parts, entry.model, usage_of(entry), rejected, broken_off, entry.sent_ms, entry.first_ms))
        for call in entry.message.calls:
            self._places[call.id] = len(self.steps)
            self._add(ToolCallStep(*place, call, "not_run"))

    def _reject(self, entry: AnswerRejected) -> None:
        self._rejected[entry.said_seq] = entry.reason
        index = self._replies.get(entry.said_seq, -1)
        step = self.steps[index] if index >= 0 else None
        if isinstance(step, Reply):
            self._set(index, msgspec.structs.replace(step, rejected=entry.reason))

    def _start(self, entry: ToolStarted) -> None:
        """From here on it may have had effects, even if its end is unknown; not where it only reads."""
        index, step = self._open(entry.call_id)
        if step is None or index in self._done:
            return
        step = msgspec.structs.replace(step, started_ms=entry.timestamp_ms)
        if not entry.read_only:
            call = msgspec.structs.replace(step.call, arguments=entry.arguments) if entry.arguments else step.call
            step = msgspec.structs.replace(step, call=call, outcome="unknown", outside=entry.outside)
        self._set(index, step)

    def _postpone(self, entry: ToolPostponed) -> None:
        index, step = self._open(entry.call_id)
        if step is not None and index not in self._done:
            outcome = "waits_for_decision" if entry.waits_for == "decision" else "waits_for_result"
            self._set(index, msgspec.structs.replace(step, outcome=outcome))

    def _finish(self, entry: ToolFinished) -> None:
        index, step = self._open(entry.result.call_id)
        if step is None or index in self._done:  # a call has one result, the first
            return
        self._done.add(index)
        outcome = "failed" if entry.outcome == "finished" and entry.result.is_error else entry.outcome
        finished = msgspec.structs.replace(
            step,
            outcome=outcome,
            content=entry.result.content,
            display=entry.display,
            has_result=True,
            finished_ms=entry.timestamp_ms,
            command=entry.command,
        )
        self._set(index, finished)

    def _note_files(self, entry: FilesChanged) -> None:
        index, step = self._open(entry.call_id)
        if step is not None:
            written = [each.path for each in entry.files if each.after not in ("unknown", each.before)]  # not what is written ahead
            changed = tuple(dict.fromkeys((*step.changed, *written)))
            self._set(index, msgspec.structs.replace(step, changed=changed))

    def _open(self, call_id: str) -> tuple[int, ToolCallStep | None]:
        index = self._places.get(call_id, -1)
        step = self.steps[index] if index >= 0 else None
        return index, step if isinstance(step, ToolCallStep) else None

    def _change_model(self, entry: Configured | ModelChanged, model: str, deployment: str) -> None:
        if self._model and model != self._model:
            self._note(entry, "model", f"{deployment}/{model}" if deployment else model)
        self._model = model

    def _note(self, entry: Entry, kind: NoteKind, about: str, window: int = 0) -> None:
        self._add(Note(*self._place(entry), kind, about, window))

    def _place(self, entry: Entry) -> tuple[int, int, bool]:
        return entry.seq, entry.timestamp_ms, False

    def _add(self, step: Step) -> None:
        self.steps.append(step)
        self._changed.add(len(self.steps) - 1)

    def _set(self, index: int, step: Step) -> None:
        self.steps[index] = step
        self._changed.add(index)

    def _mark_taken_back(self) -> None:
        current = self._path.current_seqs()
        for index, step in enumerate(self.steps):
            if step.taken_back != (step.seq not in current):
                self._set(index, msgspec.structs.replace(step, taken_back=not step.taken_back))


class _Path:
    """Which entries count now: those after a rewind's target do not."""

    def __init__(self) -> None:
        self._follows: dict[int, int] = {}
        self._head = self._highest = 0

    def take(self, entry: Entry) -> bool:
        """Whether other entries than the new one may have come or gone: it goes back, or the log is damaged and its order is not that of
        the numbers."""
        turned = isinstance(entry, Rewound) or entry.seq <= self._highest or self._head != self._highest
        self._follows[entry.seq] = min(entry.to_seq if isinstance(entry, Rewound) else self._head, entry.seq - 1)
        self._head, self._highest = entry.seq, max(self._highest, entry.seq)
        return turned

    def current_seqs(self) -> set[int]:
        known, head = sorted(self._follows), self._head
        current: set[int] = set()
        while head in self._follows and head not in current:
            current.add(head)
            before = bisect_right(known, self._follows[head])  # an entry is missing: continue with the one before it
            head = known[before - 1] if before else 0
        return current
