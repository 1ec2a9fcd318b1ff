"""The record as it grows: entries in, views out. Every entry goes to the journal before anything else uses it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal, TypeVar

from dragoman.base.clock import now_ms
from dragoman.context.cache import Cache
from dragoman.context.view import View
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.events import FieldOmitted
from dragoman.values.messages import Message, Request, Response, Settings, ToolCall, ToolResult, ToolSpec, tool_result
from dragoman.values.parts import INTERRUPTED, check_roles, to_messages
from dragoman.values.record import (
    About,
    AnswerRejected,
    CommandOutput,
    Compressed,
    Configured,
    Entry,
    FieldRefused,
    FileChange,
    FilesChanged,
    FilesKept,
    FilesRestored,
    FileVersion,
    Journal,
    ModelChanged,
    NoSummary,
    NotCompressed,
    Pruned,
    Rewound,
    Said,
    Speaker,
    Spent,
    Started,
    Titled,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolPostponed,
    ToolStarted,
    WaitsFor,
    sum_usage,
)
from dragoman.values.usage import Usage

NOT_RUN = "Interrupted before it was finished. It had changed nothing: call it again if you need it."
_E = TypeVar("_E", bound=Entry)


class History:
    """One record. Entries are appended and never edited; `view` is what the model sees, `transcript` everything that was said."""

    def __init__(self, journal: Journal | None = None, *, entries: Iterable[Entry] = (), now_ms: Callable[[], int] = now_ms) -> None:
        self.entries: list[Entry] = []
        self.view = View()
        self.cache = Cache()
        self._journal = journal
        self._now_ms = now_ms
        for entry in entries:
            self._check_role(entry)
            self._feed(entry)

    # --- views

    @property
    def request(self) -> Request:
        """The request that would be sent next."""
        return self.view.request

    def now_ms(self) -> int:
        """The time the next entry would have."""
        return self._now_ms()

    def curated(self) -> tuple[Message, ...]:
        """The messages that may be sent."""
        return self.view.messages

    def transcript(self, *, current: bool = False) -> tuple[Message, ...]:
        """Everything that was said and every result in its original form: including rejected, pruned and rewound ones. With `current`,
        without what was rewound, cleared or replaced."""
        gone: Collection[int] = ()
        if current and any(isinstance(entry, Rewound) for entry in self.entries):
            from dragoman.context.plan_path import find_rewound

            gone = find_rewound(self.entries)
        return tuple(_as_message(entry) for entry in self.entries if isinstance(entry, Said | ToolFinished) and entry.seq not in gone)

    @property
    def usage(self) -> Usage:
        """The usage of all answers and summaries together, rejected ones included: they were paid for."""
        return sum_usage(self.entries)

    def to_json(self) -> str:
        """All entries as a JSON array, in the form a session's log has them. The bytes of images and files are not in it."""
        from dragoman.loop.history_json import to_json

        return to_json(self.entries)

    @classmethod
    def from_json(cls, text: str | bytes) -> History:
        """A history that sends the same requests as the one `to_json` was called on. Raises InputError."""
        from dragoman.loop.history_json import from_json

        return cls(entries=from_json(text))

    # --- events

    def start(
        self,
        session_id: str,
        project: str = "",
        directories: Iterable[str] = (),
        versions: Iterable[str] = (),
        *,
        forked_from: str = "",
        imported_from: str = "",
    ) -> Started:
        """The head of a session that is saved."""
        places = tuple(directories), tuple(versions)
        return self.append(Started(*self.stamp(), session_id, project, *places, forked_from=forked_from, imported_from=imported_from))

    def configure(
        self,
        model: str,
        system: str = "",
        tools: Iterable[ToolSpec] = (),
        settings: Settings | None = None,
        *,
        session_id: str = "",
        placeholder: str = "",
        other_placeholder: str = "",
        deployment: str = "",
        directories: Iterable[str] = (),
        versions: Iterable[str] = (),
        window: int = 0,
        agent: str = "",
        boundary: Literal["", "external", "off"] = "",
        dialect: str = "",
    ) -> Configured:
        """The configuration from here on. An empty id, placeholder or deployment keeps the old value."""
        configured = Configured(
            *self.stamp(), model, system, tuple(tools), settings or Settings(), session_id=session_id, directories=tuple(directories),
            versions=tuple(versions), placeholder=placeholder, other_placeholder=other_placeholder, deployment=deployment, window=window,
            agent=agent, boundary=boundary, dialect=dialect,
        )  # fmt: skip
        return self.append(configured)

    def say(self, message: Message | Mapping[str, Any], about: About = "", files: tuple[FileVersion, ...] = ()) -> Said:
        """A prompt, or with `about` a message from the program. It may be a dict as other APIs write messages."""
        if not isinstance(message, Message):
            (message,) = to_messages((message,))
        by: Speaker = "program" if about else "model" if message.role == "assistant" else "person"
        return self.append(Said(*self.stamp(), message, by=by, about=about, files=files))

    def answer(self, response: Response, model: str = "", *, sent_ms: int = 0, first_ms: int = 0) -> Said:
        """An answer with its metadata. It is recorded even if it is then rejected."""
        said = Said(
            *self.stamp(), response.message, model or self.view.model, response.usage, response.finish, response.raw_finish,
            response.response_id, response.model_version, by="model", ratings=response.ratings, sent_ms=sent_ms, first_ms=first_ms,
        )  # fmt: skip
        return self.append(said)

    def reject(self, said: Said, reason: str, retry_temperature: float | None = None) -> AnswerRejected:
        return self.append(AnswerRejected(*self.stamp(), said.seq, reason, retry_temperature))

    def start_tool(self, call: ToolCall, arguments: str = "", *, outside: bool = False, read_only: bool = False) -> ToolStarted:
        return self.append(ToolStarted(*self.stamp(), call.id, call.name, arguments, outside, read_only))

    def postpone_tool(
        self, call: ToolCall, waits_for: WaitsFor, intent: Intent, arguments: str = "", repairs: tuple[str, ...] = ()
    ) -> ToolPostponed:
        shown = (intent.title, intent.preview, intent.writes, intent.guarded)
        return self.append(ToolPostponed(*self.stamp(), call.id, call.name, waits_for, arguments, *shown, repairs, intent.outside))

    def decide_tool(self, call_id: str, decision: Allow | Deny) -> ToolDecided:
        if isinstance(decision, Deny):
            return self.append(ToolDecided(*self.stamp(), call_id, allowed=False, reason=decision.reason))
        return self.append(ToolDecided(*self.stamp(), call_id, True, decision.arguments, decision.remember))

    def finish_tool(
        self,
        result: ToolResult,
        outcome: ToolOutcome = "finished",
        display: str = "",
        extras: str = "",
        *,
        saw: tuple[str, ...] = (),
        wrote: tuple[str, ...] = (),
        repairs: tuple[str, ...] = (),
        command: CommandOutput | None = None,
        files: tuple[FileVersion, ...] = (),
    ) -> ToolFinished:
        return self.append(ToolFinished(*self.stamp(), result, outcome, display, extras, saw, wrote, repairs, command, files))

    def close_interrupted(self) -> None:
        """Close calls left open by an interrupted session. Started ones may have had effects; nothing is run again automatically."""
        started = frozenset(self.view.started)
        for call in self.view.open_calls:
            known = call.id not in started
            self.finish_tool(tool_result(call, NOT_RUN if known else INTERRUPTED, is_error=True), "not_run" if known else "unknown")

    def change_files(self, call_id: str, files: Iterable[FileChange], *, unsure: bool = False) -> FilesChanged:
        return self.append(FilesChanged(*self.stamp(), call_id, tuple(files), unsure))

    def keep_files(self, call_id: str, files: Iterable[FileChange], *, whole: bool = False) -> FilesKept:
        return self.append(FilesKept(*self.stamp(), call_id, tuple(files), whole))

    def restore_files(self, changes: Iterable[FilesChanged], files: Iterable[FileChange] = ()) -> FilesRestored:
        return self.append(FilesRestored(*self.stamp(), tuple(change.seq for change in changes), tuple(files)))

    def prune(self, call_ids: Iterable[str], saved_tokens: int = 0, reason: str = "", premium_tokens: int = 0, window: int = 0) -> Pruned:
        return self.append(Pruned(*self.stamp(), tuple(call_ids), saved_tokens, reason, premium_tokens, window))

    def compress(
        self,
        through: Entry | int,
        summary: Message,
        original_tokens: int = 0,
        new_tokens: int = 0,
        *,
        after: Entry | int = 0,
        model: str = "",
        usage: Usage | None = None,
        window: int = 0,
        kept_seqs: tuple[int, ...] = (),
    ) -> Compressed:
        """The summary replaces everything after `after` up to and including `through` (entries or their seqs), but for `kept_seqs`."""
        seqs = [entry if isinstance(entry, int) else entry.seq for entry in (through, after)]
        return self.append(
            Compressed(*self.stamp(), seqs[0], summary, original_tokens, new_tokens, seqs[1], model, usage, window, kept_seqs)
        )

    def not_compressed(
        self, status: NoSummary, tokens: int = 0, reason: str = "", *, model: str = "", usage: Usage | None = None
    ) -> NotCompressed:
        return self.append(NotCompressed(*self.stamp(), status, tokens, reason, model, usage))

    def spend(self, model: str, usage: Usage, what: str = "", deployment: str = "", *, call_id: str = "", session_id: str = "") -> Spent:
        return self.append(Spent(*self.stamp(), model, usage, what, deployment, call_id, session_id))

    def change_model(self, model: str, deployment: str = "", window: int = 0, dialect: str = "") -> ModelChanged:
        return self.append(ModelChanged(*self.stamp(), model, deployment, window, dialect))

    def refuse_field(self, omitted: FieldOmitted) -> FieldRefused | None:
        """A field that requests to this model leave out from here on; None if the record says so already."""
        if omitted.field in self.view.refused.get((omitted.deployment, omitted.model), ()):
            return None
        return self.append(FieldRefused(*self.stamp(), omitted.deployment, omitted.model, omitted.field, omitted.reason))

    def rewind(self, to: Entry | int) -> Rewound:
        return self.append(Rewound(*self.stamp(), to if isinstance(to, int) else to.seq))

    def merge(self, messages: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
        """Append what a service's own call history (the documents' automaticFunctionCallingHistory) has beyond this one; see `merging`."""
        from dragoman.loop.merging import merge

        return merge(self, messages)

    def title(self, title: str) -> Titled:
        return self.append(Titled(*self.stamp(), title))

    async def sync(self) -> None:
        """Returns when everything that happened is stored durably."""
        if self._journal is not None:
            await self._journal.sync()

    # --- saving

    def attach_journal(self, journal: Journal, entries: Iterable[Entry] = ()) -> None:
        """From now on entries go to this journal, which already holds `entries`. Only before anything has happened, and once."""
        if self.entries or self._journal is not None:
            raise ValueError("a history is given its journal before anything happens")
        self._journal = journal
        for entry in entries:
            self._feed(entry)

    def stamp(self) -> tuple[int, int]:
        return (self.entries[-1].seq + 1 if self.entries else 1), self._now_ms()

    def _check_role(self, entry: Entry) -> None:
        """Services know two roles, and would take any other for the user's."""
        if isinstance(entry, Said):
            check_roles((entry.message,), len(self.view.items))

    def append(self, entry: _E) -> _E:
        self._check_role(entry)
        if self._journal is not None:
            self._journal.append(entry)
        self._feed(entry)
        return entry

    def _feed(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.view.feed(entry)
        self.cache.feed(entry)


def _as_message(entry: Said | ToolFinished) -> Message:
    return entry.message if isinstance(entry, Said) else Message("user", (entry.result,))
