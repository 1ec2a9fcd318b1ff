"""Sessions of gemini-cli: `~/.gemini/tmp/<project>/chats/session-*.jsonl`, and the older `.json`, which is one ConversationRecord.

A message is written again under its id whenever it grows; `$set` changes the head, or replaces the list of messages; `$rewindTo` removes a
message and everything after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dragoman.foreign.sessions.draft import Draft, DraftAnswer, ResultPart, Step
from dragoman.foreign.sessions.records import Record, items, json_text, milliseconds, record, records, text, tokens
from dragoman.values.messages import FileRef, Opaque, Part, Text, Thought, ToolCall
from dragoman.values.record import ToolOutcome
from dragoman.values.usage import Usage
from dragoman.words import say

NAME = "gemini-cli"
DEPLOYMENT = "gemini"

_OUTCOMES: dict[str, ToolOutcome] = {"success": "finished", "error": "failed", "cancelled": "cancelled"}
_NOT_BEGUN = ("validating", "scheduled", "awaiting_approval")

_MESSAGE = frozenset(["id", "timestamp", "type", "content", "thoughts", "tokens", "model", "toolCalls"])
_CALL = frozenset(["id", "name", "args", "result", "status", "timestamp", "resultDisplay", "thoughtSignature"])


def is_ours(line: Record) -> bool:
    messages = records(line, "messages")
    has_messages = isinstance(line.get("messages"), list) and not any("role" in each for each in messages)  # ours have a type, and no role
    return bool(text(line, "sessionId")) and ("projectHash" in line or has_messages)


def read(lines: Sequence[Record], draft: Draft) -> None:
    ledger = _MessageLog(draft)
    for line in lines:
        ledger.read(line)
    _Reader(draft, ledger.messages).read(ledger.path)


class _MessageLog:
    """The state the lines add up to: the last version of each message, and the order in which they were said and rewound."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self.messages: dict[str, Record] = {}
        self.path: list[tuple[str, bool]] = []
        """Message ids in the order they were said; with True, a rewind to after that message (empty: to the beginning)."""
        self._current: dict[str, None] = {}

    def read(self, line: Record) -> None:
        if "$rewindTo" in line:
            self._rewind(text(line, "$rewindTo"))
        elif "$set" in line:
            self._note_head(record(line, "$set"))
            if isinstance(record(line, "$set").get("messages"), list):
                self._replace(records(record(line, "$set"), "messages"))
        elif text(line, "id") and text(line, "type"):
            self._say(line)
        elif text(line, "sessionId"):
            self._note_head(line)
            for message in records(line, "messages"):
                self._say(message)
        else:
            self._draft.leave_out(say("sessions.left_unknown_line"))

    def _note_head(self, head: Record) -> None:
        draft = self._draft
        draft.source_id = text(head, "sessionId") or draft.source_id
        draft.started_ms = draft.started_ms or milliseconds(head.get("startTime"))
        draft.title = text(head, "summary") or draft.title
        draft.directories = tuple(each for each in items(head, "directories") if isinstance(each, str)) or draft.directories
        if head.get("memoryScratchpad"):
            draft.leave_out(say("sessions.left_gemini_scratchpad"))

    def _say(self, message: Record) -> None:
        own_id = text(message, "id") or f"message {len(self.messages) + 1}"
        self.messages[own_id] = message
        if own_id not in self._current:
            self._current[own_id] = None
            self.path.append((own_id, False))

    def _rewind(self, own_id: str) -> None:
        """If the message does not exist, everything is rewound, as gemini-cli itself does."""
        self._truncate(list(self._current).index(own_id) if own_id in self._current else 0)

    def _replace(self, messages: Sequence[Record]) -> None:
        """Messages with nothing but results may be missing from the new list: their calls have the results too."""
        wanted = [text(message, "id") for message in messages if not _is_results(message)]
        current = [own_id for own_id in self._current if not _is_results(self.messages[own_id])]
        same = 0
        while same < min(len(wanted), len(current)) and wanted[same] == current[same]:
            same += 1
        if same < len(current):
            self._truncate(list(self._current).index(current[same]))
        for message in messages:
            self._say(message)

    def _truncate(self, count: int) -> None:
        if count < len(self._current):
            kept = list(self._current)[:count]
            self._current = dict.fromkeys(kept)
            self.path.append((kept[-1] if kept else "", True))


class _Reader:
    def __init__(self, draft: Draft, messages: dict[str, Record]) -> None:
        self._draft = draft
        self._messages = messages

    def read(self, path: Sequence[tuple[str, bool]]) -> None:
        steps: dict[str, Step | None] = {"": None}
        for own_id, goes_back in path:
            if goes_back:
                self._draft.rewind(steps.get(own_id), 0)
                continue
            message = self._messages[own_id]
            match text(message, "type"):
                case "user":
                    self._read_user(message)
                case "gemini" | "model" | "assistant":
                    self._read_answer(message)
                case kind:
                    self._draft.leave_out(say("sessions.left_type", kind=kind or say("sessions.left_no_kind")))
            steps[own_id] = self._draft.tip

    def _read_user(self, message: Record) -> None:
        self._draft.leave_out_fields(message, _MESSAGE)
        when = milliseconds(message.get("timestamp"))
        blocks = _blocks(message.get("content"))
        responses = [record(block, "functionResponse") for block in blocks if "functionResponse" in block]
        for response in responses:
            call_id = text(response, "id")
            if not self._draft.has_result(call_id):  # most versions already recorded it with the call
                self._read_response(call_id, response, when)
        parts = tuple(self._user_parts([block for block in blocks if "functionResponse" not in block]))
        if parts or not responses:
            self._draft.prompt(parts, when)

    def _read_answer(self, message: Record) -> None:
        model, when = text(message, "model"), milliseconds(message.get("timestamp"))
        calls = records(message, "toolCalls")
        self._draft.leave_out_fields(message, _MESSAGE)
        for call in calls:
            self._draft.leave_out_fields(call, _CALL)
        parts: list[Part] = [Thought(_thought(thought)) for thought in records(message, "thoughts")]
        parts += self._answer_parts(_blocks(message.get("content")), model)
        call_ids = {part.id for part in parts if isinstance(part, ToolCall)}
        for call in calls:
            if text(call, "id") not in call_ids:
                signature = text(call, "thoughtSignature")
                opaque = Opaque(DEPLOYMENT, json_text(signature), model) if signature else None
                parts.append(ToolCall(text(call, "id"), text(call, "name"), json_text(call.get("args") or {}), opaque))
        answer = DraftAnswer(tuple(parts), when, model, DEPLOYMENT if model else "", _usage(record(message, "tokens")))
        if calls and all(text(call, "status") in _NOT_BEGUN for call in calls):
            answer.unanswered = "not_run"
        self._draft.answer(answer)
        for call in calls:
            self._read_result(call, when)

    def _answer_parts(self, blocks: Sequence[Record], model: str) -> Iterator[Part]:
        """As the Gemini protocol reads them: a signature stays on the part it came with."""
        for block in blocks:
            signature = text(block, "thoughtSignature")
            opaque = Opaque(DEPLOYMENT, json_text(signature), model) if signature else None
            if "functionCall" in block:
                call = record(block, "functionCall")
                yield ToolCall(text(call, "id"), text(call, "name"), json_text(call.get("args") or {}), opaque)
            elif block.get("thought") is True or (signature and not text(block, "text")):
                yield Thought(text(block, "text"), Opaque(DEPLOYMENT, json_text(block), model) if signature else None)
            elif isinstance(block.get("text"), str):
                yield Text(text(block, "text"), opaque)
            elif "executableCode" in block or "codeExecutionResult" in block:
                yield Thought(opaque=Opaque(DEPLOYMENT, json_text(block), model))
            else:
                yield from self._media(block)

    def _user_parts(self, blocks: Sequence[Record]) -> Iterator[ResultPart]:
        for block in blocks:
            if isinstance(block.get("text"), str):
                yield Text(text(block, "text"))
            else:
                yield from self._media(block)

    def _media(self, block: Record) -> Iterator[ResultPart]:
        if inline := record(block, "inlineData"):
            yield self._draft.media(text(inline, "mimeType"), text(inline, "data"))
        elif file := record(block, "fileData"):
            yield FileRef(text(file, "mimeType"), text(file, "fileUri"))
        else:
            self._draft.leave_out(say("sessions.left_part", kind=", ".join(sorted(block))[:60] or say("sessions.left_empty")))

    # --- results

    def _read_result(self, call: Record, when: int) -> None:
        blocks = _blocks(call.get("result"))
        response = next((record(block, "functionResponse") for block in blocks if "functionResponse" in block), None)
        beside = [block for block in blocks if "functionResponse" not in block]
        if response is None and not beside:
            return
        when = milliseconds(call.get("timestamp")) or when
        outcome = _OUTCOMES.get(text(call, "status"))
        self._read_response(text(call, "id"), response or {}, when, beside, outcome, text(call, "resultDisplay"))
        if isinstance(call.get("resultDisplay"), dict):
            self._draft.leave_out(say("sessions.left_gemini_display"))

    def _read_response(
        self,
        call_id: str,
        response: Record,
        when: int,
        beside: Sequence[Record] = (),
        outcome: ToolOutcome | None = None,
        display: str = "",
    ) -> None:
        answer = record(response, "response")
        is_error = "error" in answer or outcome in ("failed", "cancelled")
        content: list[ResultPart] = []
        if answer:
            output = answer.get("error", answer.get("output")) if answer.keys() <= {"output", "error"} else answer
            content.append(Text(output if isinstance(output, str) else json_text(output)))
        content += self._user_parts([*records(response, "parts"), *beside])
        self._draft.result(call_id, content, when, is_error=is_error, outcome=outcome, display=display)


def _blocks(content: Any) -> list[Record]:
    """A text, a part, or a list of either, as a list of parts."""
    match content:
        case str():
            return [{"text": content}] if content else []
        case dict():
            return [content]
        case list():
            return [block for item in content for block in (() if isinstance(item, list) else _blocks(item))]
        case _:
            return []


def _is_results(message: Record) -> bool:
    blocks = _blocks(message.get("content"))
    return text(message, "type") == "user" and bool(blocks) and all("functionResponse" in block for block in blocks)


def _thought(thought: Record) -> str:
    subject, description = text(thought, "subject"), text(thought, "description")
    return f"**{subject}**\n{description}" if subject else description


def _usage(used: Record) -> Usage | None:
    if not used:
        return None
    thought = tokens(used, "thoughts")
    return Usage.from_total(
        tokens(used, "input") + tokens(used, "tool"),
        cache_read=tokens(used, "cached"),
        output=tokens(used, "output") + thought,
        thought=thought,
    )
