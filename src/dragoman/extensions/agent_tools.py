"""Names of tools in the files of subagents, as Claude Code, gemini-cli and opencode write them, in ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

_OURS = (
    *("read_file", "read_many_files", "list_directory", "glob", "grep", "edit", "write_file", "shell_output", "activate_skill"),
    *("todo", "ask_user", "save_memory", "web_fetch", "google_web_search", "task"),
)
_TOOLS: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in _OURS},
    "run_shell": ("run_shell", "shell_output"),
    # Claude Code and opencode
    "read": ("read_file", "read_many_files"),
    "notebookread": ("read_file",),
    "ls": ("list_directory",),
    "list": ("list_directory",),
    "multiedit": ("edit",),
    "notebookedit": ("edit",),
    "patch": ("edit",),
    "write": ("write_file",),
    "bash": ("run_shell", "shell_output"),
    "bashoutput": ("shell_output",),
    "killshell": ("shell_output",),
    "webfetch": ("web_fetch",),
    "websearch": ("google_web_search",),
    "todowrite": ("todo",),
    "todoread": ("todo",),
    "agent": ("task",),
    "skill": ("activate_skill",),
    "askuserquestion": ("ask_user",),
    "question": ("ask_user",),
    # gemini-cli
    "search_file_content": ("grep",),
    "grep_search": ("grep",),
    "replace": ("edit",),
    "run_shell_command": ("run_shell", "shell_output"),
    "write_todos": ("todo",),
}
"""By the name in lower case."""
_PATTERNED = {
    "read_file": "Read", "edit": "Edit", "write_file": "Edit", "run_shell": "Bash", "web_fetch": "WebFetch",
}  # fmt: skip
"""Tools of which a part can be named, and how Claude Code calls them in rules."""
_WRITTEN = re.compile(r"\s*([^()]+?)\s*(?:\((.*)\))?\s*", re.DOTALL)
_BEGINNINGS = frozenset({"run_shell_command", "shelltool"})
"""Where what stands in brackets is how commands begin."""
_EVERYTHING = frozenset({"", "*", "**", ":*"})


class NamedTools(msgspec.Struct, frozen=True):
    """What a list of tools stands for."""

    tools: tuple[str, ...] = ()
    """Our names, and those of servers' tools as they are written."""
    patterns: tuple[str, ...] = ()
    """`Bash(git log:*)`: of a tool that is not named as a whole, only these calls."""
    agents: tuple[str, ...] | None = None
    """The subagents it names: `Task(reviewer, tester)`. None: it names none, or all."""
    unknown: tuple[str, ...] = ()
    """What stands for nothing here."""
    is_all: bool = False


def read_names(written: Iterable[str]) -> NamedTools:
    """Never fails: what cannot be understood is among the unknown."""
    whole: dict[str, None] = {}
    parts: dict[str, list[str]] = {}
    agents: list[str] = []
    unknown: list[str] = []
    is_all = False
    for each in written:
        found = _WRITTEN.fullmatch(each)
        name, inside = (found[1], (found[2] or "").strip()) if found is not None else (each, "")
        ours = _TOOLS.get(name.lower(), ())
        if name == "*" and not inside:
            is_all = True
        elif name.startswith("mcp_"):
            whole[name] = None
        elif not ours:
            unknown.append(each)
        elif inside in _EVERYTHING:
            whole.update(dict.fromkeys(ours))
        elif "task" in ours:
            agents += [agent.strip() for agent in inside.split(",")]
        elif (rule := _PATTERNED.get(ours[0])) is not None:
            begins = name.lower() in _BEGINNINGS and not inside.endswith("*")
            parts.setdefault(f"{rule}({inside}{':*' if begins else ''})", []).extend(ours)
        else:
            unknown.append(each)
    patterns = tuple(pattern for pattern, ours in parts.items() if ours[0] not in whole)
    named = (*whole, *(tool for ours in parts.values() for tool in ours), *(["task"] if agents else []))
    return NamedTools(
        tuple(dict.fromkeys(named)), patterns, tuple(agents) if agents and "task" not in whole else None, tuple(unknown), is_all
    )
