"""What happens, told as it happens. StreamEvents go from a provider to the chat, TurnEvents from a turn to everyone."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.values.messages import Citation, FinishReason, Part, Response, ToolCall
from dragoman.values.usage import Usage

# --- provider → chat: a closed union -------------------------------------------------------------------------------------


class ResponseStarted(msgspec.Struct, frozen=True, tag=True):
    response_id: str = ""
    model_version: str = ""


class PromptRead(msgspec.Struct, frozen=True, tag=True):
    """How far the model is with the prompt, where a server tells it: on a slow machine that takes longer than the answer."""

    done_tokens: int
    total_tokens: int


class TextDelta(msgspec.Struct, frozen=True, tag=True):
    text: str


class ThoughtDelta(msgspec.Struct, frozen=True, tag=True):
    text: str
    subject: str = ""
    """A headline for the thought, where the service writes one."""
    description: str = ""


class ToolCallStarted(msgspec.Struct, frozen=True, tag=True):
    call_id: str
    name: str


class ToolCallDelta(msgspec.Struct, frozen=True, tag=True):
    call_id: str
    arguments: str
    """The next piece of the JSON text. Only for showing: the call is what ToolCallReady says."""


class ToolCallReady(msgspec.Struct, frozen=True, tag=True):
    call: ToolCall


class CitationAdded(msgspec.Struct, frozen=True, tag=True):
    citation: Citation


class UsageUpdated(msgspec.Struct, frozen=True, tag=True):
    usage: Usage
    """Cumulative for this response."""


class Retrying(msgspec.Struct, frozen=True, tag=True):
    """The attempt failed and another follows. Whatever was shown of it is void."""

    attempt: int
    wait_s: float
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
    | ResponseFinished
)

# --- turn → everyone -----------------------------------------------------------------------------------------------------


class PromptAccepted(msgspec.Struct, frozen=True, tag="prompt_accepted"):
    """The prompt is where it will be found again; only now is it sent."""

    session_id: str


class SavingChanged(msgspec.Struct, frozen=True, tag="saving"):
    """The session can no longer be saved, or can be again."""

    saved: bool
    reason: str = ""


class PromptProgress(msgspec.Struct, frozen=True, tag="prompt_progress"):
    """How far the model is with the prompt, where it is slow enough for its server to tell."""

    done_tokens: int
    total_tokens: int


class ContentAdded(msgspec.Struct, frozen=True, tag="content"):
    text: str
    trace_id: str = ""


class ThoughtAdded(msgspec.Struct, frozen=True, tag="thought"):
    text: str
    subject: str = ""
    description: str = ""


class ToolCallRequested(msgspec.Struct, frozen=True, tag="tool_call_requested"):
    call: ToolCall
    prompt_id: str = ""
    client_initiated: bool = False


class ToolCallConfirmation(msgspec.Struct, frozen=True, tag="tool_call_confirmation"):
    call: ToolCall
    prompt: str = ""


ToolState = Literal["validating", "awaiting_approval", "scheduled", "executing", "success", "error", "cancelled"]


class ToolCallUpdated(msgspec.Struct, frozen=True, tag="tool_call_updated"):
    call_id: str
    state: ToolState
    output_delta: str = ""


class ToolCallFinished(msgspec.Struct, frozen=True, tag="tool_call_finished"):
    call_id: str
    parts: tuple[Part, ...]
    display: str = ""
    error: str = ""
    error_type: str = ""
    output_file: str = ""
    content_length: int = 0
    changed: tuple[str, ...] = ()
    """Files it wrote: absolute paths."""


class CitationShown(msgspec.Struct, frozen=True, tag="citation"):
    citation: Citation


class TurnRetried(msgspec.Struct, frozen=True, tag="retry"):
    attempt: int
    wait_s: float
    reason: str


class StreamInvalid(msgspec.Struct, frozen=True, tag="invalid_stream"):
    reason: str


class UserCancelled(msgspec.Struct, frozen=True, tag="user_cancelled"):
    pass


class ErrorRaised(msgspec.Struct, frozen=True, tag="error"):
    message: str
    error_type: str = ""
    retryable: bool = False
    exit_code: int = 1


class TurnFinished(msgspec.Struct, frozen=True, tag="finished"):
    reason: FinishReason
    usage: Usage = Usage()


class ContextPruned(msgspec.Struct, frozen=True, tag="pruned"):
    call_ids: tuple[str, ...]
    saved_tokens: int = 0


class ContextCompressed(msgspec.Struct, frozen=True, tag="compressed"):
    status: str
    original_tokens: int = 0
    new_tokens: int = 0


class ContextOverflowed(msgspec.Struct, frozen=True, tag="overflow"):
    estimated_tokens: int
    limit_tokens: int


class LoopSuspected(msgspec.Struct, frozen=True, tag="loop_detected"):
    reason: str
    count: int = 1


class ToolModeChanged(msgspec.Struct, frozen=True, tag="tool_mode"):
    """A call was found written as text where a native one was expected: from here on tools are told and called in text."""

    mode: Literal["text"]
    dialect: str


TurnEvent = (
    PromptAccepted
    | SavingChanged
    | PromptProgress
    | ContentAdded
    | ThoughtAdded
    | ToolCallRequested
    | ToolCallConfirmation
    | ToolCallUpdated
    | ToolCallFinished
    | CitationShown
    | TurnRetried
    | StreamInvalid
    | UserCancelled
    | ErrorRaised
    | TurnFinished
    | ContextPruned
    | ContextCompressed
    | ContextOverflowed
    | LoopSuspected
    | ToolModeChanged
)
