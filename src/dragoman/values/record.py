"""The record: everything that happened, one entry at a time, appended and never edited.

An entry is (seq, timestamp_ms, what happened). System, tools, settings and model are entries too, so that the next Request
is a function of the record alone.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.base import jsontext
from dragoman.values.messages import FinishReason, Message, Settings, ToolResult, ToolSpec
from dragoman.values.usage import Usage


class _Entry(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind"):
    seq: int
    timestamp_ms: int


class Started(_Entry, frozen=True, tag="started"):
    """The head of a session: the first entry of its log."""

    session_id: str
    project: str = ""
    """Hash of the folder it was started in: sessions of one folder are found together."""
    directories: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    format: int = 1
    forked_from: str = ""
    """The session this one is a copy of up to here."""
    imported_from: str = ""
    """Whose session it was, and where it lay: `claude-code /path/to/it.jsonl`."""


class Configured(_Entry, frozen=True, tag="configured"):
    """What holds from here on: written when a session starts and whenever one of these changes."""

    model: str
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    settings: Settings = Settings()
    session_id: str = ""
    directories: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    placeholder: str = ""
    """What stands in a pruned result's place, fixed for the session; empty: the library's own."""
    deployment: str = ""
    """Who serves the model: `deployment/model` names both."""


class Said(_Entry, frozen=True, tag="said"):
    """A prompt or an answer. Tool results are not said: they are ToolFinished."""

    message: Message
    model: str = ""
    usage: Usage | None = None
    finish: FinishReason | None = None
    raw_finish: str = ""
    response_id: str = ""
    model_version: str = ""


class AnswerRejected(_Entry, frozen=True, tag="answer_rejected"):
    """The answer said at `said_seq` was invalid: the record keeps it, the view does not."""

    said_seq: int
    reason: str
    retry_temperature: float | None = None
    """What the next attempt is sampled at, where another try should come out differently."""


class ToolStarted(_Entry, frozen=True, tag="tool_started"):
    call_id: str
    name: str
    arguments: str = ""
    """The final arguments, where a person edited them; empty: as the model wrote them."""


ToolOutcome = Literal["finished", "failed", "cancelled", "not_run", "unknown"]


class ToolFinished(_Entry, frozen=True, tag="tool_finished"):
    """The one result of a call. A result's age counts from this entry's timestamp."""

    result: ToolResult
    outcome: ToolOutcome = "finished"
    display: str = ""
    """What the user is shown, where that differs from what the model is told."""
    extras: str = ""
    """Debugging detail as JSON text; neither the model nor the user sees it."""


class FileChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file before and after: the SHA-256 of its bytes, kept as blobs; empty where there was no such file.

    `after` is `unknown` in an entry written ahead of the call; `stat:…` stands for bytes that were not kept (too large, no regular file).
    """

    path: str
    before: str = ""
    after: str = ""
    before_mode: int = 0


class FilesChanged(_Entry, frozen=True, tag="files_changed"):
    """What a call did to files, so that it can be undone."""

    call_id: str
    files: tuple[FileChange, ...]


class FilesRestored(_Entry, frozen=True, tag="files_restored"):
    """Changes that were undone: the seqs of their FilesChanged entries."""

    seqs: tuple[int, ...]


class Pruned(_Entry, frozen=True, tag="pruned"):
    """The results of these calls are no longer in view; a placeholder stands in their place."""

    call_ids: tuple[str, ...]
    saved_tokens: int = 0
    reason: str = ""
    premium_tokens: int = 0
    """What writing the rest to the cache again was expected to cost more, in tokens of fresh input."""


class Compressed(_Entry, frozen=True, tag="compressed"):
    """Everything from behind `after_seq` up to and including `through_seq` is represented by the summary."""

    through_seq: int
    summary: Message
    original_tokens: int = 0
    new_tokens: int = 0
    after_seq: int = 0
    """What was said up to here (where the model finds itself) stays as it was."""
    model: str = ""
    usage: Usage | None = None
    """What the summary took."""


class NotCompressed(_Entry, frozen=True, tag="not_compressed"):
    """A compression that was tried and not applied, so that it is not tried again at once."""

    status: Literal["inflated", "empty", "truncated", "failed"]
    tokens: int = 0
    """The size of the request when it was tried."""
    reason: str = ""
    model: str = ""
    usage: Usage | None = None


class Spent(_Entry, frozen=True, tag="spent"):
    """A model was asked something beside the conversation, by a tool: what it used, so that the bill is whole."""

    model: str
    usage: Usage
    what: str = ""
    """The tool that asked."""


class ModelChanged(_Entry, frozen=True, tag="model_changed"):
    model: str
    deployment: str = ""


class Rewound(_Entry, frozen=True, tag="rewound"):
    """Back to how things stood after `to_seq`."""

    to_seq: int


class Titled(_Entry, frozen=True, tag="titled"):
    title: str


class Unknown(_Entry, frozen=True, tag="unknown"):
    """An entry of a kind this version does not know: kept, never dropped."""

    json: str


Entry = (
    Started
    | Configured
    | Said
    | AnswerRejected
    | ToolStarted
    | ToolFinished
    | FilesChanged
    | FilesRestored
    | Pruned
    | Compressed
    | NotCompressed
    | Spent
    | ModelChanged
    | Rewound
    | Titled
    | Unknown
)

_decoder = msgspec.json.Decoder(Entry)


class _Envelope(msgspec.Struct):
    seq: int = 0
    timestamp_ms: int = 0
    kind: str = ""


def encode_entry(entry: Entry) -> bytes:
    """One line, without its newline. An Unknown entry goes back as it came."""
    return entry.json.encode() if isinstance(entry, Unknown) else jsontext.encode(entry)


def decode_entry(line: bytes) -> Entry:
    """The entry on a line. An unknown kind becomes Unknown; a line that is not an entry at all raises NotJSON."""
    try:
        return _decoder.decode(line)
    except msgspec.DecodeError as error:
        try:
            envelope = msgspec.json.decode(line, type=_Envelope)
        except msgspec.DecodeError:
            raise jsontext.NotJSON(f"not an entry: {error}") from error
        if not envelope.kind:
            raise jsontext.NotJSON(f"not an entry: {error}") from error
        return Unknown(envelope.seq, envelope.timestamp_ms, line.decode())
