"""Sessions of Cline: `<session>.messages.json`, one object with the messages in Anthropic's blocks.

`modelInfo.id` names the model as `service/model`; `metrics` counts cached tokens as part of the input, unless there are more of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dragoman.foreign.sessions.draft import Draft, DraftAnswer, ResultPart
from dragoman.foreign.sessions.records import Record, json_text, milliseconds, record, records, text, tokens
from dragoman.values.messages import Part, Text, Thought, ToolCall
from dragoman.values.usage import Usage
from dragoman.words import say

NAME = "cline"

_HEAD = frozenset(["version", "updated_at", "agent", "sessionId", "messages", "system_prompt"])
_MESSAGE = frozenset(["id", "role", "content", "ts", "modelInfo", "metrics"])
_METRICS = frozenset(["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"])
_MODEL = frozenset(["id", "provider", "family"])


def is_ours(line: Record) -> bool:
    messages = records(line, "messages")
    return bool(text(line, "sessionId")) and any("role" in each for each in messages) and ("agent" in line or "system_prompt" in line)


def read(lines: Sequence[Record], draft: Draft) -> None:
    for line in lines:
        if not records(line, "messages"):
            draft.leave_out(say("sessions.left_unknown_line"))
            continue
        draft.source_id = text(line, "sessionId") or draft.source_id
        draft.leave_out_fields(line, _HEAD)
        if text(line, "system_prompt"):
            draft.leave_out(say("sessions.left_cline_instructions"))
        for message in records(line, "messages"):
            _read_message(message, draft)


def _read_message(message: Record, draft: Draft) -> None:
    draft.leave_out_fields(message, _MESSAGE)
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else records(message, "content")
    when = milliseconds(message.get("ts"))
    match text(message, "role"):
        case "user":
            _read_user(blocks, when, draft)
        case "assistant":
            _read_answer(message, blocks, when, draft)
        case role:
            draft.leave_out(say("sessions.left_role", role=role or say("sessions.left_no_kind")))


def _read_user(blocks: Sequence[Record], when: int, draft: Draft) -> None:
    results = [block for block in blocks if text(block, "type") == "tool_result"]
    for block in results:
        is_error = block.get("is_error") is True
        draft.result(text(block, "tool_use_id"), _result_content(block, draft), when, is_error=is_error)
    parts = tuple(_user_parts([block for block in blocks if text(block, "type") != "tool_result"], draft))
    if parts or not results:
        draft.prompt(parts, when)


def _result_content(block: Record, draft: Draft) -> tuple[ResultPart, ...]:
    """A text, Anthropic's blocks, or a list of queries with their results."""
    content = block.get("content")
    if isinstance(content, str):
        return (Text(content),)
    inner = records(block, "content")
    if all(text(each, "type") for each in inner):
        return tuple(_user_parts(inner, draft))
    return (Text(json_text(content)),)


def _user_parts(blocks: Sequence[Record], draft: Draft) -> Iterator[ResultPart]:
    for block in blocks:
        source = record(block, "source")
        match text(block, "type"):
            case "text":
                yield Text(text(block, "text"))
            case "file":
                yield Text(f"\n\n{text(block, 'path')}:\n{text(block, 'content')}")
            case "image" if text(source, "data"):
                yield draft.media(text(source, "media_type"), text(source, "data"))
            case kind:
                draft.leave_out(say("sessions.left_message_block", kind=kind or say("sessions.left_nameless")))


def _read_answer(message: Record, blocks: Sequence[Record], when: int, draft: Draft) -> None:
    metrics, info = record(message, "metrics"), record(message, "modelInfo")
    deployment, slash, model = text(info, "id").partition("/")
    if not slash:
        deployment, model = text(info, "provider"), text(info, "id")
    draft.leave_out_fields(metrics, _METRICS)
    draft.leave_out_fields(info, _MODEL)
    draft.answer(DraftAnswer(tuple(_answer_parts(blocks, draft)), when, model, deployment, _usage(metrics) if metrics else None))


def _answer_parts(blocks: Sequence[Record], draft: Draft) -> Iterator[Part]:
    for block in blocks:
        match text(block, "type"):
            case "text":
                yield Text(text(block, "text"))
            case "thinking" | "reasoning":  # without its signature: it is not known which service wrote it
                yield Thought(text(block, "thinking") or text(block, "text"))
            case "tool_use":
                yield ToolCall(text(block, "id"), text(block, "name"), json_text(block.get("input") or {}))
            case kind:
                draft.leave_out(say("sessions.left_answer_block", kind=kind or say("sessions.left_nameless")))


def _usage(metrics: Record) -> Usage:
    read, written = tokens(metrics, "cacheReadTokens"), tokens(metrics, "cacheWriteTokens")
    given = tokens(metrics, "inputTokens")
    fresh = given - read - written if given >= read + written else given
    return Usage(fresh_tokens=fresh, cache_read_tokens=read, cache_write_tokens=written, output_tokens=tokens(metrics, "outputTokens"))
