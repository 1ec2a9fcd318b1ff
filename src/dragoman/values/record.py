"""The record: an append-only log of everything that happened in a session.

An entry is (seq, timestamp_ms, what happened). System prompt, tools, settings and model are entries too, so that the next Request
depends on the record alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import msgspec

from dragoman.base import jsontext
from dragoman.values.messages import FinishReason, Message, SafetyRating, Settings, ToolResult, ToolSpec
from dragoman.values.usage import Usage, usage_told

Fold = Literal["view", "cache", "savings", "costs", "left_out", "path", "undo", "blobs", "runs", "summary", "transcript"]
"""The functions that make something of the record, an entry at a time: what the model sees, the state of its cache, what pruning has saved,
what it cost, what left the view, how the view came about, what can be undone, which bytes are needed, how the last run stands, the line in
a list of sessions, and what a person saw."""
_F = TypeVar("_F", bound=Callable[..., Any])


def fold(name: Fold) -> Callable[[_F], _F]:
    """Mark the function that is this fold. It names the kinds of entries that it reads, as their `read_by` does: a test compares them."""
    return lambda function: function


class _Entry(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind"):
    seq: int
    timestamp_ms: int


class Started(_Entry, frozen=True, tag="started"):
    """The first entry of a session's log."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"runs", "summary", "transcript"})
    session_id: str
    project: str = ""
    """Hash of the folder it was started in, to find the sessions of one folder."""
    directories: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    format: int = 1
    forked_from: str = ""
    """The session this one is a copy of up to here."""
    imported_from: str = ""
    """The program and file it was imported from: `claude-code /path/to/it.jsonl`."""
    imported_through: int = 0
    """The last entry that was imported. What these say about files is never undone."""
    key: str = ""
    """The embedder's own name for the session (`SessionOptions.key`). A copy or an import does not have it."""
    parent: str = ""
    """The session in which the agent was called that holds this conversation: see loop/subagents.py."""
    parent_call: str = ""
    """The id of that call."""


class Configured(_Entry, frozen=True, tag="configured"):
    """The configuration from here on: written when a session starts and whenever any of it changes."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"view", "cache", "savings", "costs", "path", "summary", "transcript"})
    model: str
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    settings: Settings = Settings()
    session_id: str = ""
    directories: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    placeholder: str = ""
    """The placeholder for pruned results, fixed for the session; empty: the library's default."""
    other_placeholder: str = ""
    """The same for results of tools that run no commands, with `{tool}` for the tool's name; empty: `placeholder` stands for these too, as
    in logs of an earlier version. Heeded where `placeholder` is set."""
    deployment: str = ""
    """The deployment that serves the model, as in `deployment/model`."""
    window: int = 0
    """The most tokens a prompt to the model may have; 0: not known."""
    agent: str = ""
    """The name of the agent that has the conversation from here on: another one where it was handed over."""
    boundary: Literal["", "external", "off"] = ""
    """What the user has said of the boundary around commands: `external`, a container or a virtual machine is it and there is no sandbox of
    ours; `off`, turned off in the conversation. Empty: nothing."""
    dialect: str = ""
    """The dialect in which tools are told as text; empty: they are told natively, or the log is of an earlier version."""


Speaker = Literal["person", "model", "program"]
About = Literal[
    "", "environment", "changed", "cut", "malformed", "loop", "answer_now", "feedback", "output", "hook", "background", "empty", "search"
]
"""The subject of a note from the program to the model: the environment, changes in it, a truncated answer, a call that could not be
parsed (native or written as text), a loop, that it must answer now, an answer that is not of the type asked for, what a hook has to say,
that a background command has ended, an empty answer after tool results, what a search found that a person asked for.
Empty for other speakers."""


class FileVersion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file as the model knows it: as a call read or left it, or as a note told of it."""

    path: str
    """Absolute, links resolved."""
    digest: str = ""
    """Of the whole content: see tools/seen.py. Empty: there was no such file."""
    lines: int | None = None
    """How many lines it had; None: not known, or it is not text."""


class Said(_Entry, frozen=True, tag="said"):
    """A prompt, an answer, or a note from the program. Tool results are ToolFinished."""

    read_by: ClassVar[frozenset[Fold]] = frozenset(
        {"view", "cache", "savings", "costs", "left_out", "path", "blobs", "runs", "summary", "transcript"}
    )
    message: Message
    model: str = ""
    usage: Usage | None = None
    finish: FinishReason | None = None
    raw_finish: str = ""
    response_id: str = ""
    model_version: str = ""
    by: Speaker | Literal[""] = ""
    """The speaker. Empty only on disk in logs of an earlier version: `sessions/upgrade.py` fills it in."""
    about: About = ""
    ratings: tuple[SafetyRating, ...] = ()
    sent_ms: int = 0
    """Of an answer: when its request was sent. 0: not known, as in logs of an earlier version."""
    first_ms: int = 0
    """Of an answer: when its first words, thinking or call came."""
    files: tuple[FileVersion, ...] = ()
    """Of a note about files: what they were when it told of them."""


class AnswerRejected(_Entry, frozen=True, tag="answer_rejected"):
    """The answer at `said_seq` was invalid: it stays in the record, but not in the view."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"view", "path", "runs", "transcript"})
    said_seq: int
    reason: str
    retry_temperature: float | None = None
    """The temperature of the next attempt, if it should come out differently."""


class AnswerUnchecked(_Entry, frozen=True, tag="answer_unchecked"):
    """The answer at `said_seq` says of files what no call has returned: a small model may have made it up. It stays in the view."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"transcript"})
    said_seq: int
    reason: str


class ToolStarted(_Entry, frozen=True, tag="tool_started"):
    """A call that is about to run; written before it does anything."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"view", "runs", "transcript"})
    call_id: str
    name: str
    arguments: str = ""
    """The final arguments, if a person edited them or they were repaired; empty: as the model wrote them."""
    outside: bool = False
    """It runs a command outside the sandbox."""
    read_only: bool = False
    """It changes nothing, so this says only when it began: nothing waits until it is on disk, and it is not taken for one that may have had
    effects. Logs of an earlier version have no entry for such a call."""


WaitsFor = Literal["decision", "result"]


class ToolPostponed(_Entry, frozen=True, tag="tool_postponed"):
    """A call that waits, and will still wait when the session is opened again: for a person's decision, or for a result from outside."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"view", "undo", "runs", "transcript"})
    call_id: str
    name: str
    waits_for: WaitsFor
    arguments: str = ""
    """As in ToolStarted."""
    title: str = ""
    """This and the next three: what the person is shown, as in `Intent`."""
    preview: str = ""
    writes: tuple[str, ...] = ()
    guarded: Literal["", "own", "trusted", "grave", "outside", "discards"] = ""
    repairs: tuple[str, ...] = ()
    """As in ToolFinished."""
    outside: str = ""
    """Why it is to run outside the sandbox, as in `Intent`."""


class ToolDecided(_Entry, frozen=True, tag="tool_decided"):
    """What a person decided about a call that waited. It is on disk before the call starts."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"view"})
    call_id: str
    allowed: bool
    arguments: str = ""
    """The arguments to run instead, if the person edited them."""
    remember: Literal["once", "session", "saved"] = "once"
    reason: str = ""
    """Why it was refused."""


ToolOutcome = Literal["finished", "failed", "cancelled", "refused", "not_run", "unknown"]
"""`refused`: rules or a person did not allow it. Logs of an earlier version have `not_run` for it."""


class HostsUsed(msgspec.Struct, frozen=True):
    """Which hosts a command in the sandbox asked for: `example.org`, or `example.org:8080` if the port is not one of the web's."""

    reached: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    """Allowed by the user when the command, or the program in it that asked, had given up waiting."""


NO_HOSTS = HostsUsed()


class CommandOutput(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a command printed, and how it ended: on the record as it was, beside the text that the model is given.

    The streams are as they came, colours and redraws included. Of a very long one the middle is left out, and `output_file` of its result
    names the file with the whole.
    """

    stdout: str
    """All that it printed, where it has a terminal or runs in the background."""
    stderr: str
    exit_code: int | None = msgspec.field(name="exitCode")
    """As in a shell: 128 + n if signal n ended it. None: it has not ended, or nobody knows how."""
    signal: str = ""
    """`SIGKILL` …, if a signal ended it."""
    timed_out: bool = msgspec.field(default=False, name="timedOut")
    outside: bool = False
    """It ran outside the sandbox."""
    sandbox: str = ""
    """What the sandbox stopped or undid, in a sentence."""
    hosts: HostsUsed = NO_HOSTS
    background: str = ""
    """The id of a command that goes on in the background, or did."""
    status: str = ""
    """How that one is: `running`, `ended`, `stopped` …"""


class ToolFinished(_Entry, frozen=True, tag="tool_finished"):
    """The one result of a call. A result's age counts from this entry's timestamp."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"view", "left_out", "path", "undo", "blobs", "transcript"})
    result: ToolResult
    outcome: ToolOutcome = "finished"
    display: str = ""
    """What the user sees, if that differs from what the model gets."""
    extras: str = ""
    """Debugging detail as JSON text, for neither the model nor the user."""
    saw: tuple[str, ...] = ()
    """Files whose content the result shows: absolute paths."""
    wrote: tuple[str, ...] = ()
    """Files whose whole content is in the arguments of the call."""
    repairs: tuple[str, ...] = ()
    """How the call was read, where the model wrote other names or types than its tool declares: `dir → path`."""
    command: CommandOutput | None = None
    """Of a command: what it printed and how it ended. None also in logs of an earlier version: there the result is JSON that says it."""
    files: tuple[FileVersion, ...] = ()
    """The files that the call read or changed, as they were then, up to ten megabytes each. None in logs of an earlier version."""


class FileChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file before and after: the SHA-256 of its bytes, kept as blobs; empty if there was no such file.

    `after` is `unknown` in an entry written ahead of the call; `stat:…` means the bytes were not kept (too large, not a regular file).
    """

    path: str
    before: str = ""
    after: str = ""
    before_mode: int = 0


class FilesChanged(_Entry, frozen=True, tag="files_changed"):
    """The changes a call made to files, so that they can be undone."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"path", "undo", "transcript"})
    call_id: str
    files: tuple[FileChange, ...]
    unsure: bool = False
    """They were made while a command went on in the background: by it, or by somebody else. Only force undoes them."""


class FilesKept(_Entry, frozen=True, tag="files_kept"):
    """Work that git does not hold, kept before a command began that may write. It is on disk before the command runs.

    `files` are those that changed since the entry before this one: `after` is their content, kept as a blob, with their mode in
    `before_mode`; empty: such a file is not there any more, or git holds it by now.
    """

    read_by: ClassVar[frozenset[Fold]] = frozenset({"undo"})
    call_id: str
    files: tuple[FileChange, ...] = ()
    whole: bool = False
    """These are all that are kept, whatever entries before say: of the first command since the session was opened."""


class FilesRestored(_Entry, frozen=True, tag="files_restored"):
    """Changes that were undone, or redone: the seqs of their FilesChanged entries, and what that did to files."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"undo", "transcript"})
    seqs: tuple[int, ...]
    files: tuple[FileChange, ...] = ()
    """Each file that was put back: `before` is what was replaced, kept as a blob, `after` is empty if it was removed. Old logs lack it."""
    redoes: int = 0
    """The seq of the undo that was redone, so that these changes count again. 0: this is an undo."""


class Pruned(_Entry, frozen=True, tag="pruned"):
    """The results of these calls are replaced by a placeholder in the view."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"view", "cache", "savings", "path", "transcript"})
    call_ids: tuple[str, ...]
    saved_tokens: int = 0
    reason: str = ""
    premium_tokens: int = 0
    """Expected extra cost of writing the rest to the prompt cache again, in tokens of fresh input."""
    window: int = 0
    """The window that forced it: models with a larger one are still shown the results. 0: it holds for all models."""


class Kept(_Entry, frozen=True, tag="kept"):
    """The results of these calls are shown whole, also where they had been replaced: what a person chose about them.

    While `held`, no rule prunes them and no summary replaces them; without it, the choice is taken back, and the rules decide again.
    """

    read_by: ClassVar[frozenset[Fold]] = frozenset({"view", "cache", "savings", "path", "transcript"})
    call_ids: tuple[str, ...]
    held: bool = True
    restored_tokens: int = 0
    """How much longer the next request is because of it; 0: none of them had been replaced."""


class Compressed(_Entry, frozen=True, tag="compressed"):
    """The summary replaces everything after `after_seq`, up to and including `through_seq`. Without a `model` none wrote it: an extract."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"view", "cache", "savings", "costs", "left_out", "path", "blobs", "transcript"})
    through_seq: int
    summary: Message
    original_tokens: int = 0
    new_tokens: int = 0
    after_seq: int = 0
    """Everything up to here (the description of the environment) stays as it was."""
    model: str = ""
    usage: Usage | None = None
    """Usage of the summary request."""
    window: int = 0
    """The window that forced it: models with a larger one are still shown what was summarised. 0: it holds for all models."""
    kept_seqs: tuple[int, ...] = ()
    """Answers with calls, and their results, that stay whole before the summary: a person wants one of these results kept."""


NoSummary = Literal["inflated", "empty", "truncated", "failed"]


class NotCompressed(_Entry, frozen=True, tag="not_compressed"):
    """A compression that was tried but not applied, recorded so that it is not tried again at once."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"cache", "costs"})
    status: NoSummary
    tokens: int = 0
    """The size of the request when it was tried."""
    reason: str = ""
    model: str = ""
    usage: Usage | None = None


class Spent(_Entry, frozen=True, tag="spent"):
    """Usage of a model request that left nothing else in the record, so that the total is complete: one that a tool made outside the
    conversation, or one for an answer of which nothing came."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"costs", "summary"})
    model: str
    usage: Usage
    what: str = ""
    """What made it: a tool, a `summary`; empty: it was for an answer."""
    deployment: str = ""
    """The deployment that served it, if not the conversation's own."""
    call_id: str = ""
    """The call it was made for, where that called an agent."""
    session_id: str = ""
    """The conversation of that agent."""


class ModelChanged(_Entry, frozen=True, tag="model_changed"):
    """Another model answers from here on."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"view", "cache", "savings", "costs", "summary", "transcript"})
    model: str
    deployment: str = ""
    window: int = 0
    """As in Configured."""
    dialect: str = ""
    """As in Configured: the same model may go on with tools as text."""


class FieldRefused(_Entry, frozen=True, tag="field_refused"):
    """A setting that a service refused for a model: requests to it leave the field out from here on."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"view", "transcript"})
    deployment: str
    model: str
    field: str
    """The field of the body, with dots: `reasoning.summary`."""
    reason: str = ""


class Rewound(_Entry, frozen=True, tag="rewound"):
    """Back to the state after `to_seq`."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"view", "cache", "runs", "transcript"})
    to_seq: int


class AttemptFailed(_Entry, frozen=True, tag="attempt_failed"):
    """A request that failed and was sent again, or left to another model. The one that ended its run is told by RunEnded."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"transcript"})
    attempt: int
    words: str
    """What went wrong, as a person was told."""
    wait_s: float = 0.0
    """How long the next attempt waited."""
    model: str = ""
    """Of the next attempt, where a retry policy chose another one."""


class RunStarted(_Entry, frozen=True, tag="run_started"):
    """A run began without a prompt of its own: it tries again, or goes on with calls that waited."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"runs"})


RunOutcome = Literal["answered", "pending", "failed", "cancelled", "broken_off"]
"""`answered`: with the model's answer. `pending`: calls wait for a decision or a result. `broken_off`: by the end of its program; whoever
opened the session next has written that."""


class RunEnded(_Entry, frozen=True, tag="run_ended"):
    """How a run ended, and what it took. It is on disk before anyone is told."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"runs", "transcript"})
    outcome: RunOutcome
    error: str = ""
    """The class of the error, as in `result.error_type`."""
    words: str = ""
    """The error, as the person was told."""
    exit_code: int = 0
    turns: int = 0
    """This and the rest: as in Result."""
    requests: int = 0
    cost_usd: float | None = None
    is_cost_least: bool = False
    """Whether it may have cost more: an answer ended before the service had told everything."""
    duration_ms: int = 0


class Titled(_Entry, frozen=True, tag="titled"):
    """The session has this title from here on."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"summary", "transcript"})
    title: str


class Unknown(_Entry, frozen=True, tag="unknown"):
    """An entry of a kind this version does not know. It is kept as it is."""

    read_by: ClassVar[frozenset[Fold]] = frozenset({"transcript"})
    json: str


Entry = (
    Started
    | Configured
    | Said
    | AnswerRejected
    | AnswerUnchecked
    | ToolStarted
    | ToolPostponed
    | ToolDecided
    | ToolFinished
    | FilesChanged
    | FilesKept
    | FilesRestored
    | Pruned
    | Kept
    | Compressed
    | NotCompressed
    | Spent
    | ModelChanged
    | FieldRefused
    | Rewound
    | AttemptFailed
    | RunStarted
    | RunEnded
    | Titled
    | Unknown
)


def usage_of(entry: Entry) -> Usage | None:
    """The usage of the model request behind an entry; None where there was no request."""
    match entry:
        case Said(message=Message(role="assistant")) if entry.model or entry.usage is not None:
            return usage_told(entry.usage)
        case Spent() | Compressed(usage=Usage()) | NotCompressed(usage=Usage()):
            return usage_told(entry.usage)
        case _:
            return None


def paid_usage(entries: Iterable[Entry]) -> Iterator[tuple[str, Usage]]:
    """The model and usage of each paid request: answers, summaries, and requests of tools."""
    for entry in entries:
        if isinstance(entry, Said | Compressed | NotCompressed | Spent) and (usage := usage_of(entry)) is not None:
            yield entry.model, usage


def sum_usage(entries: Iterable[Entry]) -> Usage:
    return sum((usage for _, usage in paid_usage(entries)), Usage())


def encode_entry(entry: Entry) -> bytes:
    """One line, without its newline. An Unknown entry is written unchanged."""
    return entry.json.encode() if isinstance(entry, Unknown) else jsontext.encode(entry)


class Journal(Protocol):
    """Stores entries. `append` is synchronous, one write, and never raises: faults become an event."""

    def append(self, entry: Entry) -> None: ...

    async def sync(self) -> None:
        """Returns when everything appended is on disk."""
        ...
