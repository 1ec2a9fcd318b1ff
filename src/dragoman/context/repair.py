"""Makes of any history one that every service accepts: each call has exactly one result, right after it.

Live history does not need this: the view makes result messages itself. It is for imported or interrupted histories:
missing result → an error result; orphan → left out; duplicate → the first kept; displaced → moved after its call; duplicate or
empty call ids → unique ones. Correct messages come back as the same objects, so cached renderings stay valid.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.values.messages import Message, Part, Text, ToolCall, ToolResult, unique_id
from dragoman.values.parts import INTERRUPTED, as_messages

OPENING = "(The beginning of this conversation is not shown.)"
CONTINUE = "Continue."


class Repaired(msgspec.Struct, frozen=True):
    """Messages that every service takes, and what was changed in them."""

    messages: tuple[Message, ...]
    notes: tuple[str, ...] = ()
    """What was changed and why, one line each, for the plan of a request."""


def repair(messages: Iterable[Message | Mapping[str, Any]]) -> Repaired:
    """Repair a history: ours, or one in dicts of another API. Pure and idempotent."""
    messages = as_messages(messages)
    notes: list[str] = []
    renamed = [_with_unique_calls(message, seen) for seen in [set[str]()] for message in messages]
    for before, after in zip(messages, renamed, strict=True):
        if after is not before:
            notes.append(f"duplicate or empty call ids made unique: {', '.join(call.id for call in after.calls)}")
    answers = _match_results(messages, renamed, notes)
    repaired = tuple(_rebuild(renamed, answers, notes))
    if repaired and repaired[0].role == "assistant":
        notes.append("an opening user message added")
        repaired = (Message("user", (Text(OPENING),)), *repaired)
    if repaired and repaired[-1].role == "assistant":
        notes.append("a closing user message added")
        repaired = (*repaired, Message("user", (Text(CONTINUE),)))
    return Repaired(repaired, tuple(notes))


def _with_unique_calls(message: Message, seen: set[str]) -> Message:
    if message.role != "assistant":
        return message
    parts: list[Part] = []
    changed = False
    for part in message.parts:
        if isinstance(part, ToolCall):
            fresh = unique_id(part.id, seen)
            seen.add(fresh)
            if fresh != part.id:
                part, changed = msgspec.structs.replace(part, id=fresh), True
        parts.append(part)
    return Message(message.role, tuple(parts)) if changed else message


def _match_results(originals: Sequence[Message], renamed: Sequence[Message], notes: list[str]) -> dict[str, ToolResult]:
    """The result of each call, by the call's unique id. A result belongs to the first open call before it with its id."""
    open_calls: dict[str, deque[str]] = {}
    answers: dict[str, ToolResult] = {}
    early: list[ToolResult] = []
    known: set[str] = set()
    for original, message in zip(originals, renamed, strict=True):
        if message.role == "assistant":
            for before, call in zip(original.calls, message.calls, strict=True):
                open_calls.setdefault(before.id, deque()).append(call.id)
                known.add(before.id)
        for result in message.results:
            if waiting := open_calls.get(result.call_id):
                answers[waiting.popleft()] = result
            elif result.call_id in known:
                notes.append(f"a second result for {result.call_id or 'an unnamed call'} left out")
            else:
                early.append(result)
    for result in early:
        if waiting := open_calls.get(result.call_id):
            answers[waiting.popleft()] = result
            notes.append(f"the result of {result.call_id} moved behind its call")
        else:
            notes.append(f"a result without a call left out: {result.name} {result.call_id}".rstrip())
    return answers


def _rebuild(messages: Sequence[Message], answers: dict[str, ToolResult], notes: list[str]) -> Iterator[Message]:
    skip: Message | None = None
    for position, message in enumerate(messages):
        if message is skip:
            continue
        calls = message.calls if message.role == "assistant" else ()
        kept = _without_misplaced(message)
        if kept is not None:
            yield kept
        if not calls:
            continue
        results = tuple(_answer(call, answers, notes) for call in calls)
        following = messages[position + 1] if position + 1 < len(messages) else None
        if following is not None and following.role == "user" and _opens_with(following, results):
            skip = following
            yield following
        else:
            yield Message("user", results)


def _without_misplaced(message: Message) -> Message | None:
    """The message without results (they are put after their calls) and without calls in a user message."""
    unwanted = (ToolResult, ToolCall) if message.role == "user" else ToolResult
    if not any(isinstance(part, unwanted) for part in message.parts):
        return message
    parts = tuple(part for part in message.parts if not isinstance(part, unwanted))
    return Message(message.role, parts) if parts else None


def _answer(call: ToolCall, answers: dict[str, ToolResult], notes: list[str]) -> ToolResult:
    result = answers.get(call.id)
    if result is None:
        notes.append(f"no result for {call.name} {call.id}: {INTERRUPTED}")
        return ToolResult(call.id, call.name, (Text(INTERRUPTED),), is_error=True)
    if result.call_id == call.id and result.name == call.name:
        return result
    return msgspec.structs.replace(result, call_id=call.id, name=call.name)


def _opens_with(message: Message, results: tuple[ToolResult, ...]) -> bool:
    """Whether the message already begins with these results, in order, and holds no others."""
    count = len(results)
    if len(message.parts) < count or any(mine is not wanted for mine, wanted in zip(message.parts, results, strict=False)):
        return False
    return not any(isinstance(part, ToolResult | ToolCall) for part in message.parts[count:])
