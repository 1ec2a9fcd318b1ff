"""What events and tools are called by each program."""

from __future__ import annotations

from typing import Literal, get_args

from dragoman.values.origin import Program

Event = Literal[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "PostCompact",
    "SubagentStart",
    "SubagentStop",
    "Notification",
    "Stop",
    "SessionEnd",
]
EVENTS: tuple[Event, ...] = get_args(Event)
GEMINI_EVENTS: dict[str, tuple[Event, ...]] = {
    "SessionStart": ("SessionStart",),
    "SessionEnd": ("SessionEnd",),
    "BeforeAgent": ("UserPromptSubmit",),
    "AfterAgent": ("Stop",),
    "BeforeTool": ("PreToolUse",),
    "AfterTool": ("PostToolUse", "PostToolUseFailure"),
    "PreCompress": ("PreCompact",),
    "Notification": ("Notification",),
}
"""gemini-cli's events as ours. It has others that have no equal here: they stand around each request and each piece of an answer."""

CONTEXT_EVENTS = frozenset({"SessionStart", "UserPromptSubmit", "SubagentStart"})
"""Where plain text is for the model."""
BLOCKING_EVENTS = frozenset(
    {"UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "PreCompact", "Stop", "SubagentStop"}
)
"""Where exit code 2 does more than warn the user."""
TOOL_EVENTS = frozenset({"PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure"})

_CLAUDE = {
    "run_shell": "Bash",
    "shell_output": "BashOutput",
    "edit": "Edit",
    "write_file": "Write",
    "read_file": "Read",
    "list_directory": "LS",
    "glob": "Glob",
    "grep": "Grep",
    "todo": "TodoWrite",
    "web_fetch": "WebFetch",
    "google_web_search": "WebSearch",
    "ask_user": "AskUserQuestion",
    "task": "Task",
    "activate_skill": "Skill",
}
_GEMINI = {
    "run_shell": "run_shell_command",
    "edit": "replace",
    "grep": "search_file_content",
    "todo": "write_todos",
}
_MORE = {
    "run_shell": ("shell", "shell_command", "exec_command", "local_shell"),
    "edit": ("MultiEdit", "apply_patch"),
    "write_file": ("apply_patch",),
    "grep": ("grep_search",),
    "task": ("Agent",),
}


def events_of(program: Program, name: str) -> tuple[Event, ...]:
    """Our events for one that a program names; empty if there is no equivalent."""
    if program == "gemini":
        return GEMINI_EVENTS.get(name, ())
    return tuple(event for event in EVENTS if event == name)


def tool_name_for(program: Program, name: str) -> str:
    """What a program calls a tool of ours: that is what its hooks compare with."""
    if name.startswith("mcp__"):
        return "mcp_" + name.removeprefix("mcp__").replace("__", "_") if program == "gemini" else name
    if program in ("claude", "codex"):
        return _CLAUDE.get(name, name)
    return _GEMINI.get(name, name) if program == "gemini" else name


def tool_names(name: str) -> tuple[str, ...]:
    """Every name that a matcher may mean a tool of ours by, its own first."""
    others = (*(tool_name_for(program, name) for program in ("claude", "gemini")), *_MORE.get(name, ()))
    return tuple(dict.fromkeys((name, *others)))
