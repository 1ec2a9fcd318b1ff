"""What we send: the stable v1 of the protocol, message by message. A key that would have its usual value is left out."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Status = Literal["pending", "in_progress", "completed", "failed"]
Kind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
OptionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


class _Sent(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    pass


class _Update(_Sent, frozen=True, tag_field="sessionUpdate"):
    pass


# --- content


class TextBlock(_Sent, frozen=True, tag="text"):
    text: str


class ImageBlock(_Sent, frozen=True, tag="image"):
    data: str
    mime_type: str


class AudioBlock(_Sent, frozen=True, tag="audio"):
    data: str
    mime_type: str


class LinkBlock(_Sent, frozen=True, tag="resource_link"):
    name: str
    uri: str
    mime_type: str | None = None


Block = TextBlock | ImageBlock | AudioBlock | LinkBlock


class ContentPart(_Sent, frozen=True, tag="content"):
    """Of a tool call."""

    content: Block


class DiffPart(_Sent, frozen=True, tag="diff"):
    """What a call changes in a file, or the part of it that changes."""

    path: str
    new_text: str
    old_text: str | None = None
    """None: the file is new."""


Part = ContentPart | DiffPart


class Location(_Sent, frozen=True):
    path: str
    line: int | None = None


# --- updates of a session


class UserChunk(_Update, frozen=True, tag="user_message_chunk"):
    content: Block
    message_id: str


class AgentChunk(_Update, frozen=True, tag="agent_message_chunk"):
    content: Block
    message_id: str


class ThoughtChunk(_Update, frozen=True, tag="agent_thought_chunk"):
    content: Block
    message_id: str


class ToolCallUpdate(_Update, frozen=True, tag="tool_call_update"):
    """What has changed of a call. Lists replace those that were sent before."""

    tool_call_id: str
    title: str | None = None
    name: str | None = None
    kind: Kind | None = None
    status: Status | None = None
    content: tuple[Part, ...] | None = None
    locations: tuple[Location, ...] | None = None
    raw_input: Any = None
    raw_output: Any = None


class NewToolCall(_Update, frozen=True, tag="tool_call"):
    tool_call_id: str
    title: str
    name: str
    kind: Kind
    status: Status
    content: tuple[Part, ...] = ()
    locations: tuple[Location, ...] = ()
    raw_input: Any = None
    raw_output: Any = None


class AskedToolCall(_Sent, frozen=True):
    """The call that a permission is about. Some clients show nothing else, so all of it is told again."""

    tool_call_id: str
    title: str
    kind: Kind = "other"
    status: Status | None = None
    name: str | None = None
    content: tuple[Part, ...] = ()
    locations: tuple[Location, ...] = ()
    raw_input: Any = None


class PlanEntry(_Sent, frozen=True):
    content: str
    status: Literal["pending", "in_progress", "completed"]
    priority: Literal["high", "medium", "low"]


class PlanUpdate(_Update, frozen=True, tag="plan"):
    entries: tuple[PlanEntry, ...]


class CommandInput(_Sent, frozen=True):
    hint: str


class AvailableCommand(_Sent, frozen=True):
    name: str
    description: str
    input: CommandInput | None = None


class CommandsUpdate(_Update, frozen=True, tag="available_commands_update"):
    available_commands: tuple[AvailableCommand, ...]


class ModeUpdate(_Update, frozen=True, tag="current_mode_update"):
    current_mode_id: str


class SessionInfoUpdate(_Update, frozen=True, tag="session_info_update"):
    title: str | None = None
    updated_at: str | None = None


class Cost(_Sent, frozen=True):
    amount: float
    currency: str


class UsageUpdate(_Update, frozen=True, tag="usage_update"):
    used: int
    """Tokens in the context now."""
    size: int
    """Of the model's window."""
    cost: Cost | None = None
    """Of the whole session."""


class NoticeUpdate(_Update, frozen=True, tag="notice"):
    """Only for clients that say they show them; so are the next two."""

    severity: Literal["info", "warning", "error"]
    title: str


class CompactionUpdate(_Update, frozen=True, tag="compaction_update"):
    compaction_id: str
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    error: str | None = None


class CompactionChunk(_Update, frozen=True, tag="compaction_summary_chunk"):
    compaction_id: str
    content: TextBlock


# --- settings of a session


class SelectOption(_Sent, frozen=True):
    value: str
    name: str
    description: str | None = None


class ConfigOption(_Sent, frozen=True, tag_field="type", tag="select"):
    id: str
    name: str
    category: Literal["model", "mode", "thought_level"]
    current_value: str
    options: tuple[SelectOption, ...]
    description: str | None = None


class ConfigUpdate(_Update, frozen=True, tag="config_option_update"):
    config_options: tuple[ConfigOption, ...]


class Mode(_Sent, frozen=True):
    id: str
    name: str
    description: str | None = None


class Modes(_Sent, frozen=True):
    current_mode_id: str
    available_modes: tuple[Mode, ...]


Update = (
    UserChunk
    | AgentChunk
    | ThoughtChunk
    | NewToolCall
    | ToolCallUpdate
    | PlanUpdate
    | CommandsUpdate
    | ModeUpdate
    | ConfigUpdate
    | SessionInfoUpdate
    | UsageUpdate
    | NoticeUpdate
    | CompactionUpdate
    | CompactionChunk
)


# --- results


class SessionSettings(_Sent, frozen=True):
    """Of `session/new`, `session/load` and `session/resume`; the id is told by the first alone."""

    modes: Modes
    config_options: tuple[ConfigOption, ...]
    session_id: str = ""


class ConfigOptions(_Sent, frozen=True):
    config_options: tuple[ConfigOption, ...]


class SessionInfo(_Sent, frozen=True):
    session_id: str
    cwd: str
    title: str | None = None
    updated_at: str | None = None
    additional_directories: tuple[str, ...] = ()


class Sessions(_Sent, frozen=True):
    sessions: tuple[SessionInfo, ...]
    next_cursor: str | None = None


class PromptEnd(_Sent, frozen=True):
    """Of `session/prompt`."""

    stop_reason: StopReason


# --- requests to the client


class PermissionOption(_Sent, frozen=True):
    option_id: str
    name: str
    kind: OptionKind


class PermissionRequest(_Sent, frozen=True):
    session_id: str
    tool_call: AskedToolCall
    options: tuple[PermissionOption, ...]


class FormRequest(_Sent, frozen=True, tag_field="mode", tag="form"):
    session_id: str
    message: str
    requested_schema: dict[str, Any]
    tool_call_id: str | None = None


class SessionUpdate(_Sent, frozen=True):
    session_id: str
    update: Update
