"""Definitions of subagents: Markdown files in the folders `agents`, ours and those of Claude Code, gemini-cli and opencode; TOML of Codex.

The frontmatter has the name, what it is for, its tools and its model; the text below is what it is told. Other programs' names of tools
are translated into ours. Nothing here is run, and no definition can stop a start: what is wrong with one is a notice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec

from dragoman.base.text import one_line
from dragoman.base.words import say
from dragoman.extensions.files import SearchFolder, SourceProblem, Unreadable, Walk, read_text
from dragoman.extensions.frontmatter import Frontmatter, read_frontmatter
from dragoman.extensions.opencode_config import DefinedTable, defined_tables
from dragoman.extensions.plugins import Plugin, search_folders
from dragoman.extensions.sources import Origin, ProgramFolder

MAX_FILES = 200
"""Of one folder."""
MAX_BYTES = 200_000
_DEEPEST = 3
_FOLDERS = {**dict.fromkeys(("dragoman", "claude", "codex", "gemini"), ("agents",)), "opencode": ("agents", "agent")}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")
_OURS = (
    *("read_file", "read_many_files", "list_directory", "glob", "grep", "edit", "write_file", "shell_output"),
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


class AgentDefinition(msgspec.Struct, frozen=True):
    """A subagent as its file has it, with our names of its tools."""

    name: str
    description: str
    instructions: str
    tools: tuple[str, ...] | None
    """None: its file names none, so it has all."""
    without: tuple[str, ...]
    """Those it does not have."""
    model: str
    """As the file has it."""
    origin: Origin


class FoundAgents(msgspec.Struct, frozen=True):
    """The subagents that are defined."""

    agents: tuple[AgentDefinition, ...] = ()
    notices: tuple[str, ...] = ()
    """What is wrong with definitions, and names of tools that do not exist here."""


def find_agents(folders: Sequence[ProgramFolder], plugins: Iterable[Plugin] = ()) -> FoundAgents:
    """Every subagent that is defined, by name; of several with one name the first, which lies nearest to the workspace."""
    found: dict[str, AgentDefinition] = {}
    notices: list[str] = []
    unknown: dict[str, str] = {}

    def add(read: Callable[[], AgentDefinition | None]) -> None:
        try:
            agent = read()
        except _Wrong as wrong:
            notices.append(say("subagents.wrong_file", where=str(wrong.origin), reason=wrong.reason))
            return
        if agent is not None:
            found.setdefault(agent.name, agent)

    declared = [each for folder in folders if folder.program == "codex" for each in _declared_in(folder)]
    for place in search_folders(folders, plugins, "agents", _FOLDERS):
        walk = Walk(place)
        for file in _markdown_files(place, walk):
            if not any(file == each.file for each in declared):
                add(partial(_read_agent, place, file, unknown, notices))
        notices += map(str, walk.problems)
    for role in declared:
        add(partial(_read_role, role))
    for table in defined_tables(folders, "agent"):
        add(partial(_agent_in, table, unknown))
    if unknown:
        notices.append(say("subagents.unknown_tools", names=_by_file(unknown)))
    return FoundAgents(tuple(found[name] for name in sorted(found)), tuple(notices))


def _by_file(unknown: Mapping[str, str]) -> str:
    """Each file once, with what it is the first to name."""
    files = dict.fromkeys(unknown.values())
    return "; ".join(f"{', '.join(name for name, each in unknown.items() if each == file)} ({file})" for file in files)


class _Wrong(Exception):
    def __init__(self, origin: Origin, reason: str) -> None:
        self.origin, self.reason = origin, reason


def _markdown_files(place: SearchFolder, walk: Walk) -> Iterator[str]:
    if os.path.isfile(place.path):  # a plugin may name single files
        yield place.path
        return
    count = 0
    for at, below, names in walk if os.path.isdir(place.path) else ():
        for name in names if len(below) <= _DEEPEST else ():
            if name.endswith(".toml" if place.program == "codex" and not place.plugin else ".md") and name.lower() != "readme.md":
                count += 1
                if count > MAX_FILES:
                    return
                yield os.path.join(at, name)


def _read_agent(place: SearchFolder, path: str, unknown: dict[str, str], notices: list[str]) -> AgentDefinition | None:
    """None if it is not a subagent but a mode of the other program. Raises _Wrong."""
    origin = place.origin(path)
    if path.endswith(".toml"):
        return _read_toml(_text_of(place, path), origin)
    text = _text_of(place, path)
    read = read_frontmatter(text)
    if read.faults:
        at = msgspec.structs.replace(origin, line=read.faults[0].line)
        if "tools" not in read.values and "tools" in text[: len(text) - len(read.body)].lower():
            raise _Wrong(at, read.faults[0].reason)  # it may be the line that says which tools it has
        notices.append(str(SourceProblem(at, read.faults[0].reason)))
    if place.program == "opencode" and read.text("mode") == "primary":
        return None
    name = read.text("name") or os.path.basename(path).removesuffix(".md")
    if not _NAME.match(name):
        raise _Wrong(_at(origin, read, "name"), say("subagents.wrong_name", name=one_line(name, 80)))
    if not (description := read.text("description")):
        raise _Wrong(_at(origin, read, "description", 1), say("subagents.no_description"))
    tools, without = _tools_of(read, path, unknown)
    name = f"{place.plugin}:{name}" if place.plugin else name
    return AgentDefinition(name, description, read.body.strip(), tools, without, read.text("model"), _at(origin, read, "name", 1))


class _Role(msgspec.Struct, frozen=True):
    """An agent that config.toml of Codex declares: what it is for stands there, what it is told mostly in a file of its own."""

    name: str
    description: str
    file: str
    place: SearchFolder
    origin: Origin


def _declared_in(folder: ProgramFolder) -> Iterator[_Role]:
    """A file that is wrong is told of by whoever reads its servers."""
    import tomllib

    path = os.path.join(folder.path, "config.toml")
    place = SearchFolder("codex", folder.tier, folder.path, folder.within)
    try:
        text = read_text(place, path, MAX_BYTES) if os.path.isfile(path) else ""
        table = tomllib.loads(text).get("agents") if "[agents." in text else None
    except (Unreadable, tomllib.TOMLDecodeError, RecursionError):
        return
    from dragoman.base.toml_lines import line_of

    for name, row in table.items() if isinstance(table, dict) else ():
        if isinstance(row, dict):
            file, description = (value if isinstance(value := row.get(key), str) else "" for key in ("config_file", "description"))
            file = os.path.normpath(os.path.join(folder.path, os.path.expanduser(file))) if file else ""
            yield _Role(name, description, file, place, place.origin(path, line_of(text, ("agents", name)) or 0))


def _read_role(role: _Role) -> AgentDefinition:
    """Raises _Wrong."""
    text = _text_of(role.place, role.file) if role.file else ""
    return _read_toml(text, role.origin, {"name": role.name, "description": role.description})


def _read_toml(text: str, origin: Origin, otherwise: Mapping[str, str] = {}) -> AgentDefinition:
    """One of Codex; `otherwise`: what is said of it elsewhere. Raises _Wrong."""
    import tomllib

    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"line (\d+)", str(error))
        raise _Wrong(msgspec.structs.replace(origin, line=int(line[1]) if line else 0), say("skills.not_toml", reason=error)) from error
    keys = ("name", "description", "model", "sandbox_mode")
    given = {key: value if isinstance(value := values.get(key), str) else otherwise.get(key, "") for key in keys}
    # There a name may be any words; here it is one.
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", given["name"] or os.path.basename(origin.path).removesuffix(".toml")).strip("-")
    if not _NAME.match(name):
        raise _Wrong(origin, say("subagents.wrong_name", name=one_line(given["name"], 80)))
    if not given["description"]:
        raise _Wrong(origin, say("subagents.no_description"))
    instructions = values.get("developer_instructions")
    without = ("edit", "write_file") if given["sandbox_mode"] == "read-only" else ()
    told = instructions.strip() if isinstance(instructions, str) else ""
    return AgentDefinition(name, given["description"], told, None, without, given["model"], origin)


def _agent_in(table: DefinedTable, unknown: dict[str, str]) -> AgentDefinition | None:
    """None if it is not a subagent, or changes one of opencode's own. Raises _Wrong."""
    description = table.text("description")
    if table.text("mode") == "primary" or table.values.get("disable") is True or not description:
        return None
    if not _NAME.match(table.name):
        raise _Wrong(table.origin, say("subagents.wrong_name", name=one_line(table.name, 80)))
    try:
        instructions = table.long_text("prompt").strip()
    except Unreadable as error:
        raise _Wrong(table.origin, str(error)) from error
    given = table.values.get("tools")
    tools = given if isinstance(given, dict) else {}
    without = _translated([str(name) for name, is_allowed in tools.items() if is_allowed is False], str(table.origin), unknown)
    return AgentDefinition(table.name, description, instructions, None, without, table.text("model"), table.origin)


def _text_of(place: SearchFolder, path: str) -> str:
    try:
        return read_text(place, path, MAX_BYTES)
    except Unreadable as error:
        raise _Wrong(place.origin(path), str(error)) from error


def _at(origin: Origin, read: Frontmatter, key: str, otherwise: int = 0) -> Origin:
    return msgspec.structs.replace(origin, line=read.lines.get(key, otherwise))


def _tools_of(read: Frontmatter, path: str, unknown: dict[str, str]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """The tools it may use (None: all of them), and the tools it may not."""
    value = read.values.get("tools", "")
    refused = _bare(read.words("disallowedTools"))
    if isinstance(value, dict):  # opencode: what is not named is allowed
        refused += [name for name, is_allowed in value.items() if str(is_allowed).lower() == "false"]
    names = _bare(read.words("tools")) if not isinstance(value, dict) else list[str]()
    wanted = None if not names or "*" in names else _translated(names, path, unknown)
    return (() if "*" in refused else wanted), _translated([name for name in refused if name != "*"], path, unknown)


def _bare(names: Sequence[str]) -> list[str]:
    """Without what a program lets it do with the tool: `Bash(git log:*)`. What may run is for the user's own rules to say."""
    return [name.partition("(")[0].strip() for name in names]


def _translated(names: Sequence[str], path: str, unknown: dict[str, str]) -> tuple[str, ...]:
    """Our names. Those of an MCP server's tools are taken as they are: which there are is not known yet."""
    ours: list[str] = []
    for name in names:
        if known := _TOOLS.get(name.lower()):
            ours += known
        elif name.startswith("mcp_"):
            ours.append(name)
        else:
            unknown.setdefault(one_line(name, 60), path)
    return tuple(dict.fromkeys(ours))
