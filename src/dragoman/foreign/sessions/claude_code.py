"""Sessions of Claude Code: `~/.claude/projects/<folder>/<id>.jsonl`.

An answer is written as one line per block, all with the same message id. Lines name their parent; if the parent is not the last message,
the person had rewound. The parent of a parallel result is its own call's line, which is not a rewind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dragoman.foreign.sessions.draft import Draft, DraftAnswer, ResultPart, Step
from dragoman.foreign.sessions.records import Record, json_text, milliseconds, record, records, text, tokens
from dragoman.values.messages import FileRef, FinishReason, Opaque, Part, Text, Thought, ToolCall
from dragoman.values.usage import Usage
from dragoman.words import say

NAME = "claude-code"
DEPLOYMENT = "anthropic"

_FINISH = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_use": FinishReason.TOOL_CALLS,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.REFUSAL,
}

_LINE = frozenset(
    [
        "type",
        "uuid",
        "parentUuid",
        "logicalParentUuid",
        "sessionId",
        "timestamp",
        "cwd",
        "version",
        "message",
        "isSidechain",
        "isMeta",
        "isCompactSummary",
        "isApiErrorMessage",
        "toolUseResult",
    ]
)
_MESSAGE = frozenset(["id", "type", "role", "model", "content", "usage", "stop_reason"])
_USAGE = frozenset(
    ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens", "output_tokens_details", "cache_creation"]
)


def is_ours(line: Record) -> bool:
    """Whether a line could only come from Claude Code."""
    return "parentUuid" in line and bool(text(line, "uuid")) and bool(text(line, "type"))


def read(lines: Sequence[Record], draft: Draft) -> None:
    reader = _Reader(draft)
    for line in lines:
        reader.read(line)


class _Reader:
    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._steps: dict[str, Step | None] = {}
        """By a line's uuid: the step it belongs to, or its parent step."""
        self._answers: dict[str, DraftAnswer] = {}
        self._pre_tokens = 0

    def read(self, line: Record) -> None:
        kind, uuid = text(line, "type"), text(line, "uuid")
        self._note_head(line)
        if uuid and uuid in self._steps:
            self._draft.leave_out(say("sessions.left_duplicate"))
            return
        parent = self._steps.get(text(line, "parentUuid"), self._draft.tip)
        if kind in ("user", "assistant") and line.get("isSidechain") is True:
            self._draft.leave_out(say("sessions.left_sidechain"))
        elif kind == "assistant":
            parent = self._read_answer(line, parent)
        elif kind == "user":
            parent = self._read_user(line, parent)
        elif kind in ("summary", "custom-title", "ai-title"):
            self._draft.title = text(line, "summary") or text(line, "customTitle") or text(line, "aiTitle") or self._draft.title
        elif kind == "system" and text(line, "subtype") == "compact_boundary":
            self._pre_tokens = tokens(record(line, "compactMetadata"), "preTokens")
        else:
            self._leave_out(line, kind)
        if uuid:
            self._steps[uuid] = parent

    def _note_head(self, line: Record) -> None:
        draft = self._draft
        draft.source_id = draft.source_id or text(line, "sessionId")
        draft.started_ms = draft.started_ms or milliseconds(line.get("timestamp"))
        if (cwd := text(line, "cwd")) and not draft.directories:
            draft.directories = (cwd,)
        if (version := text(line, "version")) and not draft.versions:
            draft.versions = (f"{NAME} {version}",)

    def _leave_out_fields(self, line: Record, message: Record) -> None:
        self._draft.leave_out_fields(line, _LINE)
        self._draft.leave_out_fields(message, _MESSAGE)
        self._draft.leave_out_fields(record(message, "usage"), _USAGE)

    def _leave_out(self, line: Record, kind: str) -> None:
        inner = text(line, "subtype") or text(record(line, "attachment"), "type")
        kind = kind or say("sessions.left_no_kind")
        self._draft.leave_out(say("sessions.left_line_detail", kind=kind, detail=inner) if inner else say("sessions.left_line", kind=kind))

    # --- answers

    def _read_answer(self, line: Record, parent: Step | None) -> Step:
        message = record(line, "message")
        model, response_id = text(message, "model"), text(message, "id")
        stop, when = text(message, "stop_reason"), milliseconds(line.get("timestamp"))
        parts = tuple(self._answer_parts(message, model))
        self._leave_out_fields(line, message)
        answer = self._answers.get(response_id)
        if answer is None:
            self._go_back_to(parent, when)
            made_here = model == "<synthetic>" or line.get("isApiErrorMessage") is True
            answer = DraftAnswer((), when, "" if made_here else model, "" if made_here else DEPLOYMENT, response_id=response_id)
            answer.rejected = "Claude Code wrote it, not the model" if made_here else ""
            self._draft.answer(answer)
            if response_id:
                self._answers[response_id] = answer
        self._draft.extend(answer, parts)
        if usage := record(message, "usage"):
            answer.usage = _usage(usage)  # every line repeats it; the last one is final
        if stop:
            answer.finish, answer.raw_finish = _FINISH.get(stop, FinishReason.OTHER), stop
        return answer

    def _answer_parts(self, message: Record, model: str) -> Iterator[Part]:
        if isinstance(message.get("content"), str):
            yield Text(text(message, "content"))
        for block in records(message, "content"):
            match text(block, "type"):
                case "text":
                    yield Text(text(block, "text"), _opaque(block, model) if block.get("citations") else None)
                case "thinking":
                    yield Thought(text(block, "thinking"), _opaque(block, model) if text(block, "signature") else None)
                case "tool_use":
                    yield ToolCall(text(block, "id"), text(block, "name"), json_text(block.get("input") or {}))
                case "redacted_thinking" | "server_tool_use" | "web_search_tool_result" | "web_fetch_tool_result":
                    yield Thought(opaque=_opaque(block, model))
                case kind:
                    self._draft.leave_out(say("sessions.left_answer_block", kind=kind or say("sessions.left_nameless")))

    # --- prompts and results

    def _read_user(self, line: Record, parent: Step | None) -> Step | None:
        message, when = record(line, "message"), milliseconds(line.get("timestamp"))
        content = message.get("content")
        if line.get("isCompactSummary") is True:
            summary = content if isinstance(content, str) else "".join(text(block, "text") for block in records(message, "content"))
            self._draft.compress(summary, when, original_tokens=self._pre_tokens)
            return self._draft.tip
        self._leave_out_fields(line, message)
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else records(message, "content")
        results = [block for block in blocks if text(block, "type") == "tool_result"]
        for block in results:
            is_error = block.get("is_error") is True
            self._draft.result(text(block, "tool_use_id"), self._result_content(block), when, is_error=is_error)
        if results and line.get("toolUseResult") is not None:
            self._draft.leave_out(say("sessions.left_claude_result"))
        parts = tuple(self._user_parts([block for block in blocks if text(block, "type") != "tool_result"]))
        if results and not parts:
            return parent
        if not results:
            self._go_back_to(parent, when)
        return self._draft.prompt(parts, when)

    def _result_content(self, block: Record) -> tuple[ResultPart, ...]:
        content = block.get("content")
        return (Text(content),) if isinstance(content, str) else tuple(self._user_parts(records(block, "content")))

    def _user_parts(self, blocks: Sequence[Record]) -> Iterator[ResultPart]:
        for block in blocks:
            source = record(block, "source")
            match text(block, "type"), text(source, "type"):
                case "text", _:
                    yield Text(text(block, "text"))
                case (("image" | "document"), "base64"):
                    yield self._draft.media(text(source, "media_type"), text(source, "data"))
                case ("image" | "document") as kind, "url":
                    yield FileRef("image/png" if kind == "image" else "application/pdf", text(source, "url"))
                case "document", "text":
                    yield Text(text(source, "data"))
                case kind, _:
                    self._draft.leave_out(say("sessions.left_message_block", kind=kind or say("sessions.left_nameless")))

    def _go_back_to(self, parent: Step | None, when: int) -> None:
        if parent is not None:
            self._draft.rewind(parent, when)


def _opaque(block: Record, model: str) -> Opaque:
    return Opaque(DEPLOYMENT, json_text(block), model)


def _usage(usage: Record) -> Usage:
    return Usage(
        fresh_tokens=tokens(usage, "input_tokens"),
        cache_read_tokens=tokens(usage, "cache_read_input_tokens"),
        cache_write_tokens=tokens(usage, "cache_creation_input_tokens"),
        output_tokens=tokens(usage, "output_tokens"),
        thought_tokens=tokens(record(usage, "output_tokens_details"), "thinking_tokens"),
        cache_write_1h_tokens=tokens(record(usage, "cache_creation"), "ephemeral_1h_input_tokens"),
    )
