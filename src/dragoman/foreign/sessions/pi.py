"""Sessions of pi: `~/.pi/agent/sessions/<folder>/<time>_<id>.jsonl`, from the first format, which is a plain list, to the later trees.

In a tree each entry names its parent; if that is not the last entry, the entry begins another branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dragoman.base import jsontext
from dragoman.foreign.sessions.draft import Draft, DraftAnswer, ResultPart, Step
from dragoman.foreign.sessions.records import Record, json_text, milliseconds, record, records, text, tokens
from dragoman.values.messages import FinishReason, Opaque, Part, Text, Thought, ToolCall
from dragoman.values.usage import Usage
from dragoman.words import say

NAME = "pi"

_FINISH = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "toolUse": FinishReason.TOOL_CALLS,
}
_CARRIED = ("user", "assistant", "toolResult", "custom", "bashExecution")
_BROKEN_OFF = ("aborted", "error")
_DEPLOYMENTS = {"google": "gemini", "google-gemini-cli": "gemini", "google-vertex": "vertex"}

_MESSAGE = frozenset(
    [
        "role",
        "content",
        "api",
        "provider",
        "model",
        "usage",
        "stopReason",
        "rawStopReason",
        "errorMessage",
        "responseId",
        "timestamp",
        "toolCallId",
        "toolName",
        "isError",
        "details",
        "command",
        "output",
        "excludeFromContext",
        "summary",
    ]
)


def is_ours(line: Record) -> bool:
    return text(line, "type") == "session" and bool(text(line, "id")) and "cwd" in line


def read(lines: Sequence[Record], draft: Draft) -> None:
    reader = _Reader(draft)
    for line in lines:
        reader.read(line)


class _Reader:
    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._steps: dict[str, Step | None] = {}
        """By an entry's id: the step it is, or its parent step."""
        self._steps_by_line: list[Step | None] = []

    def read(self, line: Record) -> None:
        own_id = text(line, "id")
        parent = self._parent(line)
        step = parent
        match text(line, "type"):
            case "session":
                self._note_head(line)
            case "message":
                step = self._read_message(record(line, "message"), line, parent)
            case "custom_message":
                step = self._say(self._content(line), line, parent)
            case "branch_summary":
                step = self._say((Text(text(line, "summary")),), line, parent)
            case "compaction":
                step = self._compress(line, parent)
            case "session_info":
                self._draft.title = text(line, "name") or self._draft.title
            case "model_change":
                model, provider = text(line, "modelId"), text(line, "provider")
                self._draft.choose_model(model, _deployment(provider, ""), _when(line, {}))
            case kind:
                self._draft.leave_out(say("sessions.left_entry", kind=kind or say("sessions.left_no_kind")))
        self._steps_by_line.append(step)
        if own_id and text(line, "type") != "session":
            self._steps[own_id] = step

    def _parent(self, line: Record) -> Step | None:
        """The step an entry follows: in a plain list, or if the parent cannot be found, the last one."""
        if "parentId" in line and line["parentId"] is None and self._steps:
            return None
        return self._steps.get(text(line, "parentId"), self._draft.tip)

    def _note_head(self, line: Record) -> None:
        draft = self._draft
        draft.source_id = draft.source_id or text(line, "id")
        draft.started_ms = draft.started_ms or milliseconds(line.get("timestamp"))
        if cwd := text(line, "cwd"):
            draft.directories = (cwd,)
        version = line.get("version")
        draft.versions = (f"pi session format {version if isinstance(version, int) else 1}",)
        if text(line, "parentSession"):
            draft.leave_out(say("sessions.left_pi_parent"))

    # --- messages

    def _read_message(self, message: Record, line: Record, parent: Step | None) -> Step | None:
        when = _when(line, message)
        if text(message, "role") in _CARRIED:
            self._draft.leave_out_fields(message, _MESSAGE)
        match text(message, "role"):
            case "user" | "custom":
                return self._say(self._content(message), line, parent)
            case "assistant":
                self._draft.rewind(parent, when)
                return self._draft.answer(self._answer(message, when))
            case "toolResult":
                if message.get("details") is not None:
                    self._draft.leave_out(say("sessions.left_pi_details"))
                is_error = message.get("isError") is True
                self._draft.result(text(message, "toolCallId"), self._content(message), when, is_error=is_error)
                return parent
            case "bashExecution" if message.get("excludeFromContext") is not True:
                ran = f"I ran `{text(message, 'command')}`:\n{text(message, 'output')}"
                return self._say((Text(ran),), line, parent)
            case "branchSummary" | "compactionSummary":
                return self._say((Text(text(message, "summary")),), line, parent)
            case role:
                self._draft.leave_out(say("sessions.left_role", role=role or say("sessions.left_no_kind")))
                return parent

    def _say(self, parts: Sequence[Part], line: Record, parent: Step | None) -> Step:
        when = _when(line, record(line, "message"))
        self._draft.rewind(parent, when)
        return self._draft.prompt(parts, when)

    def _answer(self, message: Record, when: int) -> DraftAnswer:
        model, provider, api = text(message, "model"), text(message, "provider"), text(message, "api")
        deployment = _deployment(provider, api)
        stop = text(message, "stopReason")
        return DraftAnswer(
            tuple(self._answer_parts(message, api, deployment, model)),
            when,
            model,
            deployment,
            _usage(record(message, "usage")),
            _FINISH.get(stop, FinishReason.OTHER) if stop else None,
            text(message, "rawStopReason") or text(message, "errorMessage") or stop,
            text(message, "responseId"),
            unanswered="not_run" if stop in _BROKEN_OFF else "unknown",
        )

    def _answer_parts(self, message: Record, api: str, deployment: str, model: str) -> Iterator[Part]:
        if isinstance(message.get("content"), str):
            yield Text(text(message, "content"))
        for block in records(message, "content"):
            match text(block, "type"):
                case "text":
                    if text(block, "textSignature"):
                        self._draft.leave_out(say("sessions.left_pi_text_signature"))
                    yield Text(text(block, "text"))
                case "thinking":
                    sealed = _signature_json(block, api)
                    if text(block, "thinkingSignature") and not sealed:
                        self._draft.leave_out(say("sessions.left_pi_thought_signature"))
                    yield Thought(text(block, "thinking"), Opaque(deployment, sealed, model) if sealed else None)
                case "toolCall":
                    signature = text(block, "thoughtSignature")
                    if signature and not api.startswith("google"):
                        self._draft.leave_out(say("sessions.left_pi_call_signature"))
                        signature = ""
                    opaque = Opaque(deployment, json_text(signature), model) if signature else None
                    yield ToolCall(text(block, "id"), text(block, "name"), json_text(block.get("arguments") or {}), opaque)
                case kind:
                    self._draft.leave_out(say("sessions.left_answer_block", kind=kind or say("sessions.left_nameless")))

    def _content(self, holder: Record) -> tuple[ResultPart, ...]:
        content = holder.get("content")
        return (Text(content),) if isinstance(content, str) else tuple(self._content_parts(holder))

    def _content_parts(self, holder: Record) -> Iterator[ResultPart]:
        for block in records(holder, "content"):
            match text(block, "type"):
                case "text":
                    yield Text(text(block, "text"))
                case "image":
                    yield self._draft.media(text(block, "mimeType"), text(block, "data"))
                case kind:
                    self._draft.leave_out(say("sessions.left_message_block", kind=kind or say("sessions.left_nameless")))

    def _compress(self, line: Record, parent: Step | None) -> Step | None:
        """Everything before the first kept entry becomes the summary. The first format names that entry by its line number."""
        when = _when(line, {})
        self._draft.rewind(parent, when)
        kept_id, kept_line = text(line, "firstKeptEntryId"), line.get("firstKeptEntryIndex")
        before: Step | None = None
        if kept_id != text(line, "id"):
            before = self._steps.get(kept_id)
        if isinstance(kept_line, int) and 0 <= kept_line < len(self._steps_by_line):
            before = self._steps_by_line[kept_line]
        self._draft.compress(text(line, "summary"), when, before=before, original_tokens=tokens(line, "tokensBefore"))
        return self._draft.tip


def _deployment(provider: str, api: str) -> str:
    """Our catalog's name for the provider. OpenAI has two protocols; pi uses the Responses one unless it says otherwise."""
    if provider == "openai":
        return "openai" if api == "openai-completions" else "responses"
    return _DEPLOYMENTS.get(provider, provider)


def _signature_json(block: Record, api: str) -> str:
    """A thought's signature as the service sent it: the JSON to send back; empty if there is none."""
    thinking, signature = text(block, "thinking"), text(block, "thinkingSignature")
    if not signature:
        return ""
    if api == "anthropic-messages":
        if block.get("redacted") is True:
            return json_text({"type": "redacted_thinking", "data": signature})
        return json_text({"type": "thinking", "thinking": thinking, "signature": signature})
    if api.startswith("google"):
        return json_text({"thought": True, "text": thinking, "thoughtSignature": signature})
    if "responses" in api:
        item = jsontext.decode_object(signature) or {}
        return signature if text(item, "type") == "reasoning" and text(item, "encrypted_content") else ""
    return ""


def _when(line: Record, message: Record) -> int:
    return milliseconds(line.get("timestamp")) or milliseconds(message.get("timestamp"))


def _usage(usage: Record) -> Usage:
    output = tokens(usage, "output")
    return Usage(
        fresh_tokens=tokens(usage, "input"),
        cache_read_tokens=tokens(usage, "cacheRead"),
        cache_write_tokens=tokens(usage, "cacheWrite"),
        output_tokens=output,
        thought_tokens=min(tokens(usage, "reasoning"), output),
        cache_write_1h_tokens=min(tokens(usage, "cacheWrite1h"), tokens(usage, "cacheWrite")),
    )
