"""Scripted model answers, step by step. One script drives both test doubles: the in-process provider and the server.

    thought: I should look at the file.
    call: read_file {"path": "a.txt"}
    ---
    text: Done.

A Script is a sequence of Answers, an Answer a sequence of Steps. `Playback` hands the answers out, one per request. The plain-text form
above is read and written by `script_text`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

import msgspec

from dragoman.values.messages import FinishReason
from dragoman.values.usage import Usage

END_TEXT = "The script has ended."

# --- what the model outputs -------------------------------------------------------------------------------------------------


class Say(msgspec.Struct, frozen=True, omit_defaults=True, tag="text"):
    """Text of the answer. Adjacent ones form one text."""

    text: str
    piece_chars: int = 0
    """Characters per delta; 0: all of it in one."""


class Think(msgspec.Struct, frozen=True, omit_defaults=True, tag="thought"):
    """Thinking. The signature goes where the service puts it: on the thought, on the next call, or as encrypted content."""

    text: str = ""
    signature: str = ""
    """Sent unchanged. Gemini's are base64, and its SDK decodes them."""
    piece_chars: int = 0
    redacted: bool = False
    """Anthropic: the thinking is redacted, and only the signature is sent."""


class CallStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="call"):
    """A tool call. Adjacent ones are parallel calls."""

    name: str
    arguments: str = "{}"
    """JSON text as the model writes it, valid or not."""
    id: str | None = None
    """None: generated, as by a service. Empty and repeated ids are faults to simulate."""
    piece_chars: int = 0
    signature: str = ""
    """Gemini: the thought signature on the call."""


class Cite(msgspec.Struct, frozen=True, omit_defaults=True, tag="cite"):
    """A source of the text before it."""

    uri: str
    title: str = ""
    text: str = ""
    """The cited text."""


class ReportStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="usage"):
    """Token usage of the answer. Without one it is estimated at four characters per token."""

    usage: Usage


class Finish(msgspec.Struct, frozen=True, omit_defaults=True, tag="finish"):
    """How the answer ends. Without one: `tool_calls` after a call, else `stop`."""

    reason: str = FinishReason.STOP
    """A FinishReason, sent in the service's own word; any other word is sent unchanged. Empty: no terminal event at all."""
    detail: str = ""
    """The service's explanation, if it has a field for one."""


class BlockStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="block"):
    """The prompt is refused before any output."""

    reason: str = "PROHIBITED_CONTENT"


# --- what goes wrong -----------------------------------------------------------------------------------------------------


class Wait(msgspec.Struct, frozen=True, omit_defaults=True, tag="wait"):
    """Nothing happens for a while. At the start of an answer even the head of the HTTP response waits."""

    seconds: float


class Fail(msgspec.Struct, frozen=True, omit_defaults=True, tag="error"):
    """The service fails. As the first step an HTTP error, after output an error event inside the stream."""

    status: int = 500
    message: str = ""
    """Empty: the service's usual message."""
    code: str = ""
    """The service's name for the fault (`insufficient_quota`); empty: the usual one for the status."""
    retry_after_s: float | None = None
    """A Retry-After header in seconds."""
    retry_date_s: float | None = None
    """A Retry-After header as an HTTP date, this many seconds from now."""
    retry_info_s: float | None = None
    """Google's RetryInfo, in the body."""
    quota_id: str = ""
    """Google's QuotaFailure, in the body. An id that contains PerDay is a daily quota."""
    param: str = ""
    """The field that OpenAI names as the reason."""


class CutStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="cut"):
    """The connection closes: here, or at that byte of the body. As the first step and without a number: before the head."""

    after_bytes: int | None = None


class Stall(msgspec.Struct, frozen=True, omit_defaults=True, tag="stall"):
    """The connection stays open and silent: from here on, or after this many events."""

    after_events: int | None = None


class Ping(msgspec.Struct, frozen=True, omit_defaults=True, tag="ping"):
    """Keep-alive pings without content."""

    count: int | None = 1
    """None: for ever."""
    every_s: float = 0.0


class Garbage(msgspec.Struct, frozen=True, omit_defaults=True, tag="garbage"):
    """An event whose data is not JSON."""

    text: str = '{"broken'


class RawStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="raw"):
    """Bytes sent unchanged, regardless of the framing."""

    data: bytes


Step = Say | Think | CallStep | Cite | ReportStep | Finish | BlockStep | Wait | Fail | CutStep | Stall | Ping | Garbage | RawStep


class CallQuirk(StrEnum):
    """How a server lays out the deltas of tool calls, other than one call after the other, each with its index and its id once."""

    INTERLEAVED = "interleaved"
    """All calls are open at once and grow in turn."""
    NO_INDEX = "no_index"
    SAME_INDEX = "same_index"
    """Every call has index 0."""
    ID_EVERY = "id_every"
    """The id is in every delta, not only in the first."""
    LATE_NAME = "late_name"
    """The name comes after the first delta."""
    LATE_DELTA = "late_delta"
    """The finish comes before the last delta."""


class ScriptFraming(StrEnum):
    """How a server writes server-sent events: all of these are allowed, and each was seen in the wild."""

    CRLF = "crlf"
    CR = "cr"
    COMMENTS = "comments"
    """A comment before every event."""
    MULTILINE = "multiline"
    """The data of an event over several `data:` lines."""
    NO_SPACE = "no_space"
    """`data:` without a space."""
    BOM = "bom"
    OPEN_END = "open_end"
    """No blank line after the last event."""


class ScriptedAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer of the model. Without steps it is an empty success: no event, an empty body."""

    steps: tuple[Step, ...] = ()
    calls: tuple[CallQuirk, ...] = ()
    framing: tuple[ScriptFraming, ...] = ()
    piece_bytes: int = 0
    """The server sends the body in chunks of this many bytes, regardless of boundaries; 0: event by event."""
    piece_wait_s: float = 0.0
    """The pause between two pieces."""
    times: int = 1
    """How many requests in a row get this answer."""

    @property
    def usage(self) -> Usage | None:
        """The usage the answer reports: its last report."""
        return next((step.usage for step in reversed(self.steps) if isinstance(step, ReportStep)), None)

    @property
    def finish(self) -> Finish:
        """How it ends: as scripted, else as services do."""
        scripted = next((step for step in reversed(self.steps) if isinstance(step, Finish)), None)
        if scripted is not None:
            return scripted
        called = any(isinstance(step, CallStep) for step in self.steps)
        return Finish(FinishReason.TOOL_CALLS if called else FinishReason.STOP)

    @property
    def output_chars(self) -> int:
        """Everything the model wrote, thinking and arguments included."""
        return sum(
            len(step.arguments) if isinstance(step, CallStep) else len(step.text)
            for step in self.steps
            if isinstance(step, Say | Think | CallStep)
        )

    @property
    def thought_chars(self) -> int:
        return sum(len(step.text) for step in self.steps if isinstance(step, Think))

    def usage_or(self, input_tokens: int) -> Usage:
        """Its usage: as scripted, else four characters per token."""
        thought = self.thought_chars // 4
        return self.usage or Usage(fresh_tokens=input_tokens, output_tokens=max(self.output_chars // 4, 1), thought_tokens=thought)


class ScriptForm(msgspec.Struct, frozen=True, omit_defaults=True):
    """Answers in the order in which they are given."""

    answers: tuple[ScriptedAnswer, ...] = ()
    at_end: Literal["say", "raise", "repeat"] = "say"
    """After the last answer: say `end_text`, raise InputError, or repeat the last answer."""
    end_text: str = END_TEXT


def answer(*steps: Step | str, **options: Any) -> ScriptedAnswer:
    """An answer from steps; a plain string is text."""
    return ScriptedAnswer(tuple(Say(step) if isinstance(step, str) else step for step in steps), **options)
