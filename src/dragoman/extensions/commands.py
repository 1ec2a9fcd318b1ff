"""Slash commands defined in files: Markdown of Claude Code, opencode, Codex, TOML of gemini-cli, both of ours. A folder is `dir:`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

import msgspec

from dragoman.base.text import one_line
from dragoman.extensions.agent_limits import find_refusal
from dragoman.extensions.files import SearchFolder, SourceProblem, Unreadable, Walk, read_text
from dragoman.extensions.frontmatter import read_frontmatter
from dragoman.extensions.opencode_config import DefinedTable, defined_tables
from dragoman.extensions.plugins import Plugin, search_folders
from dragoman.extensions.skills import tools_of
from dragoman.extensions.sources import ProgramFolder, fill_root
from dragoman.extensions.templates import Style
from dragoman.values.origin import Origin
from dragoman.words import say

FOLDERS: dict[str, tuple[str, ...]] = {
    "dragoman": ("commands",),
    "claude": ("commands",),
    "codex": ("prompts",),
    "gemini": ("commands",),
    "opencode": ("commands", "command"),
}
ENDINGS: dict[str, tuple[str, ...]] = {"gemini": (".toml",), "dragoman": (".md", ".toml")}
MAX_COMMANDS = 1_000
MAX_COMMAND_BYTES = 200_000
_NAME = re.compile(r"[\w][\w.-]{0,63}")


class FileCommand(msgspec.Struct, frozen=True):
    """One command, with the prompt it stands for."""

    name: str
    """Without its slash: `review`, `git:commit`, `plugin:review`."""
    template: str
    style: Style
    origin: Origin
    description: str = ""
    argument_hint: str = ""
    allowed_tools: tuple[str, ...] | None = None
    """None: it does not say which it needs. Empty: it needs none."""
    disallowed_tools: tuple[str, ...] = ()
    agent: str = ""
    """The agent that it wants to be run by; what that may not do, it may not do either."""
    model: str = ""
    swallows: bool = False
    """Whether the last numbered argument takes all further words."""
    argument_names: tuple[str, ...] | None = ()
    """What the arguments are called in order; None: they name themselves."""


class FoundCommands(msgspec.Struct, frozen=True):
    """The slash commands that files define."""

    found: tuple[FileCommand, ...] = ()
    problems: tuple[SourceProblem, ...] = ()


def find_commands(folders: Sequence[ProgramFolder], plugins: Sequence[Plugin] = ()) -> FoundCommands:
    """All commands that are defined. If several have the same name, the one in the nearest folder wins."""
    found: dict[str, FileCommand] = {}
    problems: list[SourceProblem] = []
    read = [folder for folder in folders if folder.program != "codex" or folder.tier == "user"]  # Codex has none in projects
    for place in search_folders(read, plugins, "commands", FOLDERS):
        for path, names in _files(place, problems):
            if len(found) >= MAX_COMMANDS:
                problems.append(SourceProblem(place.origin(place.path), say("skills.too_many_commands", most=MAX_COMMANDS)))
                return FoundCommands(tuple(found.values()), tuple(problems))
            name = _name_of(place, names)
            if name in found and place.program == "gemini" and place.plugin:
                name = f"{place.plugin}.{name}"
            if not name:
                problems.append(SourceProblem(place.origin(path), say("skills.command_name")))
            elif name not in found and (command := _read_command(place, path, name, problems)) is not None:
                found[name] = command
                if place.program == "codex" and not place.plugin:  # what Codex itself calls it
                    found.setdefault(f"prompts:{name}", msgspec.structs.replace(command, name=f"prompts:{name}"))
    for table in defined_tables(folders, "command"):
        if table.name not in found and (command := _command_in(table, problems)) is not None:
            found[table.name] = command
    return FoundCommands(tuple(found.values()), tuple(problems))


def _files(place: SearchFolder, problems: list[SourceProblem]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The files of a folder, each with the names that make the command's."""
    endings = (".md", ".toml") if place.plugin else ENDINGS.get(place.program, (".md",))
    if os.path.isfile(place.path):  # a plugin may name single files
        yield place.path, (os.path.splitext(os.path.basename(place.path))[0],)
        return
    if not os.path.isdir(place.path):
        return
    walk = Walk(place)
    for folder, below, files in walk:
        for file in files:
            stem, ending = os.path.splitext(file)
            is_hidden = any(name.startswith(".") for name in (*below, stem))  # .github, .DS_Store
            if ending in endings and stem.lower() != "readme" and not is_hidden:
                yield os.path.join(folder, file), (*below, stem)
    problems += walk.problems


def _name_of(place: SearchFolder, names: tuple[str, ...]) -> str:
    if not all(map(_NAME.fullmatch, names)):
        return ""
    if place.program == "gemini" and place.plugin:  # extensions name their commands by their folders alone
        return ":".join(names)
    return ":".join((place.plugin, *names) if place.plugin else names)


def _read_command(place: SearchFolder, path: str, name: str, problems: list[SourceProblem]) -> FileCommand | None:
    try:
        text = read_text(place, path, MAX_COMMAND_BYTES)
    except Unreadable as error:
        problems.append(SourceProblem(place.origin(path), str(error)))
        return None
    if path.endswith(".toml"):
        return _read_toml(place, path, name, text, problems)
    head = read_frontmatter(text)
    if (refusal := find_refusal(text, head)) is not None:
        problems.append(SourceProblem(place.origin(path, refusal.line), refusal.reason))
        return None
    if head.faults:  # one notice for a file; it is used nevertheless
        problems.append(SourceProblem(place.origin(path, head.faults[0].line), head.faults[0].reason))
    if not head.body.strip():
        problems.append(SourceProblem(place.origin(path, head.body_line), say("skills.empty_command")))
        return None
    return FileCommand(
        name=name,
        template=fill_root(head.body.strip("\n"), place.within if place.plugin else ""),
        style="markdown",
        origin=place.origin(path),
        description=one_line(head.text("description"), 200) or one_line(head.body.strip().split("\n")[0].lstrip("# "), 80),
        argument_hint=one_line(head.text("argument-hint"), 80),
        allowed_tools=tools_of(head, "allowed"),
        disallowed_tools=tools_of(head, "disallowed") or (),
        agent=head.text("agent"),
        model=head.text("model"),
        swallows=place.program == "opencode",
        argument_names=None if place.program == "codex" else tuple(head.words("arguments", ", ")),
    )


def _command_in(table: DefinedTable, problems: list[SourceProblem]) -> FileCommand | None:
    try:
        template = table.long_text("template").strip("\n")
    except Unreadable as error:
        problems.append(SourceProblem(table.origin, str(error)))
        return None
    reason = say("skills.command_name") if not _NAME.fullmatch(table.name) else say("skills.empty_command") if not template.strip() else ""
    if reason:
        problems.append(SourceProblem(table.origin, reason))
        return None
    return FileCommand(
        name=table.name,
        template=template,
        style="markdown",
        origin=table.origin,
        description=one_line(table.text("description"), 200) or one_line(template.split("\n")[0], 80),
        agent=table.text("agent"),
        model=table.text("model"),
        swallows=True,
    )


def _read_toml(place: SearchFolder, path: str, name: str, text: str, problems: list[SourceProblem]) -> FileCommand | None:
    import tomllib

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        problems.append(
            SourceProblem(place.origin(path, int(line[1]) if line else text.count("\n") + 1), say("skills.not_toml", reason=str(error)))
        )
        return None
    prompt, description = table.get("prompt"), table.get("description")
    if not isinstance(prompt, str) or not prompt.strip():
        problems.append(SourceProblem(place.origin(path), say("skills.no_prompt")))
        return None
    return FileCommand(
        name=name,
        template=prompt.strip("\n"),
        style="toml",
        origin=place.origin(path),
        description=one_line(description, 200) if isinstance(description, str) else one_line(prompt.strip().split("\n")[0], 80),
    )
