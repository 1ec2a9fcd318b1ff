"""Reads which hooks a file defines: one shape for all programs, with their own event names and units of time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.base import jsontext
from dragoman.base.words import say
from dragoman.extensions import located_json
from dragoman.extensions.hooks.names import Event, events_of
from dragoman.extensions.sources import Origin, Program, ProgramFolder

if TYPE_CHECKING:
    from dragoman.extensions.plugins import Plugin

MAX_TIMEOUT_S = 3_600.0
DEFAULT_TIMEOUT_S: dict[str, float] = {"claude": 600.0, "codex": 600.0}
USUAL_TIMEOUT_S = 60.0
SESSION_END_S = 1.5
"""How long a hook at the end of a session may take that names no time: the user waits for it."""
FILES: dict[Program, tuple[str, ...]] = {
    "claude": ("settings.json", "settings.local.json"),
    "codex": ("hooks.json", "config.toml"),
    "gemini": ("settings.json",),
}
"""Where programs define hooks, in their folders. Ours are in the configuration."""
LineOf = Callable[[str, int, int | None], int]
"""The line of an event's n-th group, or of a hook in it by its number; 0: not known."""


class Hook(msgspec.Struct, frozen=True):
    """One command at one event."""

    event: Event
    named: str
    """The event as its file calls it."""
    command: str
    origin: Origin
    matcher: str = ""
    args: tuple[str, ...] | None = None
    """Where there are any, the command is a program that is started with them; else a line for the shell."""
    timeout_s: float = USUAL_TIMEOUT_S
    project: str = ""
    """The project's folder that it comes with; empty for the user's own."""
    is_async: bool = False
    name: str = ""
    root: str = ""
    """The folder of the plugin that it comes with."""
    speaks: Program | None = None
    """Whose names for events and tools it uses, where that is not the program whose file it is."""

    @property
    def program(self) -> Program:
        return self.speaks or self.origin.program

    @property
    def line(self) -> str:
        """What is run, in one line."""
        return " ".join((self.command, *(self.args or ())))

    @property
    def id(self) -> str:
        """Short, and the same for as long as the same is run at the same event."""
        parts = [self.named, self.matcher, self.command, *(self.args if self.args is not None else ("\0",)), self.project, self.program]
        parts += [self.root] if self.root else []
        return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:8]


class FoundHooks(msgspec.Struct, frozen=True):
    hooks: tuple[Hook, ...] = ()
    notices: tuple[str, ...] = ()
    """One for each file with something that is not run."""


def files_in(folder: ProgramFolder) -> list[str]:
    """The files of a folder that may define hooks. They need not exist."""
    names = FILES.get(folder.program, ())
    return [os.path.join(folder.path, name) for name in names if folder.tier == "project" or name != "settings.local.json"]


def read_json_hooks(text: str, path: str, folder: ProgramFolder) -> FoundHooks:
    """Never raises: what is wrong is said in one notice that names file and line."""
    place = Origin(folder.program, folder.tier, path)
    try:
        data = located_json.decode(text)
    except located_json.WrongJson as error:
        return FoundHooks((), (say("hooks.bad_file", place=f"{path}:{error.line}", reason=error),))
    if not isinstance(data, dict) or _is_switched_off(data, folder.program):
        return FoundHooks()
    table = data.get("hooks")
    return read_hooks(table, place, folder.project, disabled=_disabled(data), line_of=_lines_in(text, table))


def _lines_in(text: str, table: Any) -> LineOf:
    """Looked up in one go, where there is something to look up."""
    events = table if isinstance(table, dict) else {}
    groups = [(event, at, group) for event, each in events.items() if isinstance(each, list) for at, group in enumerate(each)]
    paths = [("hooks", event, str(at)) for event, at, _ in groups]
    paths += [
        ("hooks", event, str(at), "hooks", str(number))
        for event, at, group in groups
        if isinstance(group, dict) and isinstance(rows := group.get("hooks"), list)
        for number in range(len(rows))
    ]
    lines = located_json.lines_of(text, paths)
    return lambda event, at, number: lines.get(("hooks", event, str(at), *(() if number is None else ("hooks", str(number)))), 0)


def read_plugin_hooks(text: str, path: str, plugin: Plugin) -> FoundHooks:
    """Those of a plugin, whose folder they may name by a variable."""
    origin = plugin.origin
    found = read_json_hooks(text, path, ProgramFolder(plugin.speaks, origin.tier, plugin.path, plugin.project))
    hooks = (
        msgspec.structs.replace(
            hook, root=plugin.path, speaks=plugin.speaks, origin=Origin(origin.program, origin.tier, path, hook.origin.line)
        )
        for hook in found.hooks
    )
    return FoundHooks(tuple(hooks), found.notices)


def _is_switched_off(data: Mapping[str, Any], program: Program) -> bool:
    settings = data.get("hooksConfig")
    if program == "gemini" and isinstance(settings, Mapping) and settings.get("enabled") is False:
        return True
    return data.get("disableAllHooks") is True


def _disabled(data: Mapping[str, Any]) -> frozenset[str]:
    """Names or commands that gemini-cli's user has switched off."""
    settings = data.get("hooksConfig")
    names = settings.get("disabled") if isinstance(settings, Mapping) else None
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def read_hooks(
    table: Any,
    place: Origin,
    project: str = "",
    *,
    disabled: frozenset[str] = frozenset(),
    line_of: LineOf = lambda event, at, number: 0,
) -> FoundHooks:
    """The hooks of a table that has lists by event."""
    if table is None:
        return FoundHooks()
    if not isinstance(table, Mapping):
        return FoundHooks((), (say("hooks.bad_file", place=str(place), reason=say("hooks.not_a_table")),))
    reading = _Reading(place, project, disabled)
    for name, groups in table.items():
        if not isinstance(groups, Sequence) or isinstance(groups, str):
            if not isinstance(groups, bool):  # older files of gemini-cli have a switch among the events
                reading.refuse(place, say("hooks.not_a_list", event=str(name)[:60]))
            continue
        for at, group in enumerate(groups):
            reading.add_group(str(name), group, partial(line_of, str(name), at))
    return FoundHooks(tuple(reading.hooks), reading.notices())


class _Reading:
    def __init__(self, place: Origin, project: str, disabled: frozenset[str]) -> None:
        self._place = place
        self._project = project
        self._disabled = disabled
        self.hooks: list[Hook] = []
        self._unknown: dict[str, Origin] = {}
        self._wrong: list[str] = []

    def notices(self) -> tuple[str, ...]:
        """One at most."""
        problems = list(self._wrong)
        if self._unknown:
            first = next(iter(self._unknown.values()))
            problems.append(say("hooks.no_equal", place=str(first), events=", ".join(self._unknown)))
        if not problems:
            return ()
        return (problems[0] if len(problems) == 1 else say("hooks.several_problems", first=problems[0], more=len(problems) - 1),)

    def refuse(self, at: Origin, reason: str) -> None:
        self._wrong.append(say("hooks.bad_hook", place=str(at), reason=reason))

    def add_group(self, name: str, group: Any, line_of: Callable[[int | None], int]) -> None:
        at = msgspec.structs.replace(self._place, line=line_of(None))
        if not isinstance(group, Mapping):
            return self.refuse(at, say("hooks.not_a_table"))
        events = events_of(self._place.program, name)
        if not events:
            self._unknown.setdefault(name[:60], at)
            return None
        matcher = group.get("matcher", "")
        if not isinstance(matcher, str):
            return self.refuse(at, say("hooks.not_text", key="matcher"))
        rows = group.get("hooks", [group] if "command" in group else None)  # ours may stand without a list
        if not isinstance(rows, Sequence) or isinstance(rows, str):
            return self.refuse(at, say("hooks.not_a_list", event="hooks"))
        for number, row in enumerate(rows):
            self._add(name, events, matcher, row, msgspec.structs.replace(at, line=line_of(number) or at.line))
        return None

    def _add(self, name: str, events: tuple[Event, ...], matcher: str, row: Any, at: Origin) -> None:
        if not isinstance(row, Mapping):
            return self.refuse(at, say("hooks.not_a_table"))
        kind, command = row.get("type", "command"), row.get("command")
        if kind != "command":
            return self.refuse(at, say("hooks.not_a_command", kind=str(kind)[:40]))
        if "if" in row:
            return self.refuse(at, say("hooks.has_if"))
        args = row.get("args")
        if not isinstance(command, str) or not command.strip() or "\0" in command:
            return self.refuse(at, say("hooks.not_text", key="command"))
        if args is not None and not (isinstance(args, Sequence) and all(isinstance(each, str) for each in args)):
            return self.refuse(at, say("hooks.not_text", key="args"))
        timeout_s = self._timeout(row, events)
        if timeout_s is None:
            return self.refuse(at, say("hooks.bad_timeout"))
        label = row.get("name") if isinstance(row.get("name"), str) else ""
        if label in self._disabled or command in self._disabled:
            return None
        for event in events:
            self.hooks.append(
                Hook(
                    event,
                    name,
                    command,
                    at,
                    matcher,
                    tuple(args) if args is not None else None,
                    timeout_s,
                    self._project,
                    row.get("async") is True or row.get("asyncRewake") is True,
                    str(label or ""),
                )
            )
        return None

    def _timeout(self, row: Mapping[str, Any], events: tuple[Event, ...]) -> float | None:
        """In seconds; gemini-cli counts milliseconds. None: it is wrong."""
        given = row.get("timeout")
        if given is None:
            return SESSION_END_S if "SessionEnd" in events else DEFAULT_TIMEOUT_S.get(self._place.program, USUAL_TIMEOUT_S)
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 1e12:
            return None
        return min(given / 1000 if self._place.program == "gemini" else float(given), MAX_TIMEOUT_S)


def definition_of(hook: Hook) -> str:
    """All that decides what it runs and when, as text."""
    parts = [hook.program, hook.project, hook.named, hook.matcher, hook.command, list(hook.args) if hook.args is not None else None]
    return jsontext.dumps([*parts, hook.root] if hook.root else parts)
