"""The JSON a hook gets on its standard input, in the format of the program it was written for."""

from __future__ import annotations

import os
import time
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.extensions.hooks.definitions import Hook
from dragoman.extensions.hooks.names import TOOL_EVENTS, Event, tool_name_for
from dragoman.values.record import CommandOutput

_MODES = {"default": "default", "plan": "plan", "auto-edit": "acceptEdits", "auto": "bypassPermissions"}
"""Our modes of approval as the others call them."""
_WITHOUT_MODE = frozenset({"PreCompact", "PostCompact", "SessionEnd"})
_WITHOUT_TURN = frozenset({"SessionStart", "SessionEnd"})
_WITH_AGENT = TOOL_EVENTS | {"UserPromptSubmit", "PreCompact", "PostCompact", "SubagentStart", "SubagentStop", "Notification"}
_PATHS = ("file_path", "path", "directory")


class Occasion(msgspec.Struct, frozen=True):
    """What happens, and in which session."""

    event: Event
    session_id: str = ""
    transcript: str = ""
    directory: str = ""
    model: str = ""
    mode: str = "default"
    turn_id: str = ""
    agent_id: str = ""
    agent_type: str = ""
    subject: str = ""
    """What a matcher is compared with: the tool, what began a session, what asked for a summary, the kind of an agent."""
    call_id: str = ""
    tool_input: dict[str, Any] = {}
    details: dict[str, Any] = {}
    """Further fields of the event."""


def input_of(hook: Hook, occasion: Occasion) -> dict[str, Any]:
    """The fields of an event, in the order in which Claude Code has them. Codex publishes schemas of the same."""
    event = occasion.event
    fields: dict[str, Any] = {
        "session_id": occasion.session_id,
        "transcript_path": occasion.transcript or ("" if hook.program in ("claude", "gemini") else None),
        "cwd": occasion.directory,
        "hook_event_name": hook.named,
    }
    if hook.program == "gemini":
        fields["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    else:
        fields |= _of_claude(occasion)
    if event in TOOL_EVENTS:
        fields["tool_name"] = tool_name_for(hook.program, occasion.subject)
        fields["tool_input"] = _with_whole_paths(occasion)
        if hook.program != "gemini" and occasion.subject == "task":
            fields["tool_input"]["subagent_type"] = occasion.tool_input.get("agent", "")
        if hook.program != "gemini" and event != "PermissionRequest":
            fields["tool_use_id"] = occasion.call_id
    return fields | _details(hook, occasion)


def _of_claude(occasion: Occasion) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    event = occasion.event
    if event not in _WITHOUT_MODE:
        fields["permission_mode"] = _MODES.get(occasion.mode, "default")
    if event != "SessionEnd":
        fields["model"] = occasion.model
    if event not in _WITHOUT_TURN:
        fields["turn_id"] = occasion.turn_id
    if occasion.agent_id and event in _WITH_AGENT:
        fields |= {"agent_id": occasion.agent_id, "agent_type": occasion.agent_type}
    return fields


def _with_whole_paths(occasion: Occasion) -> dict[str, Any]:
    """Models may write paths from the workspace; hooks compare them with whole ones, as the other programs have them."""
    given = dict(occasion.tool_input)
    for name in _PATHS:
        if isinstance(path := given.get(name), str) and path and "\0" not in path:
            given[name] = os.path.normpath(os.path.join(occasion.directory, path)) if not path.startswith("~") else path
    return given


def _details(hook: Hook, occasion: Occasion) -> dict[str, Any]:
    details = dict(occasion.details)
    if hook.program == "gemini":
        if occasion.event == "Stop":
            details["prompt_response"] = details.pop("last_assistant_message", None) or ""
        elif occasion.event == "Notification":
            details |= {"notification_type": "ToolPermission", "details": {}}
        elif occasion.event in ("PostToolUse", "PostToolUseFailure"):
            text = details.pop("text", "")
            details.pop("command", None)
            error = {"error": {"message": text}} if occasion.event == "PostToolUseFailure" else {}
            details = {"tool_response": {"llmContent": text, "returnDisplay": text, **error}}
        return details
    if occasion.event == "PostToolUse":
        details["tool_response"] = _response(occasion, details.pop("text", ""), details.pop("command", None))
    elif occasion.event == "PostToolUseFailure":
        details |= {"error": details.pop("text", ""), "is_interrupt": False}
        details.pop("command", None)
    return details


def _response(occasion: Occasion, text: str, command: CommandOutput | None) -> dict[str, Any]:
    """A result in the fields that hooks look at."""
    if occasion.subject == "run_shell":
        return {**_streams(text, command), "interrupted": False, "isImage": False}
    path = _with_whole_paths(occasion).get("file_path")
    return {"success": True, "content": text, **({"filePath": path} if path else {})}


def _streams(text: str, command: CommandOutput | None) -> dict[str, Any]:
    """What a command wrote, and how it ended; what the model is told, where it goes on in the background or did not run."""
    if command is None or command.background:
        return {"stdout": text, "stderr": ""}
    return {"stdout": command.stdout, "stderr": command.stderr, "exitCode": command.exit_code}


def encode_input(hook: Hook, occasion: Occasion) -> bytes:
    return jsontext.encode(input_of(hook, occasion)) + b"\n"


def merge_arguments(hook_input: dict[str, Any], changed: dict[str, Any], tool_input: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call as a hook wants them. A value that it did not change stays as the model wrote it: the hook may have
    been given a path in full."""
    added = hook_input.keys() - tool_input.keys()  # what hooks are also given, under another program's names
    return {
        name: tool_input[name] if name in tool_input and value == hook_input.get(name) else value
        for name, value in changed.items()
        if name not in added
    }
