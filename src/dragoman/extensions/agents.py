"""Definitions of subagents: Markdown files in the folders `agents`, ours and those of Claude Code, gemini-cli and opencode; TOML of Codex.

The frontmatter has the name, what it is for, its tools and its model; the text below is what it is told. Other programs' names of tools
are translated into ours. Nothing here is run, and no definition can stop a start: what is wrong with one is a notice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from dragoman.base.text import one_line
from dragoman.extensions.agent_limits import FileLimits, Unusable, both, doubtful_line, read_limits
from dragoman.extensions.files import SearchFolder, SourceProblem, Unreadable, Walk, read_text
from dragoman.extensions.frontmatter import Frontmatter, read_frontmatter
from dragoman.extensions.opencode_config import DefinedTable, defined_tables
from dragoman.extensions.plugins import Plugin, search_folders
from dragoman.extensions.sources import ProgramFolder
from dragoman.values.origin import Origin
from dragoman.words import say

MAX_FILES = 200
"""Of one folder."""
MAX_BYTES = 200_000
_DEEPEST = 3
_FOLDERS = {**dict.fromkeys(("dragoman", "claude", "codex", "gemini"), ("agents",)), "opencode": ("agents", "agent")}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")


class AgentDefinition(msgspec.Struct, frozen=True):
    """A subagent as its file has it."""

    name: str
    description: str
    instructions: str
    limits: FileLimits
    """What it may do, with our names of its tools."""
    model: str
    """As the file has it."""
    origin: Origin
    narrowed: tuple[tuple[int, str], ...] = ()
    """Line and sentence: in what it may do less than its file says."""


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
        if agent is not None and found.setdefault(agent.name, agent) is agent:
            for name in agent.limits.unknown:
                unknown.setdefault(one_line(name, 60), agent.origin.path)
            for line, sentence in agent.narrowed:
                at = msgspec.structs.replace(agent.origin, line=line)
                notices.append(say("subagents.narrower", where=str(at), agent=agent.name, reason=sentence))

    declared = [each for folder in folders if folder.program == "codex" for each in _declared_in(folder)]
    for place in search_folders(folders, plugins, "agents", _FOLDERS):
        walk = Walk(place)
        for file in _markdown_files(place, walk):
            if not any(file == each.file for each in declared):
                add(partial(_read_agent, place, file, notices))
        notices += map(str, walk.problems)
    for role in declared:
        add(partial(_read_role, role))
    tables = [*defined_tables(folders, "agent")]
    for table in tables:
        add(partial(_agent_in, table))
    for table in tables:
        add(partial(_change_agent, found, table))
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


def _read_agent(place: SearchFolder, path: str, notices: list[str]) -> AgentDefinition | None:
    """None if it is not a subagent but a mode of the other program, or is switched off. Raises _Wrong."""
    origin = place.origin(path)
    if path.endswith(".toml"):
        return _read_toml(_text_of(place, path), origin)
    text = _text_of(place, path)
    read = read_frontmatter(text)
    if (at := doubtful_line(text, read)) is not None:
        raise _Wrong(msgspec.structs.replace(origin, line=at.line), at.reason)
    if read.faults:
        notices.append(str(SourceProblem(msgspec.structs.replace(origin, line=read.faults[0].line), read.faults[0].reason)))
    if _is_for_others(read.text("mode"), place.program) or True in (read.flag("disable"), read.flag("disabled")):
        return None
    name = read.text("name") or os.path.basename(path).removesuffix(".md")
    if not _NAME.match(name):
        raise _Wrong(_at(origin, read, "name"), say("subagents.wrong_name", name=one_line(name, 80)))
    if not (description := read.text("description")):
        raise _Wrong(_at(origin, read, "description", 1), say("subagents.no_description"))
    limits = _limits_of(read.values, origin, read.lines)
    name = f"{place.plugin}:{name}" if place.plugin else name
    narrowed = tuple((read.lines.get(key, 0), sentence) for key, sentence in limits.notices)
    return AgentDefinition(name, description, read.body.strip(), limits, read.text("model"), _at(origin, read, "name", 1), narrowed)


def _is_for_others(mode: str, program: str) -> bool:
    """Whether it is a mode of opencode for the one who talks with the user."""
    return program == "opencode" and mode.strip().lower() not in ("", "all", "subagent")


def _limits_of(values: Mapping[str, Any], origin: Origin, lines: Mapping[str, int]) -> FileLimits:
    """Raises _Wrong, at the line that says what cannot be honoured."""
    try:
        return read_limits(values)
    except Unusable as unusable:
        line = lines.get(unusable.key.partition(".")[0], origin.line)
        raise _Wrong(msgspec.structs.replace(origin, line=line), unusable.reason) from unusable


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
    return _read_toml(text, role.origin, {"name": role.name, "description": role.description}, role.file)


def _read_toml(text: str, origin: Origin, otherwise: Mapping[str, str] = {}, path: str = "") -> AgentDefinition:
    """One of Codex; `otherwise`: what is said of it elsewhere, if its own file is another than that: `path`. Raises _Wrong."""
    import tomllib

    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"line (\d+)", str(error))
        raise _Wrong(msgspec.structs.replace(origin, line=int(line[1]) if line else 0), say("skills.not_toml", reason=error)) from error
    keys = ("name", "description", "model")
    given = {key: value if isinstance(value := values.get(key), str) else otherwise.get(key, "") for key in keys}
    # There a name may be any words; here it is one.
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", given["name"] or os.path.basename(origin.path).removesuffix(".toml")).strip("-")
    if not _NAME.match(name):
        raise _Wrong(origin, say("subagents.wrong_name", name=one_line(given["name"], 80)))
    if not given["description"]:
        raise _Wrong(origin, say("subagents.no_description"))
    instructions = values.get("developer_instructions")
    told = instructions.strip() if isinstance(instructions, str) else ""
    from dragoman.base.toml_lines import line_of

    lines = {key: line_of(text, (key,)) or 0 for key in values} if text else {}
    file = msgspec.structs.replace(origin, path=path or origin.path, line=0) if path else origin
    limits = _limits_of(values, file, lines)
    narrowed = tuple((lines.get(key, 0), sentence) for key, sentence in limits.notices)
    return AgentDefinition(name, given["description"], told, limits, given["model"], origin, narrowed)


def _agent_in(table: DefinedTable) -> AgentDefinition | None:
    """None if it is not a subagent, or changes one of opencode's own. Raises _Wrong."""
    description = table.text("description")
    is_off = True in (table.values.get("disable"), table.values.get("disabled"))
    if _is_for_others(table.text("mode"), "opencode") or is_off or not description:
        return None
    if not _NAME.match(table.name):
        raise _Wrong(table.origin, say("subagents.wrong_name", name=one_line(table.name, 80)))
    try:
        instructions = table.long_text("prompt").strip()
    except Unreadable as error:
        raise _Wrong(table.origin, str(error)) from error
    limits = _limits_of(table.values, table.origin, {})
    narrowed = tuple((table.origin.line, sentence) for _, sentence in limits.notices)
    return AgentDefinition(table.name, description, instructions, limits, table.text("model"), table.origin, narrowed)


def _change_agent(found: dict[str, AgentDefinition], table: DefinedTable) -> None:
    """A table may be about an agent that another file defines: what it takes away is taken away. Raises _Wrong."""
    agent = found.get(table.name)
    if agent is None or agent.origin.program != "opencode" or agent.origin == table.origin:
        return
    del found[table.name]
    if _is_for_others(table.text("mode"), "opencode") or True in (table.values.get("disable"), table.values.get("disabled")):
        return
    limits = both(agent.limits, _limits_of(table.values, table.origin, {}))
    if limits is None:
        raise _Wrong(table.origin, say("subagents.said_twice", key="tools", other=str(agent.origin)))
    found[table.name] = msgspec.structs.replace(agent, limits=limits)


def _text_of(place: SearchFolder, path: str) -> str:
    try:
        return read_text(place, path, MAX_BYTES)
    except Unreadable as error:
        raise _Wrong(place.origin(path), str(error)) from error


def _at(origin: Origin, read: Frontmatter, key: str, otherwise: int = 0) -> Origin:
    return msgspec.structs.replace(origin, line=read.lines.get(key, otherwise))
