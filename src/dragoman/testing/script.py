"""What a model shall answer, written down beforehand. One script drives both doubles: the provider in the process and the server.

    thought: I should look at the file.
    call: read_file {"path": "a.txt"}
    ---
    text: Done.

A Script is a sequence of Answers, an Answer a sequence of Steps. `Playback` hands the answers out, one per request. The plain-text form
above is read and written by `script_text`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import msgspec

from dragoman.values.errors import InputError
from dragoman.values.messages import FinishReason
from dragoman.values.usage import Usage

END_TEXT = "The script has ended."

# --- what the model says -------------------------------------------------------------------------------------------------


class Say(msgspec.Struct, frozen=True, omit_defaults=True, tag="text"):
    """Text of the answer. Adjacent ones are one text."""

    text: str
    piece_chars: int = 0
    """How much of it each delta holds; 0: all of it."""


class Think(msgspec.Struct, frozen=True, omit_defaults=True, tag="thought"):
    """Thinking. The signature goes where the service puts it: beside the thought, on the next call, or as encrypted content."""

    text: str = ""
    signature: str = ""
    """Sent as it is. Gemini's are base64, and its SDK decodes them."""
    piece_chars: int = 0
    redacted: bool = False
    """Anthropic: the thinking is withheld, and the signature is all there is."""


class Call(msgspec.Struct, frozen=True, omit_defaults=True, tag="call"):
    """A tool call. Adjacent ones are parallel calls."""

    name: str
    arguments: str = "{}"
    """JSON text as the model writes it, valid or not."""
    id: str | None = None
    """None: the double makes one up, as a service does. Empty and repeated ids are faults to play."""
    piece_chars: int = 0
    signature: str = ""
    """Gemini: the thought signature that stands on the call."""


class Cite(msgspec.Struct, frozen=True, omit_defaults=True, tag="cite"):
    """A source of the text before it."""

    uri: str
    title: str = ""
    text: str = ""
    """The words that are cited."""


class Report(msgspec.Struct, frozen=True, omit_defaults=True, tag="usage"):
    """What the answer used. Without one the doubles count four characters to a token."""

    usage: Usage


class Finish(msgspec.Struct, frozen=True, omit_defaults=True, tag="finish"):
    """How the answer ends. Without one: `tool_calls` after a call, else `stop`."""

    reason: str = FinishReason.STOP
    """A FinishReason, put in the service's own word; any other word goes on the wire as it is. Empty: no terminal event at all."""
    detail: str = ""
    """The service's explanation, where it has a place for one."""


class Block(msgspec.Struct, frozen=True, omit_defaults=True, tag="block"):
    """The prompt is refused before anything is said."""

    reason: str = "PROHIBITED_CONTENT"


# --- what goes wrong -----------------------------------------------------------------------------------------------------


class Wait(msgspec.Struct, frozen=True, omit_defaults=True, tag="wait"):
    """Nothing happens for a while. At the start of an answer even the head of the HTTP response waits."""

    seconds: float


class Fail(msgspec.Struct, frozen=True, omit_defaults=True, tag="error"):
    """The service fails. As the first step an HTTP error, after output an error event inside the stream."""

    status: int = 500
    message: str = ""
    """Empty: what the service says in such a case."""
    code: str = ""
    """The service's name for the fault (`insufficient_quota`); empty: the usual one for the status."""
    retry_after_s: float | None = None
    """A Retry-After header in seconds."""
    retry_date_s: float | None = None
    """A Retry-After header as an HTTP date, so many seconds from now."""
    retry_info_s: float | None = None
    """Google's RetryInfo, in the body."""
    quota_id: str = ""
    """Google's QuotaFailure, in the body. An id that holds PerDay is a daily quota."""


class Cut(msgspec.Struct, frozen=True, omit_defaults=True, tag="cut"):
    """The connection closes: here, or at that byte of the body. As the first step and without a number: before the head."""

    after_bytes: int | None = None


class Stall(msgspec.Struct, frozen=True, omit_defaults=True, tag="stall"):
    """The connection stays open and silent: from here on, or after so many events."""

    after_events: int | None = None


class Ping(msgspec.Struct, frozen=True, omit_defaults=True, tag="ping"):
    """Signs of life that say nothing."""

    count: int | None = 1
    """None: for ever."""
    every_s: float = 0.0


class Garbage(msgspec.Struct, frozen=True, omit_defaults=True, tag="garbage"):
    """An event whose data is not JSON."""

    text: str = '{"broken'


class Raw(msgspec.Struct, frozen=True, omit_defaults=True, tag="raw"):
    """Bytes that go on the wire as they are, whatever the framing."""

    data: bytes


Step = Say | Think | Call | Cite | Report | Finish | Block | Wait | Fail | Cut | Stall | Ping | Garbage | Raw


class CallQuirk(StrEnum):
    """How a server lays out the deltas of tool calls, other than one call after the other, each with its index and its id once."""

    INTERLEAVED = "interleaved"
    """All calls are open at once and grow in turn."""
    NO_INDEX = "no_index"
    SAME_INDEX = "same_index"
    """Every call has index 0."""
    ID_EVERY = "id_every"
    """The id stands in every delta, not in the first alone."""
    LATE_NAME = "late_name"
    """The name comes after the first delta."""
    LATE_DELTA = "late_delta"
    """The finish comes before the last delta."""


class Framing(StrEnum):
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


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer of the model. Without steps it is a success that says nothing: no event, an empty body."""

    steps: tuple[Step, ...] = ()
    calls: tuple[CallQuirk, ...] = ()
    framing: tuple[Framing, ...] = ()
    piece_bytes: int = 0
    """The server sends the body in pieces of so many bytes, wherever that cuts; 0: event by event."""
    piece_wait_s: float = 0.0
    """The pause between two pieces."""
    times: int = 1
    """How many requests in a row get this answer."""

    @property
    def usage(self) -> Usage | None:
        """What the answer says it used: its last report."""
        return next((step.usage for step in reversed(self.steps) if isinstance(step, Report)), None)

    @property
    def finish(self) -> Finish:
        """How it ends, by the script or as services do."""
        scripted = next((step for step in reversed(self.steps) if isinstance(step, Finish)), None)
        if scripted is not None:
            return scripted
        called = any(isinstance(step, Call) for step in self.steps)
        return Finish(FinishReason.TOOL_CALLS if called else FinishReason.STOP)

    @property
    def output_chars(self) -> int:
        """Everything the model wrote, thinking and arguments included."""
        return sum(
            len(step.arguments) if isinstance(step, Call) else len(step.text) for step in self.steps if isinstance(step, Say | Think | Call)
        )

    @property
    def thought_chars(self) -> int:
        return sum(len(step.text) for step in self.steps if isinstance(step, Think))

    def usage_or(self, input_tokens: int) -> Usage:
        """What it used: as scripted, else four characters to a token."""
        thought = self.thought_chars // 4
        return self.usage or Usage(fresh_tokens=input_tokens, output_tokens=max(self.output_chars // 4, 1), thought_tokens=thought)


class Script(msgspec.Struct, frozen=True, omit_defaults=True):
    """Answers in the order in which they are given."""

    answers: tuple[Answer, ...] = ()
    at_end: Literal["say", "raise", "repeat"] = "say"
    """When every answer was given: say `end_text`, raise InputError, or give the last answer again."""
    end_text: str = END_TEXT

    @classmethod
    def parse(cls, text: str) -> Script:
        """Read the plain-text form. InputError names the line, what is wrong with it and what would be right."""
        from dragoman.testing import script_text

        return script_text.parse(text)

    def render(self) -> str:
        """Write the plain-text form: `Script.parse(script.render()) == script`."""
        from dragoman.testing import script_text

        return script_text.render(self)

    @classmethod
    def load(cls, path: str | Path) -> Script:
        """Read the plain-text form from a file."""
        try:
            return cls.parse(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}. Name a file with a script in it.") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8 text. Save the script as UTF-8.") from error
        except InputError as error:
            raise InputError(f"{path}, {error}") from error


def answer(*steps: Step | str, **options: Any) -> Answer:
    """An answer from steps; a plain string is something to say."""
    return Answer(tuple(Say(step) if isinstance(step, str) else step for step in steps), **options)


Chooser = Callable[[Any], Answer]
"""Chooses an answer for a request: a `Request` in the process, an `Asked` in the server."""
Source = Script | Chooser | Answer | str | Sequence[Answer]
"""What a double can be driven by: a script, its plain-text form, answers in order, or a function."""


class Playback:
    """Hands out the answers of a script, one per request."""

    def __init__(self, source: Source) -> None:
        self._choose: Chooser | None = None
        self.script = Script()
        match source:
            case Script():
                self.script = source
            case str():
                self.script = Script.parse(source)
            case Answer():
                self.script = Script((source,), at_end="repeat")
            case Sequence():
                self.script = Script(tuple(source))
            case _:
                self._choose = source
        self._waiting = _unrolled(self.script)
        self.played = 0
        """How many answers were handed out."""

    def next(self, request: Any) -> Answer:
        """The answer to this request. Raises InputError where the script has ended and says so."""
        chosen = self._choose(request) if self._choose else next(self._waiting, None) or self._after_the_end()
        self.played += 1
        return chosen

    def _after_the_end(self) -> Answer:
        script = self.script
        if script.at_end == "raise":
            remedy = "Add an answer to it, or let it end with `script: end=say`."
            raise InputError(f"The script has ended: all {self.played} answers were given, and the model was asked again. {remedy}")
        if script.at_end == "repeat" and script.answers:
            return script.answers[-1]
        return Answer((Say(script.end_text),))


def _unrolled(script: Script) -> Iterator[Answer]:
    for each in script.answers:
        for _ in range(each.times):
            yield each


def pieces(text: str, piece_chars: int) -> Iterator[str]:
    """A text as its deltas. An empty text is one empty delta."""
    if piece_chars <= 0 or not text:
        yield text
        return
    for start in range(0, len(text), piece_chars):
        yield text[start : start + piece_chars]
