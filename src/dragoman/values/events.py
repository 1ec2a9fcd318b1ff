"""Events, sent as things happen: one vocabulary for all parts of the program.

StreamEvents go from a provider to the turn that made the request. TurnEvents are what a run emits: those of the stream that concern a
reader, and its own. An event is named thing + past participle, or Delta.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from dragoman.values.messages import Citation, FinishReason, Part, Response, Source, Text, ToolCall, ToolResult
from dragoman.values.record import CommandOutput, ToolOutcome
from dragoman.values.usage import Usage

# --- provider → turn: a closed union -------------------------------------------------------------------------------------


class ResponseStarted(msgspec.Struct, frozen=True, tag=True):
    """The service has begun to answer."""

    response_id: str = ""
    model_version: str = ""


class PromptRead(msgspec.Struct, frozen=True, tag=True):
    """Progress of prompt processing, if a server reports it: on a slow machine that takes longer than the answer."""

    done_tokens: int
    total_tokens: int


class TextDelta(msgspec.Struct, frozen=True, tag=True):
    """The next piece of the answer."""

    text: str


class ThoughtDelta(msgspec.Struct, frozen=True, tag=True):
    """The next piece of the model's thinking."""

    text: str
    subject: str = ""
    """A headline for the thought, if the service writes one."""
    description: str = ""


class ToolCallStarted(msgspec.Struct, frozen=True, tag=True):
    """The model has begun to write a call."""

    call_id: str
    name: str


class ToolCallDelta(msgspec.Struct, frozen=True, tag=True):
    """The next piece of a call."""

    call_id: str
    arguments: str
    """The next piece of the JSON text. Only for display: ToolCallReady has the call."""


class ToolCallReady(msgspec.Struct, frozen=True, tag=True):
    """The model has written a call completely. It runs once the whole answer is there."""

    call: ToolCall


class CitationAdded(msgspec.Struct, frozen=True, tag=True):
    """A source of the answer."""

    citation: Citation


class UsageUpdated(msgspec.Struct, frozen=True, tag=True):
    """What the response has used so far."""

    usage: Usage
    """Cumulative for this response."""


class Retrying(msgspec.Struct, frozen=True, tag=True):
    """The attempt failed and a retry follows. Discard what was shown of it."""

    attempt: int
    wait_s: float
    reason: str
    model: str = ""
    """The model that is asked next, where a retry policy changed it (`RetryPolicy.on_persistent_429`)."""
    may_have_cost: bool = False
    """Whether the service may have worked on the failed attempt, even if nothing of it came."""


class FieldOmitted(msgspec.Struct, frozen=True, tag=True):
    """The service refused a setting, so the request was sent without it. Later ones for this model do not have it either."""

    deployment: str
    model: str
    field: str
    """The field of the body, with dots: `reasoning.summary`."""
    reason: str
    """The service's words."""


class RequestDelayed(msgspec.Struct, frozen=True, tag=True):
    """A request waits before it is sent: more would be sent per minute than is allowed, or the service has asked others to wait."""

    wait_s: float
    """About how long."""
    reason: str


class ResponseFinished(msgspec.Struct, frozen=True, tag=True):
    """The last event of every stream that did not raise."""

    reason: FinishReason
    response: Response


StreamEvent = (
    ResponseStarted
    | PromptRead
    | TextDelta
    | ThoughtDelta
    | ToolCallStarted
    | ToolCallDelta
    | ToolCallReady
    | CitationAdded
    | UsageUpdated
    | Retrying
    | FieldOmitted
    | RequestDelayed
    | ResponseFinished
)

# --- run → everyone ------------------------------------------------------------------------------------------------------


class PromptAccepted(msgspec.Struct, frozen=True, tag="prompt_accepted"):
    """The prompt is saved; only now is it sent. Again for what is said during the run (`Run.steer`), with its text."""

    session_id: str
    text: str = ""
    """Empty for the prompt that began the run."""


class TurnStarted(msgspec.Struct, frozen=True, tag="turn_started"):
    """The model is asked: what follows up to TurnFinished is its answer."""

    turn: int
    """Counted from 1 in each run. The same number again: it is asked once more, after its request was made shorter or by another model."""
    model: str
    """`deployment/model`."""


class SavingChanged(msgspec.Struct, frozen=True, tag="saving"):
    """The session can no longer be saved, or can be again."""

    saved: bool
    reason: str = ""


class ToolCallRequested(msgspec.Struct, frozen=True, tag="tool_call_requested"):
    """The model wants a call carried out. The answer is complete and recorded."""

    call: ToolCall
    prompt_id: str = ""
    client_initiated: bool = False
    """Whether a person asked for the call and not the model: `dragoman --search`."""


class ToolCallConfirmation(msgspec.Struct, frozen=True, tag="tool_call_confirmation"):
    """A person is being asked whether a call may run."""

    call: ToolCall
    prompt: str = ""


ToolState = Literal["validating", "awaiting_approval", "scheduled", "executing", "pending", "success", "error", "cancelled", "refused"]
"""`pending`: it waits for a decision or a result that comes later, and the run ends."""


class ToolCallUpdated(msgspec.Struct, frozen=True, tag="tool_call_updated"):
    """A call has changed its state, has new output or reports progress."""

    call_id: str
    state: ToolState
    output_delta: str = ""
    """What the tool has put out since the last update."""
    progress: str = ""
    """What it is doing now, in words, in the place of what it said before."""
    done: float | None = None
    """How far it is, where it tells."""
    total: float | None = None
    """How much there is to do, where that is known."""

    @property
    def progress_line(self) -> str:
        """The progress in one line: `3/10 page 3`. Empty where none is told."""
        count = "" if self.done is None else f"{self.done:g}" if self.total is None else f"{self.done:g}/{self.total:g}"
        return " ".join(each for each in (count, self.progress) if each)


class ToolCallFinished(msgspec.Struct, frozen=True, tag="tool_call_finished"):
    """A call has its result, which is recorded and goes to the model."""

    call_id: str
    parts: tuple[Part, ...]
    display: str = ""
    error: str = ""
    error_type: str = ""
    output_file: str = ""
    content_length: int = 0
    changed: tuple[str, ...] = ()
    """Files it wrote: absolute paths."""
    outcome: ToolOutcome = "finished"
    repairs: tuple[str, ...] = ()
    """How the call was read, where the model wrote other names or types than its tool declares: `dir → path`."""
    name: str = ""
    """The tool's name."""
    outside: bool = False
    """It ran a command outside the sandbox."""
    command: CommandOutput | None = None
    """Of a command: what it printed and how it ended."""
    sources: tuple[Source, ...] = ()
    """The pages that a search found, in the order of the numbers in its text, from 1; those of a subagent that has searched."""
    arguments: str = ""
    """The final arguments as JSON text, if a person or a hook edited them or they were repaired; empty: as the model wrote them."""

    @property
    def text(self) -> str:
        """What the model is told, without images and files."""
        return "".join(part.text for part in self.parts if isinstance(part, Text | ToolResult))

    def as_run(self, call: ToolCall) -> ToolCall:
        """The call with its final arguments."""
        return msgspec.structs.replace(call, arguments=self.arguments) if self.arguments else call


class StreamInvalid(msgspec.Struct, frozen=True, tag="invalid_stream"):
    """An answer could not be used: empty, cut inside a call, or with a call that cannot be read."""

    reason: str


class UserCancelled(msgspec.Struct, frozen=True, tag="user_cancelled"):
    """The run was cancelled."""


class ErrorRaised(msgspec.Struct, frozen=True, tag="error"):
    """The run failed with this error."""

    message: str
    error_type: str = ""
    retryable: bool = False
    exit_code: int = 1


class TurnFinished(msgspec.Struct, frozen=True, tag="finished"):
    """The answer is complete and valid: why it ended, and what it used. Its calls follow."""

    reason: FinishReason
    usage: Usage = Usage()


class ContextPruned(msgspec.Struct, frozen=True, tag="pruned"):
    """Old results were replaced by placeholders in what the model sees."""

    call_ids: tuple[str, ...]
    saved_tokens: int = 0
    window: int = 0
    """The window that forced it: models with a larger one are still shown the results. 0: it holds for all models."""


class CompressionStarted(msgspec.Struct, frozen=True, tag="compressing"):
    """A model is asked for a summary of the older messages: that takes as long as an answer."""

    tokens: int
    window: int


class ContextCompressed(msgspec.Struct, frozen=True, tag="compressed"):
    """Older messages were replaced by a summary, or could not be: see `status`."""

    status: str
    """compressed; extracted: by an extract that no model wrote; inflated, empty, truncated, failed: no summary, for this `reason`."""
    original_tokens: int = 0
    new_tokens: int = 0
    window: int = 0
    """As in ContextPruned."""
    reason: str = ""


class ContextOverflowed(msgspec.Struct, frozen=True, tag="overflow"):
    """The request is longer than the model's window, and nothing more can be left out."""

    estimated_tokens: int
    limit_tokens: int


class LoopSuspected(msgspec.Struct, frozen=True, tag="loop_detected"):
    """The model seems to repeat itself."""

    reason: str
    count: int = 1


class ToolModeChanged(msgspec.Struct, frozen=True, tag="tool_mode"):
    """The model wrote a call as text instead of a native one: from here on tools are described and called as text."""

    mode: Literal["text"]
    dialect: str


class OutputUpdated(msgspec.Struct, frozen=True, tag="output"):
    """The value of a run with `output=` so far, a few times a second while it streams: lists, dicts and plain values, not yet the type.
    It grows until the answer ends, is told again from the start where the answer is tried again, and is not yet checked."""

    value: Any


class ModelSwitched(msgspec.Struct, frozen=True, tag="model_switched"):
    """The model's service keeps refusing: another model goes on, for the rest of the session. Discard what was shown of the answer."""

    model: str
    """`deployment/model`; so is `previous`."""
    previous: str
    reason: str


class NoticeGiven(msgspec.Struct, frozen=True, tag="notice"):
    """Something the user should know beside how the run goes: a setting the model is not sent, a fallback model that cannot be used, a
    refused prompt that the model does not see again, an answer about files of which none was read, a background command that has ended,
    a subagent that has another model than its definition names, what a hook says to the user, or how it failed, what a command in the
    sandbox has left behind that other programs go by, outdated results that stay in the context for now, a clock that went back,
    and files that a command throws away, of which copies were kept."""

    about: Literal["settings", "fallback", "prompt", "answer", "background", "subagent", "hook", "sandbox", "context", "files"]
    message: str


class SubagentEvent(msgspec.Struct, frozen=True, tag="subagent"):
    """Something happened in the run of an agent that was called as a tool. Where that one calls another, the event is another of these."""

    call_id: str
    """The call of this run."""
    name: str
    """The tool's name."""
    event: TurnEvent


class HandedOver(msgspec.Struct, frozen=True, tag="handed_over"):
    """A tool returned an agent: from the next request on that one has the conversation."""

    call_id: str
    name: str
    """The agent's name; of one without, the tool's."""
    model: str
    """`deployment/model`."""


TurnEvent = (
    PromptAccepted
    | TurnStarted
    | SavingChanged
    | ResponseStarted
    | PromptRead
    | TextDelta
    | ThoughtDelta
    | CitationAdded
    | Retrying
    | FieldOmitted
    | RequestDelayed
    | ToolCallRequested
    | ToolCallConfirmation
    | ToolCallUpdated
    | ToolCallFinished
    | StreamInvalid
    | UserCancelled
    | ErrorRaised
    | TurnFinished
    | ContextPruned
    | CompressionStarted
    | ContextCompressed
    | ContextOverflowed
    | LoopSuspected
    | ToolModeChanged
    | OutputUpdated
    | ModelSwitched
    | NoticeGiven
    | SubagentEvent
    | HandedOver
)
