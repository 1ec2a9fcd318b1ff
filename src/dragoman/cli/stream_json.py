"""`--output-format stream-json`: one JSON object per TurnEvent. Pure functions, held to the table in docs/operate/stream-json.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from msgspec import to_builtins

from dragoman import __version__
from dragoman.base import jsontext
from dragoman.cli.outcome import sources_data
from dragoman.values.events import (
    CitationAdded,
    CompressionStarted,
    ContextCompressed,
    ContextOverflowed,
    ContextPruned,
    ErrorRaised,
    FieldOmitted,
    HandedOver,
    LoopSuspected,
    ModelSwitched,
    NoticeGiven,
    OutputUpdated,
    PromptAccepted,
    PromptRead,
    RequestDelayed,
    ResponseStarted,
    Retrying,
    SavingChanged,
    StreamInvalid,
    SubagentEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallConfirmation,
    ToolCallFinished,
    ToolCallRequested,
    ToolCallUpdated,
    ToolModeChanged,
    TurnEvent,
    TurnFinished,
    TurnStarted,
    UserCancelled,
)
from dragoman.values.messages import Blob, FileRef, Part, Text, ToolResult
from dragoman.values.record import CommandOutput

if TYPE_CHECKING:
    from dragoman.cli.outcome import Outcome

MAX_TEXT_CHARS = 20_000
"""Longer tool results and prompts are truncated here; the model may have seen more."""


def line(data: dict[str, Any], at_ms: int) -> str:
    return jsontext.dumps(data | {"at_ms": at_ms}) + "\n"


def init_data(*, session_id: str, model: str, tools: list[str], workspace: str, sandbox: str | None) -> dict[str, Any]:
    return {
        "type": "init",
        "session_id": session_id,
        "model": model,
        "tools": tools,
        "workspace": workspace,
        "sandbox": sandbox,
        "version": __version__,
    }


def prompt_data(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "delta": False, **_truncate(text)}


def result_data(outcome: Outcome) -> dict[str, Any]:
    return {"type": "result", "status": outcome.status, "exit_code": outcome.exit_code, **outcome.to_json()}


def failure_data(message: str, error_type: str, exit_code: int) -> dict[str, Any]:
    return {"type": "error", "severity": "error", "error_type": error_type, "message": message, "exit_code": exit_code}


def event_data(event: TurnEvent) -> dict[str, Any] | None:
    """The object for an event; None for events that are not reported."""
    match event:
        case TextDelta(text=text):
            return {"type": "message", "role": "assistant", "delta": True, "text": text}
        case ThoughtDelta():
            thought = {"type": "thought", "text": event.text}
            return thought | ({"subject": event.subject, "description": event.description} if event.subject else {})
        case CitationAdded(citation=citation):
            shown = {"uri": citation.uri, "title": citation.title, "cited_text": citation.cited_text}
            return {"type": "message", "role": "assistant", "delta": True, "text": "", "citation": shown}
        case ToolCallRequested(call=call):
            args = call.args
            return {"type": "tool_use", "id": call.id, "name": call.name, "args": call.arguments if args is None else args}
        case ToolCallFinished():
            return _result_data(event)
        case ToolCallUpdated():
            return _progress_data(event)
        case ResponseStarted() | PromptAccepted() | ToolCallConfirmation():
            return None
        case SavingChanged():
            return _warning("saving", event.reason) | {"saved": event.saved}
        case TurnStarted():
            return {"type": "context", "event": "turn_started", "turn": event.turn, "model": event.model}
        case TurnFinished(reason=reason, usage=usage):
            tokens = {"input": usage.input_tokens, "cache_read": usage.cache_read_tokens, "output": usage.output_tokens}
            tokens = {name: usage.told(count) for name, count in tokens.items()}
            return {"type": "context", "event": "turn_finished", "reason": reason.value, "tokens": tokens}
        case ContextPruned():
            pruned = {"call_ids": list(event.call_ids), "saved_tokens": event.saved_tokens}
            return {"type": "context", "event": "pruned", **pruned, **_for_window(event.window)}
        case CompressionStarted():
            return {"type": "context", "event": "compressing", "tokens": event.tokens, "window": event.window}
        case ContextCompressed():
            tokens = {"original": event.original_tokens, "new": event.new_tokens}
            return {"type": "context", "event": "compressed", "status": event.status, "tokens": tokens, **_for_window(event.window)} | (
                {"reason": event.reason} if event.reason else {}
            )
        case ContextOverflowed():
            return {"type": "context", "event": "overflow", "estimated_tokens": event.estimated_tokens, "limit_tokens": event.limit_tokens}
        case Retrying():
            return _warning("retry", event.reason) | {"attempt": event.attempt, "wait_s": round(event.wait_s, 3), "discard": True}
        case RequestDelayed():
            return _warning("request_delayed", event.reason) | {"wait_s": round(event.wait_s, 3)}
        case FieldOmitted():
            named = {"model": f"{event.deployment}/{event.model}", "field": event.field}
            return _warning("field_omitted", event.reason) | named
        case StreamInvalid(reason=reason):
            return _warning("invalid_stream", reason) | {"discard": True}
        case PromptRead():
            return {"type": "context", "event": "prompt_progress", "done_tokens": event.done_tokens, "total_tokens": event.total_tokens}
        case OutputUpdated():
            return None
        case ToolModeChanged():
            return {"type": "context", "event": "tool_mode", "mode": event.mode, "dialect": event.dialect}
        case ModelSwitched():
            return _warning("model_switched", event.reason) | {"model": event.model, "previous": event.previous, "discard": True}
        case SubagentEvent(call_id=call_id, name=name, event=inner):
            data = event_data(inner)
            return None if data is None else {"type": "subagent", "id": call_id, "name": name, "event": data}
        case HandedOver():
            return {"type": "context", "event": "handed_over", "id": event.call_id, "agent": event.name, "model": event.model}
        case NoticeGiven(about=about, message=message):
            return _warning("notice", message) | {"about": about}
        case LoopSuspected():
            return _warning("loop_detected", event.reason) | {"count": event.count}
        case UserCancelled():
            return failure_data("cancelled", "Cancelled", 130)
        case ErrorRaised():
            return failure_data(event.message, event.error_type, event.exit_code)
        case _:
            assert_never(event)


def _warning(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "severity": "warning", "error_type": kind, "message": message}


def _progress_data(event: ToolCallUpdated) -> dict[str, Any] | None:
    """How far a call has come, if its tool reports it. Changes of state and output in progress are left out: the result has them."""
    if not event.progress and event.done is None:
        return None
    count = {"done": event.done, "total": event.total}
    return {"type": "tool_progress", "id": event.call_id, "text": event.progress} | {
        key: value for key, value in count.items() if value is not None
    }


def _result_data(event: ToolCallFinished) -> dict[str, Any]:
    data: dict[str, Any] = {
        "type": "tool_result",
        "id": event.call_id,
        "outcome": event.outcome,
        "is_error": bool(event.error) or any(isinstance(part, ToolResult) and part.is_error for part in event.parts),
        **_truncate(_text_of(event.parts)),
        "display": event.display,
        "files": list(event.changed),
    }
    if event.error_type:
        data["error_type"] = event.error_type
    if event.outside:
        data["outside_sandbox"] = True
    if event.repairs:
        data["repairs"] = list(event.repairs)
    if event.arguments:
        args = jsontext.decode_object(event.arguments)
        data["args"] = event.arguments if args is None else args
    if event.output_file:
        data["output_file"] = event.output_file
    if event.command is not None:
        data["command"] = _command_data(event.command)
    if event.sources:
        data["sources"] = sources_data(event.sources)
    return data


def _command_data(command: CommandOutput) -> dict[str, Any]:
    """What it printed, as it came, and how it ended."""
    data: dict[str, Any] = to_builtins(command)
    return data | {name: text[:MAX_TEXT_CHARS] for name in ("stdout", "stderr") if len(text := data[name]) > MAX_TEXT_CHARS}


def _truncate(text: str) -> dict[str, Any]:
    if len(text) <= MAX_TEXT_CHARS:
        return {"text": text}
    return {"text": text[:MAX_TEXT_CHARS], "truncated": True}


def _text_of(parts: tuple[Part, ...]) -> str:
    texts: list[str] = []
    for part in parts:
        match part:
            case Text(text=text):
                texts.append(text)
            case ToolResult(content=content):
                texts.append(_text_of(content))
            case Blob():
                texts.append(f"[{part.mime}, {part.size:,} bytes]")
            case FileRef():
                texts.append(f"[{part.mime} {part.uri}]")
            case _:
                pass
    return "\n".join(texts)


def _for_window(window: int) -> dict[str, int]:
    """The window that forced it, and for which alone it holds; left out where it holds for every model."""
    return {"window": window} if window else {}
