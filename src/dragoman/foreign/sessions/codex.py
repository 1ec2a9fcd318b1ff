"""Sessions of Codex: `~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl`.

The conversation is in the `response_item` lines, one item of the Responses protocol each; the items between two outputs or prompts form one
answer. The first versions wrote the bare items. Most other lines are events for a screen that repeat the same content.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dragoman.foreign.sessions.draft import Draft, DraftAnswer, DraftPrompt, ResultPart
from dragoman.foreign.sessions.records import Record, json_text, milliseconds, record, records, text, tokens
from dragoman.values.messages import Opaque, Part, Text, Thought, ToolCall
from dragoman.values.usage import Usage
from dragoman.words import say

NAME = "codex"

_OPENAI = "responses"
"""Our catalog's name for OpenAI's own service in this protocol."""
_ITEMS = {
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "web_search_call",
}
_ITEM = frozenset(
    [
        "type",
        "id",
        "role",
        "content",
        "phase",
        "summary",
        "encrypted_content",
        "call_id",
        "name",
        "arguments",
        "input",
        "action",
        "status",
        "output",
        "timestamp",
    ]
)
_REASONING_FIELDS = ("type", "id", "summary", "content", "encrypted_content")
_SURROUNDINGS = ("<environment_context>", "<user_instructions>", "# AGENTS.md")
"""How messages begin that Codex wrote in the user's name."""


def is_ours(line: Record) -> bool:
    kind = text(line, "type")
    bare_head = not kind and bool(text(line, "id")) and "instructions" in line and bool(text(line, "timestamp"))
    return bare_head or (kind == "session_meta" and isinstance(line.get("payload"), dict))


def read(lines: Sequence[Record], draft: Draft) -> None:
    reader = _Reader(draft)
    for line in lines:
        reader.read(line)


class _Reader:
    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._deployment = _OPENAI
        self._model = ""
        self._open: DraftAnswer | None = None
        """The answer that further items belong to."""
        self._last: DraftAnswer | None = None
        self._when = 0

    def read(self, line: Record) -> None:
        payload, kind = record(line, "payload"), text(line, "type")
        self._when = milliseconds(line.get("timestamp")) or self._when
        match kind:
            case "session_meta":
                self._note_head(payload)
            case "":
                self._note_head(line)
            case "turn_context":
                self._model = text(payload, "model") or self._model
                self._draft.choose_model(self._model, self._deployment, self._when)
            case "response_item":
                self._read_item(payload)
            case "compacted":
                self._compress(payload)
            case "token_usage_record":
                self._use(record(payload, "usage"), text(payload, "response_id"))
            case "event_msg":
                self._read_event(payload)
            case _ if kind in _ITEMS:
                self._read_item(line)
            case _:
                self._draft.leave_out(say("sessions.left_line", kind=kind))

    def _note_head(self, head: Record) -> None:
        draft = self._draft
        if not text(head, "id"):
            draft.leave_out(say("sessions.left_unknown_line"))
            return
        if draft.source_id:
            draft.leave_out(say("sessions.left_codex_head"))
            return
        draft.source_id, draft.started_ms = text(head, "id"), milliseconds(head.get("timestamp")) or self._when
        if cwd := text(head, "cwd"):
            draft.directories = (cwd,)
        if version := text(head, "cli_version"):
            draft.versions = (f"{NAME} {version}",)
        provider = text(head, "model_provider")
        self._deployment = _OPENAI if provider in ("", "openai") else provider
        if head.get("base_instructions") or head.get("instructions"):
            draft.leave_out(say("sessions.left_codex_instructions"))

    # --- items

    def _read_item(self, item: Record) -> None:
        kind, role = text(item, "type"), text(item, "role")
        if kind in _ITEMS:
            self._draft.leave_out_fields(item, _ITEM)
        match kind:
            case "message" if role == "user":
                self._open = None
                self._draft.prompt(tuple(self._content(records(item, "content"))), self._when)
            case "message" if role == "assistant":
                phase = text(item, "phase")
                opaque = self._opaque({"phase": phase}) if phase else None
                self._say(*(Text(text(block, "text") or text(block, "refusal"), opaque) for block in records(item, "content")))
            case "message":
                self._draft.leave_out(say("sessions.left_role", role=role or say("sessions.left_no_kind")))
            case "reasoning":
                self._say(self._reasoning(item))
            case "function_call":
                self._say(ToolCall(text(item, "call_id"), text(item, "name"), text(item, "arguments") or "{}"))
            case "custom_tool_call":
                self._say(ToolCall(text(item, "call_id"), text(item, "name"), json_text({"input": text(item, "input")})))
            case "local_shell_call":
                call_id = text(item, "call_id") or text(item, "id")
                self._say(ToolCall(call_id, "local_shell", json_text(record(item, "action"))))
            case "web_search_call":
                fields = {key: item[key] for key in ("type", "id", "status", "action") if item.get(key) is not None}
                self._say(Thought(opaque=self._opaque(fields)))
            case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
                self._read_output(item)
            case _:
                self._draft.leave_out(say("sessions.left_item", kind=kind or say("sessions.left_nameless")))

    def _say(self, *parts: Part) -> None:
        if self._open is None:
            deployment = self._deployment if self._model else ""
            self._open = self._last = self._draft.answer(DraftAnswer((), self._when, self._model, deployment))
        self._draft.extend(self._open, parts)

    def _reasoning(self, item: Record) -> Thought:
        texts = [text(block, "text") for block in records(item, "summary") or records(item, "content")]
        fields = {key: item[key] for key in _REASONING_FIELDS if item.get(key) is not None}
        return Thought("\n\n".join(texts), self._opaque(fields) if text(item, "encrypted_content") else None)

    def _read_output(self, item: Record) -> None:
        self._open = None
        output = item.get("output")
        success: object = None
        content: tuple[ResultPart, ...]
        match output:
            case str():
                content = (Text(output),)
            case list():
                content = tuple(self._content([block for block in output if isinstance(block, dict)]))
            case dict():  # the first versions: {"content": …, "success": …}
                content, success = (Text(text(output, "content")),), output.get("success")
            case _:
                content = ()
        self._draft.result(text(item, "call_id") or text(item, "id"), content, self._when, is_error=success is False)

    def _content(self, blocks: Sequence[Record]) -> Iterator[ResultPart]:
        for block in blocks:
            match text(block, "type"):
                case "input_text" | "output_text" | "text":
                    yield Text(text(block, "text"))
                case "input_image" if text(block, "image_url"):
                    yield self._draft.media_url(text(block, "image_url"))
                case kind:
                    self._draft.leave_out(say("sessions.left_message_block", kind=kind or say("sessions.left_nameless")))

    def _opaque(self, fields: Record) -> Opaque:
        return Opaque(self._deployment, json_text(fields), self._model)

    # --- other lines

    def _read_event(self, event: Record) -> None:
        match text(event, "type"):
            case "token_count":
                self._use(record(record(event, "info"), "last_token_usage"))
            case "thread_rolled_back":
                self._roll_back(tokens(event, "num_turns"))
            case kind:
                self._draft.leave_out(say("sessions.left_event", kind=kind or say("sessions.left_nameless")))

    def _use(self, usage: Record, response_id: str = "") -> None:
        """An answer's usage comes after it, and once more as an event."""
        self._open = None
        if self._last is None or not usage or self._last.usage is not None:
            return
        self._last.response_id = response_id
        self._last.usage = Usage.from_total(
            tokens(usage, "input_tokens"),
            cache_read=tokens(usage, "cached_input_tokens"),
            cache_write=tokens(usage, "cache_write_input_tokens"),
            output=tokens(usage, "output_tokens"),
            thought=tokens(usage, "reasoning_output_tokens"),
        )

    def _roll_back(self, turns: int) -> None:
        self._open = None
        prompts = [step for step in self._draft.conversation() if isinstance(step, DraftPrompt) and not _is_surroundings(step)]
        if turns:
            self._draft.rewind(prompts[-turns].follows if turns <= len(prompts) else None, self._when)

    def _compress(self, payload: Record) -> None:
        self._open = None
        kept = [text(block, "text") for item in records(payload, "replacement_history") for block in records(item, "content")]
        summary = text(payload, "message") or "\n\n".join(filter(None, kept))
        if not summary:
            self._draft.leave_out(say("sessions.left_codex_summary"))
            return
        self._draft.compress(summary, self._when)


def _is_surroundings(prompt: DraftPrompt) -> bool:
    first = prompt.parts[0] if prompt.parts else None
    return isinstance(first, Text) and first.text.lstrip().startswith(_SURROUNDINGS)
